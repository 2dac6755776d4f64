#include "index/slab_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <sp3/error.h>

#include "base/atomic.h"
#include "base/mutant.h"

namespace sp3::index {

SlabTable::SlabTable(emu::Memory& memory, const pool::Layout& layout,
                     pool::SlabDirectory::Identity identity, base::EpochDomain& epochs,
                     SyncFailed sync_failed)
    : memory_(memory),
      layout_(layout),
      slabs_offset_(layout.slabs_offset),
      slabs_bytes_(layout.slabs_bytes()),
      slab_shift_(static_cast<unsigned>(std::countr_zero(layout.slab_size))),
      epochs_(epochs),
      sync_failed_(std::move(sync_failed)),
      path_(identity.path),
      slabs_(std::make_unique<base::Atomic<Slab*>[]>(layout.slabs)),
      directory_(pool::SlabDirectory::load(memory, layout, std::move(identity), kCopy)),
      is_free_(layout.slabs, false) {
  free_.reserve(layout_.slabs);
  // From the highest down, so that the free list hands out the lowest slab first.
  for (std::uint32_t n = layout_.slabs; n-- > 0;) {
    const pool::SlabRecord& record = directory_.record(n);
    // One that holds nothing may take any type: the log is empty, so no record names a slot of it.
    if (record.type == 0 || (record.live == 0 && n != 0)) {
      free_.push_back(n);
      is_free_[n] = true;
    } else if (record.live < pool::slab_shape(layout_.slab_size, record.slot_size).slots) {
      partial_[record.type].push_back(n);
    }
  }
}

SlabTable::~SlabTable() {
  for (std::uint32_t n = 0; n < layout_.slabs; ++n) {
    delete slabs_[n].load(std::memory_order_relaxed);  // relaxed: nobody else is left
  }
}

Slab* SlabTable::load(std::uint32_t number) {
  const std::lock_guard guard(mutex_);
  return load_locked(number);
}

Slab* SlabTable::load_locked(std::uint32_t number) {
  // relaxed: every store happened under the mutex we hold.
  if (Slab* slab = slabs_[number].load(std::memory_order_relaxed)) return slab;
  if (is_free_[number]) return nullptr;
  const pool::SlabRecord& record = directory_.record(number);
  const pool::Bitmap bitmap = directory_.load_either_bitmap(memory_, number, kCopy);
  mend(number);
  auto slab = std::make_unique<Slab>(number, layout_.slab_offset(number), layout_.slab_size, record,
                                     bitmap);
  // Loaded by a reader, it may still be in the list of slabs with free slots from opening.
  slab->listed = record.live < slab->slots;
  index_bytes_ += slab->index_bytes();
  slabs_[number].store(slab.get(), std::memory_order_release);  // pairs with find's acquire
  return slab.release();
}

// (P14) Opening has not read the bitmaps. A checkpoint overwrites copy A of one that has changed,
// and goes by copy B if power fails meanwhile: both must be as good by then.
void SlabTable::mend(std::uint32_t number) {
  if (base::mutant(base::Mutant::opening_does_not_mend)) return;
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    if (directory_.is_damaged(memory_, copy, number)) {
      directory_.mend_bitmap(memory_, copy, number, counts);
      directory_.mend_record(memory_, copy, number, counts);
    }
  }
  if (base::mutant(base::Mutant::no_fence_mended_metadata)) return;
  const emu::IoStatus status = memory_.fence(counts);
  if (status.ok()) return;
  // What is read of it may be whole from now on while the media's is not, and no later fence would
  // tell: only a recovery makes durable what it finds.
  sync_failed_(status.error);
  throw Error(ErrorCode::io_error, "a bitmap that was mended could not be made durable",
              {.path = path_, .found = std::strerror(status.error)});
}

Slab* SlabTable::carve_locked(const detail::TypeInfo& type) {
  if (free_.empty()) {
    throw Error(ErrorCode::pool_full,
                "no slab of its type has room for a new object, and none is free",
                {.path = path_,
                 .wanted = std::to_string(type.size) + " bytes",
                 .found = std::to_string(layout_.slabs) + " slabs of " +
                          std::to_string(layout_.slab_size) + " bytes in use"});
  }
  const std::uint32_t number = free_.back();
  const auto slot_size = static_cast<std::uint32_t>(pool::slot_size_of(type.size));
  const pool::SlabRecord record = pool::record_of({type.fingerprint, type.size, slot_size});
  const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, slot_size);
  auto slab = std::make_unique<Slab>(number, layout_.slab_offset(number), layout_.slab_size, record,
                                     pool::Bitmap(shape.bitmap_bytes / 8));
  newly_carved_.push_back(slab.get());
  free_.pop_back();
  is_free_[number] = false;
  index_bytes_ += slab->index_bytes();
  slabs_[number].store(slab.get(), std::memory_order_release);
  return slab.release();
}

