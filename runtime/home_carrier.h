// HomeCarrier: brings versions home, for a checkpoint. A checkpoint has one or several, each with a
// thread of its own while it carries or swings.
//
//   carry()   copies the named objects' newest versions, waits until they are committed, and stores
//             the copies home; finish() what is left of the last batch
//   swing()   lets the entries of what was carried point home, and retires the versions in DRAM.
//             REQUIRES: what was carried is durable, and vouched for by both superblocks.
//
// Thread safety: one thread at a time; different carriers at the same time, if no two are given the
// same object.
// Durable: nothing, until whoever called carry() and finish() has called fence() on that thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/align.h"
#include "base/counter.h"
#include "base/reused_list.h"
#include "emu/pace.h"
#include "index/slab_table.h"
#include "runtime/persister.h"
#include "runtime/version_pool.h"

namespace sp3::runtime {

class PoolCore;

// Objects of one slab that may have to go home: the bits of `names` from word `first` to `last`.
struct NamedObjects {
  index::Slab* slab;
  const pool::Bitmap* names;  // a bit for each slot
  std::size_t first;
  std::size_t last;
};

class HomeCarrier {
 public:
  // `at_leisure` is asked after each burst of work: whether the carrier may rest for a moment.
  HomeCarrier(PoolCore& pool, std::size_t participant, std::function<bool()> at_leisure);
  ~HomeCarrier();
  HomeCarrier(const HomeCarrier&) = delete;
  HomeCarrier& operator=(const HomeCarrier&) = delete;

  // Forgets what the last checkpoint carried, or what one that had no memory did not carry.
  void begin() noexcept {
    carried_.clear();
    stored_ = 0;
    swung_ = 0;
    copies_.clear();
  }
  // Errors of these: std::bad_alloc (swing() goes on from there when it is called again), and
  // outcome_unknown if what should be carried can no longer become durable.
  void carry(const NamedObjects& objects);
  void finish();
  void fence();
  void swing();
  // Frees the versions that nobody can hold any more.
  void collect() { versions_.collect(); }

  // Objects carried since begin().
  [[nodiscard]] std::size_t carried() const noexcept { return carried_.size(); }
  // Slabs whose bitmap of homes has changed; some of them several times.
  std::vector<index::Slab*> take_dirty_slabs() noexcept { return std::exchange(dirty_slabs_, {}); }
  // Homes that are good although their entry, which was busy, does not say so; since they were
  // forgotten last.
  [[nodiscard]] std::span<const std::uint64_t> not_swung() const noexcept {
    return {not_swung_.begin(), not_swung_.size()};
  }
  void forget_not_swung() noexcept { not_swung_.clear(); }

  Actor& actor() noexcept { return actor_; }
  // Of stored homes, ever; by any thread.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.get(); }
  // Between two pieces of work, however small.
  void breathe() noexcept { pace_.breathe(at_leisure_); }

 private:
  // One object whose newest version is on its way home.
  struct Captured {
    index::Place place;
    index::Seen seen;
    [[nodiscard]] std::uint64_t home() const noexcept { return place.slab->offset_of(place.slot); }
    [[nodiscard]] std::size_t size8() const noexcept {
      return base::round_up(place.slab->type_size, 8);
    }
  };

  void capture(std::span<const index::Place> places);
  void capture_one(const index::Place& place);
  // Captured, and not stored yet.
  [[nodiscard]] std::span<const Captured> captured() const noexcept {
    return std::span(carried_).subspan(stored_);
  }
  void store_home(std::span<const Captured> captured);
  void swing(std::span<const Captured> some);
  void swing_one(const Captured& captured) noexcept;

  PoolCore& pool_;
  const std::size_t most_captured_;  // before they are stored
  Actor actor_;
  emu::Pace pace_;
  const std::function<bool()> at_leisure_;
  std::vector<Captured> carried_;  // since begin()
  std::size_t stored_ = 0;         // of these
  std::size_t swung_ = 0;          // of these, too
  std::vector<std::byte> copies_;  // of those not stored, one behind the other
  std::vector<index::Slab*> dirty_slabs_;
  base::ReusedList<std::uint64_t> not_swung_;
  VersionPool versions_;
  base::Counter bytes_;
};

}  // namespace sp3::runtime
