#include "rangelock/ordered_list.h"

#include <bit>

#include "base/assert.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

// Its links lead nowhere, and nobody follows them: searches stop at its begin.
constinit OrderedList::Sentinel OrderedList::end_{.node = {.begin = kRangeMax}};

OrderedList::OrderedList(unsigned max_height) : max_height_(max_height) {
  SP3_CHECK(max_height >= 1 && max_height <= kMaxHeight);
  head_.node.height = static_cast<std::uint8_t>(kMaxHeight);
  for (unsigned level = 0; level < kMaxHeight; ++level) {
    ::new (&head_.next(level)) std::atomic<Link>(end_link());
  }
}

void OrderedList::clear(NodePool& pool) noexcept {
  for (unsigned level = kMaxHeight; level-- > 0;) {
    Node* node = node_of(head_.next(level).load(std::memory_order_relaxed));
    head_.next(level).store(end_link(), std::memory_order_relaxed);
    while (node != &end_.node) {
      Node* const next = node_of(node->next(level).load(std::memory_order_relaxed));
      if (node->links.fetch_sub(1, std::memory_order_relaxed) == 1) pool.free(node);
      node = next;
    }
  }
}

// The nodes from `first` up to `end` are no longer linked on this level. Their links are marked and
// so will never change: nobody else can have unlinked one of them here.
inline void OrderedList::retire_run(OwnerCore& owner, unsigned level, Link first,
                                    const Node* end) noexcept {
  for (Node* node = node_of(first); node != end;) {
    const Link next = node->next(level).load(std::memory_order_relaxed);
    SP3_ASSERT(is_marked(next));
    // acq_rel: whoever takes it off the last level has seen the others do theirs.
    if (node->height == 1 || node->links.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      owner.pool.retire(node);
    }
    node = node_of(next);
  }
}

// Looks at the top level, and returns how many levels there are then. REQUIRES: Pin.
[[gnu::noinline]] unsigned OrderedList::adapt(unsigned levels) noexcept {
  Link link = head_.next(levels - 1).load(std::memory_order_acquire);
  // relaxed, here and below, and a lost update is harmless: any number of levels gives a correct
  // search.
  if (link == end_link()) {
    if (levels > 1) levels_.store(--levels, std::memory_order_relaxed);
    return levels;
  }
  unsigned nodes = 0;
  for (; link != end_link() && nodes <= kLongWalk; ++nodes) {
    // Marked links are followed: nodes that are still to be unlinked make walks long as well.
    link = node_of(link)->next(levels - 1).load(std::memory_order_acquire) & ~kMark;
  }
  if (nodes > kLongWalk && levels < max_height_) {
    levels_.store(++levels, std::memory_order_relaxed);
  }
  return levels;
}

// The upper levels of a search. A function of its own so that its loop has the registers to itself.
[[gnu::noinline]] Node* OrderedList::descend(OwnerCore& owner, std::uint64_t begin, Path& path) {
  Node* pred = &head_.node;
  for (unsigned level = path.levels - 1; level > 0; --level) {
    // (2) acquire: pairs with the release of (3), which made the node, and of (1), which unlocked
    // it.
    const Link first = pred->next(level).load(std::memory_order_acquire);
    if (is_marked(first)) [[unlikely]]
      return nullptr;
    Node* node = unmarked_node_of(first);  // what pred's link leads to
    while (node->begin <= begin) {
      const Link next = node->next(level).load(std::memory_order_acquire);
      if (is_marked(next)) [[unlikely]] {
        node = skip_run(owner, level, pred, node);
        if (node == nullptr) return nullptr;
        continue;
      }
      pred = node;
      node = unmarked_node_of(next);
    }
    path.pred[level] = pred;
    path.link[level] = link_to(node);
  }
  return pred;
}

// Fills the path for `begin`: every pred was live, with the given link, when it was read, and on
// the bottom level there were only marked nodes between it and succ. False: a pred was unlocked
// meanwhile, or its link changed.
[[gnu::always_inline]] inline bool OrderedList::try_search(OwnerCore& owner, std::uint64_t begin,
                                                           Path& path) {
  Node* pred = &head_.node;
  if (path.levels > 1) {
    pred = descend(owner, begin, path);
    if (pred == nullptr) [[unlikely]]
      return false;
  }
  Link link = pred->next(0).load(std::memory_order_acquire);
  if (is_marked(link)) [[unlikely]]
    return false;
  Node* node = unmarked_node_of(link);
  for (;;) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (is_marked(next)) {
      node = node_of(next);
      continue;
    }
    if (node->begin > begin) break;
    if (link != link_to(node) && !unlink_run(owner, 0, pred, link, node)) [[unlikely]]
      return false;
    pred = node;
    link = next;
    node = unmarked_node_of(next);
  }
  path.pred[0] = pred;
  path.link[0] = link;
  path.succ = node;
  return true;
}

