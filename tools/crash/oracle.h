// Oracle: decides whether what is in a pool after a crash is what the library promised.
//
// It keeps a model of the pool as of the last verified state, collects what was acknowledged since,
// and is then given everything that a recovered pool holds. From the threads' journals it knows how
// far each thread's program survived, and from acknowledgements and journals what each surviving
// transaction met. It demands that
//   1. every acknowledged transaction survived, and no thread has more survivors than it can have;
//   2. each thread's survivors are a prefix of its program;
//   3. the survivors have a serial order that explains every version written and read and keeps
//      each thread's order: versions have no gaps (a predecessor is missing), no two writers (a
//      lost update), and the precedence graph has no cycle;
//   4. running the survivors in such an order on the model gives exactly the pool's content, and
//      lets each decide as it did: nothing half done, nothing else changed;
//   5. whatever a read-only transaction reported is still explained.
// The queue has no versions; there, values are conserved, none leaves twice, the remaining ones of
// the last verified state are a suffix of it, and each producer's values leave and stay in order.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/crash/operation.h"

namespace sp3::tools::crash {

// One array slot, account or key, in the model and in a pool.
struct Cell {
  std::uint64_t version = 0;
  Tag writer = 0;
  std::uint64_t content = 0;  // the permuted element, a balance, or 1 if the key is present

  friend bool operator==(const Cell&, const Cell&) = default;
};

// A key as the map itself has it.
struct MapItem {
  std::uint64_t key = 0;
  Tag writer = 0;
};

struct Journal {
  std::uint64_t sequence = 0;  // of the last surviving transaction
  std::vector<Outcome> outcomes;
};

// Everything a pool holds.
struct Dump {
  std::vector<Journal> journals;        // by thread
  std::vector<Cell> cells;              // by index, account or key
  std::vector<MapItem> items;           // maps: in the order of iteration
  std::vector<Tag> queue;               // from the front
  std::vector<std::string> violations;  // found inside the pool's own process
};

class Oracle {
 public:
  Oracle(const Plan& plan, unsigned window);

  void acknowledged(unsigned thread, const Outcome& outcome);
  // A read-only transaction saw this version of a cell, or this value at the queue's front.
  void observed(std::uint64_t cell, std::uint64_t version);
  void observed_front(Tag tag);

  // Checks a recovered pool against all the above. Empty: all is well, and the pool's state is the
  // next starting point. Else one sentence for each violation (the first few).
  std::vector<std::string> verify(const Dump& dump);

  [[nodiscard]] std::uint64_t acknowledged_total() const { return acknowledged_total_; }
  // Survivors at the last verify() that had not been acknowledged.
  [[nodiscard]] std::uint64_t unacknowledged_survivors() const { return unacknowledged_; }

 private:
  struct Survivor {
    unsigned thread;
    Step step;
    Outcome outcome;
  };
  struct Access {
    std::size_t transaction;
    std::uint64_t version;
  };

  void check_prefixes(const Dump& dump);
  void collect_survivors(const Dump& dump);
  std::vector<std::vector<std::size_t>> precedence();
  void add_cell_edges(std::uint64_t cell, const std::map<std::uint64_t, std::size_t>& writers,
                      const std::vector<Access>& readers,
                      std::vector<std::vector<std::size_t>>& edges);
  void replay(const std::vector<std::vector<std::size_t>>& edges);
  void apply(const Survivor& transaction);
  void compare_cells(const Dump& dump);
  void compare_map(const Dump& dump);
  void check_queue(const Dump& dump);
  void check_queue_order(const Dump& dump, const std::map<Tag, std::size_t>& taken);
  void check_observations(const Dump& dump);
  void start_from(const Dump& dump);
  void violation(std::string text);

  Plan plan_;
  unsigned window_;
  // The last verified state.
  std::vector<Cell> cells_;
  std::deque<Tag> queue_;
  std::array<std::uint64_t, kMaxThreads> base_{};  // the last verified sequence of each thread
  // Since then.
  std::array<std::vector<Outcome>, kMaxThreads> acknowledged_;
  std::map<std::uint64_t, std::uint64_t> observed_;  // cell -> the largest version seen
  std::vector<Tag> fronts_;

  std::vector<Survivor> survivors_;
  std::vector<std::string> violations_;
  std::uint64_t acknowledged_total_ = 0;
  std::uint64_t unacknowledged_ = 0;
};

}  // namespace sp3::tools::crash
