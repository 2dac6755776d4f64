// SlabPlan: what each slab holds while recovery replays, and which of its slots.
//
// It starts as the checkpoint's directory says. A make above the floor that names another class (or
// meets a free slab) carves the slab anew with an empty bitmap: slabs are only carved again when no
// record above the floor names a slot of the old class, so every object now in it was made above
// the floor too.
//
// Thread safety: check(), touch(), set() and clear() by any thread; set and clear of one slot must
//   be ordered by the caller. The rest by one thread while no other is active.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <sp3/report.h>

#include "log/record_reader.h"
#include "pool/pool_file.h"
#include "pool/slab_directory.h"

namespace sp3::recovery {

class SlabPlan {
 public:
  // `roots`: the only class that slab 0 may get, whose first object nobody destroys; of type 0: any.
  SlabPlan(const pool::Layout& layout, const pool::SlabDirectory& directory,
           const pool::ObjectClass& roots = {});

  enum class Verdict : std::uint8_t {
    good,
    carves,  // a make of a class that the slab does not have
    bad,
  };
  // Whether the write can be applied as things are.
  [[nodiscard]] Verdict check(const log::WriteView& write) const;
  // What is wrong with a write whose check is bad.
  [[nodiscard]] std::string explain(const log::WriteView& write) const;

  // Makes the slab of a write whose check said `carves` what its make says. False if another make
  // has carved it otherwise already.
  bool carve(const log::WriteView& write);
  // Back to the directory.
  void forget();

  // One more write to the slab of `slot` will be replayed. REQUIRES: check(write) is good.
  void count(std::uint64_t slot) {
    // relaxed: read after all threads have joined. A lost count does no harm, so no locked
    // instruction. Nobody needs to know of more than one for each page, and threads that stored
    // all would take the line from each other.
    std::atomic_ref<std::uint32_t> writes(slabs_[slab_of(slot)].writes);
    const std::uint32_t so_far = writes.load(std::memory_order_relaxed);
    if (so_far < pages_) writes.store(so_far + 1, std::memory_order_relaxed);
  }
  // About how many, up to one for each page; 0 only if there are none.
  [[nodiscard]] std::uint32_t writes(std::uint32_t slab) const { return slabs_[slab].writes; }
  // The slabs that have some.
  [[nodiscard]] std::vector<std::uint32_t> written_slabs() const;
  // How many slots each slab has, 0 if there are no writes to it.
  [[nodiscard]] std::vector<std::uint32_t> written_slots() const;
  struct Place {
    std::uint32_t slab;
    std::uint32_t index;
  };
  // REQUIRES: check() of a write to the slot is good.
  [[nodiscard]] Place place_of(std::uint64_t slot) const {
    const std::uint32_t number = slab_of(slot);
    const Slab& slab = slabs_[number];
    const auto in_slab = static_cast<std::uint32_t>(slot - layout_.slab_offset(number));
    return {number, (in_slab - slab.data) / slab.objects.slot_size};
  }
  [[nodiscard]] const pool::Layout& layout() const { return layout_; }
  [[nodiscard]] std::uint32_t pages_of_slab() const { return pages_; }

  // The slab's bitmap will be needed. REQUIRES: check(write) is good.
  void touch(std::uint64_t slot) {
    std::atomic_ref<std::uint8_t> touched(slabs_[slab_of(slot)].touched);
    // relaxed: read after all threads have joined.
    if (touched.load(std::memory_order_relaxed) == 0) touched.store(1, std::memory_order_relaxed);
  }
  // Loads the bitmaps of changed slabs and verifies those of all others: the end of recovery reads
  // them too, and what is wrong with one must be found while nothing has been written. Errors:
  // damaged_metadata; but with `accept_loss` not for slabs that the log leaves as they are, which
  // are told in `damage` and are unreadable().
  void load_bitmaps(const pool::PoolFile& file, bool accept_loss, std::vector<Damage>& damage);

  void set(std::uint64_t slot) {
    const Bit bit = bit_of(slot);
    // relaxed: the caller orders writes of one slot; other bits of the word are independent.
    std::atomic_ref(*bit.word).fetch_or(bit.mask, std::memory_order_relaxed);
  }
  void clear(std::uint64_t slot) {
    const Bit bit = bit_of(slot);
    // relaxed: as set().
    std::atomic_ref(*bit.word).fetch_and(~bit.mask, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(slabs_.size()); }
  // Nobody knows which of its slots hold objects. They keep their bytes, and can be reached by
  // nobody.
  [[nodiscard]] bool unreadable(std::uint32_t slab) const { return slabs_[slab].unreadable != 0; }
  [[nodiscard]] bool changed(std::uint32_t slab) const {
    return slabs_[slab].touched != 0 || slabs_[slab].carved != 0;
  }
  // REQUIRES: changed(slab), load_bitmaps() was called.
  [[nodiscard]] pool::SlabRecord record(std::uint32_t slab) const;
  [[nodiscard]] const pool::Bitmap& bitmap(std::uint32_t slab) const { return bitmaps_[slab]; }

 private:
  struct Slab {
    pool::ObjectClass objects;  // type 0: free
    std::uint32_t slots = 0;
    std::uint32_t data = 0;    // offset of slot 0 in the slab
    std::uint32_t writes = 0;  // about
    alignas(std::atomic_ref<std::uint8_t>::required_alignment) std::uint8_t touched = 0;
    std::uint8_t carved = 0;  // by a record of the log
    std::uint8_t unreadable = 0;
  };
  struct Bit {
    std::uint64_t* word;
    std::uint64_t mask;
  };

  // A slab of such objects, free if there can be none.
  [[nodiscard]] Slab slab_of_class(const pool::ObjectClass& objects) const;
  [[nodiscard]] std::uint32_t slab_of(std::uint64_t slot) const {
    return static_cast<std::uint32_t>((slot - layout_.slabs_offset) >> slab_shift_);
  }
  [[nodiscard]] bool is_slot(const Slab& slab, std::uint32_t number, std::uint64_t slot) const;
  Bit bit_of(std::uint64_t slot) {
    const Place place = place_of(slot);
    return {&bitmaps_[place.slab][place.index / 64], std::uint64_t{1} << (place.index % 64)};
  }

  const pool::Layout& layout_;
  const pool::SlabDirectory& directory_;
  const pool::ObjectClass roots_;
  const std::uint64_t first_root_;  // 0: there need be none
  std::uint32_t slab_shift_ = 0;
  std::uint32_t pages_ = 1;  // of a slab
  std::vector<Slab> slabs_;
  std::vector<pool::Bitmap> bitmaps_;  // of changed slabs; else empty
};

}  // namespace sp3::recovery
