#include "tools/crash/oracle.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sp3::tools::crash {

namespace {

constexpr std::size_t kMaxViolations = 20;

std::string name(Tag tag) {
  if (tag == 0) return "the initial state";
  return fmt::format("transaction {}.{}", thread_of(tag), sequence_of(tag));
}

bool is_map(WorkloadKind kind) {
  return kind == WorkloadKind::hashtable || kind == WorkloadKind::rbtree ||
         kind == WorkloadKind::bptree;
}

// A transfer that found too little changes nothing.
bool is_refused(const Step& step, const Outcome& outcome) {
  return step.action == Action::transfer && outcome.b == kNothing;
}

}  // namespace

Oracle::Oracle(const Plan& plan, unsigned window) : plan_(plan), window_(window) {
  if (plan.workload != WorkloadKind::queue) cells_.resize(plan.entries);
  for (std::uint64_t i = 0; i < cells_.size(); ++i) cells_[i].content = plan.first_content(i);
}

void Oracle::acknowledged(unsigned thread, const Outcome& outcome) {
  acknowledged_[thread].push_back(outcome);
  ++acknowledged_total_;
}

void Oracle::observed(std::uint64_t cell, std::uint64_t version) {
  std::uint64_t& largest = observed_[cell];
  largest = std::max(largest, version);
}

void Oracle::observed_front(Tag tag) { fronts_.push_back(tag); }

void Oracle::violation(std::string text) {
  if (violations_.size() < kMaxViolations) violations_.push_back(std::move(text));
}

std::vector<std::string> Oracle::verify(const Dump& dump) {
  violations_ = dump.violations;
  survivors_.clear();
  unacknowledged_ = 0;
  if (dump.journals.size() != plan_.threads || dump.cells.size() != cells_.size()) {
    violation(fmt::format("The pool holds {} journals and {} cells, wanted {} and {}.",
                          dump.journals.size(), dump.cells.size(), plan_.threads, cells_.size()));
    return violations_;
  }
  check_prefixes(dump);
  if (!violations_.empty()) return violations_;
  collect_survivors(dump);
  check_observations(dump);
  if (plan_.workload == WorkloadKind::queue) {
    check_queue(dump);
  } else {
    const auto edges = precedence();
    if (violations_.empty()) replay(edges);
    if (violations_.empty()) compare_cells(dump);
    if (is_map(plan_.workload)) compare_map(dump);
  }
  if (violations_.empty()) start_from(dump);
  return violations_;
}

void Oracle::check_prefixes(const Dump& dump) {
  for (unsigned t = 0; t < plan_.threads; ++t) {
    const std::uint64_t survived = dump.journals[t].sequence;
    std::uint64_t last = base_[t];
    for (const Outcome& outcome : acknowledged_[t]) {
      if (outcome.sequence != ++last) {
        violation(
            fmt::format("Thread {} acknowledged {} where {} was next.", t, outcome.sequence, last));
        return;
      }
    }
    if (survived < last) {
      violation(fmt::format("Lost: thread {} had transactions up to {} acknowledged, {} survived.",
                            t, last, survived));
    } else if (survived - last > window_) {
      violation(
          fmt::format("Thread {} has {} survivors beyond the acknowledged {}; {} can be under way.",
                      t, survived - last, last, window_));
    }
  }
}

void Oracle::collect_survivors(const Dump& dump) {
  for (unsigned t = 0; t < plan_.threads; ++t) {
    const std::vector<Outcome>& known = acknowledged_[t];
    for (const Outcome& outcome : known) {
      survivors_.push_back({t, plan_.step(t, outcome.sequence), outcome});
    }
    for (const Outcome& kept : dump.journals[t].outcomes) {
      // What the pool remembers of an acknowledged transaction must be what was acknowledged.
      if (kept.sequence <= base_[t] || kept.sequence - base_[t] > known.size()) continue;
      if (kept != known[kept.sequence - base_[t] - 1]) {
        violation(fmt::format("The pool remembers another outcome of {} than was acknowledged.",
                              name(make_tag(t, kept.sequence))));
      }
    }
    for (std::uint64_t s = base_[t] + known.size() + 1; s <= dump.journals[t].sequence; ++s) {
      const auto& outcomes = dump.journals[t].outcomes;
      const auto found = std::ranges::find(outcomes, s, &Outcome::sequence);
      if (found == outcomes.end()) {
        violation(fmt::format("Thread {} survived up to {}, but its journal lacks {}.", t,
                              dump.journals[t].sequence, s));
        continue;
      }
      survivors_.push_back({t, plan_.step(t, s), *found});
      ++unacknowledged_;
    }
  }
}

