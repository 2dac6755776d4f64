// Replay along the dependency DAG: the paper's method.
//
// Nodes are the kept records. Edges:
//   1. from the previous record of the same session;
//   2. from each recorded dependency;
//   3. to each write whose bytes show in the end (later_writes.h) from the write of the same object
//      that comes before it in stamp order, if its bytes show too.
// The third kind is not in the log. A record's dependency set leaves out predecessors that were
// committed when it was sealed, so 1 and 2 alone would let a record overtake such a predecessor on
// the same object. Recovery has the whole order at hand and restores the edge: what shows of an
// object, its last whole value and the changes behind it, then forms a chain, which makes the image
// the same as replay in stamp order. What does not show is not stored, so it may come at any time,
// and a log of whole values has no such edges at all. Reads need none: only the order of writes to
// one object shows in the image.
//
// Kahn's algorithm with atomic in-degrees: the thread that takes the last one off goes on with that
// record itself and offers the rest to others. Before it leaves a session for want of a predecessor
// it looks for a moment whether another thread is about to finish that: sessions that used the same
// objects depend on each other every few records, and going over to other work each time costs
// more. An edge always leads to a larger <stamp, session>, so there is no circle.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <vector>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/mutant.h"
#include "base/prefetch.h"
#include "base/scaled.h"
#include "base/zeroed_array.h"
#include "emu/clock.h"
#include "emu/spin.h"
#include "recovery/ahead.h"
#include "recovery/apply.h"
#include "recovery/bit_set.h"
#include "recovery/dirty_lines.h"
#include "recovery/durable.h"
#include "recovery/later_writes.h"
#include "recovery/merge.h"
#include "recovery/replay.h"
#include "recovery/replay_progress.h"
#include "recovery/value_block.h"
#include "recovery/written_objects.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

// A record, numbered through all prefixes.
using Node = std::uint32_t;

constexpr Node kAskAhead = 8;
constexpr int kLooks = 100;  // a few microseconds; Spin would keep the core for longer

// An edge, in the list of those that leave one node.
struct Edge {
  Node to;
  std::uint32_t next;  // one more than the next one's place, 0 at the end
};

class Dag {
 public:
  explicit Dag(const ReplayContext& context)
      : context_(context),
        selection_(context.selection),
        base_(first_nodes(context.selection)),
        waits_for_(size()),
        first_edge_(size()),
        regions_(edge_regions(context)),
        edges_(regions_.back()),
        objects_(context.plan, context.preparation),
        later_(objects_.size()),
        next_writer_(objects_.size()),
        shows_(size()),
        is_changed_(size()),
        hidden_(context.plan.layout().log_bytes / kWriteBytes),
        dirty_(context.plan.layout(), context.plan.written_slabs()),
        progress_(context.progress) {}

  void build() {
    context_.executor.parallel_for(regions_.size() - 1, [&](std::size_t i) {
      EdgeAdder add(*this, static_cast<std::uint32_t>(regions_[i]));
      if (i < context_.preparation.shards) {
        add_writers(static_cast<std::uint32_t>(i), add);
      } else {
        add_dependencies(add);
      }
      add.finish();
    });
  }

  emu::IoStatus replay() {
    // What comes before each session's first record is done.
    std::vector<Node> ready;
    for (std::size_t prefix = 0; prefix + 1 < base_.size(); ++prefix) {
      const bool any = base_[prefix] != base_[prefix + 1];
      if (any && was_the_last(base_[prefix])) ready.push_back(base_[prefix]);
    }
    context_.executor.parallel_feed(
        ready.data(), ready.size(),
        [&](Node node, const std::function<void(Node)>& offer) { replay_from(node, offer); });
    // relaxed: all threads are done.
    SP3_CHECK(replayed_.load(std::memory_order_relaxed) == size());
    progress_.finish();
    return {failed_.load(std::memory_order_relaxed)};
  }

  [[nodiscard]] const DirtyLines& dirty() const { return dirty_; }

 private:
  static constexpr std::uint64_t kWriteBytes = sizeof(log::WriteHeader);  // the least

  // Puts edges into one region, next to other threads that fill theirs. An edge is put there a few
  // edges later, when the memory of the node it leaves has come.
  class EdgeAdder {
   public:
    EdgeAdder(Dag& dag, std::uint32_t at) : dag_(dag), at_(at) {}

