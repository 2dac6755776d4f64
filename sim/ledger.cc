#include "sim/ledger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace sp3::sim {
namespace {

// A value: run (12 bits), transaction (24), attempt (16), write of the attempt (12), from the top.
constexpr Value pack(std::uint64_t run, std::uint64_t tx, std::uint64_t attempt,
                     std::uint64_t write) {
  return run << 52 | (tx & 0xffffff) << 28 | (attempt & 0xffff) << 12 | (write & 0xfff);
}
constexpr std::uint64_t run_of(Value value) { return value >> 52; }
constexpr std::uint32_t tx_of(Value value) {
  return static_cast<std::uint32_t>(value >> 28 & 0xffffff);
}

}  // namespace

// The upper half of `demands` is the ledger's own: several may belong to runs of one number.
Ledger::Ledger(std::uint32_t run) : run_(run) {
  static std::uint64_t made = 0;
  demands_ = ++made << 32;
}

void Ledger::start_from(const Values& values, bool certain) {
  start_ = values;
  started_ = true;
  start_is_certain_ = certain;
  ++demands_;
}

Ledger::Number Ledger::begin(int core) {
  Transaction tx;
  tx.core = core;
  tx.begin = ++moment_;
  transactions_.push_back(std::move(tx));
  return static_cast<Number>(transactions_.size() - 1);
}

void Ledger::attempt(Number number, bool up_to_now) {
  Transaction& tx = transactions_[number];
  keep_view(tx);
  ++tx.attempt;
  tx.attempt_begin = up_to_now ? ++moment_ : tx.begin;
  if (!tx.writes.empty()) ++demands_;  // from now on none of these values may be found
  tx.reads.clear();
  tx.writes.clear();
}

void Ledger::keep_view(Transaction& tx) {
  if (!tx.reads.empty()) views_.push_back({tx.core, tx.attempt_begin, ++moment_, tx.reads});
}

Value Ledger::next_value(Number number) const {
  const Transaction& tx = transactions_[number];
  return pack(run_, number, tx.attempt, tx.writes.size() + 1);
}

void Ledger::read(Number tx, std::uint32_t object, Value found) {
  transactions_[tx].reads.push_back({object, found, 0});
}

void Ledger::write(Number tx, std::uint32_t object, Value replaced, Value value) {
  transactions_[tx].writes.push_back({object, value, replaced});
}

void Ledger::publish(Number number) {
  Transaction& tx = transactions_[number];
  SP3_ASSERT(tx.stage == Stage::running);
  tx.stage = Stage::published;
  tx.end = ++moment_;
}

void Ledger::acknowledge(Number number) {
  Transaction& tx = transactions_[number];
  if (tx.stage == Stage::running) publish(number);
  tx.stage = Stage::acknowledged;
  ++demands_;
}

void Ledger::give_up(Number tx) {
  keep_view(transactions_[tx]);
  transactions_[tx].stage = Stage::given_up;
  transactions_[tx].end = ++moment_;
  ++demands_;
}

const Ledger::Access* Ledger::writer_of(std::uint32_t object, Value value, Number* tx) const {
  const Number number = tx_of(value);
  if (run_of(value) != run_ || number >= transactions_.size()) return nullptr;
  for (const Access& write : transactions_[number].writes) {
    if (write.object != object || write.value != value) continue;
    *tx = number;
    return &write;
  }
  return nullptr;
}

// By object: the values found and all they replaced. By transaction: whether anything is found.
struct Ledger::Found {
  std::array<std::vector<Value>, kObjects> values;
  std::vector<bool> transactions;

  [[nodiscard]] bool has(std::uint32_t object, Value value) const {
    const std::vector<Value>& all = values[object];
    return std::find(all.begin(), all.end(), value) != all.end();
  }
};

std::string Ledger::trace_back(const State& state, Found& found) const {
  found.transactions.assign(transactions_.size(), false);
  for (std::uint32_t object = 0; object < kObjects; ++object) {
    Value value = state.values[object];
    while (value != start_[object]) {
      Number tx = 0;
      const Access* write = writer_of(object, value, &tx);
      if (write == nullptr) {
        return fmt::format("{} was never written by an attempt that may have committed",
                           name(object, value));
      }
      if (transactions_[tx].stage == Stage::given_up) {
        return fmt::format("{} was written by a transaction that was given up",
                           name(object, value));
      }
      if (found.values[object].size() > transactions_.size()) {
        return fmt::format("{} replaced itself", name(object, value));
      }
      found.transactions[tx] = true;
      found.values[object].push_back(value);
      value = write->replaced;
    }
    found.values[object].push_back(value);
  }
  return {};
}

