// History: what transactions saw and did, and whether any strict serial order explains it.
//
// Objects are append-only lists and registers, named by numbers; every value is written once, so a
// read says whose write it saw. From the lists' contents follow the version orders, and from them
// the edges between transactions:
//
//   ww   the next version of something it wrote     wr   read what it wrote
//   rw   overwrote what it read                     rt   began after it had returned
//
// A history without a cycle (and without impossible reads) is strictly serializable as far as its
// reads tell. Appends that committed and that nobody read come after all that was read, in whatever
// order. Registers give version orders only where a transaction read a register before it wrote it;
// of other writers it is known that they come after the value at first.
//
// Thread safety: a Transaction belongs to its thread; add() by one thread, after the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sp3::oracle {

struct HistoryOp {
  enum class Kind : std::uint8_t { append, read_list, write_register, read_register };
  Kind kind;
  std::uint64_t object;
  std::uint64_t value = 0;          // of all kinds but read_list; 0: never written
  std::vector<std::uint64_t> list;  // of read_list
};

struct HistoryTransaction {
  enum class Outcome : std::uint8_t {
    committed,
    aborted,  // nothing of it may ever be seen
    unknown,  // may have committed (a crash); it did if anything of it was seen
  };
  int process = 0;
  std::uint64_t begin = 0;  // moments of one clock
  std::uint64_t end = 0;
  Outcome outcome = Outcome::committed;
  std::vector<HistoryOp> ops;

  void append(std::uint64_t object, std::uint64_t value) {
    ops.push_back({HistoryOp::Kind::append, object, value, {}});
  }
  void read_list(std::uint64_t object, std::vector<std::uint64_t> list) {
    ops.push_back({HistoryOp::Kind::read_list, object, 0, std::move(list)});
  }
  void write_register(std::uint64_t object, std::uint64_t value) {
    ops.push_back({HistoryOp::Kind::write_register, object, value, {}});
  }
  void read_register(std::uint64_t object, std::uint64_t value) {
    ops.push_back({HistoryOp::Kind::read_register, object, value, {}});
  }
};

struct Anomaly {
  // "G0", "G1c", "G-single", "G2", "real-time violation", "lost update", "dirty read",
  // "intermediate read", "inconsistent read", "incompatible lists", "misplaced append",
  // "unwritten value", "value written twice" (histories of values that are not unique)
  std::string name;
  std::string explanation;  // for a cycle: each transaction and each edge
};

class History {
 public:
  // A clock for begin and end: begin is taken before the transaction starts, end after it returned.
  static std::uint64_t now() noexcept {
    static std::atomic<std::uint64_t> clock{1};
    return clock.fetch_add(1, std::memory_order_seq_cst);
  }

  void add(HistoryTransaction transaction) { transactions_.push_back(std::move(transaction)); }
  [[nodiscard]] std::size_t size() const { return transactions_.size(); }
  [[nodiscard]] const std::vector<HistoryTransaction>& transactions() const {
    return transactions_;
  }

  // The first anomaly found, worst first; nothing if the history is strictly serializable.
  [[nodiscard]] std::optional<Anomaly> find_anomaly() const;

 private:
  std::vector<HistoryTransaction> transactions_;
};

}  // namespace sp3::oracle