    void operator()(Node from, Node to) {
      base::prefetch_for_write(&dag_.first_edge_[from]);
      if (asked_ >= kLater) put(later_[asked_ % kLater]);
      later_[asked_++ % kLater] = {from, to};
    }
    // REQUIRES: after the last edge.
    void finish() {
      for (std::uint64_t i = asked_ - std::min(asked_, kLater); i < asked_; ++i) {
        put(later_[i % kLater]);
      }
    }

   private:
    static constexpr std::uint64_t kLater = 16;
    struct Ends {
      Node from;
      Node to;
    };

    void put(const Ends& edge) {
      // relaxed: nobody follows an edge before all are there.
      const std::uint32_t next = base::AtomicRef<std::uint32_t>(dag_.first_edge_[edge.from])
                                     .exchange(at_ + 1, std::memory_order_relaxed);
      dag_.edges_[at_++] = {edge.to, next};
      base::AtomicRef<std::uint32_t>(dag_.waits_for_[edge.to])
          .fetch_add(1, std::memory_order_relaxed);
    }

    Dag& dag_;
    std::uint32_t at_;
    std::uint64_t asked_ = 0;
    std::array<Ends, kLater> later_;
  };

  static std::vector<Node> first_nodes(const Selection& selection) {
    std::vector<Node> first;
    std::uint64_t nodes = 0;
    for (const std::uint64_t kept : selection.kept) {
      first.push_back(static_cast<Node>(nodes));
      nodes += kept;
    }
    SP3_CHECK(nodes < std::numeric_limits<Node>::max());
    first.push_back(static_cast<Node>(nodes));
    return first;
  }

  // Where the edges of each shard's writes begin, of which there may be one for each write, and
  // behind them those of the recorded dependencies; then where these end. What is not used of a
  // region is never touched.
  static std::vector<std::uint64_t> edge_regions(const ReplayContext& context) {
    std::vector<std::uint64_t> regions;
    std::uint64_t most = 0;
    for (const std::uint64_t writes : context.preparation.by_shard()) {
      regions.push_back(most);
      most += writes;
    }
    regions.push_back(most);
    for (const log::LogPrefix& prefix : context.selection.prefixes)
      most += prefix.dependencies.size();
    SP3_CHECK(most < std::numeric_limits<Node>::max());
    regions.push_back(most);
    return regions;
  }

  [[nodiscard]] Node size() const { return base_.back(); }

