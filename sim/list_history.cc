// A ledger's values say what they replaced, so each stands for the list of all versions before it.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/ledger.h"

namespace sp3::sim {

oracle::History Ledger::list_history() const {
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
  oracle::HistoryTransaction start;  // process 0; the cores are those behind it
  for (std::uint32_t object = 0; object < kObjects && started_; ++object) {
    start.append(object, start_[object]);
  }
  history.add(std::move(start));
  for (const Transaction& tx : transactions_) {
    oracle::HistoryTransaction out = frame(tx);
    out.process = tx.core + 1;
    for (const Access& read : tx.reads) {
      out.read_list(read.object, versions_up_to(read.object, read.value));
    }
    for (const Access& write : tx.writes) out.append(write.object, write.value);
    history.add(std::move(out));
  }
  return history;
}

}  // namespace sp3::sim
