#include "tools/bench_options.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/file_system_of.h"
#include "tools/print_to.h"
#include "workloads/unused_path.h"

namespace sp3::tools {

namespace {

// What the store was on; nothing where it was emulated in memory, or simulated.
std::optional<std::string> file_system(const workloads::SystemOptions& options) {
  if (options.simulated) return {};
  // The store itself may be gone by now.
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(options.path, error);
  std::string found = file_system_of(std::filesystem::weakly_canonical(path.parent_path(), error));
  if (options.pool.memory == MemoryKind::emulated && found.starts_with("tmpfs ")) return {};
  return found;
}

}  // namespace

void add_memory_options(CLI::App& command, StoreArguments& a) {
  command.add_option("--memory", a.memory, "emulated, file or dax")->capture_default_str();
  command.add_option(
      "--path", a.path,
      "the pool file, made and removed (default: here; for emulated in /dev/shm, or where there is "
      "room)");
  command.add_option("--latency-ns", a.latency_ns, "what emulated memory adds")
      ->capture_default_str();
  command.add_option("--line-ns", a.line_ns, "added per line at a fence")->capture_default_str();
  command.add_option("--model", a.model, "when it is added: line, fence or yield")
      ->capture_default_str();
  command
      .add_option("--flush", a.flush, "automatic, clflush, clflushopt, clwb, non_temporal or none")
      ->capture_default_str();
  command.add_option("--durability", a.durability, "sync or async")->capture_default_str();
  command.add_option("--group", a.group, "asynchronous transactions flushed together")
      ->capture_default_str();
  command.add_option("--locks", a.locks, "write locks at commit or at encounter")
      ->capture_default_str();
  command.add_option("--range-lock", a.range_lock, "of ranged objects: skiplist or grid")
      ->capture_default_str();
}

Chosen chosen(std::vector<workloads::WorkloadKind> kinds, std::vector<std::string> systems,
              const StoreArguments& a) {
  return {.workloads = std::move(kinds),
          .systems = std::move(systems),
          .asynchronous = a.durability == "async"};
}

std::vector<std::string> memory_arguments(const StoreArguments& a, const Chosen& chosen) {
  std::vector<std::string> arguments =
      arguments_with_effect({{"--memory", a.memory},
                             {"--latency-ns", fmt::to_string(a.latency_ns)},
                             {"--line-ns", fmt::to_string(a.line_ns)},
                             {"--model", a.model},
                             {"--flush", a.flush},
                             {"--durability", a.durability},
                             {"--group", fmt::to_string(a.group)},
                             {"--locks", a.locks},
                             {"--range-lock", a.range_lock}},
                            chosen);
  if (!a.path.empty()) arguments.insert(arguments.end(), {"--path", a.path});
  return arguments;
}

void add_store_options(CLI::App& command, StoreArguments& a) {
  add_memory_options(command, a);
  command.add_option("--pool-size", a.pool_size, "bytes, with K, M, G (default: from the entries)");
  command
      .add_option("--checkpoint-threads", a.checkpoint_threads,
                  "that bring objects home (0: one for each eight cores)")
      ->capture_default_str();
  command.add_option("--checkpoint-ms", a.checkpoint_ms, "checkpoint interval, 0: none by time")
      ->capture_default_str();
}

workloads::SystemOptions system_options(const StoreArguments& a, std::uint64_t room) {
  workloads::SystemOptions o;
  o.pool.memory = parse_memory(a.memory);
  if (o.pool.memory == MemoryKind::automatic) {
    throw UsageError("--memory: wanted emulated, file or dax: a result must say what it measured");
  }
  if ((a.latency_ns != 0 || a.line_ns != 0) && o.pool.memory != MemoryKind::emulated) {
    throw UsageError(fmt::format("{}: only emulated memory has an added latency",
                                 a.latency_ns != 0 ? "--latency-ns" : "--line-ns"));
  }
  if (a.flush != to_string(FlushInstruction::automatic) && o.pool.memory == MemoryKind::file) {
    throw UsageError("--flush: file memory is not flushed by an instruction");
  }
  // The other systems take the same window, and none would refuse a group of nothing.
  if (a.group < 1) throw UsageError("--group: wanted at least 1, found 0");
  o.pool.latency.model = parse_enum("--model", a.model, LatencyModel::yield);
  o.pool.latency.nanoseconds = a.latency_ns;
  o.pool.latency.per_line_nanoseconds = a.line_ns;
  o.pool.flush = parse_enum("--flush", a.flush, FlushInstruction::none);
  o.pool.locks = parse_enum("--locks", a.locks, LockTiming::encounter);
  o.pool.range_lock = parse_enum("--range-lock", a.range_lock, RangeLockKind::grid);
  o.pool.async.group_records = a.group;
  o.pool.checkpoint.interval_ms = a.checkpoint_ms;
  o.pool.checkpoint.threads = a.checkpoint_threads;
  if (a.durability != "sync" && a.durability != "async") {
    throw UsageError("--durability: wanted sync or async, found '" + a.durability + "'");
  }
  o.asynchronous = a.durability == "async";
  if (!a.pool_size.empty()) o.pool_size = parse_size(a.pool_size);
  o.path = a.path;
  if (a.path.empty()) {
    o.path = workloads::unused_path(default_directory(o.pool.memory, std::max(room, o.pool_size)),
                                    "sp3-bench");
  } else {
    require_usable(o.path);
  }
  return o;
}

void require_usable(const std::filesystem::path& path) {
  if (workloads::is_taken(path)) {
    throw UsageError(
        fmt::format("--path: {} exists; a benchmark would overwrite it", path.string()));
  }
  const std::filesystem::path directory = path.parent_path();
  std::error_code ignored;
  if (directory.empty() || std::filesystem::is_directory(directory, ignored)) return;
  throw UsageError(fmt::format("--path: wanted a file in a directory, found no directory '{}'",
                               directory.string()));
}

std::string describe_memory(const workloads::SystemOptions& options) {
  std::string text = fmt::format("{} memory", to_string(options.pool.memory));
  if (const auto where = file_system(options)) text += ", on " + *where;
  return text;
}

std::string describe(const Latency& latency) {
  std::string text = fmt::format("+{} ns ({})", latency.nanoseconds, to_string(latency.model));
  if (latency.per_line_nanoseconds != 0) {
    text += fmt::format(", +{} ns for each line at a fence", latency.per_line_nanoseconds);
  }
  return text;
}

std::string describe(const FlushCost& flush) {
  return fmt::format("one line flushed and fenced costs {:.0f} ns here", flush.nanoseconds);
}

void print_origin(std::FILE* out) {
  print_to(out, "{}; built from {}\n", workloads::describe_machine().cpu, workloads::built_from());
}

nlohmann::json to_json(const workloads::SystemOptions& o, FlushInstruction flush) {
  const auto where = file_system(o);
  return {{"memory", to_string(o.pool.memory)},
          {"latency_ns", o.pool.latency.nanoseconds},
          {"latency_line_ns", o.pool.latency.per_line_nanoseconds},
          {"latency_model", to_string(o.pool.latency.model)},
          {"flush", to_string(flush)},
          {"locks", to_string(o.pool.locks)},
          {"range_lock", to_string(o.pool.range_lock)},
          {"group", o.pool.async.group_records},
          {"checkpoint_ms", o.pool.checkpoint.interval_ms},
          {"checkpoint_threads", o.pool.checkpoint.threads},
          {"file_system", where ? nlohmann::json(*where) : nlohmann::json()}};
}

nlohmann::json to_json(const workloads::Machine& m) {
  return {{"cpu", m.cpu},
          {"cores", m.cores},
          {"flags", m.flags},
          {"kernel", m.kernel},
          {"compiler", m.compiler}};
}

}  // namespace sp3::tools
