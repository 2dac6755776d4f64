// Domain: what range locks share: owners' numbers, epochs, and memory for nodes.
//
// Each owner has a pool of free nodes, and a limbo of nodes that it unlinked and that pinned
// threads may still look at. Limbo is emptied by epochs (base/epoch.h). Nodes travel: who unlinks a
// node is often not who made it. Surplus goes to the domain's depot in batches, and comes from
// there; what was used last is used again first.
//
// Thread safety: NodePool, OwnerCore: one thread at a time; Domain: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/assert.h"
#include "base/counter.h"
#include "base/epoch.h"
#include "base/hash.h"
#include "rangelock/node.h"
#include "rangelock/node_chain.h"

namespace sp3::rangelock {

class Domain;

inline constexpr std::size_t kBatch = 128;  // nodes

class NodePool {
 public:
  explicit NodePool(Domain& domain) : domain_(domain) {}
  ~NodePool() { give_back(); }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  // Leaves everything to the domain.
  void give_back() noexcept;

  // Errors: std::bad_alloc.
  Node* allocate(unsigned height) {
    return is_tall(height) ? allocate_from<true>() : allocate_from<false>();
  }
  // A node that no other thread has seen.
  void free(Node* node) noexcept {
    Node*& free = free_[is_tall(node->height)];
    node->pool_next = free;
    free = node;
  }
  // Whether to retire a low node is to note it, and no more.
  [[nodiscard]] bool retires_at_once() const noexcept { return retired_[false].size + 1 < kBatch; }
  // A node that can no longer be reached, but that pinned threads may hold.
  void retire(Node* node) noexcept {
    is_tall(node->height) ? retire_to<true>(node) : retire_to<false>(node);
  }

 private:
  // What was unlinked last. Its lines are in the cache of whoever unlocked it: a store to each, to
  // chain it, would be one that the next locked instruction waits for. So nodes are noted here, and
  // chained when they are many, all lines being under way at a time.
  struct Unlinked {
    std::array<Node*, kBatch> nodes;
    std::size_t size = 0;

    NodeChain chain() noexcept;
  };
  // What was retired together; free two epochs later.
  struct Bag {
    std::array<NodeBatches, 2> batches;
    base::EpochDomain::Epoch epoch = 0;  // 0: the newest, or empty
  };
  static constexpr std::size_t kBags = 3;
  static constexpr std::size_t kSurplus = 8;  // batches of free nodes to keep

  template <bool tall>
  Node* allocate_from() {
    if (free_[tall] == nullptr) [[unlikely]]
      refill(tall);
    Node* const node = free_[tall];
    free_[tall] = node->pool_next;
    return node;
  }
  template <bool tall>
  void retire_to(Node* node) noexcept {
    Unlinked& unlinked = retired_[tall];
    unlinked.nodes[unlinked.size] = node;
    if (++unlinked.size == kBatch) [[unlikely]]
      turn(tall);
  }
  void refill(bool tall);
  void turn(bool tall) noexcept;
  void empty(Bag& bag) noexcept;

  Domain& domain_;
  std::array<Node*, 2> free_{};      // chained by pool_next; low nodes, tall nodes
  std::array<Unlinked, 2> retired_;  // for the newest bag, when they are a batch
  std::array<NodeBatches, 2> more_;  // free
  std::array<Bag, kBags> limbo_;
  Bag* newest_ = limbo_.data();
};

struct OwnerCore {
  OwnerCore(Domain& in, std::uint32_t with_number, std::uint64_t with_token)
      : domain(in), number(with_number), token(with_token), pool(in), random(with_number - 1) {}

  Domain& domain;
  const std::uint32_t number;
  std::atomic<std::uint64_t> token;  // introspection by other threads
  NodePool pool;
  std::uint64_t random;  // state of next_random
  // Of this owner's acquisitions, in whatever lists, for how close signposts should be
  // (ordered_list.cc): how many there were when it last met another, and whether signposts are
  // missed often, from 0 to kMostMisses.
  std::uint64_t last_meeting = 0;
  std::uint32_t misses = 0;
  base::Counter acquired, released, contended, waited_ns;

  [[nodiscard]] std::size_t held() const noexcept { return acquired.get() - released.get(); }

  std::uint64_t next_random() noexcept { return random = base::next_random(random); }
  // Whether to do now what is to be done one time in 2^bits.
  bool draws_one_in_2_to(unsigned bits) noexcept { return next_random() >> (64 - bits) == 0; }
};

class Domain {
 public:
  // Errors: Error{invalid_argument} for more owners than the locks have bits for; std::bad_alloc.
  explicit Domain(std::size_t owners);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  // Errors: Error{invalid_argument} if all numbers are taken.
  std::unique_ptr<OwnerCore> admit(std::uint64_t token);
  void dismiss(OwnerCore& owner) noexcept;
  [[nodiscard]] std::uint64_t token_of(std::uint32_t number) const;

  [[nodiscard]] base::EpochDomain& epochs() noexcept { return epochs_; }
  [[nodiscard]] std::uint64_t node_bytes() const;
  [[nodiscard]] std::size_t owners() const;

  // Free nodes for a pool: from the depot, or new. Errors: std::bad_alloc.
  NodeChain take(bool tall);
  // The lowest `count` of the batches. REQUIRES: there are so many.
  void give(bool tall, NodeBatches& batches, std::size_t count) noexcept;
  // Nodes whose retirer goes away before they are old enough.
  void adopt(bool tall, NodeBatches& batches) noexcept;

  // Their numbers go up to here, in 16 bits (grid_core.h); number 0 is the guest's.
  static constexpr std::size_t kMaxOwners = (1 << 16) - 1;

 private:
  friend class Guest;
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };

  base::EpochDomain epochs_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<OwnerCore*> owners_;
  std::size_t live_owners_ = 0;
  std::array<NodeBatches, 2> depot_;
  // Of owners that went away: what waits, and what came since, which waits afterwards. Were they
  // one, none would ever be old enough where owners come and go all the time.
  struct Orphans {
    std::array<NodeBatches, 2> nodes;
    base::EpochDomain::Epoch newest = 0;  // 0: there are none
  };
  Orphans orphans_;
  Orphans later_orphans_;
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::uint64_t bytes_ = 0;

  std::mutex guest_mutex_;  // held before mutex_; guards what the guest does
  OwnerCore guest_;
};

// The domain's own owner, for the length of one call: for introspection and destruction, which must
// not fail because all numbers are taken. One at a time.
class Guest {
 public:
  explicit Guest(Domain& domain) : hold_(domain.guest_mutex_), core_(domain.guest_) {}
  ~Guest() { core_.pool.give_back(); }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  [[nodiscard]] OwnerCore& core() const noexcept { return core_; }

 private:
  const std::lock_guard<std::mutex> hold_;
  OwnerCore& core_;
};

// Keeps the owner pinned: no node that it can reach is used again meanwhile.
class Pin {
 public:
  explicit Pin(OwnerCore& owner) noexcept
      : announcement_(owner.domain.epochs().announcement_of(owner.number)) {
    owner.domain.epochs().pin(owner.number);
  }
  ~Pin() { base::EpochDomain::unpin(announcement_); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  base::EpochDomain::Announcement& announcement_;
};

}  // namespace sp3::rangelock
