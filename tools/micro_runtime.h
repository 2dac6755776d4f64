// Microbenchmarks of the runtime's own instructions: one session, a few objects that stay in cache.
//
// The same source runs natively (`sp3 micro --calibrate`) and on the simulated machine (`sp3 sim
// --calibrate`): what the two differ by is what the simulator must charge for instructions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <sp3/options.h>

namespace sp3::tools {

struct RuntimeMicro {
  std::string name;  // read_1, read_8, write_1, write_8, durable_1, durable_8
  double ns = 0;     // of a transaction
  double lines = 0;  // flushed by it
};

inline constexpr std::uint64_t kRuntimePool = std::uint64_t{64} << 20;  // bytes of each pool

// Transactions that read objects one after the other (each says which is next), that write objects
// under CommitPolicy::volatile_only, and durably. `count` of each. The pool at `path` is made and
// removed.
std::vector<RuntimeMicro> run_runtime_micros(const std::filesystem::path& path,
                                             const Options& options, std::uint64_t count);

}  // namespace sp3::tools
