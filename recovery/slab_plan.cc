#include "recovery/slab_plan.h"

#include <bit>

#include <fmt/format.h>

namespace sp3::recovery {

SlabPlan::SlabPlan(const pool::Layout& layout, const pool::SlabDirectory& directory)
    : layout_(layout),
      directory_(directory),
      slab_shift_(static_cast<std::uint32_t>(std::countr_zero(layout.slab_size))) {
  forget();
}

void SlabPlan::forget() {
  slabs_.assign(directory_.size(), {});
  for (std::uint32_t i = 0; i < slabs_.size(); ++i) slabs_[i] = from_directory(i);
}

SlabPlan::Slab SlabPlan::from_directory(std::uint32_t slab) const {
  const pool::SlabRecord& record = directory_.record(slab);
  Slab known;
  if (record.type == 0) return known;
  const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, record.slot_size);
  known.type = record.type;
  known.type_size = record.type_size;
  known.slot_size = record.slot_size;
  known.slots = shape.slots;
  known.data = shape.data;
  return known;
}

bool SlabPlan::is_slot(const Slab& slab, std::uint32_t number, std::uint64_t slot) const {
  const std::uint64_t in_slab = slot - layout_.slab_offset(number);
  if (in_slab < slab.data) return false;
  const std::uint64_t in_data = in_slab - slab.data;
  return in_data % slab.slot_size == 0 && in_data / slab.slot_size < slab.slots;
}

// The same limits as the directory's own (pool/slab_directory.cc).
std::optional<SlabPlan::Slab> SlabPlan::class_of(const log::MakePrefix& prefix) const {
  if (prefix.type == 0 || prefix.type_size == 0 || prefix.type_size > layout_.slab_size ||
      prefix.slot_size % 8 != 0 || prefix.slot_size < base::round_up(prefix.type_size, 8) ||
      prefix.slot_size > base::round_up(prefix.type_size, base::kCacheLine)) {
    return std::nullopt;
  }
  const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, prefix.slot_size);
  if (shape.slots == 0) return std::nullopt;
  Slab slab;
  slab.type = prefix.type;
  slab.type_size = prefix.type_size;
  slab.slot_size = prefix.slot_size;
  slab.slots = shape.slots;
  slab.data = shape.data;
  return slab;
}

SlabPlan::Verdict SlabPlan::check(const log::WriteView& write) const {
  if (!layout_.in_slabs(write.slot)) return Verdict::bad;
  const std::uint32_t number = slab_of(write.slot);
  const Slab& slab = slabs_[number];
  const std::uint64_t size8 = base::round_up(slab.type_size, 8);
  switch (write.kind) {
    case log::WriteKind::make: {
      const log::MakePrefix prefix = write.make_prefix();
      if (write.object().size() != base::round_up(std::uint64_t{prefix.type_size}, 8))
        return Verdict::bad;
      if (prefix.type != slab.type || prefix.type_size != slab.type_size ||
          prefix.slot_size != slab.slot_size) {
        // Only a slab of which a checkpoint found every object gone is ever carved anew.
        const bool is_empty = directory_.record(number).live == 0;
        const auto wanted = class_of(prefix);
        return is_empty && wanted && is_slot(*wanted, number, write.slot) ? Verdict::carves
                                                                          : Verdict::bad;
      }
      return slab.type != 0 && is_slot(slab, number, write.slot) ? Verdict::good : Verdict::bad;
    }
    case log::WriteKind::image:
      if (slab.type == 0 || !is_slot(slab, number, write.slot)) return Verdict::bad;
      return write.payload.size() == size8 ? Verdict::good : Verdict::bad;
    case log::WriteKind::delta:
      if (slab.type == 0 || !is_slot(slab, number, write.slot)) return Verdict::bad;
      return log::delta_fits(write.payload, size8) ? Verdict::good : Verdict::bad;
    case log::WriteKind::destroy:
      return slab.type != 0 && is_slot(slab, number, write.slot) ? Verdict::good : Verdict::bad;
    case log::WriteKind::range:
      break;
  }
  return Verdict::bad;
}

std::string SlabPlan::explain(const log::WriteView& write) const {
  if (!layout_.in_slabs(write.slot)) {
    return fmt::format("a write to offset {}, which is in no slab", write.slot);
  }
  const Slab& slab = slabs_[slab_of(write.slot)];
  return fmt::format(
      "a write of kind {} and {} bytes to offset {}, in a slab of {}", static_cast<int>(write.kind),
      write.payload.size(), write.slot,
      slab.type == 0 ? std::string("nothing")
                     : fmt::format("objects of {} bytes every {}", slab.type_size, slab.slot_size));
}

bool SlabPlan::carve(const log::WriteView& write) {
  Slab& slab = slabs_[slab_of(write.slot)];
  const auto wanted = class_of(write.make_prefix());
  if (!wanted) return false;
  if (slab.carved != 0) {
    return slab.type == wanted->type && slab.type_size == wanted->type_size &&
           slab.slot_size == wanted->slot_size;
  }
  slab = *wanted;
  slab.carved = 1;
  return true;
}

void SlabPlan::load_bitmaps(const emu::Memory& memory, int copy) {
  bitmaps_.assign(slabs_.size(), {});
  for (std::uint32_t i = 0; i < slabs_.size(); ++i) {
    if (!changed(i)) continue;
    if (slabs_[i].carved != 0) {
      const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, slabs_[i].slot_size);
      bitmaps_[i].assign(shape.bitmap_bytes / 8, 0);
    } else {
      bitmaps_[i] = directory_.load_bitmap(memory, i, copy);
    }
  }
}

pool::SlabRecord SlabPlan::record(std::uint32_t slab) const {
  pool::SlabRecord record;
  if (slabs_[slab].carved == 0) record = directory_.record(slab);
  record.type = slabs_[slab].type;
  record.type_size = slabs_[slab].type_size;
  record.slot_size = slabs_[slab].slot_size;
  return record;
}

}  // namespace sp3::recovery
