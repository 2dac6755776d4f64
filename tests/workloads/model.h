// Model: containers of the standard library that do what a system does with a workload's
// operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/workloads/support.h"
#include "workloads/system.h"

namespace sp3::test {

using Contents = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // key, tag; by key

class Model {
 public:
  explicit Model(const workloads::WorkloadSpec& spec) : kind_(spec.kind) {
    for (std::uint64_t i = 0; i < spec.entries; ++i) {
      if (kind_ == workloads::WorkloadKind::sps) array_.push_back(i);
      if (kind_ == workloads::WorkloadKind::queue) queue_.push_back(i);
      if (is_map() && spec.present_at_start(i)) map_[i] = i;
    }
  }

  // What it read last, of a map.
  [[nodiscard]] std::uint64_t last_tag() const { return last_tag_; }

  bool execute(const workloads::Operation& operation) {
    switch (operation.kind) {
      case workloads::OperationKind::swap:
        std::swap(array_.at(operation.key), array_.at(operation.value));
        return true;
      case workloads::OperationKind::enqueue:
        queue_.push_back(operation.value);
        return true;
      case workloads::OperationKind::dequeue:
        if (queue_.empty()) return false;
        queue_.pop_front();
        return true;
      case workloads::OperationKind::insert:
        map_[operation.key] = operation.value;
        return true;
      case workloads::OperationKind::modify: {
        const bool is_there = read(operation.key);
        map_[operation.key] = operation.value;
        return is_there;
      }
      case workloads::OperationKind::scan: {
        std::uint64_t left = operation.count;
        for (auto at = map_.lower_bound(operation.key); at != map_.end() && left > 0;
             ++at, --left) {
          last_tag_ = at->second;
        }
        return left < operation.count;
      }
      case workloads::OperationKind::search:
        break;
      case workloads::OperationKind::read_range:
      case workloads::OperationKind::write_range:
      case workloads::OperationKind::transfer:
      case workloads::OperationKind::audit:
      case workloads::OperationKind::new_order:
      case workloads::OperationKind::payment:
        FAIL("ranges and applications have tests of their own");
    }
    return read(operation.key);
  }

  [[nodiscard]] Contents contents() const {
    if (is_map()) return {map_.begin(), map_.end()};
    Contents all;
    for (const std::uint64_t tag : array_) all.emplace_back(all.size(), tag);
    for (const std::uint64_t tag : queue_) all.emplace_back(all.size(), tag);
    return all;
  }

 private:
  bool read(std::uint64_t key) {
    const auto at = map_.find(key);
    if (at != map_.end()) last_tag_ = at->second;
    return at != map_.end();
  }
  [[nodiscard]] bool is_map() const {
    return kind_ != workloads::WorkloadKind::sps && kind_ != workloads::WorkloadKind::queue;
  }

  workloads::WorkloadKind kind_;
  std::vector<std::uint64_t> array_;
  std::deque<std::uint64_t> queue_;
  std::map<std::uint64_t, std::uint64_t> map_;
  std::uint64_t last_tag_ = 0;
};

inline Contents contents_of(workloads::System& system) {
  Contents found;
  for (const workloads::Item& item : items_of(system)) found.emplace_back(item.key, item.tag);
  std::ranges::sort(found);
  return found;
}

}  // namespace sp3::test
