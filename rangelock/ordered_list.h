// OrderedList: a lock-free skip list of ranges in ascending order of their begins.
//
// The algorithm is Harris' list on every level, with these differences from the published range
// lock (docs/RANGE_LOCKS.md tells why each is correct):
//   - A search treats a run of marked nodes as not there. One CAS on the link of the live node
//     before the run unlinks all of it; on the bottom level the CAS that links a new node does that
//     too. So what is unlocked is walked over once, whatever comes next.
//   - A node is unlinked by whoever comes next, or by its unlocker if it is next to a signpost, and
//     retired by whoever takes it off its last level.
//   - Towers are as high as the number of nodes calls for: whoever draws a height above the top
//     level looks at it, adds a level if there are many nodes on it, and drops it if there are
//     none.
//   - All levels end in one node that begins behind every range, so that no step of a search has to
//     ask whether there is a next node.
//   - Once acquisitions have met at a link, searches begin at signposts (signposts.h), where there
//     are any. What is linked from there has no tower.
//
// Thread safety: all members but the destructor by any thread; callers are pinned wherever `Pin` is
// REQUIRED. Reclamation: eras (eras.h); a node is retired when it is off all its levels. A search
// may pass nodes that are used again meanwhile. Whoever acts on what it found, by a CAS, a mark or
// an answer, has looked before whether all that was reached is kept, and searches again if not.
// Invariants:
//   1. On each level, begins ascend along the links. Equal ones: only where overlaps are allowed,
//      and of signposts and a range, which is the last.
//   2. A node on level i is on all levels below, unless its bottom link is marked.
//   3. A marked link never changes again.
//   4. Without overlaps: the ranges of unmarked nodes are disjoint, and none has a signpost inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/atomic.h"
#include "rangelock/domain.h"
#include "rangelock/node.h"
#include "rangelock/signposts.h"

namespace sp3::rangelock {

class OrderedList {
 public:
  // REQUIRES: 1 <= max_height <= kMaxHeight.
  explicit OrderedList(unsigned max_height);
  ~OrderedList();
  OrderedList(const OrderedList&) = delete;
  OrderedList& operator=(const OrderedList&) = delete;
  // Gives all nodes to the pool. REQUIRES: nobody else uses the list, now or later.
  void clear(NodePool& pool) noexcept;

  // Links a node for the range on the bottom level, unless a live node overlaps it: then the result
  // is null and `blocker` that node. build_tower or retreat must follow.
  // REQUIRES: Pin. Errors: std::bad_alloc.
  Node* link_disjoint(OwnerCore& owner, const Range& range, NodeState state, Blocker& blocker) {
    return link<RangeMode::exclusive>(owner, range, state, blocker);
  }
  // The same whatever overlaps.
  Node* link_any(OwnerCore& owner, const Range& range) {
    Blocker nobody;
    return link<RangeMode::shared>(owner, range, NodeState::held, nobody);
  }
  // REQUIRES: the owner has linked no other node that is to have a tower since.
  void build_tower(OwnerCore& owner, Node* node) {
    if (node->height > 1) [[unlikely]]
      build_upper_levels(owner, node);
  }
  // Undoes link_*. REQUIRES: Pin, no build_tower.
  static void retreat(Node* node) noexcept;

  // Unlocks: from now on the node is not there. REQUIRES: the node is live, its tower built.
  static void mark(Node* node) noexcept {
    for (unsigned level = node->height; level-- > 1;) {
      // relaxed: only tells others not to link behind it; the bottom level decides.
      node->next(level).fetch_or(kMark, std::memory_order_relaxed);
    }
    mark_bottom(node);
  }

