// From reads to version orders, from version orders to edges; the cycles are history_graph.cc's.
#include "oracle/history.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "oracle/history_graph.h"

namespace sp3::oracle {
namespace {

using Kind = HistoryOp::Kind;
using Outcome = HistoryTransaction::Outcome;
using Values = std::vector<std::uint64_t>;

constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

std::string to_text(const Values& list) {
  std::string text = "[";
  for (const std::uint64_t value : list)
    text += (text.size() > 1 ? " " : "") + std::to_string(value);
  return text + "]";
}

// What is known about one object: who wrote which value, and the order of its versions.
struct Versions {
  std::unordered_map<std::uint64_t, std::size_t> writer;  // by value
  Values order;                                           // of a list: the longest read
  std::vector<std::size_t> unread;  // list: who appended what is not in `order`, so comes after it
  // Register: version -> who overwrote it.
  std::map<std::uint64_t, std::vector<std::size_t>> replaced;
  std::vector<std::size_t> blind;  // register: who wrote it without having read it
};

class Analysis {
 public:
  explicit Analysis(const std::vector<HistoryTransaction>& transactions) : all_(transactions) {}

  std::optional<Anomaly> run() {
    if (auto found = collect_writers()) return found;
    decide_unknown();
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (!counts(t)) continue;
      if (auto found = check_reads(t)) return found;
    }
    if (auto found = order_lists()) return found;
    if (auto found = place_appends()) return found;
    if (auto found = order_registers()) return found;
    HistoryGraph graph(all_.size());
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (counts(t)) add_edges(t, graph);
    }
    add_list_order(graph);
    add_real_time(graph);
    return graph.find_cycle();
  }

 private:
  [[nodiscard]] bool counts(std::size_t t) const { return committed_[t]; }

  static std::string name(std::size_t t) { return "T" + std::to_string(t); }

  std::optional<Anomaly> collect_writers() {
    committed_.resize(all_.size());
    for (std::size_t t = 0; t < all_.size(); ++t) {
      committed_[t] = all_[t].outcome == Outcome::committed;
      for (const HistoryOp& op : all_[t].ops) {
        if (op.kind != Kind::append && op.kind != Kind::write_register) continue;
        if (!objects_[op.object].writer.emplace(op.value, t).second) {
          return Anomaly{"value written twice", "value " + std::to_string(op.value) +
                                                    " of object " + std::to_string(op.object)};
        }
      }
    }
    return std::nullopt;
  }

