// What a benchmark does, independent of the system that does it: the five workloads of the paper's
// Table I as streams of operations, one transaction each.
//
//   sps        swap two entries of an array
//   queue      enqueue or dequeue
//   hashtable, rbtree, bptree   insert (update if present) or search; hashtable and bptree also in
//                               the mixes of YCSB (workloads/mix.h)
//
// and one more, for ranged objects:
//
//   ranges     read, overwrite, or append to a log in, a range of one large object of entries
//
// and two of several rows a transaction, as applications have them:
//
//   bank       transfer between two accounts, or audit of some (workloads/bank.h)
//   tpcc       new-order or payment of TPC-C, reduced (workloads/tpcc/)
//
// Thread safety: a WorkloadSpec is a value; an OperationStream belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/mix.h"
#include "workloads/rng.h"
#include "workloads/zipf.h"

namespace sp3::workloads {

enum class WorkloadKind : std::uint8_t {
  sps,
  queue,
  hashtable,
  rbtree,
  bptree,
  ranges,
  bank,
  tpcc,
};

// Those of Table I, which every system can run.
inline constexpr WorkloadKind kAllWorkloads[] = {WorkloadKind::sps, WorkloadKind::queue,
                                                 WorkloadKind::hashtable, WorkloadKind::rbtree,
                                                 WorkloadKind::bptree};

// Those that are asked for by name only.
inline constexpr WorkloadKind kNamedWorkloads[] = {WorkloadKind::ranges, WorkloadKind::bank,
                                                   WorkloadKind::tpcc};
// Whether it is one of several rows a transaction.
constexpr bool is_application(WorkloadKind kind) {
  return kind == WorkloadKind::bank || kind == WorkloadKind::tpcc;
}

const char* to_string(WorkloadKind kind) noexcept;
// Of kAllWorkloads, for people: "sps, queue" and so on.
std::string workload_names();
// Throws std::invalid_argument, with the names there are, for any other.
WorkloadKind workload_from_name(std::string_view name);

// The entry sizes that are compiled in.
inline constexpr std::uint32_t kEntrySizes[] = {16, 64, 128, 256, 1024, 4096};

inline constexpr unsigned kMostThreads = 1024;  // of a run

// Of bank.
inline constexpr std::uint64_t kStartBalance = 1000;  // of each account
inline constexpr std::uint64_t kMostTransfer = 100;
inline constexpr std::uint64_t kAuditWindow = 16;  // accounts

inline constexpr std::uint64_t kMostWarehouses = 1000;  // of tpcc

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::sps;
  std::uint64_t entries =
      100'000;  // array length, values in the full queue, or size of the key space
  std::uint32_t entry_size = 128;  // bytes of a value
  double zipf = 0.99;              // skew over entries or keys; 0 is uniform
  // Share of inserts (maps), enqueues, transfers (bank) or new-orders (tpcc).
  double insert_ratio = 0.5;
  double fill = 1.0;  // share of the keys that are there at the start (maps)
  // Of hashtable and bptree: anything but paper stands for insert_ratio, and has all keys there.
  Mix mix = Mix::paper;
  std::uint64_t seed = 1;
  // Of ranges. The log is the last eighth of the object, which each thread writes through in a
  // circle.
  std::uint64_t range_least = 64;  // bytes; ranges are whole entries, at least one
  std::uint64_t range_most = std::uint64_t{1} << 20;
  double range_zipf = 0.99;  // skew over sizes, the smallest the most frequent; 0 is uniform
  std::array<std::uint32_t, 3> range_mix = {1, 1, 0};  // shares of reads, writes and appends
  std::uint32_t range_chunk = 1024;                    // bytes of the object's chunks
  // Of tpcc, to which entries, their size, zipf and fill mean nothing. A thread's home is that of
  // its number, modulo theirs.
  std::uint64_t warehouses = 1;

  // Throws std::invalid_argument that names the member, what it allows and what it holds.
  void validate() const;
  // Keys of a map are below this. New ones, which come after those from the start, are as many, so
  // that a store does not grow for ever; then they are used again.
  [[nodiscard]] std::uint64_t key_space() const { return adds_keys(mix) ? 2 * entries : entries; }
  // Whether a map holds `key` at the start.
  [[nodiscard]] bool present_at_start(std::uint64_t key) const;
  // The fewest and the most entries of a range.
  [[nodiscard]] std::uint64_t least_range() const;
  [[nodiscard]] std::uint64_t most_range() const;
  // All such keys, in no particular order, as they would come over time: sorted insertion would
  // leave a B+ tree half empty.
  [[nodiscard]] std::vector<std::uint64_t> initial_keys() const;
};

// "bptree", or "bptree ycsb-a".
std::string name_of(const WorkloadSpec& spec);

enum class OperationKind : std::uint8_t {
  swap,
  enqueue,
  dequeue,
  insert,
  search,
  modify,  // reads an entry, and makes it another
  scan,    // reads entries in the order of their keys
  read_range,
  write_range,
  transfer,
  audit,
  new_order,
  payment,
};