[[gnu::noinline]] void OrderedList::search(OwnerCore& owner, std::uint64_t begin, Path& path) {
  while (!try_search(owner, begin, path)) [[unlikely]] {
    }
}

// The first live node after a run of marked ones.
inline Node* OrderedList::end_of_run(Node* node, unsigned level) noexcept {
  for (;;) {
    const Link next = node->next(level).load(std::memory_order_acquire);
    if (!is_marked(next)) return node;
    node = node_of(next);
  }
}

// Unlinks the run that begins at `first`, where pred's link leads, and returns the node after it;
// null if pred's link changed.
[[gnu::noinline]] Node* OrderedList::skip_run(OwnerCore& owner, unsigned level, Node* pred,
                                              Node* first) noexcept {
  Node* const end = end_of_run(first, level);
  return unlink_run(owner, level, pred, link_to(first), end) ? end : nullptr;
}

// Unlinks the marked nodes that pred's link leads to, up to `end`, in one go.
[[gnu::noinline]] bool OrderedList::unlink_run(OwnerCore& owner, unsigned level, Node* pred,
                                               Link link, Node* end) noexcept {
  hook(Hook::before_unlink);
  Link expected = link;
  if (!pred->next(level).compare_exchange_strong(expected, link_to(end), std::memory_order_acq_rel,
                                                 std::memory_order_relaxed)) {
    return false;
  }
  retire_run(owner, level, link, end);
  return true;
}

// Of a node that will be linked where the path will lead; says how many levels the path has.
// A quarter of the nodes on each level go on to the next.
inline unsigned OrderedList::draw_height(OwnerCore& owner, Path& path) noexcept {
  path.levels = levels_.load(std::memory_order_relaxed);  // relaxed: see adapt
  const auto zeros = static_cast<unsigned>(std::countl_zero(owner.next_random()));
  const unsigned height = 1 + zeros / 2;
  if (height <= path.levels) [[likely]]
    return height;
  return path.levels = adapt(path.levels);
}

inline Node* OrderedList::make_node(OwnerCore& owner, const Range& range, RangeMode mode,
                                    NodeState state, unsigned height) {
  Node* const node = owner.pool.allocate(height);
  node->begin = range.begin;
  node->end = range.end;
  node->owner = owner.number;
  node->height = static_cast<std::uint8_t>(height);
  node->mode = mode;
  node->state.store(state, std::memory_order_relaxed);
  node->links.store(static_cast<std::uint8_t>(height), std::memory_order_relaxed);
  return node;
}

// The linearisation point of an acquisition: at this CAS pred is live and nothing is linked between
// it and the marked run that ends at succ, so the two neighbours that were compared are the two
// neighbours.
[[gnu::always_inline]] inline bool OrderedList::link_bottom(OwnerCore& owner, Node* node,
                                                            Path& path) {
  node->next(0).store(link_to(path.succ), std::memory_order_relaxed);
  hook(Hook::before_link);
  Link expected = path.link[0];
  // (3) release: the node is made before (2) finds it. seq_cst, store buffering: an exclusive range
  // is linked before it looks for shared ones, and the other way round (ordered_core.cc).
  if (!path.pred[0]->next(0).compare_exchange_strong(
          expected, link_to(node), std::memory_order_seq_cst, std::memory_order_relaxed)) {
    return false;
  }
  retire_run(owner, 0, path.link[0], path.succ);
  return true;
}

// Of the two neighbours, the one that overlaps. The head ends at 0, the end begins at kRangeMax.
inline const Node* OrderedList::overlap_on(const Path& path, const Range& range) noexcept {
  if (path.pred[0]->end > range.begin) return path.pred[0];
  return path.succ->begin < range.end ? path.succ : nullptr;
}

