#include "rangelock/ordered_list.h"

#include <algorithm>
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

// After a search that took so many steps on the top level.
[[gnu::noinline]] void OrderedList::adapt(OwnerCore& owner, unsigned levels,
                                          unsigned steps) noexcept {
  if (steps > kLongWalk) {
    // relaxed, and a lost update is harmless: any number of levels gives a correct search.
    if (levels < max_height_) levels_.store(levels + 1, std::memory_order_relaxed);
  } else if (owner.next_random() >> 58 == 0) {
    levels_.store(levels - 1, std::memory_order_relaxed);
  }
}

// Follows an upper level, from `pred`, as far as nodes begin at or before `begin`. False as for
// try_search.
template <bool counts>
[[gnu::always_inline]] inline bool OrderedList::walk(OwnerCore& owner, std::uint64_t begin,
                                                     unsigned level, Path& path, Node*& pred,
                                                     unsigned& steps) {
  // (2) acquire: pairs with the release of (3), which made the node, and of (1), which unlocked it.
  Link link = pred->next(level).load(std::memory_order_acquire);
  if (is_marked(link)) [[unlikely]]
    return false;
  for (;;) {
    Node* const node = unmarked_node_of(link);
    if (node->begin > begin) break;
    const Link next = node->next(level).load(std::memory_order_acquire);
    if (is_marked(next)) [[unlikely]] {
      link = skip_run(owner, level, pred, link);
      if (is_marked(link)) return false;
      continue;
    }
    pred = node;
    link = next;
    if constexpr (counts) ++steps;
  }
  path.pred[level] = pred;
  path.link[level] = link;
  return true;
}

// Fills the path for `begin`: every pred was live, with the given link, when it was read, and on
// the bottom level there were only marked nodes between it and succ. False: a pred was unlocked
// meanwhile, or its link changed.
[[gnu::always_inline]] inline bool OrderedList::try_search(OwnerCore& owner, std::uint64_t begin,
                                                           Path& path) {
  const unsigned levels = path.levels;
  unsigned steps = 0;  // on the top level
  Node* pred = &head_.node;
  if (levels > 1) {
    const unsigned top = levels - 1;
    const bool is_empty = head_.next(top).load(std::memory_order_relaxed) == end_link();
    if (!walk<true>(owner, begin, top, path, pred, steps)) [[unlikely]]
      return false;
    if (is_empty || steps > kLongWalk) [[unlikely]]
      adapt(owner, levels, steps);
    for (unsigned level = top; --level > 0;) {
      if (!walk<false>(owner, begin, level, path, pred, steps)) [[unlikely]]
        return false;
    }
    steps = 0;
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
    ++steps;
  }
  path.pred[0] = pred;
  path.link[0] = link;
  path.succ = node;
  if (levels == 1 && steps > kLongWalk) [[unlikely]]
    adapt(owner, levels, steps);
  return true;
}

// The first live node after a run of marked ones.
inline Node* OrderedList::end_of_run(Node* node, unsigned level) noexcept {
  for (;;) {
    const Link next = node->next(level).load(std::memory_order_acquire);
    if (!is_marked(next)) return node;
    node = node_of(next);
  }
}

// Unlinks the run that pred's link leads to, and returns the link to what comes after it; a marked
// one if pred's link changed.
[[gnu::noinline]] Link OrderedList::skip_run(OwnerCore& owner, unsigned level, Node* pred,
                                             Link link) noexcept {
  Node* const end = end_of_run(unmarked_node_of(link), level);
  return unlink_run(owner, level, pred, link, end) ? link_to(end) : kMark;
}

// Unlinks the marked nodes that pred's link leads to, up to `end`, in one go.
bool OrderedList::unlink_run(OwnerCore& owner, unsigned level, Node* pred, Link link,
                             Node* end) noexcept {
  hook(Hook::before_unlink);
  Link expected = link;
  if (!pred->next(level).compare_exchange_strong(expected, link_to(end), std::memory_order_acq_rel,
                                                 std::memory_order_relaxed)) {
    return false;
  }
  retire_run(owner, level, link, end);
  return true;
}

inline unsigned OrderedList::draw_height(OwnerCore& owner, unsigned levels) noexcept {
  if (levels == 1) return 1;
  // A quarter of the nodes on each level go on to the next.
  const auto zeros = static_cast<unsigned>(std::countl_zero(owner.next_random()));
  return std::min(1 + zeros / 2, levels);
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
inline bool OrderedList::link_bottom(OwnerCore& owner, Node* node, Path& path) {
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

Node* OrderedList::link_disjoint(OwnerCore& owner, const Range& range, NodeState state, Path& path,
                                 Range& blocker) {
  path.levels = levels_.load(std::memory_order_relaxed);  // relaxed: see adapt
  Node* node = nullptr;
  for (;;) {
    search(owner, range.begin, path);
    const Node* const pred = path.pred[0];
    const Node* const succ = path.succ;
    const Node* overlap = nullptr;
    if (pred != &head_.node && pred->end > range.begin) {
      overlap = pred;
    } else if (succ->begin < range.end) {
      overlap = succ;
    }
    if (overlap != nullptr) {
      blocker = overlap->range();
      if (node != nullptr) owner.pool.free(node);
      return nullptr;
    }
    if (node == nullptr) {
      node = make_node(owner, range, RangeMode::exclusive, state, draw_height(owner, path.levels));
    }
    if (link_bottom(owner, node, path)) return node;
  }
}

Node* OrderedList::link_any(OwnerCore& owner, const Range& range, Path& path) {
  path.levels = levels_.load(std::memory_order_relaxed);
  Node* const node = make_node(owner, range, RangeMode::shared, NodeState::held,
                               draw_height(owner, path.levels));
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
  // It never got a tower, so nobody unlinks it from one.
  node->height = is_tall(node->height) ? node->height : 1;
  node->links.store(1, std::memory_order_relaxed);
  node->next(0).fetch_or(kMark, std::memory_order_seq_cst);
}

Node* OrderedList::find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach) {
  Path path;
  path.levels = levels_.load(std::memory_order_relaxed);
  search(owner, range.begin > reach ? range.begin - reach : 0, path);
  Node* const pred = path.pred[0];
  if (pred != &head_.node && pred->end > range.begin) return pred;
  // Not from pred's link as it is now: pred may have been unlocked, and then its link leads past
  // whatever came since. succ was its neighbour when the search saw it, and so on from there.
  for (Node* node = path.succ; node->begin < range.end;) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (!is_marked(next) && node->end > range.begin) return node;
    node = node_of(next);
  }
  return nullptr;
}

}  // namespace sp3::rangelock
