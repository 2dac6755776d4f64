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
// Whoever retires a node must find room to note it. So there is a batch for each chunk of nodes: a
// full one has as many at least, so whoever has filled one up finds another that is empty. What is
// no whole batch has a place of its own in each pool and in the domain. And there is one more for
// each pool, which may keep one back.
//
// Thread safety: NodePool, OwnerCore: one thread at a time; Domain: any.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/atomic.h"
#include "base/cold_mutex.h"
#include "base/counter.h"
#include "base/hash.h"
#include "base/prefetch.h"
#include "rangelock/eras.h"
#include "rangelock/limbo.h"
#include "rangelock/node.h"
#include "rangelock/node_batch.h"

namespace sp3::rangelock {

class Domain;

class NodePool {
 public:
  // REQUIRES: Domain::mutex_, or nobody else knows the domain. Errors: std::bad_alloc.
  explicit NodePool(Domain& domain);
  ~NodePool();
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  // Leaves all nodes to the domain.
  void give_back() noexcept;

  // `born`: no later than the era in which the node will be linked. Errors: std::bad_alloc.
  Node* allocate(unsigned height, Era born) {
    Node* const node = is_tall(height) ? take_tall() : take<false>();
    node->born = born;
    return node;
  }
  // A node that no other thread has seen.
  void free(Node* node) noexcept {
    const bool tall = is_tall(node->height);
    if (free_[tall].is_full()) [[unlikely]]
      more_[tall].push(batch_of(free_[tall]));
    free_[tall].push(node);
  }
  // Whether to retire a low node is to note it, and no more.
  [[nodiscard]] bool retires_at_once() const noexcept {
    return retired_[false].size + 1 < NodeBatch::kMost;
  }
  // A node that can no longer be reached, but that pinned threads may hold. No store to it, which
  // the next locked instruction would wait for: its line is in the cache of whoever unlocked it.
  void retire(Node* node) noexcept {
    if (is_tall(node->height)) [[unlikely]]
      return note_tall(node);
    note<false>(node);
  }

 private:
  friend class Domain;
  static constexpr std::size_t kAhead = 8;    // nodes
  static constexpr std::size_t kSurplus = 8;  // batches of free nodes to keep

  // Low nodes are nearly all: what finds their batches is compiled for them alone.
  template <bool tall>
  Node* take() {
    NodeBatch& free = free_[tall];
    if (free.is_empty()) [[unlikely]]
      refill(tall);
    Node* const node = free.pop();
    // A line that another core has had comes from far away. Of the last few nodes it goes round to
    // lines that are here already.
    base::prefetch_for_write(free.nodes[(free.size - kAhead) % NodeBatch::kMost]);
    return node;
  }
  Node* take_tall();
  template <bool tall>
  void note(Node* node) noexcept {
    NodeBatch& retired = retired_[tall];
    if (node->born < retired.born) retired.born = node->born;
    retired.push(node);
    if (retired.is_full()) [[unlikely]]
      turn(tall);
  }
  void note_tall(Node* node) noexcept;

  void refill(bool tall);
  void turn(bool tall) noexcept;
  void reclaim(bool tall) noexcept;
  NodeBatch& batch_of(NodeBatch& full) noexcept;

  Domain& domain_;
  // Of low nodes, and of tall ones.
  std::array<NodeBatch, 2> free_;     // what is taken next
  std::array<NodeBatch, 2> retired_;  // for limbo, when it is full
  std::array<Limbo, 2> limbo_;
  std::array<BatchStack, 2> more_;  // free
  NodeBatch* spare_ = nullptr;      // empty
};

// What every acquisition and unlock reads or counts comes first, in one line. Around the filling of
// a range lines cost more than instructions: a load waits for stores under way at its offset within
// a page, whatever page (docs/EXPERIMENTS.md).
struct alignas(base::kCacheLine) OwnerCore {
  OwnerCore(Domain& in, std::uint32_t with_number, std::uint64_t with_token);

  Domain& domain;
  const std::uint32_t number;
  base::Counter acquired, released, contended, waited_ns;
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

  // Free nodes: from the depot, or new. REQUIRES: `into` is empty. Errors: std::bad_alloc.
  void take(bool tall, NodeBatch& into);
  void give(bool tall, BatchStack&& batches) noexcept;
  NodeBatch& take_empty() noexcept;
  void give_empty(NodeBatch& batch) noexcept;

  // Their numbers go up to here, in 15 bits (Bucket::holder); number 0 is the guest's. Twice as
  // many, and one, can be counted in 16 bits too (BucketState::try_enter).
  static constexpr std::size_t kMaxOwners = (1 << 15) - 1;

 private:
  friend class Guest;
  friend class NodePool;
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };

  // REQUIRES, here and of the next three: mutex_, or nobody else knows the domain.
  void reserve_batches(std::size_t pools, std::size_t chunks);
  void adopt(bool tall, NodePool& pool) noexcept;
  void release_orphans(bool tall) noexcept;
  // Adds the nodes of a batch to those of a rest; whenever that is full, `out` gets a batch.
  template <class Out>
  void merge(NodeBatch& rest, NodeBatch& from, Out&& out) noexcept;

  Eras eras_;
  mutable base::ColdMutex mutex_;  // guards all below
  std::vector<OwnerCore*> owners_;
  std::size_t live_owners_ = 0;
  std::array<BatchStack, 2> depot_;
  std::array<Limbo, 2> orphans_;  // of owners that went away
  // What they left that was no whole batch: free nodes, and those that others may still look at.
  std::array<NodeBatch, 2> free_rest_, retired_rest_;
  std::vector<std::unique_ptr<NodeBatch>> batches_;
  BatchStack empty_;
  std::size_t pools_ = 0;
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

// For an owner that pins itself many times: between two of its pins it stays pinned.
class Lingering {
 public:
  explicit Lingering(OwnerCore& owner) noexcept : owner_(owner) { owner.participant.linger(); }
  ~Lingering() { owner_.participant.leave(); }
  Lingering(const Lingering&) = delete;
  Lingering& operator=(const Lingering&) = delete;

 private:
  OwnerCore& owner_;
};

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
