// EpochDomain: epoch-based reclamation for versions, slabs and log segments.
//
// A participant pins before it follows a shared pointer and unpins when it holds none. What was
// made unreachable at epoch e may be freed when current() >= e + 2: the epoch only advances when
// every pinned participant has seen the current one, so by then nobody pinned can have met it.
//
// Thread safety: a participant number belongs to one thread at a time; everything else by any
// thread.
// Progress: pin and unpin are wait-free; try_advance fails while someone is pinned at an older
// epoch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/align.h"
#include "base/assert.h"

namespace sp3::base {

class EpochDomain {
 public:
  using Epoch = std::uint64_t;

  explicit EpochDomain(std::size_t participants)
      : slots_(std::make_unique<Slot[]>(participants)), participants_(participants) {}

  // From now on `who` may pin. Participants below the highest one admitted are looked at by
  // try_advance, so number them densely.
  void admit(std::size_t who) noexcept {
    SP3_CHECK(who < participants_);
    std::size_t limit = limit_.load(std::memory_order_relaxed);
    // seq_cst: before the first pin of `who`, so that try_advance cannot miss it.
    while (limit <= who &&
           !limit_.compare_exchange_weak(limit, who + 1, std::memory_order_seq_cst)) {
    }
  }

  // REQUIRES: who is admitted and not pinned.
  void pin(std::size_t who) noexcept {
    SP3_ASSERT(who < limit_.load(std::memory_order_relaxed) &&
               slots_[who].pinned.load(std::memory_order_relaxed) == kUnpinned);
    // (1) seq_cst, store buffering: our announcement is visible before we read any shared pointer,
    // or try_advance (2) would miss us. An epoch that is stale by now only delays the next advance.
    slots_[who].pinned.exchange(global_.load(std::memory_order_acquire), std::memory_order_seq_cst);
  }

  void unpin(std::size_t who) noexcept {
    // release: what we read through shared pointers is read before (2) sees us gone.
    slots_[who].pinned.store(kUnpinned, std::memory_order_release);
  }

  [[nodiscard]] bool is_pinned(std::size_t who) const noexcept {
    return slots_[who].pinned.load(std::memory_order_relaxed) != kUnpinned;
  }

  // The epoch to remember with something just made unreachable.
  [[nodiscard]] Epoch current() const noexcept { return global_.load(std::memory_order_seq_cst); }

  // Advances the epoch if every pinned participant has seen the current one.
  bool try_advance() noexcept {
    Epoch now = global_.load(std::memory_order_seq_cst);
    const std::size_t limit = limit_.load(std::memory_order_seq_cst);
    for (std::size_t i = 0; i < limit; ++i) {
      // (2) pairs with (1).
      const Epoch seen = slots_[i].pinned.load(std::memory_order_seq_cst);
      if (seen != kUnpinned && seen != now) return false;
    }
    return global_.compare_exchange_strong(now, now + 1, std::memory_order_seq_cst);
  }

 private:
  static constexpr Epoch kUnpinned = 0;
  struct alignas(kCacheLine) Slot {
    std::atomic<Epoch> pinned{kUnpinned};
  };

  alignas(kCacheLine) std::atomic<Epoch> global_{1};
  std::unique_ptr<Slot[]> slots_;
  const std::size_t participants_;
  std::atomic<std::size_t> limit_{0};
};

}  // namespace sp3::base
