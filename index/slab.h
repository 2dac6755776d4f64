// Slab: the DRAM side of one slab of a pool file: its type, its entries and its bitmaps.
//
// Thread safety: type, shape and entries by any pinned thread. The home bitmap is written by the
// checkpointer only; the claimed bitmap belongs to SlabTable's mutex.
// Lifetime: made on first touch, retired through the epoch domain when the slab is freed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include <sp3/type.h>

#include "base/align.h"
#include "base/atomic.h"
#include "base/plain_access.h"
#include "index/entry.h"
#include "pool/format.h"
#include "pool/slab_directory.h"

namespace sp3::index {

class alignas(base::kCacheLine) Slab {
 public:
  // `bitmap` says which slots hold objects; `offset` is where the slab starts in the file.
  Slab(std::uint32_t number, std::uint64_t offset, std::uint32_t slab_size,
       const pool::SlabRecord& record, const pool::Bitmap& bitmap);
  ~Slab() { base::plain_write(this, base::kCacheLine); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  const std::uint64_t type;
  const std::uint64_t data;  // file offset of slot 0
  const std::uint32_t number;
  const std::uint32_t type_size;
  const std::uint32_t slot_size;
  const std::uint32_t slots;

 private:
  struct Free {
    void operator()(void* p) const noexcept { std::free(p); }
  };
  // distance < 2^32 times a reciprocal < 2^31 + 1 fits 64 bits, and is exact up to distance 2^34.
  static constexpr unsigned kReciprocalShift = 34;

  // With those above one cache line: all that a read needs.
  const std::uint64_t bytes_;  // of all slots
  const std::uint64_t reciprocal_;
  // calloc: the kernel's zero pages are entries "at home", so an untouched object costs nothing.
  const std::unique_ptr<Entry[], Free> entries_;
  const std::unique_ptr<base::Atomic<std::uint64_t>[]> home_;

 public:
  [[nodiscard]] pool::ObjectClass object_class() const noexcept {
    return {type, type_size, slot_size};
  }

  // A fingerprint tells types apart, but the file may have been put together by anybody.
  [[nodiscard]] bool holds(const detail::TypeInfo& t) const noexcept {
    return type == t.fingerprint && type_size == t.size;
  }

  // The slot that starts at file offset `offset`; slots if none does.
  // REQUIRES: offset lies inside this slab.
  [[nodiscard]] std::uint32_t slot_at(std::uint64_t offset) const noexcept {
    const std::uint64_t distance = offset - data;  // wraps to something huge inside the bitmaps
    if (distance >= bytes_) return slots;
    // Multiplying by the reciprocal is exact for multiples of slot_size, the only ones that pass.
    const std::uint64_t slot = distance * reciprocal_ >> kReciprocalShift;
    return slot * slot_size == distance ? static_cast<std::uint32_t>(slot) : slots;
  }
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t slot) const noexcept {
    return data + static_cast<std::uint64_t>(slot) * slot_size;
  }
  [[nodiscard]] Entry& entry(std::uint32_t slot) noexcept { return entries_[slot]; }

  // Whether slot's home holds an object, for entries that say "at home".
  [[nodiscard]] bool home_holds_object(std::uint32_t slot) const noexcept {
    // acquire: pairs with set_home's release, so that home bytes are seen whole.
    return (home_[slot / 64].load(std::memory_order_acquire) >> (slot % 64) & 1) != 0;
  }
  // The checkpointer's: by one thread at a time for the slots of one bitmap word, 64 of them.
  void set_home(std::uint32_t slot, bool holds) noexcept;
  [[nodiscard]] pool::Bitmap home_bitmap() const;

  // SlabTable's: a slot is claimed while it holds an object or waits in a session's free list.
  pool::Bitmap claimed;
  std::uint32_t claimed_count = 0;
  std::size_t first_unclaimed = 0;  // no word of `claimed` before this one has a free slot
  bool listed = false;              // in SlabTable's list of slabs with free slots

  [[nodiscard]] std::uint64_t index_bytes() const noexcept { return slots * sizeof(Entry); }
};

}  // namespace sp3::index