// The last of them. One whose bitmap is damaged has no slots to hand out: it is taken from the
// list, and the result is null. Who wants an object in it is told.
Slab* SlabTable::load_sound_locked(std::vector<std::uint32_t>& partial) try {
  return load_locked(partial.back());
} catch (const Error& error) {
  if (error.code() != ErrorCode::damaged_metadata) throw;
  partial.pop_back();
  return nullptr;
}

void SlabTable::require_room_for(const detail::TypeInfo& type) const {
  if (pool::slot_size_of(type.size) <= layout_.max_object()) return;
  throw Error(ErrorCode::object_too_large, "the object does not fit into a slab of this pool",
              {.path = path_,
               .wanted = std::to_string(type.size) + " bytes",
               .found = "at most " + std::to_string(layout_.max_object()) + " bytes"});
}

// Claims free slots, up to `most`, and says how many. REQUIRES: `places` has room for them.
std::size_t SlabTable::claim_locked(Slab& slab, std::size_t most, std::vector<Place>& places) {
  std::size_t claimed = 0;
  for (std::size_t word = slab.first_unclaimed; word < slab.claimed.size() && claimed < most;
       ++word) {
    slab.first_unclaimed = word;
    while (slab.claimed[word] != ~std::uint64_t{0} && claimed < most) {
      const auto bit = static_cast<std::uint32_t>(std::countr_one(slab.claimed[word]));
      const auto slot = static_cast<std::uint32_t>(word * 64 + bit);
      if (slot >= slab.slots) break;
      slab.claimed[word] |= std::uint64_t{1} << bit;
      ++claimed;
      places.push_back({&slab, slot});
    }
  }
  slab.claimed_count += static_cast<std::uint32_t>(claimed);
  return claimed;
}

void SlabTable::take(const detail::TypeInfo& type, std::size_t count, std::vector<Place>& places) {
  require_room_for(type);
  const std::lock_guard guard(mutex_);
  // What is claimed must not be lost for want of memory to say so.
  places.reserve(places.size() + count);
  std::vector<std::uint32_t>& partial = partial_[type.fingerprint];
  const std::size_t had = places.size();
  for (std::size_t wanted = count; wanted > 0;) {
    if (partial.empty()) {
      if (places.size() > had)
        return;  // a slab's worth is enough; carve only when there is nothing
      partial.reserve(1);
      Slab* fresh = carve_locked(type);
      fresh->listed = true;
      partial.push_back(fresh->number);
    }
    Slab* const slab = load_sound_locked(partial);
    if (slab == nullptr) continue;
    // Not more than one has, of several that are empty: a checkpoint frees those for other types.
    wanted = std::min<std::size_t>(wanted, slab->slots);
    if (!slab->holds(type)) [[unlikely]] {
      throw Error(ErrorCode::damaged_metadata, "a slab has slots of another size than its type",
                  {.path = path_,
                   .offset = layout_.slab_offset(slab->number),
                   .wanted = std::to_string(type.size) + " bytes",
                   .found = std::to_string(slab->type_size) + " bytes"});
    }
    wanted -= claim_locked(*slab, wanted, places);
    if (slab->claimed_count == slab->slots) {
      slab->listed = false;
      partial.pop_back();
    }
  }
}

void SlabTable::give_back(std::span<const Place> places) noexcept {
  const std::lock_guard guard(mutex_);
  for (const Place& place : places) {
    Slab& slab = *place.slab;
    const std::uint64_t bit = std::uint64_t{1} << (place.slot % 64);
    SP3_CHECK((slab.claimed[place.slot / 64] & bit) != 0);
    slab.claimed[place.slot / 64] &= ~bit;
    --slab.claimed_count;
    slab.first_unclaimed = std::min<std::size_t>(slab.first_unclaimed, place.slot / 64);
    if (!slab.listed) list_locked(slab);
  }
}

// Among those with free slots. Without memory for that it will be when another slot is given back.
void SlabTable::list_locked(Slab& slab) noexcept {
  try {
    partial_[slab.type].push_back(slab.number);
    slab.listed = true;
  } catch (const std::bad_alloc&) {
  }
}

void SlabTable::store_metadata(Slab& slab, int copy, emu::FlushCounts& counts) {
  const std::lock_guard guard(mutex_);
  const pool::Bitmap bitmap = slab.home_bitmap();
  directory_.store(memory_, copy, slab.number, pool::record_of(slab.object_class()), bitmap,
                   counts);
}