std::string Ledger::find_fault(const State& state) const {
  if (!state.made) {
    return start_is_certain_ ? "the directory was acknowledged and is not there" : std::string();
  }
  if (!started_) return "a directory is there that nobody made";
  Found found;
  if (std::string fault = trace_back(state, found); !fault.empty()) return fault;
  for (Number number = 0; number < transactions_.size(); ++number) {
    const Transaction& tx = transactions_[number];
    const bool acknowledged = tx.stage == Stage::acknowledged;
    const bool demanded = acknowledged || tx.stage == Stage::given_up;
    for (const Access& write : tx.writes) {
      if (tx.stage == Stage::given_up || found.has(write.object, write.value)) continue;
      if (acknowledged) {
        return fmt::format("acknowledged and lost: {}, {}", name(write.object, write.value),
                           describe(number));
      }
      if (found.transactions[number]) {
        return fmt::format("half a transaction: {} is missing, {}", name(write.object, write.value),
                           describe(number));
      }
    }
    if (!demanded && !found.transactions[number]) continue;
    for (const Access& read : tx.reads) {
      if (found.has(read.object, read.value)) continue;
      return fmt::format("a successor without its predecessor: {} was read and is missing, {}",
                         name(read.object, read.value), describe(number));
    }
  }
  return {};
}

std::vector<Value> Ledger::since_start(std::uint32_t object, Value value) const {
  std::vector<Value> values;
  while (value != start_[object]) {
    Number tx = 0;
    const Access* const write = writer_of(object, value, &tx);
    SP3_CHECK(write != nullptr);
    values.push_back(value);
    value = write->replaced;
  }
  std::reverse(values.begin(), values.end());
  return values;
}

std::string Ledger::name(std::uint32_t object, Value value) const {
  const std::string what = object == kDirectory  ? "the directory"
                           : object >= kFirstBox ? fmt::format("box {}", object - kFirstBox)
                                                 : fmt::format("cell {}", object);
  return fmt::format("version {:x} of {}", value, what);
}

std::string Ledger::describe(Number number) const {
  const Transaction& tx = transactions_[number];
  std::string text = fmt::format("T{} (core {}, attempt {}{}:", number, tx.core, tx.attempt,
                                 tx.stage == Stage::acknowledged ? ", acknowledged)"
                                 : tx.stage == Stage::given_up   ? ", given up)"
                                 : tx.stage == Stage::published  ? ", published)"
                                                                 : ", in flight)");
  for (const Access& read : tx.reads) text += fmt::format(" r{}={:x}", read.object, read.value);
  for (const Access& write : tx.writes) text += fmt::format(" w{}={:x}", write.object, write.value);
  return text;
}

oracle::HistoryTransaction Ledger::frame(const Transaction& tx) {
  using Outcome = oracle::HistoryTransaction::Outcome;
  oracle::HistoryTransaction out;
  out.process = tx.core;
  out.begin = tx.begin;
  out.end = tx.end != 0 ? tx.end : ~std::uint64_t{0};
  out.outcome = tx.stage == Stage::running    ? Outcome::unknown
                : tx.stage == Stage::given_up ? Outcome::aborted
                                              : Outcome::committed;
  return out;
}

void Ledger::add_reads(const std::vector<Access>& reads, oracle::HistoryTransaction& to) const {
  for (const Access& read : reads) {
    to.read_register(read.object, read.value == start_[read.object] ? 0 : read.value);
  }
}

oracle::History Ledger::history() const {
  oracle::History history;
  for (const Transaction& tx : transactions_) {
    oracle::HistoryTransaction out = frame(tx);
    add_reads(tx.reads, out);
    for (const Access& write : tx.writes) out.write_register(write.object, write.value);
    history.add(std::move(out));
  }
  for (const View& view : views_) {
    oracle::HistoryTransaction out;
    out.process = view.core;
    out.begin = view.begin;
    out.end = view.end;
    add_reads(view.reads, out);
    history.add(std::move(out));
  }
  return history;
}

}  // namespace sp3::sim
