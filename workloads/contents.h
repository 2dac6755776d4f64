// What a workload's store must hold, whatever system keeps it: the items as a walk shows them, and
// the check that no sequence of whole transactions could have left anything else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "workloads/workload.h"

namespace sp3::workloads {

// One entry of a store.
struct Item {
  // sps, ranges: the index; queue: the position, from the front; maps: the key.
  std::uint64_t key = 0;
  std::uint64_t tag = 0;  // of the entry (workloads/entry.h)
  bool intact = false;    // whether all of the entry belongs to the tag
};

// Returns whether to go on.
using ItemVisitor = std::function<bool(const Item&)>;

// Feed it every item, in the walk's order, then ask. Invariants it checks:
//   sps      every tag below the number of entries occurs once (a permutation)
//   queue    the tags of one producer, its number in the upper 16 bits, increase
//   maps     every key is below the number of entries, and none occurs twice
//   ranges   every index below the number of entries occurs once
//   all      every entry is whole
class ContentsCheck {
 public:
  explicit ContentsCheck(const WorkloadSpec& spec);

  // Returns whether all is well so far.
  bool add(const Item& item);
  // A sentence that names the first violation, else empty. After the last item.
  [[nodiscard]] std::string violation() const;

 private:
  bool add_queued(const Item& item);
  bool add_unique(std::uint64_t number, const char* what);

  WorkloadKind kind_;
  std::uint64_t entries_;
  std::uint64_t items_ = 0;
  std::vector<bool> seen_;                                 // sps: by tag; maps: by key
  std::unordered_map<std::uint64_t, std::uint64_t> last_;  // queue: the last tag of each producer
  std::string violation_;
};

}  // namespace sp3::workloads
