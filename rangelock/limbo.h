// Limbo: batches of nodes that no list leads to any more, and that others may still look at.
//
// Thread safety: one thread at a time. Reclamation: eras (eras.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "rangelock/eras.h"
#include "rangelock/node_chain.h"

namespace sp3::rangelock {

// What was retired together: the oldest was born in `born`.
struct RetiredChain {
  NodeChain nodes;
  Era born;
  Era retired;
};

class Limbo {
 public:
  // Errors: std::bad_alloc.
  Limbo() { batches_.reserve(kNewest); }

  void add(const RetiredChain& batch) noexcept {
    if (!batch.nodes.empty()) put(batch);
  }
  void add_all(Limbo& other) noexcept {
    for (const RetiredChain& batch : other.batches_) put(batch);
    other.batches_.clear();
    other.look_at_all_ = kNewest;
  }

  // Gives what nobody keeps to `free`, of the newest batches. Of the others only when they have
  // become more by half: what has been kept for a thread that does not run is kept for long.
  void release_to(NodeBatches& free, const Eras& eras) noexcept {
    const std::size_t size = batches_.size();
    const bool all = size >= look_at_all_;
    // Those that are kept come to the front.
    const auto first =
        batches_.end() - static_cast<std::ptrdiff_t>(all ? size : std::min(size, kNewest));
    auto kept = first;
    eras.announced().any_of([&](std::uint64_t announcement) {
      for (auto batch = kept; batch != batches_.end(); ++batch) {
        if (Eras::keeps(announcement, batch->born, batch->retired)) std::swap(*batch, *kept++);
      }
      return kept == batches_.end();
    });
    for (auto batch = kept; batch != batches_.end(); ++batch) free.push(batch->nodes);
    batches_.erase(kept, batches_.end());
    const std::size_t next = batches_.size() + batches_.size() / 2 + kNewest;
    // Nor are as many as there once were waited for when they have become few.
    look_at_all_ = all ? next : std::min(look_at_all_, next);
  }

 private:
  static constexpr std::size_t kNewest = 4;

  // Without memory to note the batch its nodes go to the last one.
  void put(RetiredChain batch) noexcept {
    try {
      batches_.push_back(batch);
    } catch (const std::bad_alloc&) {
      RetiredChain& last = batches_.back();
      last.nodes.splice(batch.nodes);
      last.born = std::min(last.born, batch.born);
      last.retired = std::max(last.retired, batch.retired);
    }
  }

  std::vector<RetiredChain> batches_;
  std::size_t look_at_all_ = kNewest;
};

}  // namespace sp3::rangelock
