#include "runtime/write_set.h"

#include <algorithm>
#include <bit>

namespace sp3::runtime {

WriteEntry* WriteSet::find_slowly(std::uint64_t offset) noexcept {
  if (indexed_ == 0) {
    for (WriteEntry& w : entries_) {
      if (w.offset == offset) return &w;
    }
    return nullptr;
  }
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = first_cell(offset); table_[i] != 0; i = (i + 1) & mask) {
    WriteEntry& w = entries_[table_[i] - 1];
    if (w.offset == offset) return &w;
  }
  return nullptr;
}

void WriteSet::insert(std::size_t position) noexcept {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = first_cell(entries_[position].offset);
  while (table_[i] != 0) i = (i + 1) & mask;
  table_[i] = static_cast<std::uint32_t>(position + 1);
}

void WriteSet::remove(std::size_t position) noexcept {
  const std::size_t mask = table_.size() - 1;
  std::size_t i = first_cell(entries_[position].offset);
  while (table_[i] != position + 1) i = (i + 1) & mask;
  table_[i] = 0;
}

// For one entry more.
void WriteSet::make_room_in_index() {
  if ((entries_.size() + 1) * 2 <= table_.size()) return;
  table_.assign(std::max<std::size_t>(64, table_.size() * 2), 0);
  table_shift_ = 64 - static_cast<unsigned>(std::countr_zero(table_.size()));
  indexed_ = 0;
}

void WriteSet::index_last() noexcept {
  // On the first use, and after growing, everything is entered; later only the newest.
  for (; indexed_ < entries_.size(); ++indexed_) insert(indexed_);
}

// REQUIRES: the entries are still there.
void WriteSet::forget_index() noexcept {
  // The table stays as large as the largest transaction has made it: of a small one only its own
  // cells are cleared, the newest first, which were entered past the others.
  if (indexed_ * 16 < table_.size()) {
    while (indexed_ > 0) remove(--indexed_);
  } else {
    std::fill(table_.begin(), table_.end(), 0);
    indexed_ = 0;
  }
}

}  // namespace sp3::runtime