  // A transaction with unknown outcome committed if a committed one saw it.
  void decide_unknown() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t t = 0; t < all_.size(); ++t) {
        if (!counts(t)) continue;
        for (const HistoryOp& op : all_[t].ops) {
          for (const std::uint64_t value : seen_by(op)) {
            const auto& writers = objects_[op.object].writer;
            const auto writer = writers.find(value);
            if (writer == writers.end() || counts(writer->second)) continue;
            if (all_[writer->second].outcome != Outcome::unknown) continue;
            committed_[writer->second] = true;
            changed = true;
          }
        }
      }
    }
  }

  static Values seen_by(const HistoryOp& op) {
    if (op.kind == Kind::read_list) return op.list;
    if (op.kind == Kind::read_register && op.value != 0) return {op.value};
    return {};
  }

  // Reads of values nobody wrote, of aborted or half-done transactions, blind to own writes or
  // ahead of them, or of a register that changes between two of them.
  std::optional<Anomaly> check_reads(std::size_t t) {
    std::map<std::uint64_t, Values> appended;
    std::map<std::uint64_t, std::uint64_t> latest;  // value of a register, read or written here
    std::set<std::pair<std::uint64_t, std::uint64_t>> written;  // here so far: object and value
    for (const HistoryOp& op : all_[t].ops) {
      const std::string what =
          name(t) + " read " + to_text(seen_by(op)) + " of object " + std::to_string(op.object);
      if (op.kind == Kind::append) appended[op.object].push_back(op.value);
      if (op.kind == Kind::write_register) latest[op.object] = op.value;
      if (op.kind == Kind::append || op.kind == Kind::write_register) {
        written.emplace(op.object, op.value);
      }
      if (op.kind == Kind::read_register) {
        const std::uint64_t expected = latest.emplace(op.object, op.value).first->second;
        if (op.value != expected) {
          return Anomaly{"inconsistent read", what + " where it was " + std::to_string(expected)};
        }
      }
      const Values seen = seen_by(op);
      const Values& own = appended[op.object];
      if (op.kind == Kind::read_list &&
          (seen.size() < own.size() || !std::equal(own.rbegin(), own.rend(), seen.rbegin()))) {
        return Anomaly{"inconsistent read", what + " after appending " + to_text(own)};
      }
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto writer = objects_[op.object].writer.find(seen[i]);
        if (writer == objects_[op.object].writer.end()) return Anomaly{"unwritten value", what};
        const std::size_t w = writer->second;
        if (!counts(w)) return Anomaly{"dirty read", what + " of aborted " + name(w)};
        if (w == t && !written.contains({op.object, seen[i]})) {
          return Anomaly{"inconsistent read", what + ", which it wrote only later"};
        }
        if (w != t && i + 1 == seen.size() && written_by(w, op.object).back() != seen[i]) {
          return Anomaly{"intermediate read", what + " of " + name(w)};
        }
      }
    }
    return std::nullopt;
  }

  // What the transaction wrote to the object, in its own order.
  [[nodiscard]] Values written_by(std::size_t t, std::uint64_t object) const {
    Values values;
    for (const HistoryOp& op : all_[t].ops) {
      const bool writes = op.kind == Kind::append || op.kind == Kind::write_register;
      if (writes && op.object == object) values.push_back(op.value);
    }
    return values;
  }

  // Every read of a list is a prefix of the longest.
  std::optional<Anomaly> order_lists() {
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (!counts(t)) continue;
      for (const HistoryOp& op : all_[t].ops) {
        Values& order = objects_[op.object].order;
        if (op.kind == Kind::read_list && op.list.size() > order.size()) order = op.list;
      }
    }
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (!counts(t)) continue;
      for (const HistoryOp& op : all_[t].ops) {
        const Values& order = objects_[op.object].order;
        if (std::equal(op.list.begin(), op.list.end(), order.begin())) continue;
        return Anomaly{"incompatible lists", name(t) + " read " + to_text(op.list) + " of object " +
                                                 std::to_string(op.object) + ", another " +
                                                 to_text(order)};
      }
    }
    return std::nullopt;
  }

  // In the longest read what one transaction appended stands once, together, and in its order; only
  // the end may cut it off, where the reader is that transaction. Committed appends that nobody
  // read must be somewhere all the same: behind.
  std::optional<Anomaly> place_appends() {
    std::map<std::uint64_t, std::unordered_set<std::uint64_t>> placed;  // by object
    for (const auto& [object, versions] : objects_) {
      const Values& order = versions.order;
      for (std::size_t i = 0; i < order.size();) {
        const std::size_t writer = writer_of(object, order[i]);
        const Values own = written_by(writer, object);
        const std::size_t there = std::min(own.size(), order.size() - i);
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(i);
        if (!placed[object].insert(order[i]).second ||
            !std::equal(first, first + static_cast<std::ptrdiff_t>(there), own.begin())) {
          return Anomaly{"misplaced append", "object " + std::to_string(object) + " was read as " +
                                                 to_text(order) + ", and " + name(writer) +
                                                 " appended " + to_text(own)};
        }
        placed[object].insert(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(there));
        i += there;
      }
    }
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (!counts(t)) continue;
      for (const HistoryOp& op : all_[t].ops) {
        if (op.kind != Kind::append || placed[op.object].contains(op.value)) continue;
        std::vector<std::size_t>& unread = objects_[op.object].unread;
        if (unread.empty() || unread.back() != t) unread.push_back(t);
      }
    }
    return std::nullopt;
  }

  // Who read a version and then overwrote it comes directly after it; two such have lost an update.
  std::optional<Anomaly> order_registers() {
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (!counts(t)) continue;
      std::map<std::uint64_t, std::uint64_t> read;
      std::set<std::uint64_t> written;
      for (const HistoryOp& op : all_[t].ops) {
        if (op.kind == Kind::read_register) read.emplace(op.object, op.value);
        if (op.kind != Kind::write_register || !written.insert(op.object).second) continue;
        const auto version = read.find(op.object);
        if (version == read.end()) {
          objects_[op.object].blind.push_back(t);
          continue;
        }
        auto& next = objects_[op.object].replaced[version->second];
        next.push_back(t);
        if (next.size() > 1) {
          return Anomaly{"lost update", name(next[0]) + " and " + name(t) + " both read version " +
                                            std::to_string(version->second) + " of register " +
                                            std::to_string(op.object) + " and overwrote it"};
        }
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t writer_of(std::uint64_t object, std::uint64_t value) const {
    const auto& writers = objects_.at(object).writer;
    const auto found = writers.find(value);
    return found == writers.end() ? kNobody : found->second;
  }

  // What follows from the reads of transaction t. Of those who wrote a register blindly it is known
  // only that they come after its first value; the others follow one of these, or who replaced it.
  void add_edges(std::size_t t, HistoryGraph& graph) const {
    std::set<std::uint64_t> own;
    for (const HistoryOp& op : all_[t].ops) {
      const std::string object = std::to_string(op.object);
      if (op.kind == Kind::append || op.kind == Kind::write_register) own.insert(op.object);
      if (own.contains(op.object)) continue;  // reads its own writes
      const Versions& versions = objects_.at(op.object);
      if (op.kind == Kind::read_list) {
        if (!op.list.empty()) {
          graph.add(writer_of(op.object, op.list.back()), t, HistoryGraph::Edge::wr, object);
        }
        if (op.list.size() < versions.order.size()) {
          graph.add(t, writer_of(op.object, versions.order[op.list.size()]), HistoryGraph::Edge::rw,
                    object);
          continue;
        }
        for (const std::size_t next : versions.unread) {
          graph.add(t, next, HistoryGraph::Edge::rw, object);
        }
      } else {
        const std::size_t writer = op.value == 0 ? kNobody : writer_of(op.object, op.value);
        if (writer != kNobody) graph.add(writer, t, HistoryGraph::Edge::wr, object);
        if (op.value == 0) {
          for (const std::size_t b : versions.blind)
            graph.add(t, b, HistoryGraph::Edge::rw, object);
        }
        const auto next = versions.replaced.find(op.value);
        if (next == versions.replaced.end()) continue;
        graph.add(t, next->second.front(), HistoryGraph::Edge::rw, object);
        if (writer != kNobody) {
          graph.add(writer, next->second.front(), HistoryGraph::Edge::ww, object);
        }
      }
    }
  }

  void add_list_order(HistoryGraph& graph) const {
    for (const auto& [object, versions] : objects_) {
      for (std::size_t i = 1; i < versions.order.size(); ++i) {
        graph.add(writer_of(object, versions.order[i - 1]), writer_of(object, versions.order[i]),
                  HistoryGraph::Edge::ww, std::to_string(object));
      }
      if (versions.order.empty()) continue;
      const std::size_t last = writer_of(object, versions.order.back());
      for (const std::size_t next : versions.unread) {
        graph.add(last, next, HistoryGraph::Edge::ww, std::to_string(object));
      }
    }
  }

  // T -> U if T had returned before U began: through a chain of moments, so that edges stay few.
  void add_real_time(HistoryGraph& graph) const {
    std::vector<std::size_t> by_end;
    for (std::size_t t = 0; t < all_.size(); ++t) {
      if (all_[t].outcome == Outcome::committed) by_end.push_back(t);
    }
    std::sort(by_end.begin(), by_end.end(),
              [this](std::size_t a, std::size_t b) { return all_[a].end < all_[b].end; });
    std::vector<std::size_t> moments;
    for (const std::size_t t : by_end) {
      const std::size_t moment = graph.add_moment();
      graph.add(t, moment, HistoryGraph::Edge::rt, "");
      if (!moments.empty()) graph.add(moments.back(), moment, HistoryGraph::Edge::rt, "");
      moments.push_back(moment);
    }
    for (std::size_t u = 0; u < all_.size(); ++u) {
      if (!counts(u)) continue;
      const auto after = std::partition_point(
          by_end.begin(), by_end.end(), [&](std::size_t t) { return all_[t].end < all_[u].begin; });
      if (after == by_end.begin()) continue;
      const auto last = static_cast<std::size_t>(after - by_end.begin()) - 1;
      graph.add(moments[last], u, HistoryGraph::Edge::rt, "");
    }
  }

  const std::vector<HistoryTransaction>& all_;
  std::vector<bool> committed_;
  std::map<std::uint64_t, Versions> objects_;
};

}  // namespace

std::optional<Anomaly> History::find_anomaly() const { return Analysis(transactions_).run(); }

}  // namespace sp3::oracle
