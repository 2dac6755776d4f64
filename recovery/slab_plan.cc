#include "recovery/slab_plan.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/align.h"
#include "recovery/roots.h"

namespace sp3::recovery {

SlabPlan::SlabPlan(const pool::Layout& layout, const pool::SlabDirectory& directory,
                   const pool::ObjectClass& roots)
    : layout_(layout),
      directory_(directory),
      roots_(roots),
      first_root_(roots.type == 0 ? 0 : offset_of_first_root(layout, roots)),
      slab_shift_(static_cast<std::uint32_t>(std::countr_zero(layout.slab_size))),
      pages_(
          static_cast<std::uint32_t>(std::max<std::uint64_t>(1, layout.slab_size / base::kPage))) {
  forget();
}

void SlabPlan::forget() {
  slabs_.assign(directory_.size(), {});
  for (std::uint32_t i = 0; i < slabs_.size(); ++i) {
    slabs_[i] = slab_of_class(pool::class_of(directory_.record(i)));
  }
}

SlabPlan::Slab SlabPlan::slab_of_class(const pool::ObjectClass& objects) const {
  Slab slab;
  if (objects.type == 0 || !pool::has_possible_slots(objects)) return slab;
  const pool::SlabShape shape = pool::slab_shape(layout_.slab_size, objects.slot_size);
  if (shape.slots == 0) return slab;
  slab.objects = objects;
  slab.slots = shape.slots;
  slab.data = shape.data;
  return slab;
}

bool SlabPlan::is_slot(const Slab& slab, std::uint32_t number, std::uint64_t slot) const {
  if (slab.objects.type == 0) return false;
  const std::uint64_t in_slab = slot - layout_.slab_offset(number);
  if (in_slab < slab.data) return false;
  const std::uint64_t in_data = in_slab - slab.data;
  const std::uint32_t slot_size = slab.objects.slot_size;
  return in_data % slot_size == 0 && in_data / slot_size < slab.slots;
}

SlabPlan::Verdict SlabPlan::check(const log::WriteView& write) const {
  if (!layout_.in_slabs(write.slot)) return Verdict::bad;
  const std::uint32_t number = slab_of(write.slot);
  const Slab& slab = slabs_[number];
  const std::uint64_t size8 = base::round_up(slab.objects.type_size, 8);
  switch (write.kind) {
    case log::WriteKind::make: {
      const log::MakePrefix prefix = write.make_prefix();
      if (write.object().size() != base::round_up(std::uint64_t{prefix.type_size}, 8))
        return Verdict::bad;
      if (prefix != slab.objects) {
        // Only a slab of which a checkpoint found every object gone is ever carved anew.
        const bool is_empty = directory_.record(number).live == 0;
        const bool is_taken = number == 0 && roots_.type != 0 && prefix != roots_;
        const bool carves =
            is_empty && !is_taken && is_slot(slab_of_class(prefix), number, write.slot);
        return carves ? Verdict::carves : Verdict::bad;
      }
      return is_slot(slab, number, write.slot) ? Verdict::good : Verdict::bad;
    }
    case log::WriteKind::image:
      if (!is_slot(slab, number, write.slot)) return Verdict::bad;
      return write.payload.size() == size8 ? Verdict::good : Verdict::bad;
    case log::WriteKind::delta:
      if (!is_slot(slab, number, write.slot)) return Verdict::bad;
      return log::delta_fits(write.payload, size8) ? Verdict::good : Verdict::bad;
    case log::WriteKind::destroy:
      if (write.slot == first_root_) return Verdict::bad;
      return is_slot(slab, number, write.slot) ? Verdict::good : Verdict::bad;
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
  return fmt::format("a write of kind {} and {} bytes to offset {}, in a slab of {}",
                     static_cast<int>(write.kind), write.payload.size(), write.slot,
                     slab.objects.type == 0
                         ? std::string("nothing")
                         : fmt::format("objects of {} bytes every {}", slab.objects.type_size,
                                       slab.objects.slot_size));
}

bool SlabPlan::carve(const log::WriteView& write) {
  Slab& slab = slabs_[slab_of(write.slot)];
  const Slab wanted = slab_of_class(write.make_prefix());
  if (wanted.objects.type == 0) return false;
  if (slab.carved != 0) return slab.objects == wanted.objects;
  slab = wanted;
  slab.carved = 1;
  return true;
}

std::vector<std::uint32_t> SlabPlan::written_slabs() const {
  std::vector<std::uint32_t> written;
  for (std::uint32_t slab = 0; slab < size(); ++slab) {
    if (writes(slab) != 0) written.push_back(slab);
  }
  return written;
}

std::vector<std::uint32_t> SlabPlan::written_slots() const {
  std::vector<std::uint32_t> slots;
  slots.reserve(slabs_.size());
  for (const Slab& slab : slabs_) slots.push_back(slab.writes != 0 ? slab.slots : 0);
  return slots;
}

void SlabPlan::load_bitmaps(const pool::PoolFile& file, bool accept_loss,
                            std::vector<Damage>& damage) {
  bitmaps_.assign(slabs_.size(), {});
  for (std::uint32_t i = 0; i < slabs_.size(); ++i) {
    if (!changed(i)) {
      if (directory_.record(i).type == 0) continue;
      try {
        (void)file.bitmap(directory_, i);
      } catch (const Error& error) {
        // Without slab 0, which holds the root directory, there is no pool.
        if (!accept_loss || i == 0 || error.code() != ErrorCode::damaged_metadata) throw;
        damage.push_back({error.facts().offset.value_or(0), error.what()});
        slabs_[i].unreadable = 1;
      }
    } else if (slabs_[i].carved != 0) {
      const pool::SlabShape shape =
          pool::slab_shape(layout_.slab_size, slabs_[i].objects.slot_size);
      bitmaps_[i].assign(shape.bitmap_bytes / 8, 0);
    } else {
      bitmaps_[i] = file.bitmap(directory_, i);
    }
  }
}

pool::SlabRecord SlabPlan::record(std::uint32_t slab) const {
  if (slabs_[slab].carved == 0) return directory_.record(slab);
  return pool::record_of(slabs_[slab].objects);
}

}  // namespace sp3::recovery
