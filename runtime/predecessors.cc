#include "runtime/predecessors.h"

#include "base/mutant.h"
#include "emu/touch.h"

namespace sp3::runtime {

void Predecessors::clear() noexcept {
  others_.clear();
  newest_ = 0;
  own_stamp_ = 0;
}

bool Predecessors::is_committed(base::Tid tid) noexcept {
  base::Stamp& known = known_committed_[tid.session];
  if (tid.stamp <= known) return true;
  emu::touch(emu::Line::session_committed, tid.session, emu::Access::load);
  known = persister_.committed_stamp(tid.session);
  return tid.stamp <= known;
}

void Predecessors::add(const index::Seen& seen) {
  const base::Stamp stamp = seen.stamp();
  if (stamp == 0) return;
  add_stamp_only(seen);
  const base::SessionId session = seen.session();
  if (session == own_.id) {
    if (!base::mutant(base::Mutant::own_reads_not_waited_for) &&
        own_.mark.committed_stamp.load(std::memory_order_acquire) < stamp) {
      own_stamp_ = std::max(own_stamp_, stamp);
    }
    return;
  }
  if (is_committed({stamp, session})) return;
  for (base::Tid& known : others_) {
    if (known.session != session) continue;
    known.stamp = std::max(known.stamp, stamp);
    return;
  }
  others_.push_back({stamp, session});
}

}  // namespace sp3::runtime
