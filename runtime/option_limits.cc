#include "runtime/option_limits.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include <sp3/error.h>

#include "emu/threads.h"
#include "runtime/session_shared.h"

namespace sp3::runtime {

namespace {

// Several groups at a time, or a session would wait for each before it begins the next.
constexpr std::uint32_t kMostGroupRecords = SessionShared::kItems / 2;
constexpr std::uint32_t kMostGroupMicroseconds = 60'000'000;
constexpr std::uint32_t kMostRecoveryThreads = 4096;
constexpr std::uint32_t kMostLatencyNanoseconds = 100'000'000;
constexpr std::uint32_t kMostCheckpointThreads = 64;
// A core that writes home keeps up with some eight that make transactions.
constexpr std::uint32_t kCoresOfCarrier = 8;
constexpr std::uint32_t kMostCarriersUnasked = 8;

class Checker {
 public:
  explicit Checker(const std::string& path) : path_(path) {}

  template <class Enum>
  void is_enumerator(const char* what, Enum value, Enum last) const {
    if (value > last) refuse(what, "one of its enumerators", static_cast<std::uint64_t>(value));
  }
  void is_within(const char* name, std::uint64_t value, std::uint64_t least,
                 std::uint64_t most) const {
    if (value >= least && value <= most) return;
    refuse(fmt::format("{} is out of range", name), fmt::format("{} to {}", least, most), value);
  }
  void is_within_or_default(const char* name, std::uint64_t value, std::uint64_t most) const {
    if (value <= most) return;
    refuse(fmt::format("{} is out of range", name),
           fmt::format("1 to {}, or 0 for the default", most), value);
  }
  void is_positive(const char* name, std::uint64_t value) const {
    if (value == 0) refuse(fmt::format("{} is zero", name), "at least 1", value);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& wanted,
                           std::uint64_t found) const {
    throw Error(ErrorCode::invalid_argument, what,
                {.path = path_, .wanted = wanted, .found = std::to_string(found)});
  }

  const std::string& path_;
};

}  // namespace

void check_options(const Options& options, const std::string& path) {
  const Checker check(path);
  check.is_enumerator("memory is no MemoryKind", options.memory, MemoryKind::emulated);
  check.is_enumerator("flush is no FlushInstruction", options.flush, FlushInstruction::none);
  check.is_enumerator("policy is no CommitPolicy", options.policy, CommitPolicy::volatile_only);
  check.is_enumerator("locks is no LockTiming", options.locks, LockTiming::encounter);
  check.is_enumerator("range_lock is no RangeLockKind", options.range_lock, RangeLockKind::grid);
  check.is_enumerator("latency.model is no LatencyModel", options.latency.model,
                      LatencyModel::yield);
  check.is_within("latency.nanoseconds", options.latency.nanoseconds, 0, kMostLatencyNanoseconds);
  check.is_within("latency.per_line_nanoseconds", options.latency.per_line_nanoseconds, 0,
                  kMostLatencyNanoseconds);
  check.is_enumerator("recovery.strategy is no RecoveryStrategy", options.recovery.strategy,
                      RecoveryStrategy::dag);
  check.is_within("checkpoint.log_percent", options.checkpoint.log_percent, 1, 100);
  check.is_within_or_default("checkpoint.threads", options.checkpoint.threads,
                             kMostCheckpointThreads);
  check.is_within("async.group_records", options.async.group_records, 1, kMostGroupRecords);
  check.is_positive("async.group_bytes", options.async.group_bytes);
  check.is_within("async.group_microseconds", options.async.group_microseconds, 1,
                  kMostGroupMicroseconds);
  check.is_positive("serial_after_aborts", options.serial_after_aborts);
  check.is_positive("long_transaction_ms", options.long_transaction_ms);
  // 0: as many as there are cores.
  check.is_within("recovery.threads", options.recovery.threads, 0, kMostRecoveryThreads);
}

std::size_t checkpoint_threads(const Options& options) {
  if (options.checkpoint.threads != 0) return options.checkpoint.threads;
  const std::uint32_t cores = std::max(emu::cores(), 1U);
  return std::min(1 + (cores - 1) / kCoresOfCarrier, kMostCarriersUnasked);
}

}  // namespace sp3::runtime
