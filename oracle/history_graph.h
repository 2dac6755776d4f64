// HistoryGraph: transactions, the edges between them, and the cycles that should not be there.
//
// Thread safety: none.
// Cycles are named by the weakest set of edges that closes one (Adya): G0 only ww; G1c ww and wr;
// G-single one rw; G2 more; real-time violation: only together with rt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oracle/history.h"

namespace sp3::oracle {

class HistoryGraph {
 public:
  enum class Edge : std::uint8_t { ww = 1, wr = 2, rw = 4, rt = 8 };

  explicit HistoryGraph(std::size_t transactions)
      : transactions_(transactions), edges_(transactions) {}

  // A point in time, that real-time edges go through.
  std::size_t add_moment() {
    edges_.emplace_back();
    return edges_.size() - 1;
  }

  // No transaction follows itself. What is no node, as the writer of a value that nobody is known
  // to have written, has no edges.
  void add(std::size_t from, std::size_t to, Edge kind, const std::string& object) {
    if (from != to && from < edges_.size() && to < edges_.size())
      edges_[from].push_back({to, kind, object});
  }

  [[nodiscard]] std::optional<Anomaly> find_cycle() const;

 private:
  struct Arc {
    std::size_t to;
    Edge kind;
    std::string object;
  };
  struct Step {
    std::size_t from;
    const Arc* arc;
  };
  using Kinds = unsigned;  // a set of Edge
  using Path = std::vector<Step>;

  [[nodiscard]] std::vector<std::size_t> components(Kinds kinds) const;
  [[nodiscard]] std::optional<Path> shortest_path(std::size_t from, std::size_t to,
                                                  Kinds kinds) const;
  [[nodiscard]] std::optional<Path> cycle_within(Kinds kinds, Kinds one_of) const;
  [[nodiscard]] std::string describe(const Path& cycle) const;

  std::size_t transactions_;
  std::vector<std::vector<Arc>> edges_;
};

}  // namespace sp3::oracle
