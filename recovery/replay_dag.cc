// Replay along the dependency DAG: the paper's method.
//
// Nodes are the kept records. Edges:
//   1. from the previous record of the same session;
//   2. from each recorded dependency;
//   3. from the last earlier writer, in stamp order, of each object that the record writes.
// The third kind is not in the log. A record's dependency set leaves out predecessors that were
// committed when it was sealed, so 1 and 2 alone would let a record overtake such a predecessor on
// the same object. Recovery has the whole order at hand and restores the edge: per object, writers
// then form a chain, which makes the image the same as replay in stamp order. Reads need no edges:
// only the order of writes to one object shows in the image.
//
// Kahn's algorithm with atomic in-degrees: the thread that takes the last one off goes on with that
// record itself and offers the rest to others. An edge always leads to a larger <stamp, session>,
// so there is no circle.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/assert.h"
#include "base/mutant.h"
#include "emu/clock.h"
#include "emu/threads.h"
#include "recovery/apply.h"
#include "recovery/merge.h"
#include "recovery/replay.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

using Node = std::uint32_t;
constexpr Node kNoNode = ~Node{0};
constexpr std::size_t kNodesPerTask = 64;

struct Edge {
  Node from;
  Node to;
};

// Slot -> its last writer so far. Open addressing; slots are never 0.
class LastWriters {
 public:
  // The last writer is now `node`; returns the one before it or kNoNode.
  Node exchange(std::uint64_t slot, Node node) {
    if (2 * (used_ + 1) > cells_.size()) grow();
    Cell& cell = find(slot);
    if (cell.slot == 0) {
      cell = {slot, kNoNode};
      ++used_;
    }
    return std::exchange(cell.node, node);
  }

 private:
  struct Cell {
    std::uint64_t slot = 0;
    Node node = kNoNode;
  };

  Cell& find(std::uint64_t slot) {
    const std::size_t mask = cells_.size() - 1;
    std::size_t at = (slot * 0x9E3779B97F4A7C15ULL >> 20) & mask;
    while (cells_[at].slot != 0 && cells_[at].slot != slot) at = (at + 1) & mask;
    return cells_[at];
  }

  void grow() {
    std::vector<Cell> old(std::max<std::size_t>(64, 2 * cells_.size()));
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.slot != 0) find(cell.slot) = cell;
    }
  }

  std::vector<Cell> cells_;
  std::size_t used_ = 0;
};

class Dag {
 public:
  explicit Dag(const ReplayContext& context) : context_(context), selection_(context.selection) {
    std::uint64_t nodes = 0;
    for (const std::uint64_t kept : selection_.kept) {
      base_.push_back(static_cast<Node>(nodes));
      nodes += kept;
    }
    SP3_CHECK(nodes < kNoNode);
    base_.push_back(static_cast<Node>(nodes));
  }

  void build() {
    std::vector<std::vector<Edge>> edges(context_.shards + 1);
    context_.executor.parallel_for(edges.size(), [&](std::size_t i) {
      if (i < context_.shards) {
        add_writers(static_cast<std::uint32_t>(i), edges[i]);
      } else {
        add_dependencies(edges[i]);
      }
    });
    connect(edges);
  }

  void replay() {
    std::vector<Node> ready;
    for (Node node = 0; node < size(); ++node) {
      if (in_degree_[node].load(std::memory_order_relaxed) == 0)
        ready.push_back(node);  // relaxed: no other thread yet
    }
    context_.executor.parallel_feed(
        ready.data(), ready.size(),
        [&](Node node, const std::function<void(Node)>& offer) { replay_from(node, offer); });
    SP3_CHECK(replayed_.load(std::memory_order_relaxed) ==
              size());  // relaxed: all threads are done
  }

 private:
  [[nodiscard]] Node size() const { return base_.back(); }

  // Edges of kind 2.
  void add_dependencies(std::vector<Edge>& edges) const {
    std::vector<std::size_t> prefix_of;
    for (std::size_t i = 0; i < selection_.prefixes.size(); ++i) {
      const std::size_t session = selection_.prefixes[i].session;
      if (prefix_of.size() <= session) prefix_of.resize(session + 1, 0);
      prefix_of[session] = i;
    }
    for (std::size_t i = 0; i < selection_.prefixes.size(); ++i) {
      for (const log::DependencyRef& dependency : selection_.prefixes[i].dependencies) {
        if (dependency.record() >= selection_.kept[i]) break;
        const std::size_t on = prefix_of[dependency.session()];
        const auto& records = selection_.prefixes[on].records;
        const auto end = records.begin() + static_cast<std::ptrdiff_t>(selection_.kept[on]);
        const auto behind = std::upper_bound(
            records.begin(), end, dependency.stamp,
            [](base::Stamp stamp, const log::RecordRef& record) { return stamp < record.stamp; });
        if (behind == records.begin()) continue;
        edges.push_back({base_[on] + static_cast<Node>(behind - records.begin() - 1),
                         base_[i] + static_cast<Node>(dependency.record())});
      }
    }
  }

