#include "index/slab.h"

#include <bit>
#include <new>

#include "base/atomic.h"

namespace sp3::index {

Slab::Slab(std::uint32_t slab_number, std::uint64_t offset, std::uint32_t slab_size,
           const pool::SlabRecord& record, const pool::Bitmap& bitmap)
    : type(record.type),
      data(offset + pool::slab_shape(slab_size, record.slot_size).data),
      number(slab_number),
      type_size(record.type_size),
      slot_size(record.slot_size),
      slots(pool::slab_shape(slab_size, record.slot_size).slots),
      bytes_(static_cast<std::uint64_t>(slots) * slot_size),
      reciprocal_((std::uint64_t{1} << kReciprocalShift) / record.slot_size + 1),
      entries_(static_cast<Entry*>(std::calloc(slots, sizeof(Entry)))),
      home_(std::make_unique<base::Atomic<std::uint64_t>[]>(bitmap.size())),
      claimed(bitmap) {
  if (entries_ == nullptr) throw std::bad_alloc();
  base::fresh_memory(this, base::kCacheLine);
  base::plain_write(this, base::kCacheLine);
  for (std::size_t i = 0; i < bitmap.size(); ++i) {
    // relaxed: nobody else sees the slab before it is published.
    home_[i].store(bitmap[i], std::memory_order_relaxed);
    claimed_count += static_cast<std::uint32_t>(std::popcount(bitmap[i]));
  }
}

void Slab::set_home(std::uint32_t slot, bool holds) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  auto& word = home_[slot / 64];
  // relaxed: nobody else changes it. A locked instruction would wait for the home that was just
  // stored past the cache.
  const std::uint64_t seen = word.load(std::memory_order_relaxed);
  word.store(holds ? seen | bit : seen & ~bit, std::memory_order_release);
}

pool::Bitmap Slab::home_bitmap() const {
  pool::Bitmap bitmap(claimed.size());
  for (std::size_t i = 0; i < bitmap.size(); ++i) {
    bitmap[i] = home_[i].load(std::memory_order_acquire);
  }
  return bitmap;
}

}  // namespace sp3::index
