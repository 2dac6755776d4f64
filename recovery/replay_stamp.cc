// Replay in stamp order, shard by shard.
//
// A home is written where memory is cold: the time goes into waiting for it. So each shard runs a
// little ahead of itself: a write leaves the merge kLogAhead writes before it is applied, when its
// log bytes are asked for, and kHomeAhead before, when they have come, its home is. The flush
// follows each store at once while the lines are in the cache; one fence at the end of the shard
// retires them all.
#include <array>
#include <atomic>
#include <mutex>

#include "base/mutant.h"
#include "emu/clock.h"
#include "emu/threads.h"
#include "recovery/apply.h"
#include "recovery/merge.h"
#include "recovery/replay.h"

namespace sp3::recovery {
namespace {

constexpr std::uint64_t kLogAhead = 32;
constexpr std::uint64_t kHomeAhead = 16;
constexpr std::uint64_t kRing = 64;
constexpr std::uint64_t kProgressEvery = std::uint64_t{64} * 1024;

void ask_for_log(const std::byte* at) {
  __builtin_prefetch(at);
  __builtin_prefetch(at + base::kCacheLine);
}

void ask_for_home(const emu::Memory& memory, const log::WriteView& write) {
  constexpr std::uint64_t kMost = 512;  // of a larger object the hardware fetches the rest in time
  const std::uint64_t bytes = write.payload.size() < kMost ? write.payload.size() : kMost;
  for (std::uint64_t i = 0; i < bytes; i += base::kCacheLine) memory.prefetch_store(write.slot + i);
}

class Shard {
 public:
  Shard(const ReplayContext& context, std::uint32_t number)
      : context_(context), file_(context.selection.file), merge_(context.preparation, number) {}

  template <class Progress>
  emu::IoStatus replay(Progress&& progress) {
    std::uint64_t taken = 0;
    std::uint64_t asked = 0;
    std::uint64_t applied = 0;
    while (!merge_.empty() || applied < taken) {
      if (!merge_.empty()) {
        ring_[taken % kRing] = merge_.front().offset;
        ask_for_log(file_ + ring_[taken++ % kRing]);
        merge_.pop();
      }
      const bool drained = merge_.empty();
      if (asked < taken && (drained || taken - asked > kLogAhead - kHomeAhead)) {
        ask_for_home(context_.memory, write_at(ring_[asked++ % kRing]));
      }
      if (applied < asked && (drained || taken - applied > kLogAhead)) {
        const log::WriteView write = write_at(ring_[applied++ % kRing]);
        apply_write(context_.memory, context_.plan, write);
        flush_write(context_.memory, write, counts_);
        if (applied % kProgressEvery == 0) progress(kProgressEvery);
      }
    }
    progress(applied % kProgressEvery);
    if (base::mutant(base::Mutant::no_fence_replay_by_stamp)) return {};
    return context_.memory.fence(counts_);
  }

 private:
  [[nodiscard]] log::WriteView write_at(std::uint64_t offset) const {
    log::WriteView write;
    log::RecordView::read_write(file_ + offset, write);
    return write;
  }

  const ReplayContext& context_;
  const std::byte* const file_;
  Merge merge_;
  std::array<std::uint64_t, kRing> ring_{};
  emu::FlushCounts counts_;
};

}  // namespace

emu::IoStatus replay_by_stamp(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  populate_homes(context);
  emu::Mutex mutex;
  std::uint64_t done = 0;
  emu::IoStatus status;
  context.executor.parallel_for(context.shards, [&](std::size_t number) {
    Shard shard(context, static_cast<std::uint32_t>(number));
    const emu::IoStatus fenced = shard.replay([&](std::uint64_t writes) {
      const std::lock_guard lock(mutex);
      done += writes;
      if (context.progress) context.progress(done);
    });
    const std::lock_guard lock(mutex);
    if (!fenced.ok()) status = fenced;
  });
  times.replay += emu::ticks() - start;
  return status;
}

}  // namespace sp3::recovery
