#include "workloads/contents.h"

#include <fmt/format.h>

namespace sp3::workloads {

ContentsCheck::ContentsCheck(const WorkloadSpec& spec) : kind_(spec.kind), entries_(spec.entries) {
  if (kind_ != WorkloadKind::queue) seen_.resize(entries_, false);
}

bool ContentsCheck::add(const Item& item) {
  if (!violation_.empty()) return false;
  ++items_;
  if (!item.intact) {
    violation_ = fmt::format("The entry at {}, found with tag {:#x}, is torn.", item.key, item.tag);
    return false;
  }
  switch (kind_) {
    case WorkloadKind::sps:
      return add_unique(item.tag, "Tag");
    case WorkloadKind::queue:
      return add_queued(item);
    case WorkloadKind::hashtable:
    case WorkloadKind::rbtree:
    case WorkloadKind::bptree:
    case WorkloadKind::ranges:
      break;
  }
  return add_unique(item.key, "Key");
}

bool ContentsCheck::add_unique(std::uint64_t number, const char* what) {
  if (number >= entries_ || seen_[number]) {
    violation_ =
        fmt::format("{} {} {}.", what, number, number >= entries_ ? "is foreign" : "occurs twice");
    return false;
  }
  seen_[number] = true;
  return true;
}

bool ContentsCheck::add_queued(const Item& item) {
  const auto [previous, first] = last_.try_emplace(item.tag >> 48, item.tag);
  if (!first && item.tag <= previous->second) {
    violation_ = fmt::format("Tag {:#x} follows {:#x}, which its producer made later.", item.tag,
                             previous->second);
    return false;
  }
  previous->second = item.tag;
  return true;
}

std::string ContentsCheck::violation() const {
  const bool is_full = kind_ == WorkloadKind::sps || kind_ == WorkloadKind::ranges;
  if (violation_.empty() && is_full && items_ != entries_) {
    return fmt::format("The array holds {} entries; it was made with {}.", items_, entries_);
  }
  return violation_;
}

}  // namespace sp3::workloads
