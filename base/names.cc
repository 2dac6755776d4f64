// The names of the public options, as they are written in sp3/options.h.
#include <sp3/options.h>

namespace sp3 {
namespace {
constexpr const char* kOutOfRange = "?";
}

const char* to_string(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::automatic:
      return "automatic";
    case MemoryKind::dax:
      return "dax";
    case MemoryKind::file:
      return "file";
    case MemoryKind::emulated:
      return "emulated";
  }
  return kOutOfRange;
}

const char* to_string(LatencyModel model) noexcept {
  switch (model) {
    case LatencyModel::line:
      return "line";
    case LatencyModel::fence:
      return "fence";
    case LatencyModel::yield:
      return "yield";
  }
  return kOutOfRange;
}

const char* to_string(FlushInstruction instruction) noexcept {
  switch (instruction) {
    case FlushInstruction::automatic:
      return "automatic";
    case FlushInstruction::clflush:
      return "clflush";
    case FlushInstruction::clflushopt:
      return "clflushopt";
    case FlushInstruction::clwb:
      return "clwb";
    case FlushInstruction::non_temporal:
      return "non_temporal";
    case FlushInstruction::none:
      return "none";
  }
  return kOutOfRange;
}

const char* to_string(CommitPolicy policy) noexcept {
  switch (policy) {
    case CommitPolicy::speculative:
      return "speculative";
    case CommitPolicy::conservative:
      return "conservative";
    case CommitPolicy::ideal:
      return "ideal";
    case CommitPolicy::volatile_only:
      return "volatile_only";
  }
  return kOutOfRange;
}

const char* to_string(LockTiming timing) noexcept {
  switch (timing) {
    case LockTiming::commit:
      return "commit";
    case LockTiming::encounter:
      return "encounter";
  }
  return kOutOfRange;
}

const char* to_string(RangeLockKind kind) noexcept {
  switch (kind) {
    case RangeLockKind::skiplist:
      return "skiplist";
    case RangeLockKind::grid:
      return "grid";
  }
  return kOutOfRange;
}

const char* to_string(RecoveryStrategy strategy) noexcept {
  switch (strategy) {
    case RecoveryStrategy::stamp:
      return "stamp";
    case RecoveryStrategy::dag:
      return "dag";
  }
  return kOutOfRange;
}

}  // namespace sp3
