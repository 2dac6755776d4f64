// A ledger's values say what they replaced, so each stands for the list of all versions before it.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/ledger.h"

namespace sp3::sim {

oracle::History Ledger::list_history() const {
  using Outcome = oracle::HistoryTransaction::Outcome;
  std::map<std::pair<std::uint32_t, Value>, Value> replaced;
  for (const Transaction& tx : transactions_) {
    for (const Access& write : tx.writes) replaced[{write.object, write.value}] = write.replaced;
  }
  const auto versions_up_to = [&](std::uint32_t object, Value value) {
    std::vector<Value> list{value};
    for (auto it = replaced.find({object, value}); it != replaced.end();
         it = replaced.find({object, list.back()})) {
      list.push_back(it->second);
    }
    std::reverse(list.begin(), list.end());
    return list;
  };

  oracle::History history;
  int processes = 1;
  oracle::HistoryTransaction start;
  for (std::uint32_t object = 0; object < kObjects && started_; ++object) {
    start.append(object, start_[object]);
  }
  history.add(std::move(start));
  // A process does one thing at a time: what a core has in flight side by side is several's.
  std::map<int, std::vector<std::pair<int, std::uint64_t>>> of_core;  // process, busy until
  for (const Transaction& tx : transactions_) {
    oracle::HistoryTransaction out;
    out.begin = tx.begin;
    out.end = tx.end != 0 ? tx.end : ~std::uint64_t{0};
    out.outcome = tx.stage == Stage::acknowledged ? Outcome::committed
                  : tx.stage == Stage::given_up   ? Outcome::aborted
                                                  : Outcome::unknown;
    auto& busy = of_core[tx.core];
    auto free = std::find_if(busy.begin(), busy.end(),
                             [&](const auto& process) { return process.second < tx.begin; });
    if (free == busy.end()) free = busy.insert(busy.end(), {processes++, 0});
    free->second = out.end;
    out.process = free->first;
    for (const Access& read : tx.reads) {
      out.read_list(read.object, versions_up_to(read.object, read.value));
    }
    for (const Access& write : tx.writes) out.append(write.object, write.value);
    history.add(std::move(out));
  }
  return history;
}

}  // namespace sp3::sim