  // Whether to unlock is to mark the node, and no more.
  [[nodiscard]] bool is_released_by_mark() const noexcept {
    return signposts_.load(std::memory_order_acquire) == nullptr;
  }
  static Link mark_bottom(Node* node) noexcept {
    // (1) release: the critical section happens before whoever finds the mark (2). seq_cst, store
    // buffering: before the look for waiters.
    return node->next(0).fetch_or(kMark, std::memory_order_seq_cst);
  }
  // Unlocks whatever node it is. REQUIRES: as mark; no Pin of the owner, who holds it.
  void release(OwnerCore& owner, Node* node) noexcept;

  // The first live node that overlaps the range; null if there is none.
  // `reach`: no node is longer. For a list without overlaps 0 will do. REQUIRES: Pin.
  Node* find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach);

  // Asks, as a writer, for the signpost where a search for the address begins, if there is one.
  void ask_ahead(std::uint64_t address) const noexcept;
  // The same for several, and for what comes behind their signposts.
  void ask_ahead(std::span<const Range> ranges) const noexcept;

  // What the last node of each list leads to, here and in whatever other lists take their nodes
  // from the domain: it begins behind every range.
  static Link end_link() noexcept { return link_to(&end_.node); }

  [[nodiscard]] bool is_empty() const noexcept {
    return head_.next(0).load(std::memory_order_acquire) == end_link();
  }
  // Calls visit(const Node&) for each live node that holds a range. REQUIRES: Pin.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Node* node = node_of(head_.next(0).load(std::memory_order_acquire));
         node != &end_.node;) {
      const Link link = node->next(0).load(std::memory_order_acquire);
      if (!is_marked(link) && !is_signpost(*node)) visit(*node);
      node = node_of(link);
    }
  }

 private:
  // A node with a tower of full height. A list's head is never compared; the end of all lists is
  // never changed, and begins where no range does, so that it overlaps none and is behind all.
  struct alignas(base::kCacheLine) Sentinel {
    Node node;
    std::byte rest_of_tower[node_bytes(true) - sizeof(Node)];

    [[nodiscard]] base::Atomic<Link>& next(unsigned level) noexcept { return node.next(level); }
    [[nodiscard]] const base::Atomic<Link>& next(unsigned level) const noexcept {
      return node.next(level);
    }
  };

  // Where it ended on the bottom level: the last live node at or before the begin sought, its link,
  // and the first live node behind.
  struct Gap {
    Node* pred;
    Link link;
    Node* succ;
  };
  Gap search(OwnerCore& owner, std::uint64_t begin, unsigned height);
  bool try_search(OwnerCore& owner, std::uint64_t begin, unsigned levels, bool noted, Gap& gap);
  [[nodiscard]] unsigned levels_for(unsigned height) const noexcept;
  bool note_path(OwnerCore& owner, std::uint64_t begin, unsigned height) noexcept;
  Gap search_from(OwnerCore& owner, Node* signpost, std::uint64_t begin);
  template <bool noted, bool tidying>
  static Node* descend(OwnerCore& owner, std::uint64_t begin, unsigned level, Node* pred);
  enum class Walk : std::uint8_t { arrived, lost, too_long };
  template <bool limited>
  static Walk walk(OwnerCore& owner, Node* pred, std::uint64_t begin, Gap& gap);
  static Node* end_of_run(Node* node, unsigned level) noexcept;
  static Node* skip_run(OwnerCore& owner, unsigned level, Node* pred, Node* first) noexcept;
  static bool unlink_run(OwnerCore& owner, unsigned level, Node* pred, Link link,
                         Node* end) noexcept;
  // For a node that will be linked, and how many levels a search for its place goes through.
  struct Draw {
    unsigned height;
    unsigned levels;
  };
  Draw draw_height(OwnerCore& owner, unsigned least) noexcept;
  static Node* make_node(OwnerCore& owner, const Range& range, RangeMode mode, NodeState state,
                         unsigned height);
  static const Node* overlap_on(const Gap& gap, const Range& range) noexcept;
  static void tidy(OwnerCore& owner, const Gap& gap) noexcept;
  enum class Look : std::uint8_t { free, cleared, taken };
  template <RangeMode mode>
  Look look_into(OwnerCore& owner, const Gap& gap, const Range& range, Blocker& blocker);
  Look look_into_full(OwnerCore& owner, const Gap& gap, const Range& range, const Node* overlap,
                      Blocker& blocker) noexcept;
  const Node* make_way(OwnerCore& owner, Node* first, const Range& range) noexcept;
  template <RangeMode mode>
  Node* link(OwnerCore& owner, const Range& range, NodeState state, Blocker& blocker) {
    // acquire: pairs with note_meeting().
    if (Signposts* const signposts = signposts_.load(std::memory_order_acquire)) [[unlikely]] {
      if (Node* const node = link_nearby<mode>(owner, *signposts, range, state)) [[likely]]
        return node;
      return link_nearby_again<mode>(owner, *signposts, range, state, blocker);
    }
    return link_from_head<mode>(owner, range, state, blocker);
  }
  template <RangeMode mode>
  Node* link_from_head(OwnerCore& owner, const Range& range, NodeState state, Blocker& blocker);
  Node* link_past_overlap(OwnerCore& owner, const Range& range, NodeState state, unsigned height,
                          Gap gap, const Node* overlap, Blocker& blocker);
  template <RangeMode mode>
  Node* link_again(OwnerCore& owner, Node* node, Blocker& blocker);
  enum class Nearby : std::uint8_t { lost, too_long, overlapped, crowded };
  static Node* find_signpost(OwnerCore& owner, const Signposts& signposts,
                             std::uint64_t place) noexcept;
  [[nodiscard]] const Node* signpost_near(std::uint64_t address) const noexcept;
  template <RangeMode mode>
  Node* try_link_nearby(OwnerCore& owner, Node* signpost, const Range& range, NodeState state,
                        unsigned height, Gap& gap, Nearby& why);
  template <RangeMode mode>
  Node* link_nearby(OwnerCore& owner, Signposts& signposts, const Range& range, NodeState state);
  template <RangeMode mode>
  Node* link_nearby_again(OwnerCore& owner, Signposts& signposts, const Range& range,
                          NodeState state, Blocker& blocker);
  Node* signpost_before(OwnerCore& owner, Signposts& signposts, std::uint64_t address) noexcept;
  Node* plant(OwnerCore& owner, Signposts& signposts, std::uint64_t place) noexcept;
  static void replace(OwnerCore& owner, Signposts& signposts, std::uint64_t place) noexcept;
  static bool remove_stale(OwnerCore& owner, Signposts& signposts, Node* from) noexcept;
  static void move_closer(OwnerCore& owner, Signposts& signposts, const Range& range) noexcept;
  static void remove(OwnerCore& owner, Signposts& signposts, Node* signpost) noexcept;
  static void release_nearby(OwnerCore& owner, const Signposts& signposts, Node* node) noexcept;
  void note_meeting(OwnerCore& owner, const Range& range, Link found) noexcept;
  static bool link_bottom(OwnerCore& owner, Node* node, Gap& gap);
  Node* try_find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach);
  void build_upper_levels(OwnerCore& owner, Node* node);
  static void retire_run(OwnerCore& owner, unsigned level, Link first, const Node* end) noexcept;
  unsigned adapt(unsigned levels) noexcept;

  // More nodes than this on the top level, and there should be another above it. With a quarter of
  // the nodes on each next level, that one will have one or two.
  static constexpr unsigned kLongWalk = 4;

  // From a signpost a search passes no more live nodes than this: then towers are the better way.
  static constexpr unsigned kShortWalk = 8;

  static Sentinel end_;

  Sentinel head_{};
  const unsigned max_height_;
  alignas(base::kCacheLine) base::Atomic<unsigned> levels_{1};  // that searches visit
  base::Atomic<Signposts*> signposts_{nullptr};                 // null until they are needed
};

}  // namespace sp3::rangelock
