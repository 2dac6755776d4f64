#include "oracle/history_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

namespace sp3::oracle {
namespace {

using Json = nlohmann::json;
using Kind = HistoryOp::Kind;
using Outcome = HistoryTransaction::Outcome;

Json to_json(const HistoryOp& op, bool reads_known) {
  switch (op.kind) {
    case Kind::append:
      return {"append", op.object, op.value};
    case Kind::write_register:
      return {"w", op.object, op.value};
    case Kind::read_list:
      return {"r", op.object, reads_known ? Json(op.list) : Json()};
    case Kind::read_register:
      return {"r", op.object, reads_known && op.value != 0 ? Json(op.value) : Json()};
  }
  return nullptr;
}

Json to_json(const std::vector<HistoryOp>& ops, bool reads_known) {
  Json value = Json::array();
  for (const HistoryOp& op : ops) value.push_back(to_json(op, reads_known));
  return value;
}

const char* type_of(Outcome outcome) {
  return outcome == Outcome::committed ? "ok" : outcome == Outcome::aborted ? "fail" : "info";
}

}  // namespace

std::string to_json(const History& history) {
  // A moment, invocations before completions of the same one, and the transaction.
  std::vector<std::tuple<std::uint64_t, bool, std::size_t>> moments;
  for (std::size_t t = 0; t < history.size(); ++t) {
    moments.emplace_back(history.transactions()[t].begin, false, t);
    moments.emplace_back(history.transactions()[t].end, true, t);
  }
  std::sort(moments.begin(), moments.end());
  std::string text = "[";
  for (std::size_t index = 0; index < moments.size(); ++index) {
    const auto& [moment, ends, t] = moments[index];
    const HistoryTransaction& tx = history.transactions()[t];
    const Json entry = {{"index", index},
                        {"process", tx.process},
                        {"type", ends ? type_of(tx.outcome) : "invoke"},
                        {"value", to_json(tx.ops, ends && tx.outcome == Outcome::committed)}};
    text += (index == 0 ? "" : ",\n ") + entry.dump();
  }
  return text + "]\n";
}

}  // namespace sp3::oracle
