// The options that benchmarks share: where the pool is, what its memory costs, how commits are
// done.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/cli_fwd.h"
#include "tools/option_effects.h"
#include "workloads/machine.h"
#include "workloads/system.h"

namespace sp3::tools {

struct StoreArguments {
  std::string memory = "emulated";
  std::string path;
  std::string pool_size;
  unsigned latency_ns = 0;
  unsigned line_ns = 0;
  std::string model = "fence";
  std::string flush = "automatic";
  std::string durability = "sync";
  unsigned group = AsyncOptions{}.group_records;
  std::string locks = to_string(Options{}.locks);
  std::string range_lock = to_string(Options{}.range_lock);
  unsigned checkpoint_ms = CheckpointOptions{}.interval_ms;
  unsigned checkpoint_threads = CheckpointOptions{}.threads;
};

// What memory there is and how commits use it.
void add_memory_options(CLI::App& command, StoreArguments& arguments);
// What is chosen of a benchmark with these options.
Chosen chosen(std::vector<workloads::WorkloadKind> kinds, std::vector<std::string> systems,
              const StoreArguments& arguments);
// What add_memory_options() reads back, of what means something to those that are chosen.
std::vector<std::string> memory_arguments(const StoreArguments& arguments, const Chosen& chosen);
// The same options, and how large the pool is and when it is checkpointed.
void add_store_options(CLI::App& command, StoreArguments& arguments);

// `room`: bytes of a pool that is made there whatever --pool-size says. Throws UsageError.
workloads::SystemOptions system_options(const StoreArguments& arguments, std::uint64_t room = 0);

// Throws UsageError if there is a file that a benchmark would overwrite, or no directory for it.
void require_usable(const std::filesystem::path& path);

// For headings: "emulated memory", and what holds it if that is not memory.
std::string describe_memory(const workloads::SystemOptions& options);

// For headings: "+500 ns (fence)", and what each line adds, if it does.
std::string describe(const Latency& latency);

// For headings, a line of its own: the CPU, and what the program was built from.
void print_origin(std::FILE* out);

// The arguments as members of a result row. `flush` is what the memory uses, never automatic.
nlohmann::json to_json(const workloads::SystemOptions& options, FlushInstruction flush);
nlohmann::json to_json(const workloads::Machine& machine);

// What one flushed line and one fence cost on this memory, emulated latency included.
struct FlushCost {
  double nanoseconds = 0;
  FlushInstruction instruction = FlushInstruction::automatic;  // the one in use, never automatic
};

// For headings: "one line flushed and fenced costs 612 ns here".
std::string describe(const FlushCost& flush);

}  // namespace sp3::tools