  // Edges of kind 3, for the objects of one shard.
  void add_writers(std::uint32_t shard, std::vector<Edge>& edges) const {
    LastWriters last;
    std::vector<std::uint64_t> at(selection_.prefixes.size(),
                                  0);  // the record each prefix has come to
    for (Merge merge(context_.preparation, shard); !merge.empty(); merge.pop()) {
      const std::size_t prefix = merge.prefix();
      const auto& records = selection_.prefixes[prefix].records;
      while (records[at[prefix]].stamp < merge.front().stamp) ++at[prefix];
      const Node node = base_[prefix] + static_cast<Node>(at[prefix]);
      log::WriteView write;
      log::RecordView::read_write(selection_.file + merge.front().offset, write);
      const Node before = last.exchange(write.slot, node);
      // Within a prefix, kind 1 orders them already.
      if (before == kNoNode || (before >= base_[prefix] && before < base_[prefix + 1])) continue;
      if (mutant(Mutant::recovery_dag_without_writers)) continue;
      edges.push_back({before, node});
    }
  }

  // Edges by their source, and the in-degrees.
  void connect(std::vector<std::vector<Edge>>& edges) {
    in_degree_ = std::make_unique<std::atomic<std::uint32_t>[]>(size());
    first_edge_.assign(std::size_t{size()} + 1, 0);
    const auto add = [](std::atomic<std::uint32_t>& degree) {
      // relaxed: one thread builds the graph.
      degree.store(degree.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    };
    for (const auto& part : edges) {
      for (const Edge& edge : part) {
        ++first_edge_[edge.from + std::size_t{1}];
        add(in_degree_[edge.to]);
      }
    }
    for (std::size_t i = 1; i < first_edge_.size(); ++i) first_edge_[i] += first_edge_[i - 1];
    std::vector<std::uint64_t> next = first_edge_;
    targets_.resize(first_edge_.back());
    for (auto& part : edges) {
      for (const Edge& edge : part) targets_[next[edge.from]++] = edge.to;
      part = {};
    }
    for (std::size_t prefix = 0; prefix + 1 < base_.size(); ++prefix) {
      for (Node node = base_[prefix]; node + 1 < base_[prefix + 1]; ++node)
        add(in_degree_[node + 1]);
    }
  }

  [[nodiscard]] std::size_t prefix_of(Node node) const {
    const auto behind = std::upper_bound(base_.begin(), base_.end() - 1, node);
    return static_cast<std::size_t>(behind - base_.begin() - 1);
  }

  void replay_from(Node first, const std::function<void(Node)>& offer) {
    std::vector<Node> mine{first};
    std::size_t done = 0;
    while (!mine.empty() && done < kNodesPerTask) {
      const Node node = mine.back();
      mine.pop_back();
      apply(node);
      ++done;
      // What is ready beyond the next record is offered, so that no thread idles meanwhile.
      for_each_successor(node, [&](Node next) {
        // (1) acq_rel: the last predecessor's thread sees the stores of all of them.
        if (in_degree_[next].fetch_sub(1, std::memory_order_acq_rel) == 1) mine.push_back(next);
      });
      while (mine.size() > 1) {
        offer(mine.front());
        mine.erase(mine.begin());
      }
    }
    for (const Node node : mine) offer(node);
    replayed_.fetch_add(done,
                        std::memory_order_relaxed);  // relaxed: read after all threads have joined
  }

  template <class Visitor>
  void for_each_successor(Node node, Visitor&& visit) const {
    for (std::uint64_t i = first_edge_[node]; i < first_edge_[std::size_t{node} + 1]; ++i)
      visit(targets_[i]);
    const std::size_t prefix = prefix_of(node);
    if (node + 1 < base_[prefix + 1]) visit(node + 1);
  }

  void apply(Node node) const {
    const std::size_t prefix = prefix_of(node);
    const log::RecordRef& ref = selection_.prefixes[prefix].records[node - base_[prefix]];
    log::trusted_record(selection_.file + ref.offset)
        .for_each_write([&](const log::WriteView& write) {
          apply_write(context_.memory, context_.plan, write);
        });
  }

  const ReplayContext& context_;
  const Selection& selection_;
  std::vector<Node> base_;  // per prefix its first node; the number of nodes at the end
  std::unique_ptr<std::atomic<std::uint32_t>[]> in_degree_;
  std::vector<std::uint64_t> first_edge_;
  std::vector<Node> targets_;
  std::atomic<std::uint64_t> replayed_{0};
};

// A fence orders the flushes of its own thread only, and tasks wander between threads. So the
// flushing is a pass of its own, in which each task fences what it flushed.
emu::IoStatus flush_all(const ReplayContext& context) {
  emu::Mutex mutex;
  emu::IoStatus status;
  context.executor.parallel_for(context.shards, [&](std::size_t shard) {
    emu::FlushCounts counts;
    for (const Preparation::Stretch& stretch : context.preparation.stretches) {
      for (const WriteRef& ref : stretch.shards[shard]) {
        log::WriteView write;
        log::RecordView::read_write(context.selection.file + ref.offset, write);
        flush_write(context.memory, write, counts);
      }
    }
    const emu::IoStatus fenced =
        mutant(Mutant::no_fence_replay_by_dag) ? emu::IoStatus{} : context.memory.fence(counts);
    const std::lock_guard lock(mutex);
    if (!fenced.ok()) status = fenced;
  });
  return status;
}

}  // namespace

emu::IoStatus replay_by_dag(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  Dag dag(context);
  dag.build();
  const std::uint64_t built = emu::ticks();
  populate_homes(context);
  dag.replay();
  const std::uint64_t replayed = emu::ticks();
  if (context.progress) context.progress(context.preparation.writes);
  const emu::IoStatus status = flush_all(context);
  times.order += built - start;
  times.replay += replayed - built;
  times.flush += emu::ticks() - replayed;
  return status;
}

}  // namespace sp3::recovery