struct Operation {
  OperationKind kind = OperationKind::swap;
  // swap, ranges, audit: the first index; scan: the least key; transfer: who pays; new-order,
  // payment: home warehouse.
  std::uint64_t key = 0;
  // swap: the second index; inserts and writes: the tag of the new entry; transfer: who gets it;
  // new-order, payment: the seed that the rest follows from (workloads/tpcc/inputs.h).
  std::uint64_t value = 0;
  // ranges: entries; scan: at most so many; transfer: the amount; audit: accounts
  std::uint64_t count = 0;
};

// A tag tells who made the entry: 0 for what is there at the start, whose tags are its indices or
// keys; else the thread's number and one. The rest counts what that thread made, from 1 on.
inline constexpr unsigned kProducerShift = 48;
constexpr std::uint64_t producer_of(std::uint64_t tag) { return tag >> kProducerShift; }

// One thread's operations: a function of the spec, its seed and the thread's number alone.
//
// A Zipfian draw costs as much as a tenth of a transaction, so items are drawn beforehand and
// walked through in a circle; whether a transaction inserts is drawn each time.
class OperationStream {
 public:
  static constexpr std::size_t kDraws = std::size_t{1} << 19;  // of a thread, where that is enough
  static constexpr std::uint64_t kDrawsPerEntry = 4;           // of all threads together, at least
  // Of a thread: 64 MiB, and of ranges as much for their lengths. With more than four million
  // entries for each thread there are fewer draws for an entry.
  static constexpr std::size_t kMostDraws = std::size_t{1} << 24;

  // How many items one of so many threads draws: enough for its operations and a tenth of them to
  // warm up; at most, and where time ends the run, so many that the course, which then repeats, has
  // nearly all entries if keys are uniform.
  static std::size_t draws_for(std::uint64_t entries, unsigned threads,
                               std::optional<std::uint64_t> operations);

  // `draws` items are drawn; if 0, as many as one thread alone draws in a run that time ends.
  OperationStream(const WorkloadSpec& spec, const Zipf& zipf, unsigned thread,
                  std::size_t draws = 0);

  Operation next() {
    switch (kind_) {
      case WorkloadKind::sps:
        return next_swap();
      case WorkloadKind::queue:
        if (inserts()) return {OperationKind::enqueue, 0, ++next_tag_};
        return {OperationKind::dequeue, 0, 0};
      case WorkloadKind::hashtable:
      case WorkloadKind::rbtree:
      case WorkloadKind::bptree:
        break;
      case WorkloadKind::ranges:
        return next_range();
      case WorkloadKind::bank:
        return next_bank();
      case WorkloadKind::tpcc:
        return next_tpcc();
    }
    if (mixed_) return next_mixed();
    const std::uint64_t key = item();
    if (inserts()) return {OperationKind::insert, key, ++next_tag_};
    return {OperationKind::search, key, 0};
  }

  // Of those drawn so far.
  [[nodiscard]] std::uint64_t new_orders() const { return new_orders_; }

 private:
  std::uint64_t item() {
    if (next_draw_ == draws_.size()) next_draw_ = 0;
    return draws_[next_draw_++];
  }
  bool inserts() { return always_insert_ || rng_.next() < insert_below_; }

  // Two different entries.
  Operation next_swap() {
    const std::uint64_t first = item();
    const std::uint64_t second = item();
    if (second != first) return {OperationKind::swap, first, second};
    return {OperationKind::swap, first, first + 1 < entries_ ? first + 1 : 0};
  }

  Operation next_bank() {
    if (inserts()) {
      const Operation swap = next_swap();
      return {OperationKind::transfer, swap.key, swap.value, 1 + rng_.below(kMostTransfer)};
    }
    const std::uint64_t count = entries_ < kAuditWindow ? entries_ : kAuditWindow;
    const std::uint64_t first = item();
    return {OperationKind::audit, first < entries_ - count ? first : entries_ - count, 0, count};
  }

  Operation next_tpcc() {
    const bool orders = inserts();
    if (orders) ++new_orders_;
    return {orders ? OperationKind::new_order : OperationKind::payment, home_, rng_.next()};
  }

  Operation next_range();
  Operation next_mixed();
  // The n-th key that this thread adds, from 0 on: in no order, as YCSB's are by default.
  [[nodiscard]] std::uint64_t added_key(std::uint64_t n) const;

  Rng rng_;
  WorkloadKind kind_;
  std::uint64_t entries_;
  std::uint64_t insert_below_;
  bool always_insert_;
  std::uint64_t next_tag_;  // distinguishes every entry ever stored by any thread
  std::vector<std::uint32_t> draws_;
  std::size_t next_draw_ = 0;
  // Of ranges.
  std::vector<std::uint32_t> counts_;  // drawn beforehand, one for each item
  std::array<std::uint32_t, 3> mix_;
  std::uint64_t log_at_ = 0;  // entries of the log that this thread has written
  // Of mixes other than the paper's.
  bool mixed_;
  MixShares shares_;
  Zipf zipf_;
  std::uint64_t first_added_;  // where in the order of new keys this thread begins
  std::uint64_t added_ = 0;
  // Of tpcc.
  std::uint64_t home_;
  std::uint64_t new_orders_ = 0;
};

}  // namespace sp3::workloads
