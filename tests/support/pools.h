// What tests of whole pools share: tiny geometries, ways to run the protocol, files as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <sp3/sp3.h>

#include "tests/support/errors.h"
#include "tests/support/temp_path.h"

namespace sp3 {
inline std::ostream& operator<<(std::ostream& to, ErrorCode code) { return to << to_string(code); }
}  // namespace sp3

namespace sp3::test {

inline constexpr std::uint64_t kTinyPool = std::uint64_t{256} * 1024;

// Sixteen 4 KiB log segments and 4 KiB slabs: checkpoints, log recycling, waiting for log space and
// slab re-carving happen within a few hundred transactions.
inline Options tiny_options(MemoryKind memory = MemoryKind::emulated) {
  Options options;
  options.memory = memory;
  options.geometry = {std::uint64_t{64} * 1024, 4096, 4096, 7};
  options.recovery.threads = 1;
  options.checkpoint.threads = 1;
  options.checkpoint.interval_ms = 2;
  return options;
}

// The same without anything that happens by itself.
inline Options quiet_options(MemoryKind memory = MemoryKind::emulated) {
  Options options = tiny_options(memory);
  options.checkpoint.background = false;
  options.watermark_ms = 0;
  options.async.group_microseconds = 60'000'000;
  return options;
}

// One way to run the protocol.
struct Mode {
  MemoryKind memory = MemoryKind::emulated;
  CommitPolicy policy = CommitPolicy::speculative;
  LockTiming locks = LockTiming::commit;
  bool async = false;

  [[nodiscard]] std::string name() const {
    return std::string(to_string(memory)) + ", " + to_string(policy) + ", locks at " +
           to_string(locks) + (async ? ", async" : ", sync");
  }
  void apply(Options& options) const {
    options.memory = memory;
    options.policy = policy;
    options.locks = locks;
  }
};

inline std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (const auto policy : {CommitPolicy::speculative, CommitPolicy::conservative}) {
      for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
        for (const bool async : {false, true}) modes.push_back({memory, policy, locks, async});
      }
    }
  }
  return modes;
}

inline std::vector<char> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::filesystem::path& path, const std::vector<char>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Runs body(i) on `count` threads and waits for them.
inline void on_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

// A small random generator whose sequence is the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  std::uint64_t below(std::uint64_t limit) { return (*this)() % limit; }

 private:
  std::uint64_t state_;
};

}  // namespace sp3::test
