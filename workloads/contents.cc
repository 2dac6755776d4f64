#include "workloads/contents.h"

#include <utility>

#include <fmt/format.h>

namespace sp3::workloads {

ContentsCheck::ContentsCheck(const WorkloadSpec& spec, unsigned producers)
    : spec_(spec), producers_(producers) {
  if (spec.kind == WorkloadKind::tpcc) {
    tpcc_.emplace(spec.warehouses);
  } else if (spec.kind != WorkloadKind::queue) {
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
    case WorkloadKind::ranges:
      break;
    case WorkloadKind::bank:
      return add_account(item);
    case WorkloadKind::tpcc:
      return tpcc_->add(item.key, item.row);
  }
  return add_keyed(item);
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

bool ContentsCheck::add_keyed(const Item& item) {
  const bool is_array = spec_.kind == WorkloadKind::ranges;
  if (!add_unique(item.key, is_array ? "Index" : "Key")) return false;
  if (producer_of(item.tag) != 0) return add_made(item.tag);
  if (item.tag == item.key && (is_array || spec_.present_at_start(item.key))) return true;
  return refuse(
      fmt::format("The entry at {} has tag {:#x}, which nobody gave it.", item.key, item.tag));
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

std::string ContentsCheck::what_is_missing() const {
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
  return {};
}

std::string ContentsCheck::violation() const {
  return violation_.empty() ? what_is_missing() : violation_;
}

}  // namespace sp3::workloads