  // Edges of kind 2.
  void add_dependencies(EdgeAdder& add) const {
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
        add(base_[on] + static_cast<Node>(behind - records.begin() - 1),
            base_[i] + static_cast<Node>(dependency.record()));
      }
    }
  }

  // For the objects of one shard, from the last write to the first: what shows, whether it is
  // allocated, and edges of kind 3.
  void add_writers(std::uint32_t shard, EdgeAdder& add) {
    struct Write {
      const std::byte* at;
      std::size_t prefix;
      Node node;
      LaterWrites::Object object;
    };
    Merge merge(context_.preparation, shard);
    ReplayProgress::Part progress(progress_);
    // Behind the record each prefix has come to.
    std::vector<std::uint64_t> behind(selection_.kept.begin(), selection_.kept.end());
    const auto next = [&](Write& write) {
      if (merge.empty()) return false;
      const std::size_t prefix = merge.prefix();
      const auto& records = selection_.prefixes[prefix].records;
      while (records[behind[prefix] - 1].stamp > merge.last().stamp) --behind[prefix];
      write = {selection_.file + merge.last().offset, prefix,
               base_[prefix] + static_cast<Node>(behind[prefix] - 1), 0};
      ask_for_header(write.at);
      merge.pop();
      return true;
    };
    const auto ask = [&](Write& write) {
      const log::WriteView view = write_at(write.at);
      write.object = objects_.number(shard, view.slot);
      later_.ask_for(write.object);
      if (!replaces_home(view)) base::prefetch_for_write(&next_writer_[write.object]);
    };
    const auto act = [&](const Write& write) {
      const log::WriteView view = write_at(write.at);
      const LaterWrites::Shows shows = later_.add(write.object, view);
      if (shows.allocation) apply_allocation(context_.plan, view);
      if (!shows.bytes) {
        hidden_.add(number_of(view));
        progress.whole();
        return;
      }
      progress.half();
      // relaxed: read after a join.
      std::atomic_ref(shows_[write.node]).store(1, std::memory_order_relaxed);
      if (shows.is_changed) {
        is_changed_.add(write.node);
        const Node by = next_writer_[write.object];
        // Within a prefix, kind 1 orders them already.
        const bool ordered = by >= base_[write.prefix] && by < base_[write.prefix + 1];
        if (!ordered && !mutant(Mutant::recovery_dag_without_writers)) add(write.node, by);
      }
      if (!replaces_home(view)) next_writer_[write.object] = write.node;
    };
    run_ahead<Write>(next, ask, act);
    progress.finish();
  }

  // Of a write in the log.
  [[nodiscard]] std::size_t number_of(const log::WriteView& write) const {
    const auto end_of_header = static_cast<std::uint64_t>(write.payload.data() - selection_.file);
    return (end_of_header - context_.plan.layout().log_offset - sizeof(log::WriteHeader)) /
           kWriteBytes;
  }

  [[nodiscard]] std::size_t prefix_of(Node node) const {
    const auto behind = std::upper_bound(base_.begin(), base_.end() - 1, node);
    return static_cast<std::size_t>(behind - base_.begin() - 1);
  }

  // A predecessor of `node` is done. True if it was the last.
  bool was_the_last(Node node) {
    base::AtomicRef<std::uint32_t> waits(waits_for_[node]);
    // (1) acquire, acq_rel: the thread of the last one sees the stores of all. Who finds that it is
    // the last is alone: nobody else looks any more.
    return waits.load(std::memory_order_acquire) == 0 ||
           waits.fetch_sub(1, std::memory_order_acq_rel) == 0;
  }

  // What one thread does at a stretch.
  struct Run {
    Run(emu::Memory& memory, ReplayProgress& whole) : values(memory, streamed), progress(whole) {}

    emu::FlushCounts streamed;
    ValueBlock values;
    ReplayProgress::Part progress;
  };

  // Some records of one session, from the first on: until one has to wait.
  void replay_from(Node first, const std::function<void(Node)>& offer) {
    Node node = first;
    const std::size_t prefix = prefix_of(node);
    const Node end = base_[prefix + 1];
    std::size_t done = 0;
    bool more = true;
    Run run(context_.memory, progress_);
    const auto most = base::scaled<std::size_t>(256, 64, 2);
    while (more && done < most) {
      apply(prefix, node, run);
      ++done;
      // What is ready in other sessions is offered, so that no thread idles meanwhile.
      for_each_edge(node, [&](Node to) {
        if (was_the_last(to)) offer(to);
      });
      more = node + 1 < end;
      if (!more) break;
      await_others(++node);
      more = was_the_last(node);
    }
    run.values.store();
    fence(run.streamed);
    run.progress.finish();
    if (more) offer(node);
    // relaxed: read after all threads have joined.
    replayed_.fetch_add(done, std::memory_order_relaxed);
  }

  // The one before `node` in its session is done: looks whether the others soon are.
  void await_others(Node node) {
    if (context_.executor.at_once() == 1) return;
    emu::Spin spin;
    // relaxed: was_the_last() looks again.
    const base::AtomicRef<std::uint32_t> waits(waits_for_[node]);
    for (int i = 0; i < kLooks && waits.load(std::memory_order_relaxed) != 0; ++i) spin.pause();
  }

  template <class Visitor>
  void for_each_edge(Node node, Visitor&& visit) const {
    for (std::uint32_t at = first_edge_[node]; at != 0; at = edges_[at - 1].next)
      visit(edges_[at - 1].to);
  }

  // The session's next records come soon: they and their homes are asked for.
  void ask_behind(std::size_t prefix, Node node) const {
    const Node end = base_[prefix + 1];
    if (end - node > 2 * kAskAhead && shows_[node + 2 * kAskAhead] != 0)
      ask_for_log(selection_.file + record_of(prefix, node + 2 * kAskAhead).offset);
    if (end - node <= kAskAhead) return;
    node += kAskAhead;
    const std::uint32_t edge = first_edge_[node];
    if (edge != 0) __builtin_prefetch(&edges_[edge - 1]);
    for_each_shown(prefix, node, [&](const log::WriteView& write) {
      if (streams(node)) {
        ask_for_home_through(context_.memory, write);
      } else {
        ask_for_home(context_.memory, write);
      }
    });
  }

  [[nodiscard]] const log::RecordRef& record_of(std::size_t prefix, Node node) const {
    return selection_.prefixes[prefix].records[node - base_[prefix]];
  }

  // The writes of a record whose bytes show in the end.
  template <class Visitor>
  void for_each_shown(std::size_t prefix, Node node, Visitor&& visit) const {
    if (shows_[node] == 0) return;
    log::trusted_record(selection_.file + record_of(prefix, node).offset)
        .for_each_write([&](const log::WriteView& write) {
          if (!hidden_.has(number_of(write))) visit(write);
        });
  }

  // Whether what the record replaces goes past the cache. Other threads see that late, and homes
  // are handed to them without fences, so if there are any it has to be the last that is stored
  // there.
  [[nodiscard]] bool streams(Node node) const {
    if (!can_stream_) return false;
    return is_alone_ || !is_changed_.has(node) || mutant(Mutant::recovery_dag_streams_all);
  }

  void fence(emu::FlushCounts& streamed) {
    if (mutant(Mutant::no_fence_replay_by_dag)) return;
    const emu::IoStatus status = context_.memory.fence(streamed);
    // relaxed: read after all threads have joined.
    if (!status.ok()) failed_.store(status.error, std::memory_order_relaxed);
  }

  void apply(std::size_t prefix, Node node, Run& run) {
    ask_behind(prefix, node);
    const bool through = streams(node);
    for_each_shown(prefix, node, [&](const log::WriteView& write) {
      run.progress.half();
      if (through && replaces_home(write)) {
        run.values.add(write);
        // What is changed later, if only by this record, has to be there by then.
        if (is_changed_.has(node)) run.values.store();
        return;
      }
      apply_write(context_.memory, write);
      for_each_store(write, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
        dirty_.add(offset, bytes.size());
      });
    });
  }

  const ReplayContext& context_;
  const bool can_stream_ = context_.memory.stores_past_cache();
  const bool is_alone_ = context_.executor.threads() == 1;
  const Selection& selection_;
  const std::vector<Node> base_;  // per prefix its first node; the number of nodes at the end
  // Per node, predecessors by edges of kind 2 and 3 that are not done yet. Every node waits for one
  // of kind 1 too, which is not counted: whoever finds 0 is the last.
  base::ZeroedArray<std::uint32_t> waits_for_;
  // Per node, one more than the place of its first edge, of kind 2 or 3; 0 if none leaves it.
  base::ZeroedArray<std::uint32_t> first_edge_;
  const std::vector<std::uint64_t> regions_;
  base::ZeroedArray<Edge> edges_;
  WrittenObjects objects_;
  LaterWrites later_;
  // By whom an object is changed next that is still to be met; means nothing if it is not changed.
  base::ZeroedArray<Node> next_writer_;
  base::ZeroedArray<std::uint8_t> shows_;  // per node, whether anything of it does
  // The records that leave something which a later one changes.
  BitSet is_changed_;
  BitSet hidden_;  // the writes whose bytes do not show, by number_of()
  DirtyLines dirty_;
  ReplayProgress progress_;
  base::Atomic<int> failed_{0};  // the error of a fence
  base::Atomic<std::uint64_t> replayed_{0};
};

