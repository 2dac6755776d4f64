// SlabTable: from a Ptr to its entry by arithmetic, and from types to free slots.
//
// Thread safety: find() by any pinned thread; allocation by any thread (a mutex, taken once per
//   batch of slots, never per transaction); checkpoint's calls by the checkpointer.
// Invariants:
//   1. A slab's DRAM side exists before anything in it is changed, so what was loaded lazily from
//      the file is never out of date.
//   2. Of a slab that has a DRAM side both copies of the bitmap were whole (P14).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <sp3/type.h>

#include "base/atomic.h"
#include "base/epoch.h"
#include "base/plain_access.h"
#include "emu/memory.h"
#include "emu/threads.h"
#include "index/slab.h"
#include "pool/layout.h"
#include "pool/slab_directory.h"

namespace sp3::index {

// A slot of a slab. `slab` is null where there is none.
struct Place {
  Slab* slab = nullptr;
  std::uint32_t slot = 0;
  [[nodiscard]] Entry& entry() const { return slab->entry(slot); }
  // Whether an entry that was seen so belongs to no object.
  [[nodiscard]] bool is_free(Seen seen) const noexcept {
    return seen.destroyed() || (seen.at_home() && !slab->home_holds_object(slot));
  }
};

class SlabTable {
 public:
  // Given the errno of a fence; nothing may be made durable any more.
  using SyncFailed = std::function<void(int error)>;

  // Errors: damaged_metadata. Cost: the directory, no slab is touched.
  // REQUIRES: both copies of directory and bitmaps are equal, as recovery::start_generation and
  // finish_recovery leave them.
  SlabTable(emu::Memory& memory, const pool::Layout& layout, pool::SlabDirectory::Identity identity,
            base::EpochDomain& epochs, SyncFailed sync_failed);
  ~SlabTable();

  // The slot that starts at `offset`, {} if none does. Errors: damaged_metadata or io_error on a
  // slab's first touch.
  Place find(std::uint64_t offset) {
    const std::uint64_t distance = offset - slabs_offset_;  // wraps to something huge before them
    if (distance >= slabs_bytes_) return {};
    const auto number = static_cast<std::uint32_t>(distance >> slab_shift_);
    Slab* slab = slabs_[number].load(std::memory_order_acquire);
    if (slab == nullptr) [[unlikely]] {
      slab = load(number);
      if (slab == nullptr) return {};
    }
    return place_in(*slab, offset);
  }

  // The same without reading the file: {} as well for a slab that was not touched yet.
  [[nodiscard]] Place find_loaded(std::uint64_t offset) const noexcept {
    const std::uint64_t distance = offset - slabs_offset_;
    if (distance >= slabs_bytes_) return {};
    Slab* slab = at(static_cast<std::uint32_t>(distance >> slab_shift_));
    return slab == nullptr ? Place{} : place_in(*slab, offset);
  }

  // The DRAM side of slab `number`, null if it has none (yet).
  [[nodiscard]] Slab* at(std::uint32_t number) const {
    return slabs_[number].load(std::memory_order_acquire);
  }

  // Errors: object_too_large, if no slab can hold an object of the type.
  void require_room_for(const detail::TypeInfo& type) const;

  // Appends up to `count` free slots of `type` to `places`, at least one. The entries' stamps say
  // whom a new object depends on. Errors: pool_full, object_too_large.
  void take(const detail::TypeInfo& type, std::size_t count, std::vector<Place>& places);
  // Returns slots that hold no object.
  void give_back(std::span<const Place> places) noexcept;

  // Checkpoint: makes the slab's home bitmap durable as of this call in copy `copy` (no fence).
  void store_metadata(Slab& slab, int copy, emu::FlushCounts& counts);
  // Checkpoint, after the superblock: frees slabs that hold nothing and that no record above
  // `floor` names. Returns them, for store_metadata's sibling below at the next checkpoint.
  std::vector<std::uint32_t> free_empty_slabs(base::Stamp floor);
  [[nodiscard]] bool is_free(std::uint32_t number) const;
  // Checkpoint: describes a slab freed earlier. REQUIRES: nothing of a later carving is on media
  // yet.
  void store_freed(std::uint32_t number, int copy, emu::FlushCounts& counts);
  // Slabs carved since the last call: their description is not on media yet.
  std::vector<Slab*> take_newly_carved();
  // Deletes slabs freed two epochs ago.
  void reclaim();

  // As of the last metadata stored.
  struct AtHome {
    std::uint64_t slabs = 0;  // that are not free
    std::uint64_t objects = 0;
  };
  [[nodiscard]] AtHome at_home() const;
  [[nodiscard]] std::uint64_t index_bytes() const;
  [[nodiscard]] std::uint32_t slabs_used() const;  // now

 private:
  // Which of the equal copies is read, at opening and on a slab's first touch.
  static constexpr int kCopy = 0;

  struct Retired {
    std::unique_ptr<Slab> slab;
    base::EpochDomain::Epoch epoch;
  };

  static Place place_in(Slab& slab, std::uint64_t offset) noexcept {
    base::plain_read(&slab, base::kCacheLine);
    const std::uint32_t slot = slab.slot_at(offset);
    return slot == slab.slots ? Place{} : Place{&slab, slot};
  }

  Slab* load(std::uint32_t number);
  Slab* load_locked(std::uint32_t number);
  Slab* load_sound_locked(std::vector<std::uint32_t>& partial);
  void mend(std::uint32_t number);
  Slab* carve_locked(const detail::TypeInfo& type);
  static std::size_t claim_locked(Slab& slab, std::size_t most, std::vector<Place>& places);
  void list_locked(Slab& slab) noexcept;
  [[nodiscard]] std::vector<std::uint32_t> unclaimed_slabs() const;
  static bool is_quiet(Slab& slab, base::Stamp floor) noexcept;
  static bool lock_for_good(Slab& slab) noexcept;

  emu::Memory& memory_;
  const pool::Layout layout_;
  // Of the layout, for find().
  const std::uint64_t slabs_offset_;
  const std::uint64_t slabs_bytes_;
  const unsigned slab_shift_;
  base::EpochDomain& epochs_;
  const SyncFailed sync_failed_;
  std::string path_;
  std::unique_ptr<base::Atomic<Slab*>[]> slabs_;

  mutable emu::Mutex mutex_;
  pool::SlabDirectory directory_;    // guarded by mutex_
  std::vector<std::uint32_t> free_;  // guarded by mutex_; lowest last
  std::vector<bool> is_free_;        // guarded by mutex_
  // by type; guarded by mutex_
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> partial_;
  std::vector<Slab*> newly_carved_;  // guarded by mutex_
  std::vector<Retired> retired_;     // guarded by mutex_
  std::uint64_t index_bytes_ = 0;    // guarded by mutex_
};

}  // namespace sp3::index
