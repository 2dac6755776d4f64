// Ledger: what the transactions of one simulated run read and wrote, and which of them were
// acknowledged; and whether a state found after a crash is one they allow.
//
// Every value is written once and says by whom. A transaction that writes an object has read it, so
// each value also says which one it replaced, and from the values found the chain of all that came
// before follows.
//
// A state is allowed if
//   - every value found was written by an attempt that may have committed,
//   - every transaction of which anything is found is there whole, and everything it read is too
//     (so the set is closed under predecessors),
//   - everything acknowledged is there, and everything an acknowledged transaction read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/history.h"

namespace sp3::sim {

inline constexpr std::uint32_t kCells = 5;
inline constexpr std::uint32_t kDirectory = kCells;  // as an object
inline constexpr std::uint32_t kBoxes = 3;
inline constexpr std::uint32_t kFirstBox = kCells + 1;
inline constexpr std::uint32_t kObjects = kCells + 1 + kBoxes;

using Value = std::uint64_t;
using Values = std::array<Value, kObjects>;

// What a structure (sim/structure.h) holds: keys, or positions, in order, and their values.
using Contents = std::vector<std::pair<std::uint64_t, Value>>;

// What was found on media.
struct State {
  bool made = false;  // the directory and its cells
  Values values{};
  Contents contents{};  // of the structure
};

class Ledger {
 public:
  using Number = std::uint32_t;

  // `run` tells the values of runs on one pool apart. REQUIRES: < 2^12.
  explicit Ledger(std::uint32_t run);

  // The values everything starts from. `certain`: they cannot be lost any more.
  void start_from(const Values& values, bool certain);

  Number begin(int core);
  // The last attempt came to nothing: what it read is kept as a view, the rest forgotten. The next
  // has to see what was published when the call began, and `up_to_now` what has been since.
  void attempt(Number tx, bool up_to_now = true);
  // The value for the next write of this attempt.
  [[nodiscard]] Value next_value(Number tx) const;
  void read(Number tx, std::uint32_t object, Value found);
  void write(Number tx, std::uint32_t object, Value replaced, Value value);
  // Its call returned: who begins now must see it, though power may yet take it. No more is known
  // of an asynchronous commit until it is acknowledged.
  void publish(Number tx);
  void acknowledge(Number tx);  // it is durable; and published, if it was not before
  void give_up(Number tx);      // an exception left run(): nothing of it may be found

  [[nodiscard]] bool has_started() const noexcept { return started_; }
  // Changes whenever more may be asked of a state. No two ledgers have the same one.
  [[nodiscard]] std::uint64_t demands() const noexcept { return demands_; }
  [[nodiscard]] std::size_t size() const noexcept { return transactions_.size(); }

  // What is wrong with the state; empty if nothing.
  [[nodiscard]] std::string find_fault(const State& state) const;
  // The values that the object had after the one it started from, up to `value`, oldest first.
  // REQUIRES: no fault was found in a state that has it.
  [[nodiscard]] std::vector<Value> since_start(std::uint32_t object, Value value) const;
  // What the object had when the run began.
  [[nodiscard]] Value at_start(std::uint32_t object) const { return start_[object]; }
  // The run as a history for the serializability checker; those in flight count as unknown. What
  // attempts read that came to nothing is in it too, as transactions that only read: an order is
  // found only if no body ever saw half a transaction.
  [[nodiscard]] oracle::History history() const;
  // The same with each object as a list, to which every write appends: what a transaction read is
  // then all that came before. The values everything starts from are transaction 0's.
  [[nodiscard]] oracle::History list_history() const;
  [[nodiscard]] std::string describe(Number tx) const;

 private:
  enum class Stage : std::uint8_t { running, published, acknowledged, given_up };
  struct Access {
    std::uint32_t object;
    Value value;
    Value replaced;  // of a write
  };
  struct Transaction {
    int core = 0;
    Stage stage = Stage::running;
    std::uint32_t attempt = 0;
    std::uint64_t attempt_begin = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // of its call: an asynchronous one ends before it is acknowledged
    std::vector<Access> reads;
    std::vector<Access> writes;
  };
  // What an attempt read that was retried or given up.
  struct View {
    int core;
    std::uint64_t begin;
    std::uint64_t end;
    std::vector<Access> reads;
  };
  struct Found;

  void keep_view(Transaction& tx);
  // As the history has it, without what it read and wrote.
  [[nodiscard]] static oracle::HistoryTransaction frame(const Transaction& tx);
  void add_reads(const std::vector<Access>& reads, oracle::HistoryTransaction& to) const;

  [[nodiscard]] const Access* writer_of(std::uint32_t object, Value value, Number* tx) const;
  [[nodiscard]] std::string trace_back(const State& state, Found& found) const;
  [[nodiscard]] std::string name(std::uint32_t object, Value value) const;

  const std::uint32_t run_;
  Values start_{};
  bool started_ = false;
  bool start_is_certain_ = false;
  std::vector<Transaction> transactions_;
  std::vector<View> views_;
  std::uint64_t demands_;
  std::uint64_t moment_ = 0;
};

}  // namespace sp3::sim
