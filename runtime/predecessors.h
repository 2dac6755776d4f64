// Predecessors: whose versions a transaction read or overwrote. It is committed once they are.
//
// Those that are committed already are left out: they need no waiting for, and no place in a
// record.
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/tid.h"
#include "base/zeroed_array.h"
#include "index/entry.h"
#include "runtime/persister.h"
#include "runtime/session_shared.h"

namespace sp3::runtime {

class Predecessors {
 public:
  Predecessors(const Persister& persister, const SessionShared& own, std::size_t sessions)
      : persister_(persister), own_(own), known_committed_(sessions) {}

  void clear() noexcept;
  void add(const index::Seen& seen) {
    add_stamp_only(seen);
    if (seen.stamp() > known_committed_[seen.session()]) [[unlikely]]
      add_unless_committed({seen.stamp(), seen.session()});
  }
  // One that nobody will wait for: but versions of an object must still grow.
  void add_stamp_only(const index::Seen& seen) noexcept {
    newest_ = std::max(newest_, seen.stamp());
  }

  // The largest stamp of all of them, committed or not: ours must exceed it.
  [[nodiscard]] base::Stamp newest() const noexcept { return newest_; }
  // The largest of our own, 0 for none. It is not in the record, since a session's records commit
  // in order; but a reader waits for it.
  [[nodiscard]] base::Stamp own() const noexcept { return own_stamp_; }
  // Of each other session the largest.
  [[nodiscard]] const std::vector<base::Tid>& others() const noexcept { return others_; }
  [[nodiscard]] bool all_committed() const noexcept { return own_stamp_ == 0 && others_.empty(); }

 private:
  void add_unless_committed(base::Tid tid);
  void add_own(base::Stamp stamp) noexcept;

  const Persister& persister_;
  const SessionShared& own_;
  // Of each session, a stamp up to which all is known to be committed: spares a look at a line that
  // its owner writes with every transaction. Zero for a version that was there from the start.
  base::ZeroedArray<base::Stamp> known_committed_;
  std::vector<base::Tid> others_;
  base::Stamp newest_ = 0;
  base::Stamp own_stamp_ = 0;
};

}  // namespace sp3::runtime
