// Domain: what range locks share: owners' numbers, eras, and memory for nodes.
//
// Each owner has a pool of free nodes, and a limbo of nodes that it unlinked and that pinned
// threads may still look at. Limbo is emptied by eras (eras.h). Nodes travel: who unlinks a node is
// often not who made it. Surplus goes to the domain's depot in batches, and comes from there; what
// was used last is used again first. Memory for low nodes is never used for tall ones, nor for
// anything else before the domain ends: a search may read a node that was used again, be it in
// another list. So once a node has been linked its link leads to a node for ever, whatever list it
// comes into; the last one's to OrderedList::end_link().
//
// Thread safety: NodePool, OwnerCore: one thread at a time; Domain: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "base/cold_mutex.h"
#include "base/counter.h"
#include "base/hash.h"
#include "rangelock/eras.h"
#include "rangelock/limbo.h"
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

  // `born`: no later than the era in which the node will be linked. Errors: std::bad_alloc.
  Node* allocate(unsigned height, Era born) {
    Node* const node = is_tall(height) ? allocate_from<true>() : allocate_from<false>();
    node->born = born;
    return node;
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

    RetiredChain chain(Eras& eras) noexcept;
  };
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
  void reclaim(bool tall) noexcept;

  Domain& domain_;
  std::array<Node*, 2> free_{};      // chained by pool_next; low nodes, tall nodes
  std::array<Unlinked, 2> retired_;  // for limbo, when they are a batch
  std::array<Limbo, 2> limbo_;
  std::array<NodeBatches, 2> more_;  // free
};

struct alignas(base::kCacheLine) OwnerCore {
  OwnerCore(Domain& in, std::uint32_t with_number, std::uint64_t with_token);

  Domain& domain;
  const std::uint32_t number;
  base::Atomic<std::uint64_t> token;  // introspection by other threads
  Eras::Participant participant;
  NodePool pool;
  std::uint64_t random;  // state of next_random
  // Of this owner's acquisitions, in whatever lists, for how close signposts should be
  // (ordered_list.cc): how many there were when it last met another, and whether signposts are
  // missed often, from 0 to kMostMisses.
  std::uint64_t last_meeting = 0;
  std::uint32_t misses = 0;
  bool met_crowd = false;  // by the last acquisition that began at a signpost
  // Where its last search that was noted went above the bottom level: on each the last live node at
  // or before the begin sought, and the link it had.
  struct Path {
    std::array<Node*, kMaxHeight> pred;
    std::array<Link, kMaxHeight> link;
  };
  Path path;
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

  [[nodiscard]] Eras& eras() noexcept { return eras_; }
  [[nodiscard]] std::uint64_t node_bytes() const;
  [[nodiscard]] std::size_t owners() const;

  // Free nodes for a pool: from the depot, or new. Errors: std::bad_alloc.
  NodeChain take(bool tall);
  // The lowest `count` of the batches. REQUIRES: there are so many.
  void give(bool tall, NodeBatches& batches, std::size_t count) noexcept;
  // Nodes whose retirer goes away before they can be used again.
  void adopt(bool tall, Limbo& limbo) noexcept;

  // Their numbers go up to here, in 15 bits (Bucket::holder); number 0 is the guest's. Twice as
  // many, and one, can be counted in 16 bits too (BucketState::try_enter).
  static constexpr std::size_t kMaxOwners = (1 << 15) - 1;

 private:
  friend class Guest;
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };

  Eras eras_;
  mutable base::ColdMutex mutex_;  // guards all below
  std::vector<OwnerCore*> owners_;
  std::size_t live_owners_ = 0;
  std::array<NodeBatches, 2> depot_;
  std::array<Limbo, 2> orphans_;  // of owners that went away
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::uint64_t bytes_ = 0;

  base::ColdMutex guest_mutex_;  // held before mutex_; guards what the guest does
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
  const std::lock_guard<base::ColdMutex> hold_;
  OwnerCore& core_;
};

inline OwnerCore::OwnerCore(Domain& in, std::uint32_t with_number, std::uint64_t with_token)
    : domain(in),
      number(with_number),
      token(with_token),
      participant(in.eras(), with_number),
      pool(in),
      random(with_number - 1) {}

// Keeps the owner pinned.
class Pin {
 public:
  enum class Keeps : std::uint8_t {
    all,      // no node that it can reach is used again meanwhile
    of_then,  // the same of those that were born by now; see Participant::keeps_what_it_reached
  };
  explicit Pin(OwnerCore& owner, Keeps keeps) noexcept : owner_(owner) {
    owner.participant.pin();
    if (keeps == Keeps::all) owner.participant.keep_all();
  }
  ~Pin() { owner_.participant.unpin(); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  OwnerCore& owner_;
};

}  // namespace sp3::rangelock
