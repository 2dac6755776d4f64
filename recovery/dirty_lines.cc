#include "recovery/dirty_lines.h"

#include <utility>

namespace sp3::recovery {

DirtyLines::DirtyLines(const pool::Layout& layout, std::vector<std::uint32_t> written)
    : layout_(layout),
      slab_shift_(static_cast<unsigned>(std::countr_zero(layout.slab_size))),
      words_per_slab_(layout.slab_size / base::kCacheLine / 64),
      slabs_(std::move(written)),
      part_of_slab_(layout.slabs, kNone),
      bits_(slabs_.size() * words_per_slab_) {
  for (std::uint32_t part = 0; part < slabs_.size(); ++part) part_of_slab_[slabs_[part]] = part;
}

}  // namespace sp3::recovery
