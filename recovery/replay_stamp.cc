// Replay by stamps, shard by shard.
//
// Of a home the last whole value shows, and what was changed behind it. So the writes of a shard
// are gone through from the last to the first: the first whole value of an object that is met is
// stored, and all that comes after it, which is older, passed over. Changes that show are laid
// aside meanwhile, and made at the end, from the oldest on.
//
// A home is written where memory is cold: the time goes into waiting for it, and for the
// translation of its page. So a shard runs ahead of itself, a block at a time (ahead.h), and its
// values, which may be stored in any order as each object has one at most, are stored a block at a
// time, with as little as can be between one store and the next. Values go past the cache, which
// reads nothing; what else is stored is flushed at once while its lines are in the cache. One fence
// at the end of the shard retires it all.
#include <deque>

#include "base/mutant.h"
#include "emu/clock.h"
#include "recovery/ahead.h"
#include "recovery/apply.h"
#include "recovery/durable.h"
#include "recovery/later_writes.h"
#include "recovery/merge.h"
#include "recovery/replay.h"
#include "recovery/replay_progress.h"
#include "recovery/value_block.h"
#include "recovery/written_objects.h"

namespace sp3::recovery {
namespace {

// One shard, by one thread.
class Shard {
 public:
  Shard(const ReplayContext& context, std::uint32_t number, WrittenObjects& objects,
        LaterWrites& later, ReplayProgress& progress)
      : context_(context), number_(number), objects_(objects), later_(later), progress_(progress) {}

  emu::IoStatus replay() {
    store_values();
    make_changes();
    progress_.finish();
    if (base::mutant(base::Mutant::no_fence_replay_by_stamp)) return {};
    return context_.memory.fence(counts_);
  }

 private:
  // Goes through the writes. Changes that show are kept for later.
  void store_values() {
    struct Write {
      const std::byte* at;
      LaterWrites::Object object;
    };
    Merge merge(context_.preparation, number_);
    const auto next = [&](Write& write) {
      if (merge.empty()) return false;
      write.at = context_.selection.file + merge.last().offset;
      ask_for_header(write.at);
      merge.pop();
      return true;
    };
    const auto ask = [&](Write& write) {
      write.object = objects_.number(number_, write_at(write.at).slot);
      later_.ask_for(write.object);
    };
    const auto act = [&](const Write& write) {
      const log::WriteView view = write_at(write.at);
      const LaterWrites::Shows shows = later_.add(write.object, view);
      if (shows.allocation) apply_allocation(context_.plan, view);
      if (shows.bytes && !replaces_home(view)) {
        changes_.push_back(write.at);
        progress_.half();
        return;
      }
      if (shows.bytes) {
        ask_for_payload(view);
        ask_for_home_through(context_.memory, view);
        values_.add(view);
      }
      progress_.whole();
    };
    run_ahead<Write>(next, ask, act);
    values_.store();
  }

  void make_changes() {
    const auto next = [&](const std::byte*& at) {
      if (changes_.empty()) return false;
      at = changes_.back();
      ask_for_header(at);
      changes_.pop_back();
      return true;
    };
    const auto ask = [&](const std::byte* at) {
      const log::WriteView view = write_at(at);
      ask_for_payload(view);
      ask_for_home(context_.memory, view);
    };
    const auto act = [&](const std::byte* at) {
      apply_and_flush(context_.memory, write_at(at), counts_);
      progress_.half();
    };
    run_ahead<const std::byte*>(next, ask, act);
  }

  const ReplayContext& context_;
  const std::uint32_t number_;
  WrittenObjects& objects_;
  LaterWrites& later_;
  ReplayProgress::Part progress_;
  emu::FlushCounts counts_;
  ValueBlock values_{context_.memory, counts_};  // that show
  std::deque<const std::byte*> changes_;         // that show, from the last to the first
};

}  // namespace

emu::IoStatus replay_by_stamp(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  populate_homes(context);
  WrittenObjects objects(context.plan, context.preparation);
  LaterWrites later(objects.size());
  ReplayProgress progress(context.progress);
  const emu::IoStatus status =
      parallel_status(context.executor, context.preparation.shards, [&](std::size_t i) {
        return Shard(context, static_cast<std::uint32_t>(i), objects, later, progress).replay();
      });
  progress.finish();
  times.replay += emu::ticks() - start;
  return status;
}

}  // namespace sp3::recovery