// A fence orders the flushes of its own thread only, and tasks wander between threads. So the
// flushing is a pass of its own, in which each task fences what it flushed.
emu::IoStatus flush_all(const ReplayContext& context, const DirtyLines& dirty) {
  const std::size_t tasks = std::min<std::size_t>(context.preparation.shards, dirty.parts());
  return parallel_status(context.executor, tasks, [&](std::size_t task) {
    emu::FlushCounts counts;
    const std::size_t end = dirty.parts() * (task + 1) / tasks;
    for (std::size_t part = dirty.parts() * task / tasks; part < end; ++part) {
      if (mutant(Mutant::no_flush_dirty_lines)) continue;
      dirty.for_each_stretch(part, [&](std::uint64_t offset, std::uint64_t bytes) {
        context.memory.flush(offset, bytes, counts);
      });
    }
    if (mutant(Mutant::no_fence_replay_by_dag)) return emu::IoStatus{};
    return context.memory.fence(counts);
  });
}

}  // namespace

emu::IoStatus replay_by_dag(const ReplayContext& context, ReplayTimes& times) {
  const std::uint64_t start = emu::ticks();
  Dag dag(context);
  dag.build();
  const std::uint64_t built = emu::ticks();
  populate_homes(context);
  const emu::IoStatus streamed = dag.replay();
  const std::uint64_t replayed = emu::ticks();
  const emu::IoStatus flushed = flush_all(context, dag.dirty());
  times.order += built - start;
  times.replay += replayed - built;
  times.flush += emu::ticks() - replayed;
  return streamed.ok() ? flushed : streamed;
}

}  // namespace sp3::recovery
