// Eras: when a node that was unlinked can be used again, although others may have reached it.
//
// The era is a counter that goes on with each batch of nodes retired. A node has lived from the era
// in which its maker was pinned to the one that was current when it was retired. A participant that
// is pinned announces one era e, and all nodes that lived in e are kept for it:
//
//     born                              retired
//      |--------- kept for e ------------|          time, in eras
//              e
//
// What such a participant reaches by links was unlinked after it was pinned, so no earlier than e;
// but it may have been born later. It looks at the era once more when it has reached what it was
// looking for: if that is still e, all that it has reached was born by then, and is kept until it
// unpins. If not, what it has reached may have become anything meanwhile, and so may be used for
// nothing but to go on reading. Then it announces that everything retired since e is to be kept for
// it, and searches again; what it reaches from now on is kept whenever it was born.
//
// So a thread that loses its core while it is pinned keeps back what was linked then, and not what
// comes and goes meanwhile; with epochs (base/epoch.h) it keeps back all. The price is that nodes
// may be read after they were used again: their memory is never anything but a node, and what is
// read of them is atomic.
//
// Source: hazard eras and interval-based reclamation (Ramalhete and Correia, SPAA 2017; Wen et al.,
// PPoPP 2018), with one look at the era for each search instead of one for each link.
//
// Thread safety: a participant number belongs to one thread at a time; everything else by any
// thread. Progress: all members are wait-free.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/align.h"
#include "base/announcements.h"
#include "base/atomic.h"

namespace sp3::rangelock {

using Era = std::uint64_t;

class Eras {
 public:
  explicit Eras(std::size_t participants) : announced_(participants) {}
  void admit(std::size_t who) noexcept { announced_.admit(who); }

  // A participant's own side. Not for several threads at a time.
  class Participant {
   public:
    Participant(Eras& eras, std::size_t who) noexcept
        : current_(eras.current_), announced_(eras.announced_.of(who)) {}

    // The era in which it is pinned, or was last.
    [[nodiscard]] Era era() const noexcept { return era_; }

    // REQUIRES: not pinned.
    void pin() noexcept {
      if (stay_ != Stay::none) [[unlikely]] {
        // relaxed: as if it had not looked at the era since it pinned itself.
        if (stay_ == Stay::pinned && current_.load(std::memory_order_relaxed) == era_) return;
        stay_ = Stay::pinned;
      }
      era_ = current_.load(std::memory_order_seq_cst);
      // (1) seq_cst, store buffering: visible before we read any shared pointer, or whoever
      // asks (2) would miss us. On x86, where it is a full fence: see docs/CONCURRENCY.md.
      announced_.exchange(of_era(era_), std::memory_order_seq_cst);
    }
    void unpin() noexcept {
      if (stay_ == Stay::none) [[likely]]
        announce_nothing();
    }

    // Until it leaves it stays pinned when it unpins, so that to pin itself again takes no locked
    // instruction, unless the era has gone on.
    void linger() noexcept { stay_ = std::max(stay_, Stay::wanted); }
    void leave() noexcept {
      if (std::exchange(stay_, Stay::none) == Stay::pinned) announce_nothing();
    }

    // Whether all that was reached since pin(), or since keep_all(), stays until unpin().
    [[nodiscard]] bool keeps_what_it_reached() const noexcept {
      // relaxed: whoever made what we reached had read the era that it was born in before, so we
      // read none that is older.
      return current_.load(std::memory_order_relaxed) == era_ || keeps_all();
    }
    // From now on keeps all that it reaches, and what it has kept so far. REQUIRES: pinned.
    [[gnu::noinline, gnu::cold]] void keep_all() noexcept {
      announced_.exchange(since(era_), std::memory_order_seq_cst);  // as (1)
    }
    // Keeps all from now on if what was reached may not be kept, and says whether that was so: then
    // nothing that was reached must be used, and another search is due, from a list's head or its
    // table.
    bool widen() noexcept {
      if (keeps_what_it_reached()) return false;
      keep_all();
      return true;
    }

   private:
    void announce_nothing() noexcept {
      // release: what we read of nodes is read before (2) sees us gone.
      announced_.store(base::Announcements::kNothing, std::memory_order_release);
    }
    [[gnu::noinline, gnu::cold]] bool keeps_all() const noexcept {
      // relaxed: our own store.
      return announced_.load(std::memory_order_relaxed) == since(era_);
    }

    const base::Atomic<Era>& current_;
    base::Announcements::Word& announced_;
    Era era_ = 0;
    enum class Stay : std::uint8_t { none, wanted, pinned } stay_ = Stay::none;
  };

  // The era to remember with nodes that were unlinked before.
  Era retire() noexcept {
    // seq_cst, store buffering: no earlier than the era of whoever may have reached them. The next
    // to be pinned does not keep them.
    return current_.fetch_add(1, std::memory_order_seq_cst);
  }

  // (2) What the participants say; `keeps` understands it.
  [[nodiscard]] const base::Announcements& announced() const noexcept { return announced_; }

  // Whether a participant that says so keeps what has lived from `born` to `retired`.
  static bool keeps(std::uint64_t announcement, Era born, Era retired) noexcept {
    const Era era = announcement >> 1;
    return era != 0 && era <= retired && ((announcement & kAll) != 0 || era >= born);
  }

 private:
  // What a participant announces: the era it is pinned in, above one bit, whether whatever is
  // retired since then is kept, and not only what was born by then. Era 0 is nobody's.
  static constexpr std::uint64_t kAll = 1;
  static constexpr std::uint64_t of_era(Era era) noexcept { return era << 1; }
  static constexpr std::uint64_t since(Era era) noexcept { return of_era(era) | kAll; }

  alignas(base::kCacheLine) base::Atomic<Era> current_{1};
  alignas(base::kCacheLine) base::Announcements announced_;
};

}  // namespace sp3::rangelock
