// Cycles: strongly connected components say where there are any; a breadth-first search finds a
// short one.
#include "oracle/history_graph.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace sp3::oracle {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

constexpr unsigned bit(HistoryGraph::Edge kind) { return static_cast<unsigned>(kind); }

const char* name_of(HistoryGraph::Edge kind) {
  switch (kind) {
    case HistoryGraph::Edge::ww:
      return "ww";
    case HistoryGraph::Edge::wr:
      return "wr";
    case HistoryGraph::Edge::rw:
      return "rw";
    case HistoryGraph::Edge::rt:
      return "rt";
  }
  return "";
}

}  // namespace

// Tarjan's algorithm without recursion: the component of each node.
std::vector<std::size_t> HistoryGraph::components(Kinds kinds) const {
  const std::size_t n = edges_.size();
  std::vector<std::size_t> component(n, kNone), index(n, kNone), low(n, 0), next(n, 0);
  std::vector<std::size_t> stack, path;
  std::vector<bool> on_stack(n, false);
  std::size_t counter = 0;
  for (std::size_t root = 0; root < n; ++root) {
    if (index[root] != kNone) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::size_t v = path.back();
      if (index[v] == kNone) {
        index[v] = low[v] = counter++;
        stack.push_back(v);
        on_stack[v] = true;
      }
      bool descended = false;
      while (next[v] < edges_[v].size() && !descended) {
        const Arc& arc = edges_[v][next[v]++];
        if ((bit(arc.kind) & kinds) == 0) continue;
        if (index[arc.to] == kNone) {
          path.push_back(arc.to);
          descended = true;
        } else if (on_stack[arc.to]) {
          low[v] = std::min(low[v], index[arc.to]);
        }
      }
      if (descended) continue;
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[v]);
      if (low[v] != index[v]) continue;
      for (std::size_t w = kNone; w != v;) {
        w = stack.back();
        stack.pop_back();
        on_stack[w] = false;
        component[w] = v;
      }
    }
  }
  return component;
}

std::optional<HistoryGraph::Path> HistoryGraph::shortest_path(std::size_t from, std::size_t to,
                                                              Kinds kinds) const {
  std::vector<Step> reached_by(edges_.size(), Step{kNone, nullptr});
  std::deque<std::size_t> queue{from};
  while (!queue.empty()) {
    const std::size_t v = queue.front();
    queue.pop_front();
    for (const Arc& arc : edges_[v]) {
      if ((bit(arc.kind) & kinds) == 0 || reached_by[arc.to].arc != nullptr) continue;
      reached_by[arc.to] = {v, &arc};
      if (arc.to == to) {
        Path path;
        for (std::size_t at = to; path.empty() || at != from; at = path.back().from) {
          path.push_back(reached_by[at]);
        }
        std::reverse(path.begin(), path.end());
        return path;
      }
      queue.push_back(arc.to);
    }
  }
  return std::nullopt;
}

// A cycle of edges in `kinds` with one edge out of `one_of` in front.
std::optional<HistoryGraph::Path> HistoryGraph::cycle_within(Kinds kinds, Kinds one_of) const {
  const std::vector<std::size_t> component = components(kinds | one_of);
  for (std::size_t v = 0; v < edges_.size(); ++v) {
    for (const Arc& arc : edges_[v]) {
      if ((bit(arc.kind) & one_of) == 0 || component[v] != component[arc.to]) continue;
      if (auto back = shortest_path(arc.to, v, kinds)) {
        back->insert(back->begin(), {v, &arc});
        return back;
      }
    }
  }
  return std::nullopt;
}

std::string HistoryGraph::describe(const Path& cycle) const {
  std::string text;
  for (const Step& step : cycle) {
    // A moment is no transaction: T -rt-> U, however many moments lie between.
    if (step.from >= transactions_) continue;
    text += "T" + std::to_string(step.from) + " -" + name_of(step.arc->kind) +
            (step.arc->object.empty() ? "" : "(" + step.arc->object + ")") + "-> ";
  }
  for (const Step& step : cycle) {
    if (step.from < transactions_) return text + "T" + std::to_string(step.from);
  }
  return text;
}

std::optional<Anomaly> HistoryGraph::find_cycle() const {
  constexpr Kinds ww = bit(Edge::ww), wr = bit(Edge::wr), rw = bit(Edge::rw), rt = bit(Edge::rt);
  if (const auto cycle = cycle_within(ww, ww)) return Anomaly{"G0", describe(*cycle)};
  if (const auto cycle = cycle_within(ww | wr, wr)) return Anomaly{"G1c", describe(*cycle)};
  if (const auto cycle = cycle_within(ww | wr, rw)) return Anomaly{"G-single", describe(*cycle)};
  if (const auto cycle = cycle_within(ww | wr | rw, rw)) return Anomaly{"G2", describe(*cycle)};
  if (const auto cycle = cycle_within(ww | wr | rw | rt, ww | wr | rw)) {
    return Anomaly{"real-time violation", describe(*cycle)};
  }
  return std::nullopt;
}

}  // namespace sp3::oracle