// Which transaction must come before which. Edges are: program order; the writer of a version
// before its readers and before the next writer; readers of a version before the next writer.
std::vector<std::vector<std::size_t>> Oracle::precedence() {
  std::vector<std::vector<std::size_t>> edges(survivors_.size());
  std::map<std::uint64_t, std::map<std::uint64_t, std::size_t>> writers;  // cell, version
  std::map<std::uint64_t, std::vector<Access>> readers;
  const auto writes = [&](std::uint64_t cell, std::uint64_t version, std::size_t who) {
    const auto [other, fresh] = writers[cell].try_emplace(version, who);
    if (fresh) return;
    const Survivor& a = survivors_[other->second];
    violation(fmt::format("Lost update: {} and {} both wrote version {} of {}.",
                          name(make_tag(a.thread, a.outcome.sequence)),
                          name(make_tag(survivors_[who].thread, survivors_[who].outcome.sequence)),
                          version, cell));
  };
  for (std::size_t i = 0; i < survivors_.size(); ++i) {
    const Survivor& x = survivors_[i];
    if (i > 0 && survivors_[i - 1].thread == x.thread) edges[i - 1].push_back(i);
    switch (x.step.action) {
      case Action::swap:
      case Action::transfer:
        if (is_refused(x.step, x.outcome)) {
          readers[x.step.first].push_back({i, x.outcome.a});
          break;
        }
        writes(x.step.first, x.outcome.a, i);
        writes(x.step.second, x.outcome.b, i);
        break;
      case Action::insert:
      case Action::erase:
        writes(x.step.first, x.outcome.a, i);
        break;
      case Action::search:
        readers[x.step.first].push_back({i, x.outcome.a});
        break;
      case Action::enqueue:
      case Action::dequeue:
        break;
    }
  }
  for (const auto& [cell, of_cell] : writers) add_cell_edges(cell, of_cell, readers[cell], edges);
  for (const auto& [cell, of_cell] : readers) {
    if (!writers.contains(cell)) add_cell_edges(cell, {}, of_cell, edges);
  }
  return edges;
}

void Oracle::add_cell_edges(std::uint64_t cell, const std::map<std::uint64_t, std::size_t>& writers,
                            const std::vector<Access>& readers,
                            std::vector<std::vector<std::size_t>>& edges) {
  std::uint64_t expected = cells_[cell].version;
  const std::size_t* previous = nullptr;
  for (const auto& [version, writer] : writers) {
    if (version != ++expected) {
      violation(fmt::format(
          "{} wrote version {} of {}, but whoever wrote version {} did not survive.",
          name(make_tag(survivors_[writer].thread, survivors_[writer].outcome.sequence)), version,
          cell, expected));
      return;
    }
    if (previous != nullptr && *previous != writer) edges[*previous].push_back(writer);
    previous = &writer;
  }
  for (const Access& read : readers) {
    const auto from = writers.find(read.version);
    if (from == writers.end() && read.version != cells_[cell].version) {
      const Survivor& x = survivors_[read.transaction];
      violation(fmt::format("{} read version {} of {}, which no survivor wrote.",
                            name(make_tag(x.thread, x.outcome.sequence)), read.version, cell));
      return;
    }
    if (from != writers.end()) edges[from->second].push_back(read.transaction);
    const auto next = writers.find(read.version + 1);
    if (next != writers.end()) edges[read.transaction].push_back(next->second);
  }
}

// Kahn's algorithm; each transaction is applied to the model as it becomes ready.
void Oracle::replay(const std::vector<std::vector<std::size_t>>& edges) {
  std::vector<std::size_t> waiting(survivors_.size(), 0);
  for (const auto& targets : edges) {
    for (const std::size_t target : targets) ++waiting[target];
  }
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::size_t applied = 0;
  while (!ready.empty()) {
    const std::size_t i = ready.back();
    ready.pop_back();
    apply(survivors_[i]);
    ++applied;
    for (const std::size_t target : edges[i]) {
      if (--waiting[target] == 0) ready.push_back(target);
    }
  }
  if (applied == survivors_.size()) return;
  const auto stuck = static_cast<std::size_t>(
      std::ranges::find_if(waiting, [](std::size_t n) { return n != 0; }) - waiting.begin());
  violation(
      fmt::format("No serial order: {} of {} survivors are in or behind a cycle of dependencies, "
                  "{} among them.",
                  survivors_.size() - applied, survivors_.size(),
                  name(make_tag(survivors_[stuck].thread, survivors_[stuck].outcome.sequence))));
}

