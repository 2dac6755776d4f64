#include "runtime/home_carrier.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <sp3/detail/prefetch_lines.h>

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
// What is captured, or swung, while the carrier stays pinned: so much that pinning costs nothing
// beside it, so little that nobody's memory waits for it.
constexpr std::size_t kBytesPinned = 4096;
constexpr std::size_t kMostPinned = 32;
std::size_t most_pinned() noexcept { return base::scaled<std::size_t>(kMostPinned, 2); }
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
  const std::size_t most =
      std::clamp<std::size_t>(kBytesPinned / objects.slab->type_size, 1, most_pinned());
  std::array<index::Place, kMostPinned> places;
  for (std::size_t word = objects.first; word < objects.last; ++word) {
    std::uint64_t bits = (*objects.names)[word];
    while (bits != 0) {
      std::size_t count = 0;
      for (; bits != 0 && count < most; bits &= bits - 1) {
        places[count++] = {objects.slab, static_cast<std::uint32_t>(word * 64) +
                                             static_cast<std::uint32_t>(std::countr_zero(bits))};
      }
      capture(std::span(places).first(count));
      breathe();
      if (copies_.size() >= batch_bytes() || captured().size() >= most_captured_) finish();
    }
  }
}

void HomeCarrier::capture(std::span<const index::Place> places) {
  pool_.epochs().pin(actor_.participant);
  // Also when memory runs out: the other carriers may be waiting for grace.
  const base::ScopeExit unpin([this] { pool_.epochs().unpin(actor_.participant); });
  // Versions lie apart: all are asked for before the first is read.
  for (const index::Place& place : places) {
    if (const std::byte* const version = place.entry().newest_version())
      detail::prefetch_lines(version, place.slab->type_size);
  }
  for (const index::Place& place : places) capture_one(place);
}

void HomeCarrier::capture_one(const index::Place& place) {
  emu::step(emu::Step::checkpoint_capture);
  index::Seen seen;
  emu::Spin spin;
  while (!place.entry().try_read(seen)) {
    // Under encounter-time locks this may last as long as a body does: not pinned.
    pool_.epochs().unpin(actor_.participant);
    spin.pause();
    pool_.epochs().pin(actor_.participant);
  }
  // An earlier checkpoint brought this version there.
  if (seen.at_home()) return;
  if (mutant(Mutant::checkpoint_skips_overwritten) &&
      seen.stamp() > pool_.floor.load(std::memory_order_relaxed))
    return;
  // Member by member: a copy of the whole would wait for what has just been stored in parts.
  Captured& c = carried_.emplace_back();
  c.place.slab = place.slab;
  c.place.slot = place.slot;
  c.seen.word0 = seen.word0;
  c.seen.word1 = seen.word1;
  if (seen.destroyed()) return;
  base::plain_read(seen.version(), c.size8());
  copies_.insert(copies_.end(), seen.version(), seen.version() + c.size8());
}

void HomeCarrier::finish() {
  const std::span<const Captured> batch = captured();
  if (batch.empty()) return;
  // A home must never hold what a crash would undo.
  for (const Captured& c : batch) {
    if (mutant(Mutant::checkpoint_copies_uncommitted)) break;
    pool_.persister().wait({c.seen.stamp(), c.seen.session()}, actor_);
  }
  // Whoever read a home copy before its object's version was published is gone after this.
  if (!mutant(Mutant::checkpoint_writes_under_readers)) pool_.wait_for_grace();
  store_home(batch);
  stored_ = carried_.size();
  copies_.clear();
}

void HomeCarrier::store_home(std::span<const Captured> captured) {
  emu::Memory& memory = pool_.memory();
  const std::byte* copy = copies_.data();
  for (const Captured& c : captured) {
    breathe();
    emu::step(emu::Step::checkpoint_home);
    if (!c.seen.destroyed()) {
      if (mutant(Mutant::no_flush_home)) {
        memory.store(c.home(), copy, c.size8());
      } else {
        memory.store_through(c.home(), copy, c.size8(), actor_.counts);
      }
      copy += c.size8();
    }
    index::Slab& slab = *c.place.slab;
    if (slab.home_holds_object(c.place.slot) == c.seen.destroyed()) {
      // First of all: who comes next, if there is no memory, does not find the slab by its bit.
      if (dirty_slabs_.empty() || dirty_slabs_.back() != &slab) dirty_slabs_.push_back(&slab);
      // Seen by readers only when the entry points home, which it does not until we swing it.
      slab.set_home(c.place.slot, !c.seen.destroyed());
    }
  }
  bytes_.add(copies_.size());
}

void HomeCarrier::fence() {
  const emu::IoStatus status = pool_.memory().fence(actor_.counts);
  if (status.ok() || mutant(Mutant::failed_checkpoint_fence_is_forgotten)) return;
  pool_.persister().poison(status.error);
  pool_.persister().throw_if_poisoned();
}

void HomeCarrier::swing() {
  const std::span<const Captured> all(carried_);
  while (swung_ < all.size()) {
    const std::size_t some = std::min(most_pinned(), all.size() - swung_);
    swing(all.subspan(swung_, some));
    swung_ += some;
    breathe();
  }
}

void HomeCarrier::swing(std::span<const Captured> some) {
  // First of all: once an entry points home, only we know the version that it led to.
  versions_.prepare_to_retire(some.size());
  not_swung_.make_room(some.size());
  pool_.epochs().pin(actor_.participant);
  const base::ScopeExit unpin([this] { pool_.epochs().unpin(actor_.participant); });
  // Other cores have many of the entries.
  for (const Captured& c : some) c.place.entry().prefetch_for_lock();
  for (const Captured& c : some) swing_one(c);
}

// The home copy is the newest version: let the entry say so, and retire the DRAM copy.
// REQUIRES: there is room to note it.
void HomeCarrier::swing_one(const Captured& c) noexcept {
  emu::step(emu::Step::checkpoint_swing);
  std::uint64_t found = 0;
  std::uint64_t word0 = c.seen.word0;
  if (mutant(Mutant::checkpoint_swings_newer_versions)) {
    word0 = c.place.entry().word0() & ~index::kLock;
  }
  if (!c.place.entry().try_lock(word0, &found)) {
    // Newer: the next checkpoint finds it. Locked: perhaps only to be unlocked unchanged.
    if (found == (c.seen.word0 | index::kLock)) not_swung_.append_in_room() = c.home();
    return;
  }
  // The stamp stays, so that a later writer gets a larger one and readers are not disturbed.
  if (mutant(Mutant::checkpoint_zeroes_stamps)) word0 = 0;
  c.place.entry().publish(word0, index::pack_word1(c.seen.session(), 0));
  if (!c.seen.destroyed()) {
    versions_.retire(c.seen.version(), c.size8(),
                     pool_.epochs().retirement_epoch_of(actor_.participant));
  }
}

}  // namespace sp3::runtime
