#include "runtime/predecessors.h"

#include <algorithm>
#include <atomic>

#include "base/mutant.h"
#include "emu/touch.h"

namespace sp3::runtime {

void Predecessors::clear() noexcept {
  others_.clear();
  newest_ = 0;
  own_stamp_ = 0;
}

void Predecessors::add_unless_committed(base::Tid tid) {
  if (tid.session == own_.id) return add_own(tid.stamp);
  base::Stamp& known = known_committed_[tid.session];
  emu::touch(emu::Line::session_committed, tid.session, emu::Access::load);
  known = persister_.committed_stamp(tid.session);
  if (tid.stamp <= known) return;
  const auto named = std::find_if(others_.begin(), others_.end(), [&](const base::Tid& other) {
    return other.session == tid.session;
  });
  if (named == others_.end()) {
    others_.push_back(tid);
  } else {
    named->stamp = std::max(named->stamp, tid.stamp);
  }
}

void Predecessors::add_own(base::Stamp stamp) noexcept {
  if (base::mutant(base::Mutant::own_reads_not_waited_for)) return;
  base::Stamp& known = known_committed_[own_.id];
  // acquire: as of other sessions.
  known = own_.mark.committed_stamp.load(std::memory_order_acquire);
  if (stamp > known) own_stamp_ = std::max(own_stamp_, stamp);
}

}  // namespace sp3::runtime
