// Replay in stamp order, shard by shard.
//
// Of a home the last whole value shows, and what was changed behind it. So the writes of a shard
// are gone through from the last to the first: the first whole value of an object that is met is
// stored, and all that comes after it, which is older, passed over. Changes that show are laid
// aside meanwhile, and made at the end, from the oldest on.
//
// A home is written where memory is cold: the time goes into waiting for it. Objects that are
// replaced whole go past the cache, which waits for nothing. For the rest each shard runs a little
// ahead of itself: when a write leaves the merge its log bytes are asked for, and when they have
// come, its home is; the flush follows each store at once while the lines are in the cache. One
// fence at the end of the shard retires them all.
#include <deque>
#include <mutex>

#include "base/mutant.h"
#include "emu/clock.h"
#include "emu/threads.h"
#include "recovery/ahead.h"
#include "recovery/apply.h"
#include "recovery/durable.h"
#include "recovery/later_writes.h"
#include "recovery/merge.h"
#include "recovery/replay.h"
#include "recovery/written_objects.h"

namespace sp3::recovery {
namespace {

constexpr std::uint64_t kProgressEvery = std::uint64_t{64} * 1024;

// One shard, by one thread.
template <class Progress>
class Shard {
 public:
  Shard(const ReplayContext& context, const WrittenObjects& objects, LaterWrites& later,
        Progress& progress)
      : context_(context), objects_(objects), later_(later), progress_(progress) {}

  emu::IoStatus replay(std::uint32_t number) {
    store_values(number);
    make_changes();
    progress_(done_ % kProgressEvery);
    if (base::mutant(base::Mutant::no_fence_replay_by_stamp)) return {};
    return context_.memory.fence(counts_);
  }

 private:
  void store_values(std::uint32_t number) {
    struct Write {
      const std::byte* at;
      LaterWrites::Object object;
    };
    Merge merge(context_.preparation, number);
    const auto next = [&](Write& write) {
      if (merge.empty()) return false;
      write.at = context_.selection.file + merge.last().offset;
      ask_for_log(write.at);
      merge.pop();
      return true;
    };
    const auto ask = [&](Write& write) {
      const log::WriteView view = write_at(write.at);
      write.object = objects_.number(context_.plan.place_of(view.slot));
      later_.ask_for(write.object);
      if (replaces_home(view)) ask_for_home_through(context_.memory, view);
    };
    const auto act = [&](const Write& write) {
      const log::WriteView view = write_at(write.at);
      const LaterWrites::Shows shows = later_.add(write.object, view);
      if (shows.allocation) apply_allocation(context_.plan, view);
      if (shows.bytes && !replaces_home(view)) {
        changes_.push_back(write.at);
        return;
      }
      if (shows.bytes) apply_write_through(context_.memory, view, counts_);
      count();
    };
    run_ahead<Write>(next, ask, act);
  }

  void make_changes() {
    const auto next = [&](const std::byte*& at) {
      if (changes_.empty()) return false;
      at = changes_.back();
      ask_for_log(at);
      changes_.pop_back();
      return true;
    };
    const auto ask = [&](const std::byte* at) { ask_for_home(context_.memory, write_at(at)); };
    const auto act = [&](const std::byte* at) {
      apply_write_through(context_.memory, write_at(at), counts_);
      count();
    };
    run_ahead<const std::byte*>(next, ask, act);
  }

  void count() {
    if (++done_ % kProgressEvery == 0) progress_(kProgressEvery);
  }

  const ReplayContext& context_;
  const WrittenObjects& objects_;
  LaterWrites& later_;
  Progress& progress_;
  emu::FlushCounts counts_;
  std::uint64_t done_ = 0;
  std::deque<const std::byte*> changes_;  // that show, from the last to the first
};

}  // namespace

emu::IoStatus replay_by_stamp(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  populate_homes(context);
  const WrittenObjects objects(context.plan.written_slots());
  LaterWrites later(objects);
  emu::Mutex mutex;
  std::uint64_t done = 0;
  const auto progress = [&](std::uint64_t writes) {
    const std::lock_guard lock(mutex);
    done += writes;
    if (context.progress) context.progress(done);
  };
  const emu::IoStatus status =
      parallel_status(context.executor, context.shards, [&](std::size_t number) {
        return Shard(context, objects, later, progress).replay(static_cast<std::uint32_t>(number));
      });
  times.replay += emu::ticks() - start;
  return status;
}

}  // namespace sp3::recovery
