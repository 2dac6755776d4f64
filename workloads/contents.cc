#include "workloads/contents.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sp3::workloads {

ContentsCheck::ContentsCheck(const WorkloadSpec& spec, unsigned producers)
    : spec_(spec), producers_(producers) {
  if (spec.kind == WorkloadKind::tpcc) {
    tpcc_.emplace(spec.warehouses);
  } else if (spec.kind != WorkloadKind::queue && spec.kind != WorkloadKind::ranges) {
    seen_.resize(spec.key_space(), false);
  }
}

bool ContentsCheck::add(const Item& item) {
  if (!violation_.empty()) return false;
  ++items_;
  if (!item.intact) {
    return refuse(
        fmt::format("The entry at {}, found with tag {:#x}, is torn.", item.key, item.tag));
  }
  switch (spec_.kind) {
    case WorkloadKind::sps:
      return add_unique(item.tag, "Tag");
    case WorkloadKind::queue:
      return add_queued(item);
    case WorkloadKind::hashtable:
    case WorkloadKind::rbtree:
    case WorkloadKind::bptree:
      break;
    case WorkloadKind::ranges:
      return add_to_range(item);
    case WorkloadKind::bank:
      return add_account(item);
    case WorkloadKind::tpcc:
      return tpcc_->add(item.key, item.row);
  }
  return add_mapped(item);
}

bool ContentsCheck::refuse(std::string violation) {
  violation_ = std::move(violation);
  return false;
}

bool ContentsCheck::add_unique(std::uint64_t number, const char* what) {
  if (number >= seen_.size()) return refuse(fmt::format("{} {} is foreign.", what, number));
  if (seen_[number]) return refuse(fmt::format("{} {} occurs twice.", what, number));
  seen_[number] = true;
  return true;
}

// A tag that was not there at the start.
bool ContentsCheck::add_made(std::uint64_t tag) {
  const bool counted = tag != producer_of(tag) << kProducerShift;
  if (producer_of(tag) <= producers_ && counted) return true;
  return refuse(fmt::format("Nobody made tag {:#x}.", tag));
}

// Of an entry that has its key for a tag if it was there at the start.
bool ContentsCheck::add_given(const Item& item, bool at_start) {
  if (producer_of(item.tag) != 0) return add_made(item.tag);
  if (item.tag == item.key && at_start) return true;
  return refuse(
      fmt::format("The entry at {} has tag {:#x}, which nobody gave it.", item.key, item.tag));
}

bool ContentsCheck::add_mapped(const Item& item) {
  if (!add_unique(item.key, "Key")) return false;
  if (!add_given(item, spec_.present_at_start(item.key))) return false;
  if (producer_of(item.tag) != 0) made_.push_back(item.tag);
  return true;
}

bool ContentsCheck::add_to_range(const Item& item) {
  if (item.key != items_ - 1) {
    return refuse(fmt::format("Index {} is where {} should be.", item.key, items_ - 1));
  }
  if (!add_given(item, true)) return false;
  if (producer_of(item.tag) == 0) {
    open_.clear();  // no write reached over it
    return true;
  }
  if (!open_.empty() && open_.back().tag == item.tag) return true;
  if (known_.insert(item.tag).second) {
    begun_.push_back(item.tag);
    open_.push_back({item.tag, begun_.size()});
    return true;
  }
  // The write goes on behind others, which were made in the middle of it later.
  const auto outer = std::find_if(open_.rbegin(), open_.rend(),
                                  [&](const Open& open) { return open.tag == item.tag; });
  if (outer == open_.rend()) {
    return refuse(fmt::format("Tag {:#x} goes on at {}, where another write had cut it off.",
                              item.tag, item.key));
  }
  const auto inner = begun_.begin() + static_cast<std::ptrdiff_t>(outer->begun);
  const auto earlier = std::find_if(inner, begun_.end(), [&](std::uint64_t tag) {
    return producer_of(tag) == producer_of(item.tag) && tag < item.tag;
  });
  if (earlier != begun_.end()) {
    return refuse(
        fmt::format("Tag {:#x} lies before {}, within {:#x}, which its producer made later.",
                    *earlier, item.key, item.tag));
  }
  outer->begun = begun_.size();
  open_.erase(outer.base(), open_.end());
  return true;
}

bool ContentsCheck::add_account(const Item& item) {
  const auto balance = static_cast<std::int64_t>(item.tag);
  if (balance < 0) return refuse(fmt::format("Account {} has {}.", item.key, balance));
  balances_ += item.tag;
  return add_unique(item.key, "Account");
}

bool ContentsCheck::add_queued(const Item& item) {
  const std::uint64_t producer = producer_of(item.tag);
  if (producer != 0) {
    if (!add_made(item.tag)) return false;
  } else if (item.tag >= spec_.entries) {
    return refuse(fmt::format("Tag {} is foreign.", item.tag));
  } else if (last_.size() > last_.count(0)) {
    return refuse(fmt::format("Tag {}, from the start, follows what came later.", item.tag));
  }
  const auto [previous, first] = last_.try_emplace(producer, item.tag);
  if (!first && item.tag <= previous->second) {
    return refuse(fmt::format("Tag {:#x} follows {:#x}, which its producer made later.", item.tag,
                              previous->second));
  }
  if (!first && item.tag != previous->second + 1) {
    return refuse(fmt::format("Tag {:#x} follows {:#x}; what its producer made between is lost.",
                              item.tag, previous->second));
  }
  previous->second = item.tag;
  return true;
}

// What only all items together show.
std::string ContentsCheck::what_is_wrong() const {
  switch (spec_.kind) {
    case WorkloadKind::sps:
    case WorkloadKind::ranges:
      if (items_ == spec_.entries) return {};
      return fmt::format("The array holds {} entries; it was made with {}.", items_, spec_.entries);
    case WorkloadKind::queue: {
      const auto last = last_.find(0);
      if (last == last_.end() || last->second == spec_.entries - 1) return {};
      return fmt::format("Tag {} is there, but not {}, which came later.", last->second,
                         spec_.entries - 1);
    }
    case WorkloadKind::bank: {
      const std::uint64_t wanted = spec_.entries * kStartBalance;
      if (items_ == spec_.entries && balances_ == wanted) return {};
      return fmt::format("{} accounts have {} together, where {} had {}.", items_, balances_,
                         spec_.entries, wanted);
    }
    case WorkloadKind::tpcc:
      return tpcc_->violation();
    case WorkloadKind::hashtable:
    case WorkloadKind::rbtree:
    case WorkloadKind::bptree:
      break;
  }
  for (std::uint64_t key = 0; key < spec_.entries; ++key) {
    if (!seen_[key] && spec_.present_at_start(key)) {
      return fmt::format("Key {}, there from the start, is missing.", key);
    }
  }
  std::vector<std::uint64_t> made = made_;
  std::ranges::sort(made);
  const auto twice = std::ranges::adjacent_find(made);
  if (twice != made.end()) return fmt::format("Tag {:#x}, of one write, is at two keys.", *twice);
  return {};
}

std::string ContentsCheck::violation() const {
  return violation_.empty() ? what_is_wrong() : violation_;
}

}  // namespace sp3::workloads
