// What a workload's store must hold, whatever system keeps it: the items as a walk shows them, and
// the check that no sequence of whole transactions could have left anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "workloads/tpcc/check.h"
#include "workloads/workload.h"

namespace sp3::workloads {

// One entry of a store.
struct Item {
  // sps, ranges: the index; queue: the position, from the front; maps: the key; bank: the account;
  // tpcc: the row's packed key (workloads/rows.h).
  std::uint64_t key = 0;
  std::uint64_t tag = 0;            // of the entry (workloads/entry.h); bank: the balance
  bool intact = false;              // whether all of the entry belongs to the tag
  std::vector<std::byte> row = {};  // tpcc
};

// Returns whether to go on.
using ItemVisitor = std::function<bool(const Item&)>;

// Feed it every item, in the walk's order, then ask. Invariants it checks:
//   sps      every tag below the number of entries occurs once (a permutation)
//   queue    what is left of the values of one producer is there in order and without a gap: values
//            only go at the front; those from the start come first, and the last of them goes last
//   maps     every key is below the spec's key_space(), none occurs twice, no two have an entry of
//            one write, and all that were there at the start are, for nothing deletes
//   ranges   every index below the number of entries occurs once, in order; and since a write gives
//            one tag to neighbours, others lie between two of them only whole, and if they came
//            later: A B A, but not A B A B, A around an entry of the start, nor around anything
//            that A's own producer made before
//   bank     every account occurs once, no balance is negative, and they add up to what they did
//   tpcc     those of workloads/tpcc/check.h
//   all      every entry is whole, and its tag is one that it had at the start or that a producer
//            gives
class ContentsCheck {
 public:
  // `producers` is how many threads may have written, with numbers from 0 on.
  explicit ContentsCheck(const WorkloadSpec& spec, unsigned producers = kMostThreads);

  // Returns whether all is well so far.
  bool add(const Item& item);
  // A sentence that names the first violation, else empty. After the last item.
  [[nodiscard]] std::string violation() const;

 private:
  bool add_queued(const Item& item);
  bool add_mapped(const Item& item);
  bool add_to_range(const Item& item);
  bool add_account(const Item& item);
  bool add_unique(std::uint64_t number, const char* what);
  bool add_made(std::uint64_t tag);
  bool add_given(const Item& item, bool at_start);
  bool refuse(std::string violation);
  [[nodiscard]] std::string what_is_wrong() const;

  WorkloadSpec spec_;
  std::uint64_t producers_;
  std::uint64_t items_ = 0;
  std::vector<bool> seen_;           // sps: by tag; maps: by key
  std::vector<std::uint64_t> made_;  // maps: tags that producers gave
  // Ranges: a write that may go on, and how many had begun when it was last met.
  struct Open {
    std::uint64_t tag = 0;
    std::size_t begun = 0;
  };
  std::vector<Open> open_;                   // each in the one before
  std::vector<std::uint64_t> begun_;         // tags that producers gave, in their order
  std::unordered_set<std::uint64_t> known_;  // the same
  std::unordered_map<std::uint64_t, std::uint64_t> last_;  // queue: the last tag of each producer
  std::uint64_t balances_ = 0;                             // bank: their sum
  std::optional<tpcc::Check> tpcc_;
  std::string violation_;
};

}  // namespace sp3::workloads