// Unlinks the marked nodes between pred and succ, if there are any, for a search that links nothing
// there. Otherwise every search would walk over them again, as long as none links a node. That
// pred's link has changed, or pred was unlocked, does not matter: the next search tries again.
inline void OrderedList::tidy(OwnerCore& owner, const Path& path) noexcept {
  if (path.link[0] != link_to(path.succ)) [[unlikely]]
    unlink_run(owner, 0, path.pred[0], path.link[0], path.succ);
}

[[gnu::noinline]] void OrderedList::refuse(OwnerCore& owner, const Path& path, const Node& overlap,
                                           Blocker& blocker) noexcept {
  blocker = overlap.as_blocker();
  tidy(owner, path);
}

Node* OrderedList::link_disjoint(OwnerCore& owner, const Range& range, NodeState state, Path& path,
                                 Blocker& blocker) {
  const unsigned height = draw_height(owner, path);
  if (!try_search(owner, range.begin, path)) [[unlikely]]
    search(owner, range.begin, path);
  if (const Node* const overlap = overlap_on(path, range)) {
    refuse(owner, path, *overlap, blocker);
    return nullptr;
  }
  Node* const node = make_node(owner, range, RangeMode::exclusive, state, height);
  if (link_bottom(owner, node, path)) [[likely]]
    return node;
  return link_disjoint_again(owner, node, path, blocker);
}

[[gnu::noinline]] Node* OrderedList::link_disjoint_again(OwnerCore& owner, Node* node, Path& path,
                                                         Blocker& blocker) {
  do {
    search(owner, node->begin, path);
    if (const Node* const overlap = overlap_on(path, node->range())) {
      refuse(owner, path, *overlap, blocker);
      owner.pool.free(node);
      return nullptr;
    }
  } while (!link_bottom(owner, node, path));
  return node;
}

Node* OrderedList::link_any(OwnerCore& owner, const Range& range, Path& path) {
  const unsigned height = draw_height(owner, path);
  Node* const node = make_node(owner, range, RangeMode::shared, NodeState::held, height);
  do {
    search(owner, range.begin, path);
  } while (!link_bottom(owner, node, path));
  return node;
}

// Level by level upwards. Nobody changes the node's own link on a level that it is not on yet, so
// it is set afresh for each try: what a new search found must be what the node leads to.
void OrderedList::build_upper_levels(OwnerCore& owner, Node* node, Path& path) {
  for (unsigned level = 1; level < node->height; ++level) {
    for (;;) {
      node->next(level).store(path.link[level], std::memory_order_relaxed);
      Link expected = path.link[level];
      if (path.pred[level]->next(level).compare_exchange_strong(
              expected, link_to(node), std::memory_order_release, std::memory_order_relaxed)) {
        break;
      }
      search(owner, node->begin, path);
    }
  }
}

void OrderedList::retreat(Node* node) noexcept {
  // It never got a tower, so nobody unlinks it from one. A tall node stays tall all the same: by
  // its height it goes back to the pool that it came from.
  node->height = is_tall(node->height) ? node->height : 1;
  node->links.store(1, std::memory_order_relaxed);
  node->next(0).fetch_or(kMark, std::memory_order_seq_cst);
}

Node* OrderedList::find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach) {
  Path path;
  path.levels = levels_.load(std::memory_order_relaxed);
  search(owner, range.begin > reach ? range.begin - reach : 0, path);
  tidy(owner, path);
  Node* pred = path.pred[0];
  if (pred != &head_.node && pred->end > range.begin) return pred;
  Node* node = path.succ;
  // Several may begin at 0, and the search has passed all but the last of them.
  if (range.begin <= reach) {
    pred = &head_.node;
    node = node_of(pred->next(0).load(std::memory_order_acquire));
  }
  // Not from pred's link as it is now: pred may have been unlocked, and then its link leads past
  // whatever came since. succ was its neighbour when the search saw it, and so on from there.
  while (node->begin < range.end) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (is_marked(next)) [[unlikely]] {
      // As in tidy. pred's link did lead here: it is compared again when the run is unlinked.
      Node* const end = end_of_run(node, 0);
      unlink_run(owner, 0, pred, link_to(node), end);
      node = end;
      continue;
    }
    if (node->end > range.begin) return node;
    pred = node;
    node = unmarked_node_of(next);
  }
  return nullptr;
}

}  // namespace sp3::rangelock
