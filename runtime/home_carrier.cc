#include "runtime/home_carrier.h"

#include <bit>
#include <limits>
#include <utility>

#include "base/align.h"
#include "base/mutant.h"
#include "base/plain_access.h"
#include "base/scaled.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "runtime/pool_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {
// DRAM for copies of captured versions.
std::size_t batch_bytes() noexcept { return base::scaled<std::size_t>(4 << 20, 4 << 20, 1); }
// Objects that one of several carriers copies before it stores them: copying is quick, and the
// first would have all names before the last is there.
constexpr std::size_t kBatchOfSeveral = 4096;
}  // namespace

HomeCarrier::HomeCarrier(PoolCore& pool, std::size_t participant, std::function<bool()> at_leisure)
    : pool_(pool),
      most_captured_(pool.checkpoint_threads() > 1 ? kBatchOfSeveral
                                                   : std::numeric_limits<std::size_t>::max()),
      at_leisure_(std::move(at_leisure)),
      versions_(pool.versions(), pool.epochs()) {
  actor_.participant = participant;
  pool_.epochs().admit(participant);
}

HomeCarrier::~HomeCarrier() { versions_.free_all(); }

void HomeCarrier::carry(const NamedObjects& objects) {
  for (std::size_t word = objects.first; word < objects.last; ++word) {
    for (std::uint64_t bits = (*objects.names)[word]; bits != 0; bits &= bits - 1) {
      capture({objects.slab, static_cast<std::uint32_t>(word * 64) +
                                 static_cast<std::uint32_t>(std::countr_zero(bits))});
      breathe();
      if (batch_.size() >= batch_bytes() || batch_captured_.size() >= most_captured_) finish();
    }
  }
}

void HomeCarrier::capture(const index::Place& place) {
  emu::step(emu::Step::checkpoint_capture);
  Captured c{place,
             {},
             place.slab->offset_of(place.slot),
             batch_.size(),
             static_cast<std::uint32_t>(base::round_up(place.slab->type_size, 8))};
  pool_.epochs().pin(actor_.participant);
  // Also when memory runs out: the other carriers may be waiting for grace.
  const base::ScopeExit unpin([this] { pool_.epochs().unpin(actor_.participant); });
  emu::Spin spin;
  while (!place.entry().try_read(c.seen)) {
    // Under encounter-time locks this may last as long as a body does: not pinned.
    pool_.epochs().unpin(actor_.participant);
    spin.pause();
    pool_.epochs().pin(actor_.participant);
  }
  // At home: an earlier checkpoint brought this version there.
  const bool skipped = mutant(Mutant::checkpoint_skips_overwritten) &&
                       c.seen.stamp() > pool_.floor.load(std::memory_order_relaxed);
  if (!c.seen.at_home() && !skipped) {
    if (!c.seen.destroyed()) {
      base::plain_read(c.seen.version(), c.size8);
      batch_.insert(batch_.end(), c.seen.version(), c.seen.version() + c.size8);
    }
    batch_captured_.push_back(c);
  }
}

void HomeCarrier::finish() {
  if (batch_captured_.empty()) return;
  // A home must never hold what a crash would undo.
  for (const Captured& c : batch_captured_) {
    if (mutant(Mutant::checkpoint_copies_uncommitted)) break;
    pool_.persister().wait({c.seen.stamp(), c.seen.session()}, actor_);
  }
  // Whoever read a home copy before its object's version was published is gone after this.
  if (!mutant(Mutant::checkpoint_writes_under_readers)) pool_.wait_for_grace();
  store_batch_home();
  batch_captured_.clear();
  batch_.clear();
}

void HomeCarrier::store_batch_home() {
  emu::Memory& memory = pool_.memory();
  for (const Captured& c : batch_captured_) {
    breathe();
    emu::step(emu::Step::checkpoint_home);
    if (!c.seen.destroyed()) {
      const std::byte* const copy = batch_.data() + c.copy;
      if (mutant(Mutant::no_flush_home)) {
        memory.store(c.offset, copy, c.size8);
      } else {
        memory.store_through(c.offset, copy, c.size8, actor_.counts);
      }
      bytes_.add(c.size8);
    }
    index::Slab& slab = *c.place.slab;
    if (slab.home_holds_object(c.place.slot) == c.seen.destroyed()) {
      // Seen by readers only when the entry points home, which it does not until we swing it.
      slab.set_home(c.place.slot, !c.seen.destroyed());
      if (dirty_slabs_.empty() || dirty_slabs_.back() != &slab) dirty_slabs_.push_back(&slab);
    }
  }
  carried_.insert(carried_.end(), batch_captured_.begin(), batch_captured_.end());
}

void HomeCarrier::fence() {
  const emu::IoStatus status = pool_.memory().fence(actor_.counts);
  if (status.ok() || mutant(Mutant::failed_checkpoint_fence_is_forgotten)) return;
  pool_.persister().poison(status.error);
  pool_.persister().throw_if_poisoned();
}

void HomeCarrier::swing() {
  for (const Captured& c : carried_) {
    breathe();
    swing_one(c);
  }
}

// The home copy is the newest version: let the entry say so, and retire the DRAM copy.
void HomeCarrier::swing_one(const Captured& c) {
  emu::step(emu::Step::checkpoint_swing);
  std::uint64_t found = 0;
  std::uint64_t word0 = c.seen.word0;
  if (mutant(Mutant::checkpoint_swings_newer_versions)) {
    word0 = c.place.entry().word0() & ~index::kLock;
  }
  if (!c.place.entry().try_lock(word0, &found)) {
    // Newer: the next checkpoint finds it. Locked: perhaps only to be unlocked unchanged.
    if (found == (c.seen.word0 | index::kLock)) not_swung_.push_back(c.offset);
    return;
  }
  // The stamp stays, so that a later writer gets a larger one and readers are not disturbed.
  if (mutant(Mutant::checkpoint_zeroes_stamps)) word0 = 0;
  c.place.entry().publish(word0, index::pack_word1(c.seen.session(), 0));
  if (!c.seen.destroyed()) {
    versions_.retire(c.seen.version(), c.size8, pool_.epochs().retirement_epoch());
  }
}

}  // namespace sp3::runtime
