// PendingRing: what a session has sealed and not yet committed, in order.
//
// An item is a sealed log record, or the mark of an asynchronous read-only transaction (no bytes).
// Items are numbered from 1; item n lives in slot n % capacity until it is committed.
//
// Thread safety: push() by the owner; read() by any thread, also while the owner pushes: every
// field is atomic, and a reader that then finds `n` still uncommitted knows that what it read was
// item n's, because the owner reuses a slot only after its item is committed.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/tid.h"
#include "base/zeroed_array.h"
#include "emu/touch.h"

namespace sp3::log {

struct PendingItem {
  base::Stamp stamp = 0;
  base::Lsn lsn = 0;         // of the record; of a mark, of the last record before it
  std::uint64_t offset = 0;  // file offset of the bytes to flush (a run's header included)
  std::uint32_t bytes = 0;   // 0 for a mark
  bool streamed = false;     // written with non-temporal stores
  std::uint32_t dependencies = 0;
  std::uint64_t first_dependency = 0;  // its number in the ring of dependencies
};

class PendingRing {
 public:
  // REQUIRES: `items` is a power of two.
  PendingRing(std::uint32_t items, std::uint32_t dependencies)
      : items_(std::make_unique<Item[]>(items)),
        dependencies_(dependencies),
        item_mask_(items - 1),
        dependency_capacity_(dependencies) {
    SP3_ASSERT(std::has_single_bit(items));
  }

  // How many items it holds.
  [[nodiscard]] std::uint32_t capacity() const noexcept { return item_mask_ + 1; }

  // Whether one more item with `dependencies` fits when everything up to `committed` is done.
  [[nodiscard]] bool has_room(std::uint64_t sealed, std::uint64_t committed,
                              std::uint32_t dependencies) const noexcept;

  // REQUIRES: has_room. The caller publishes `number` with a release store afterwards.
  void push(std::uint64_t number, PendingItem item,
            std::span<const base::Tid> dependencies) noexcept;

  [[nodiscard]] PendingItem read(std::uint64_t number) const noexcept;
  [[nodiscard]] base::Tid dependency(std::uint64_t number) const noexcept;

 private:
  // Stores release and loads acquire, like a seqlock: a reader that meets a field of a later item
  // in the same slot also sees, afterwards, that its own item is committed.
  struct Item {
    base::Atomic<base::Stamp> stamp{0};
    base::Atomic<base::Lsn> lsn{0};
    base::Atomic<std::uint64_t> offset{0};
    base::Atomic<std::uint32_t> bytes{0};
    base::Atomic<std::uint32_t> dependencies{0};  // top bit: streamed
    base::Atomic<std::uint64_t> first_dependency{0};
  };
  struct Dependency {  // of plain words, looked at through base::AtomicRef, for ZeroedArray's sake
    base::Stamp stamp;
    base::SessionId session;
  };
  static constexpr std::uint32_t kStreamed = std::uint32_t{1} << 31;

  std::unique_ptr<Item[]> items_;
  // There is to be room for one of each session at least, of which few are ever open.
  mutable base::ZeroedArray<Dependency> dependencies_;
  const std::uint32_t item_mask_;
  const std::uint32_t dependency_capacity_;
  std::uint64_t next_dependency_ = 0;  // the owner's
};

inline bool PendingRing::has_room(std::uint64_t sealed, std::uint64_t committed,
                                  std::uint32_t dependencies) const noexcept {
  if (sealed == committed) return true;
  if (sealed - committed > item_mask_) return false;
  const std::uint64_t oldest =
      // relaxed: our own store
      items_[(committed + 1) & item_mask_].first_dependency.load(std::memory_order_relaxed);
  return next_dependency_ - oldest + dependencies <= dependency_capacity_;
}

inline void PendingRing::push(std::uint64_t number, PendingItem item,
                              std::span<const base::Tid> dependencies) noexcept {
  SP3_ASSERT(dependencies.size() <= dependency_capacity_);
  Item& slot = items_[number & item_mask_];
  slot.stamp.store(item.stamp, std::memory_order_release);
  slot.lsn.store(item.lsn, std::memory_order_release);
  slot.offset.store(item.offset, std::memory_order_release);
  emu::interleave();
  slot.bytes.store(item.bytes, std::memory_order_release);
  slot.dependencies.store(
      static_cast<std::uint32_t>(dependencies.size()) | (item.streamed ? kStreamed : 0),
      std::memory_order_release);
  slot.first_dependency.store(next_dependency_, std::memory_order_release);
  for (const base::Tid& tid : dependencies) {
    Dependency& d = dependencies_[next_dependency_++ % dependency_capacity_];
    base::AtomicRef<base::Stamp>(d.stamp).store(tid.stamp, std::memory_order_release);
    base::AtomicRef<base::SessionId>(d.session).store(tid.session, std::memory_order_release);
  }
}

inline PendingItem PendingRing::read(std::uint64_t number) const noexcept {
  const Item& slot = items_[number & item_mask_];
  PendingItem item;
  item.stamp = slot.stamp.load(std::memory_order_acquire);
  item.lsn = slot.lsn.load(std::memory_order_acquire);
  item.offset = slot.offset.load(std::memory_order_acquire);
  emu::interleave();
  item.bytes = slot.bytes.load(std::memory_order_acquire);
  const std::uint32_t dependencies = slot.dependencies.load(std::memory_order_acquire);
  item.streamed = (dependencies & kStreamed) != 0;
  item.dependencies = dependencies & ~kStreamed;
  item.first_dependency = slot.first_dependency.load(std::memory_order_acquire);
  return item;
}

inline base::Tid PendingRing::dependency(std::uint64_t number) const noexcept {
  Dependency& d = dependencies_[number % dependency_capacity_];
  return {base::AtomicRef<base::Stamp>(d.stamp).load(std::memory_order_acquire),
          base::AtomicRef<base::SessionId>(d.session).load(std::memory_order_acquire)};
}

}  // namespace sp3::log
