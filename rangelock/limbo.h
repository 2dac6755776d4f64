// Limbo: batches of nodes that no list leads to any more, and that others may still look at.
//
// Thread safety: one thread at a time. Reclamation: eras (eras.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rangelock/eras.h"
#include "rangelock/node_batch.h"

namespace sp3::rangelock {

class Limbo {
 public:
  // REQUIRES: not empty, and says when its nodes have lived.
  void add(NodeBatch& batch) noexcept { batches_.push(batch); }
  void add_all(Limbo& other) noexcept {
    batches_.push_all(std::move(other.batches_));
    other.look_at_all_ = kNewest;
  }

  // Gives what nobody keeps to `free`, of the newest batches. Of the others only when they have
  // become more by half: what has been kept for a thread that does not run is kept for long.
  void release_to(BatchStack& free, const Eras& eras) noexcept {
    const bool all = batches_.size() >= look_at_all_;
    BatchStack others;
    if (!all) others = batches_.cut_below(kNewest);
    BatchStack kept;
    eras.announced().any_of([&](std::uint64_t announcement) {
      batches_.move_if(
          [&](const NodeBatch& batch) {
            return Eras::keeps(announcement, batch.born, batch.retired);
          },
          kept);
      return batches_.is_empty();
    });
    free.push_all(std::move(batches_));
    batches_ = std::move(others);
    batches_.push_all(std::move(kept));
    const std::size_t next = batches_.size() + batches_.size() / 2 + kNewest;
    // Nor are as many as there once were waited for when they have become few.
    look_at_all_ = all ? next : std::min(look_at_all_, next);
  }

 private:
  static constexpr std::size_t kNewest = 4;

  BatchStack batches_;
  std::size_t look_at_all_ = kNewest;
};

}  // namespace sp3::rangelock
