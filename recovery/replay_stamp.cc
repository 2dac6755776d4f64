// Replay in stamp order, shard by shard.
//
// A home is written where memory is cold: the time goes into waiting for it. Objects that are
// replaced whole go past the cache, which waits for nothing. For the rest each shard runs a little
// ahead of itself: when a write leaves the merge its log bytes are asked for, and when they have
// come, its home is; the flush follows each store at once while the lines are in the cache. One
// fence at the end of the shard retires them all.
#include <mutex>

#include "base/mutant.h"
#include "emu/clock.h"
#include "emu/threads.h"
#include "recovery/ahead.h"
#include "recovery/apply.h"
#include "recovery/durable.h"
#include "recovery/merge.h"
#include "recovery/replay.h"

namespace sp3::recovery {
namespace {

constexpr std::uint64_t kProgressEvery = std::uint64_t{64} * 1024;

template <class Progress>
emu::IoStatus replay_shard(const ReplayContext& context, std::uint32_t number,
                           Progress&& progress) {
  const std::byte* const file = context.selection.file;
  const auto view_of = [](const std::byte* at) {
    log::WriteView write;
    log::RecordView::read_write(at, write);
    return write;
  };
  Merge merge(context.preparation, number);
  emu::FlushCounts counts;
  std::uint64_t applied = 0;
  const auto next = [&](const std::byte*& at) {
    if (merge.empty()) return false;
    at = file + merge.front().offset;
    ask_for_log(at);
    merge.pop();
    return true;
  };
  const auto ask = [&](const std::byte* at) { ask_for_home_through(context.memory, view_of(at)); };
  const auto act = [&](const std::byte* at) {
    apply_write_through(context.memory, context.plan, view_of(at), counts);
    if (++applied % kProgressEvery == 0) progress(kProgressEvery);
  };
  run_ahead<const std::byte*>(next, ask, act);
  progress(applied % kProgressEvery);
  if (base::mutant(base::Mutant::no_fence_replay_by_stamp)) return {};
  return context.memory.fence(counts);
}

}  // namespace

emu::IoStatus replay_by_stamp(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  populate_homes(context);
  emu::Mutex mutex;
  std::uint64_t done = 0;
  const auto progress = [&](std::uint64_t writes) {
    const std::lock_guard lock(mutex);
    done += writes;
    if (context.progress) context.progress(done);
  };
  const emu::IoStatus status =
      parallel_status(context.executor, context.shards, [&](std::size_t number) {
        return replay_shard(context, static_cast<std::uint32_t>(number), progress);
      });
  times.replay += emu::ticks() - start;
  return status;
}

}  // namespace sp3::recovery
