#include "oracle/history_json.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

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

[[noreturn]] void refuse(std::size_t index, const std::string& why) {
  throw std::runtime_error("history entry " + std::to_string(index) + ": " + why);
}

HistoryOp op_from_json(const Json& json, bool registers) {
  const auto name = json.at(0).get<std::string>();
  HistoryOp op{Kind::append, json.at(1).get<std::uint64_t>(), 0, {}};
  const Json& value = json.at(2);
  if (name == "append" || name == "w") {
    op.kind = name == "w" ? Kind::write_register : Kind::append;
    op.value = value.get<std::uint64_t>();
  } else if (name != "r") {
    throw std::runtime_error("no operation is called '" + name + "'");
  } else if (registers) {
    op.kind = Kind::read_register;
    if (!value.is_null()) op.value = value.get<std::uint64_t>();
  } else {
    op.kind = Kind::read_list;
    if (!value.is_null()) op.list = value.get<std::vector<std::uint64_t>>();
  }
  return op;
}

bool has_registers(const Json& entries) {
  for (const Json& entry : entries) {
    for (const Json& op : entry.at("value")) {
      if (op.at(0) == "w" || (op.at(0) == "r" && op.at(2).is_number())) return true;
    }
  }
  return false;
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

History history_from_json(const std::string& text) {
  History history;
  std::size_t index = 0;
  try {
    const Json entries = Json::parse(text);
    const bool registers = has_registers(entries);
    std::map<int, HistoryTransaction> open;  // by process
    for (const Json& entry : entries) {
      const auto process = entry.at("process").get<int>();
      const auto type = entry.at("type").get<std::string>();
      std::vector<HistoryOp> ops;
      for (const Json& op : entry.at("value")) ops.push_back(op_from_json(op, registers));
      const auto found = open.find(process);
      if (type == "invoke") {
        if (found != open.end()) refuse(index, "the process is busy");
        open[process] = {process, index, 0, Outcome::unknown, std::move(ops)};
      } else if (type != "ok" && type != "fail" && type != "info") {
        refuse(index, "no type is called '" + type + "'");
      } else if (found == open.end()) {
        refuse(index, "the process has nothing to end");
      } else {
        HistoryTransaction tx = std::move(found->second);
        open.erase(found);
        tx.end = type == "info" ? ~std::uint64_t{0} : index;
        tx.outcome = type == "ok"     ? Outcome::committed
                     : type == "fail" ? Outcome::aborted
                                      : Outcome::unknown;
        // What nobody knows to have been read was not read.
        if (type != "ok") {
          std::erase_if(ops, [](const HistoryOp& op) {
            return op.kind == Kind::read_list || op.kind == Kind::read_register;
          });
        }
        tx.ops = std::move(ops);
        history.add(std::move(tx));
      }
      ++index;
    }
    for (auto& [process, tx] : open) {
      tx.end = ~std::uint64_t{0};
      std::erase_if(tx.ops, [](const HistoryOp& op) {
        return op.kind == Kind::read_list || op.kind == Kind::read_register;
      });
      history.add(std::move(tx));
    }
  } catch (const Json::exception& error) {
    refuse(index, error.what());
  }
  return history;
}

}  // namespace sp3::oracle
