// What a benchmark does, independent of the system that does it: the five workloads of the paper's
// Table I as streams of operations, one transaction each.
//
//   sps        swap two entries of an array
//   queue      enqueue or dequeue
//   hashtable, rbtree, bptree   insert (update if present) or search
//
// Thread safety: a WorkloadSpec is a value; an OperationStream belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/rng.h"
#include "workloads/zipf.h"

namespace sp3::workloads {

enum class WorkloadKind : std::uint8_t { sps, queue, hashtable, rbtree, bptree };

inline constexpr WorkloadKind kAllWorkloads[] = {WorkloadKind::sps, WorkloadKind::queue,
                                                 WorkloadKind::hashtable, WorkloadKind::rbtree,
                                                 WorkloadKind::bptree};

const char* to_string(WorkloadKind kind) noexcept;
// Throws std::invalid_argument, with the names there are, for any other.
WorkloadKind workload_from_name(std::string_view name);

// The entry sizes that are compiled in.
inline constexpr std::uint32_t kEntrySizes[] = {16, 64, 128, 256, 1024, 4096};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::sps;
  std::uint64_t entries =
      100'000;  // array length, values in the full queue, or size of the key space
  std::uint32_t entry_size = 128;  // bytes of a value
  double zipf = 0.99;              // skew over entries or keys; 0 is uniform
  double insert_ratio = 0.5;       // share of inserts (maps) or enqueues
  double fill = 1.0;               // share of the keys that are there at the start (maps)
  std::uint64_t seed = 1;

  // Throws std::invalid_argument that names the member, what it allows and what it holds.
  void validate() const;
  // Whether a map holds `key` at the start.
  [[nodiscard]] bool present_at_start(std::uint64_t key) const;
};

enum class OperationKind : std::uint8_t { swap, enqueue, dequeue, insert, search };

struct Operation {
  OperationKind kind = OperationKind::swap;
  std::uint64_t key = 0;    // swap: the first index
  std::uint64_t value = 0;  // swap: the second index; insert, enqueue: the tag of the new entry
};

// One thread's operations: a function of the spec, its seed and the thread's number alone.
class OperationStream {
 public:
  // `zipf` is over spec.entries and outlives the stream.
  OperationStream(const WorkloadSpec& spec, const Zipf& zipf, unsigned thread)
      : zipf_(&zipf),
        rng_(spec.seed, thread),
        kind_(spec.kind),
        insert_below_(threshold(spec.insert_ratio)),
        always_insert_(spec.insert_ratio >= 1.0),
        next_tag_(static_cast<std::uint64_t>(thread + 1) << 48) {}

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
    }
    const std::uint64_t key = zipf_->item(rng_);
    if (inserts()) return {OperationKind::insert, key, ++next_tag_};
    return {OperationKind::search, key, 0};
  }

 private:
  static std::uint64_t threshold(double ratio) {
    return ratio >= 1.0 ? 0 : static_cast<std::uint64_t>(ratio * 0x1.0p64);
  }
  bool inserts() { return always_insert_ || rng_.next() < insert_below_; }

  // Two different entries, where there are two.
  Operation next_swap() {
    const std::uint64_t first = zipf_->item(rng_);
    std::uint64_t second = zipf_->item(rng_);
    while (second == first && zipf_->items() > 1) second = zipf_->item(rng_);
    return {OperationKind::swap, first, second};
  }

  const Zipf* zipf_;
  Rng rng_;
  WorkloadKind kind_;
  std::uint64_t insert_below_;
  bool always_insert_;
  std::uint64_t next_tag_;  // distinguishes every entry ever stored by any thread
};

}  // namespace sp3::workloads