void Oracle::apply(const Survivor& transaction) {
  const Tag tag = make_tag(transaction.thread, transaction.outcome.sequence);
  Cell& first = cells_[transaction.step.first];
  switch (transaction.step.action) {
    case Action::swap: {
      Cell& second = cells_[transaction.step.second];
      std::swap(first.content, second.content);
      first.version = transaction.outcome.a;
      second.version = transaction.outcome.b;
      first.writer = second.writer = tag;
      return;
    }
    case Action::transfer: {
      const std::uint64_t amount = transaction.step.amount;
      const bool refused = is_refused(transaction.step, transaction.outcome);
      if (refused != (first.content < amount)) {
        violation(fmt::format("{} {} {} from account {}, which held {}.", name(tag),
                              refused ? "was refused" : "took", amount, transaction.step.first,
                              first.content));
      }
      if (refused) return;
      Cell& second = cells_[transaction.step.second];
      first = {transaction.outcome.a, tag, first.content - amount};
      second = {transaction.outcome.b, tag, second.content + amount};
      return;
    }
    case Action::insert:
    case Action::erase:
      first = {transaction.outcome.a, tag, transaction.step.action == Action::insert ? 1U : 0U};
      return;
    case Action::search:
    case Action::enqueue:
    case Action::dequeue:
      return;
  }
}

void Oracle::compare_cells(const Dump& dump) {
  for (std::uint64_t i = 0; i < cells_.size(); ++i) {
    const Cell& want = cells_[i];
    const Cell& found = dump.cells[i];
    if (want == found) continue;
    violation(
        fmt::format("Cell {}: wanted version {} by {} with content {}, found {} by {} with {}.", i,
                    want.version, name(want.writer), want.content, found.version,
                    name(found.writer), found.content));
  }
}

void Oracle::compare_map(const Dump& dump) {
  std::vector<bool> seen(cells_.size(), false);
  const bool sorted = plan_.workload != WorkloadKind::hashtable;
  for (std::size_t i = 0; i < dump.items.size(); ++i) {
    const MapItem& item = dump.items[i];
    if (item.key >= cells_.size() || seen[item.key]) {
      violation(fmt::format("Key {} is foreign or occurs twice in the map.", item.key));
      continue;
    }
    seen[item.key] = true;
    if (sorted && i > 0 && dump.items[i - 1].key >= item.key) {
      violation(fmt::format("Key {} follows key {}.", item.key, dump.items[i - 1].key));
    }
    const Cell& cell = dump.cells[item.key];
    if (cell.content == 0 || cell.writer != item.writer) {
      violation(fmt::format("Half a transaction: key {} in the map is from {}, its cell from {}.",
                            item.key, name(item.writer), name(cell.writer)));
    }
  }
  for (std::uint64_t key = 0; key < seen.size(); ++key) {
    if (!seen[key] && dump.cells[key].content != 0) {
      violation(fmt::format("Half a transaction: key {} of {} is not in the map.", key,
                            name(dump.cells[key].writer)));
    }
  }
}

void Oracle::check_observations(const Dump& dump) {
  for (const auto& [cell, version] : observed_) {
    if (dump.cells[cell].version < version) {
      violation(fmt::format("A reader was given version {} of {}, and {} survived.", version, cell,
                            dump.cells[cell].version));
    }
  }
  for (const Tag tag : fronts_) {
    if (tag != 0 && sequence_of(tag) > dump.journals[thread_of(tag)].sequence) {
      violation(fmt::format("A reader was given a value of {}, which did not survive.", name(tag)));
    }
  }
}

void Oracle::start_from(const Dump& dump) {
  cells_ = dump.cells;
  queue_.assign(dump.queue.begin(), dump.queue.end());
  for (unsigned t = 0; t < plan_.threads; ++t) {
    base_[t] = dump.journals[t].sequence;
    acknowledged_[t].clear();
  }
  observed_.clear();
  fronts_.clear();
}

}  // namespace sp3::tools::crash