// Whether it holds nothing, and no record above `floor` names a slot of it.
bool SlabTable::is_quiet(Slab& slab, base::Stamp floor) noexcept {
  for (std::uint32_t s = 0; s < slab.slots; ++s) {
    // The last record that names a slot left its stamp in the entry.
    const std::uint64_t word0 = slab.entry(s).word0();
    const bool settled =
        (word0 >> 1) <= floor || base::mutant(base::Mutant::slab_freed_above_floor);
    if ((word0 & kLock) != 0 || !settled || slab.home_holds_object(s)) return false;
  }
  return true;
}

// Locks all entries, or none. A transaction that found one of the slots free, and went on, must not
// take that for true once there can be objects again that it does not see in this slab.
bool SlabTable::lock_for_good(Slab& slab) noexcept {
  for (std::uint32_t s = 0; s < slab.slots; ++s) {
    const std::uint64_t word0 = slab.entry(s).word0();
    std::uint64_t found = 0;
    if ((word0 & kLock) == 0 && slab.entry(s).try_lock(word0, &found)) continue;
    while (s-- > 0) slab.entry(s).unlock(slab.entry(s).word0() & ~kLock);
    return false;
  }
  return true;
}

// Those that may be freed, as far as the allocator knows: slots claimed by sessions keep a slab
// alive, and slab 0 holds the root directory.
std::vector<std::uint32_t> SlabTable::unclaimed_slabs() const {
  std::vector<std::uint32_t> unclaimed;
  for (std::uint32_t n = 1; n < layout_.slabs; ++n) {
    const Slab* slab = slabs_[n].load(std::memory_order_relaxed);  // relaxed: under the mutex
    if (slab != nullptr && slab->claimed_count == 0) unclaimed.push_back(n);
  }
  return unclaimed;
}

std::vector<std::uint32_t> SlabTable::free_empty_slabs(base::Stamp floor) {
  const std::lock_guard guard(mutex_);
  const std::vector<std::uint32_t> unclaimed = unclaimed_slabs();
  std::vector<std::uint32_t> freed;
  freed.reserve(unclaimed.size());
  retired_.reserve(retired_.size() + unclaimed.size());
  // From here on nothing may fail. (free_ has room for all.)
  for (const std::uint32_t n : unclaimed) {
    Slab* slab = slabs_[n].load(std::memory_order_relaxed);  // relaxed: under the mutex
    if (!is_quiet(*slab, floor) || !lock_for_good(*slab)) continue;
    slabs_[n].store(nullptr, std::memory_order_release);
    is_free_[n] = true;
    free_.push_back(n);
    index_bytes_ -= slab->index_bytes();
    retired_.push_back({std::unique_ptr<Slab>(slab), epochs_.retirement_epoch()});
    freed.push_back(n);
  }
  if (freed.empty()) return freed;
  for (auto& [type, partial] : partial_) {
    std::erase_if(partial, [this](std::uint32_t n) { return is_free_[n]; });
  }
  std::erase_if(newly_carved_, [this](const Slab* slab) { return is_free_[slab->number]; });
  return freed;
}

void SlabTable::store_freed(std::uint32_t number, int copy, emu::FlushCounts& counts) {
  const std::lock_guard guard(mutex_);
  directory_.store(memory_, copy, number, pool::SlabRecord{}, {}, counts);
}

bool SlabTable::is_free(std::uint32_t number) const {
  const std::lock_guard guard(mutex_);
  return is_free_[number];
}

SlabTable::AtHome SlabTable::at_home() const {
  const std::lock_guard guard(mutex_);
  AtHome counts;
  for (std::uint32_t n = 0; n < directory_.size(); ++n) {
    const pool::SlabRecord& record = directory_.record(n);
    if (record.type != 0) ++counts.slabs;
    counts.objects += record.live;
  }
  return counts;
}

std::vector<Slab*> SlabTable::take_newly_carved() {
  const std::lock_guard guard(mutex_);
  return std::exchange(newly_carved_, {});
}

void SlabTable::reclaim() {
  const std::lock_guard guard(mutex_);
  const auto now = epochs_.current();
  std::erase_if(retired_, [&](const Retired& r) { return epochs_.may_free(r.epoch, now); });
}

std::uint64_t SlabTable::index_bytes() const {
  const std::lock_guard guard(mutex_);
  return index_bytes_;
}

std::uint32_t SlabTable::slabs_used() const {
  const std::lock_guard guard(mutex_);
  return layout_.slabs - static_cast<std::uint32_t>(free_.size());
}

}  // namespace sp3::index
