#include "rangelock/ordered_list.h"

#include <bit>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/atomic.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

namespace {

// How often, one time in 2^bits, an acquisition plants what the next ones will find.
constexpr unsigned kPlant = 2;    // a signpost, where it misses one
constexpr unsigned kReplace = 3;  // instead, if the table's entry is taken: what is there goes
constexpr unsigned kTower = 6;    // a tower between a signpost and a range
constexpr unsigned kTowerBetweenRanges = 8;
// A miss counts as so many hits.
constexpr std::uint32_t kMiss = 9;
constexpr std::uint32_t kMostMisses = 64;

}  // namespace

// Its links lead nowhere, and nobody follows them: searches stop at its begin. Empty, like a
// signpost.
constinit OrderedList::Sentinel OrderedList::end_{
    .node = {.begin_word = kRangeMax, .end_word = kRangeMax}};

OrderedList::OrderedList(unsigned max_height) : max_height_(max_height) {
  SP3_CHECK(max_height >= 1 && max_height <= kMaxHeight);
  head_.node.height = static_cast<std::uint8_t>(kMaxHeight);
  for (unsigned level = 0; level < kMaxHeight; ++level) {
    ::new (&head_.next(level)) base::Atomic<Link>(end_link());
  }
}

OrderedList::~OrderedList() { delete signposts_.load(std::memory_order_relaxed); }

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
    node->look_at_plain_part();
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

// The upper levels of a search, from a node's link on the level on. Where a run of marked nodes is
// in its way the function that unlinks them goes on: one that calls nothing has no registers to
// save. `noted`: the owner's path is to be filled, for a tower or for another search.
template <bool noted, bool tidying>
[[gnu::noinline]] Node* OrderedList::descend(OwnerCore& owner, std::uint64_t begin, unsigned level,
                                             Node* pred) {
  for (; level > 0; --level) {
    // (2) acquire: pairs with the release of (3), which made the node, and of (1), which unlocked
    // it.
    const Link first = pred->next(level).load(std::memory_order_acquire);
    if (is_marked(first)) [[unlikely]]
      return nullptr;
    Node* node = unmarked_node_of(first);  // what pred's link leads to
    while (node->begin() <= begin) {
      const Link next = node->next(level).load(std::memory_order_acquire);
      if (is_marked(next)) [[unlikely]] {
        if constexpr (!tidying) return descend<noted, true>(owner, begin, level, pred);
        node = skip_run(owner, level, pred, node);
        if (node == nullptr) return nullptr;
        continue;
      }
      pred = node;
      node = unmarked_node_of(next);
    }
    if constexpr (noted) {
      // What is linked here comes before this node. Were it marked, and each that comes before the
      // last one, nobody would ever unlink them.
      if (node != &end_.node && is_marked(node->next(level).load(std::memory_order_acquire)))
          [[unlikely]] {
        if constexpr (!tidying) return descend<noted, true>(owner, begin, level, pred);
        node = skip_run(owner, level, pred, node);
        if (node == nullptr) return nullptr;
      }
      owner.path.pred[level] = pred;
      owner.path.link[level] = link_to(node);
    }
  }
  return pred;
}

// The bottom level of a search, from a node at or before `begin`. Lost: a pred was unlocked
// meanwhile, or its link changed, or what was reached is not kept. `limited`: to kShortWalk live
// nodes.
template <bool limited>
[[gnu::always_inline]] inline OrderedList::Walk OrderedList::walk(OwnerCore& owner, Node* pred,
                                                                  std::uint64_t begin, Gap& gap) {
  Link link = pred->next(0).load(std::memory_order_acquire);
  if (is_marked(link)) [[unlikely]]
    return Walk::lost;
  Node* node = unmarked_node_of(link);
  unsigned passed = 0;
  for (;;) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (is_marked(next)) {
      node = node_of(next);
      continue;
    }
    if (node->begin() > begin) break;
    if (link != link_to(node) && !unlink_run(owner, 0, pred, link, node)) [[unlikely]]
      return Walk::lost;
    if constexpr (limited) {
      if (++passed > kShortWalk) return Walk::too_long;
    }
    pred = node;
    link = next;
    node = unmarked_node_of(next);
  }
  gap = {pred, link, node};
  hook(Hook::gap_found);
  return owner.participant.keeps_what_it_reached() ? Walk::arrived : Walk::lost;
}

// How many levels to search for a node of the height: also those that the list no longer has.
inline unsigned OrderedList::levels_for(unsigned height) const noexcept {
  return std::max(levels_.load(std::memory_order_relaxed), height);  // relaxed: see adapt
}

// Fills the owner's path for a tower whose place on the bottom level is known, or is found from a
// signpost: from the head it may be behind any number of nodes that have none. False: it was lost.
// REQUIRES: height > 1.
[[gnu::noinline]] bool OrderedList::note_path(OwnerCore& owner, std::uint64_t begin,
                                              unsigned height) noexcept {
  return descend<true, false>(owner, begin, levels_for(height) - 1, &head_.node) != nullptr &&
         owner.participant.keeps_what_it_reached();
}

// Finds the gap for `begin`, and fills the owner's path if it is to be noted: every pred was live,
// with the given link, when it was read, and on the bottom level there were only marked nodes
// between it and succ. False: it was lost.
[[gnu::always_inline]] inline bool OrderedList::try_search(OwnerCore& owner, std::uint64_t begin,
                                                           unsigned levels, bool noted, Gap& gap) {
  Node* pred = &head_.node;
  if (levels > 1) {
    pred = noted ? descend<true, false>(owner, begin, levels - 1, pred)
                 : descend<false, false>(owner, begin, levels - 1, pred);
    if (pred == nullptr) [[unlikely]]
      return false;
  }
  return walk<false>(owner, pred, begin, gap) == Walk::arrived;
}

// Until it has found it. For a node of the height: a path is noted for what is above the bottom.
[[gnu::noinline]] OrderedList::Gap OrderedList::search(OwnerCore& owner, std::uint64_t begin,
                                                       unsigned height) {
  const unsigned levels = levels_for(height);
  Gap gap;
  while (!try_search(owner, begin, levels, height > 1, gap)) owner.participant.widen();
  return gap;
}

// From a signpost before `begin`, where there is one and it is near.
OrderedList::Gap OrderedList::search_from(OwnerCore& owner, Node* signpost, std::uint64_t begin) {
  Gap gap;
  if (signpost != nullptr && walk<true>(owner, signpost, begin, gap) == Walk::arrived) return gap;
  return search(owner, begin, 1);
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
// null if that did not succeed.
[[gnu::noinline]] Node* OrderedList::skip_run(OwnerCore& owner, unsigned level, Node* pred,
                                              Node* first) noexcept {
  Node* const end = end_of_run(first, level);
  return unlink_run(owner, level, pred, link_to(first), end) ? end : nullptr;
}

// Unlinks the marked nodes that pred's link leads to, up to `end`, in one go. Not if pred's link
// has changed, nor if one of these nodes may have been used again since it was reached.
[[gnu::noinline]] bool OrderedList::unlink_run(OwnerCore& owner, unsigned level, Node* pred,
                                               Link link, Node* end) noexcept {
  hook(Hook::before_unlink);
  if (!owner.participant.keeps_what_it_reached()) return false;
  Link expected = link;
  if (!pred->next(level).compare_exchange_strong(expected, link_to(end), std::memory_order_acq_rel,
                                                 std::memory_order_relaxed)) {
    return false;
  }
  retire_run(owner, level, link, end);
  return true;
}

// A quarter of the nodes on each level go on to the next, from `least` on.
inline OrderedList::Draw OrderedList::draw_height(OwnerCore& owner, unsigned least) noexcept {
  const unsigned levels = levels_.load(std::memory_order_relaxed);  // relaxed: see adapt
  const auto zeros = static_cast<unsigned>(std::countl_zero(owner.next_random()));
  const unsigned height = least + zeros / 2;
  if (height <= levels) [[likely]]
    return {height, levels};
  const unsigned adapted = adapt(levels);
  return {adapted, adapted};
}

inline Node* OrderedList::make_node(OwnerCore& owner, const Range& range, RangeMode mode,
                                    NodeState state, unsigned height) {
  Node* const node = owner.pool.allocate(height, owner.participant.era());
  node->set_range(range);
  node->make_plain_part();
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
                                                            Gap& gap) {
  // release: a search that reached this memory when it was another node may read the link before
  // (3), and go on to succ.
  node->next(0).store(link_to(gap.succ), std::memory_order_release);
  hook(Hook::before_link);
  Link expected = gap.link;
  // (3) release: the node is made before (2) finds it. seq_cst, store buffering: an exclusive range
  // is linked before it looks for shared ones, and the other way round (ordered_core.cc).
  // acquire: note_meeting() looks at what was found.
  if (!gap.pred->next(0).compare_exchange_strong(expected, link_to(node), std::memory_order_seq_cst,
                                                 std::memory_order_acquire)) {
    gap.link = expected;  // what there is instead
    return false;
  }
  retire_run(owner, 0, gap.link, gap.succ);
  return true;
}

// Of the two neighbours, the one that overlaps. The head ends at 0, the end begins at kRangeMax.
inline const Node* OrderedList::overlap_on(const Gap& gap, const Range& range) noexcept {
  if (gap.pred->end() > range.begin) return gap.pred;
  return gap.succ->begin() < range.end ? gap.succ : nullptr;
}

// Unlinks the marked nodes between pred and succ, if there are any, for a search that links nothing
// there. Otherwise every search would walk over them again, as long as none links a node. That
// pred's link has changed, or pred was unlocked, does not matter: the next search tries again.
inline void OrderedList::tidy(OwnerCore& owner, const Gap& gap) noexcept {
  if (gap.link != link_to(gap.succ)) [[unlikely]]
    unlink_run(owner, 0, gap.pred, gap.link, gap.succ);
}

// Whether a node for the range can be linked into the gap. `cleared`: signposts were in its way,
// and another search is due. `taken`: `blocker` is.
template <RangeMode mode>
[[gnu::always_inline]] inline OrderedList::Look OrderedList::look_into(OwnerCore& owner,
                                                                       const Gap& gap,
                                                                       const Range& range,
                                                                       Blocker& blocker) {
  if constexpr (mode == RangeMode::shared) return Look::free;
  const Node* const overlap = overlap_on(gap, range);
  if (overlap == nullptr) [[likely]]
    return Look::free;
  return look_into_full(owner, gap, range, overlap, blocker);
}

[[gnu::noinline]] OrderedList::Look OrderedList::look_into_full(OwnerCore& owner, const Gap& gap,
                                                                const Range& range,
                                                                const Node* overlap,
                                                                Blocker& blocker) noexcept {
  if (is_signpost(*overlap)) {
    hook(Hook::signpost_in_way);
    overlap = make_way(owner, gap.succ, range);
    if (overlap == nullptr || !owner.participant.keeps_what_it_reached()) return Look::cleared;
  }
  blocker = overlap->as_blocker();
  tidy(owner, gap);
  return Look::taken;
}

template <RangeMode mode>
[[gnu::noinline]] Node* OrderedList::link_from_head(OwnerCore& owner, const Range& range,
                                                    NodeState state, Blocker& blocker) {
  const auto [height, levels] = draw_height(owner, 1);
  Gap gap;
  if (!try_search(owner, range.begin, levels, height > 1, gap)) [[unlikely]]
    gap = search(owner, range.begin, height);
  if constexpr (mode == RangeMode::exclusive) {
    if (const Node* const overlap = overlap_on(gap, range)) [[unlikely]]
      return link_past_overlap(owner, range, state, height, gap, overlap, blocker);
  }
  Node* const node = make_node(owner, range, mode, state, height);
  if (link_bottom(owner, node, gap)) [[likely]]
    return node;
  note_meeting(owner, range, gap.link);
  return link_again<mode>(owner, node, blocker);
}

// What the search found is in the way of an exclusive range.
[[gnu::noinline]] Node* OrderedList::link_past_overlap(OwnerCore& owner, const Range& range,
                                                       NodeState state, unsigned height, Gap gap,
                                                       const Node* overlap, Blocker& blocker) {
  if (look_into_full(owner, gap, range, overlap, blocker) == Look::taken) return nullptr;
  Node* const node = make_node(owner, range, RangeMode::exclusive, state, height);
  return link_again<RangeMode::exclusive>(owner, node, blocker);
}

template <RangeMode mode>
[[gnu::noinline]] Node* OrderedList::link_again(OwnerCore& owner, Node* node, Blocker& blocker) {
  for (;;) {
    Gap gap = search(owner, node->begin(), node->height);
    const Look look = look_into<mode>(owner, gap, node->range(), blocker);
    if (look == Look::free && link_bottom(owner, node, gap)) return node;
    if (look == Look::taken) break;
  }
  owner.pool.free(node);
  return nullptr;
}

// The signpost at the place; null if there is none.
inline Node* OrderedList::find_signpost(OwnerCore& owner, const Signposts& signposts,
                                        std::uint64_t place) noexcept {
  Node* const signpost = signposts.find(place);
  if (signpost != nullptr && owner.misses != 0) --owner.misses;
  return signpost;
}

// One attempt to link a node from the signpost; null if that did not succeed, and why. Crowded: the
// next node is a range. There may be any number of them, all linked from here in descending order,
// over which later searches from the head would have to walk: now and then one is to have a tower.
template <RangeMode mode>
[[gnu::always_inline]] inline Node* OrderedList::try_link_nearby(OwnerCore& owner, Node* signpost,
                                                                 const Range& range,
                                                                 NodeState state, unsigned height,
                                                                 Gap& gap, Nearby& why) {
  const Walk walked = walk<true>(owner, signpost, range.begin, gap);
  if (walked != Walk::arrived) [[unlikely]] {
    why = walked == Walk::lost ? Nearby::lost : Nearby::too_long;
    return nullptr;
  }
  if (mode == RangeMode::exclusive && overlap_on(gap, range) != nullptr) [[unlikely]] {
    why = Nearby::overlapped;
    return nullptr;
  }
  if (height == 1 && !is_signpost(*gap.succ) &&
      owner.draws_one_in_2_to(is_signpost(*gap.pred) ? kTower : kTowerBetweenRanges)) [[unlikely]] {
    why = Nearby::crowded;
    return nullptr;
  }
  Node* const node = make_node(owner, range, mode, state, height);
  if (link_bottom(owner, node, gap)) [[likely]]
    return node;
  note_meeting(owner, range, gap.link);
  owner.pool.free(node);
  why = Nearby::lost;
  return nullptr;
}

// As link_from_head, from a signpost, with a search that has no levels but the bottom one; null if
// it takes more than that. A function of its own, which knows of nothing else: each store to the
// stack is one that the next locked instruction waits for, and that is in the way of what the core
// would do meanwhile.
template <RangeMode mode>
[[gnu::noinline]] Node* OrderedList::link_nearby(OwnerCore& owner, Signposts& signposts,
                                                 const Range& range, NodeState state) {
  Node* const signpost = find_signpost(owner, signposts, signposts.place_before(range.begin));
  if (signpost == nullptr) [[unlikely]]
    return nullptr;
  Gap gap;
  Nearby why;
  Node* const node = try_link_nearby<mode>(owner, signpost, range, state, 1, gap, why);
  if (node == nullptr) [[unlikely]]
    owner.met_crowd = why == Nearby::crowded;
  return node;
}

// Where the first attempt did not succeed. From the head if there is no signpost, or more live nodes
// lie behind it than a walk should pass.
template <RangeMode mode>
[[gnu::noinline]] Node* OrderedList::link_nearby_again(OwnerCore& owner, Signposts& signposts,
                                                       const Range& range, NodeState state,
                                                       Blocker& blocker) {
  Nearby why = std::exchange(owner.met_crowd, false) ? Nearby::crowded : Nearby::lost;
  unsigned height = 1;
  Gap gap;
  while (Node* const signpost = signpost_before(owner, signposts, range.begin)) {
    if (why == Nearby::crowded) height = draw_height(owner, 2).height;
    if (height > 1 && !note_path(owner, range.begin, height)) {
      why = Nearby::lost;
    } else if (Node* const node =
                   try_link_nearby<mode>(owner, signpost, range, state, height, gap, why)) {
      return node;
    }
    hook(Hook::not_linked_nearby);
    if (owner.participant.widen()) continue;
    if (why == Nearby::too_long && !remove_stale(owner, signposts, signpost)) {
      move_closer(owner, signposts, range);
      break;
    }
    if (why == Nearby::overlapped &&
        look_into_full(owner, gap, range, overlap_on(gap, range), blocker) == Look::taken) {
      return nullptr;
    }
  }
  return link_from_head<mode>(owner, range, state, blocker);
}

// Called from other sources.
#define SP3_LINK_FOR(mode)                                                                         \
  template Node* OrderedList::link_from_head<mode>(OwnerCore&, const Range&, NodeState, Blocker&); \
  template Node* OrderedList::link_nearby<mode>(OwnerCore&, Signposts&, const Range&, NodeState);  \
  template Node* OrderedList::link_nearby_again<mode>(OwnerCore&, Signposts&, const Range&,        \
                                                      NodeState, Blocker&)
SP3_LINK_FOR(RangeMode::exclusive);
SP3_LINK_FOR(RangeMode::shared);
#undef SP3_LINK_FOR

// The signpost from which to look for the address; null if there is none nearby.
inline Node* OrderedList::signpost_before(OwnerCore& owner, Signposts& signposts,
                                          std::uint64_t address) noexcept {
  const std::uint64_t place = signposts.place_before(address);
  if (Node* const signpost = find_signpost(owner, signposts, place)) [[likely]]
    return signpost;
  owner.misses = std::min(owner.misses + kMiss, kMostMisses);
  Node* const signpost = plant(owner, signposts, place);
  return signpost != nullptr ? signpost : signposts.find_before(place);
}

// A new signpost at the place; null if there is none, for whatever reason. Not each who misses one
// plants it: where wide ranges remove them again and again that would be in vain.
[[gnu::noinline]] Node* OrderedList::plant(OwnerCore& owner, Signposts& signposts,
                                           std::uint64_t place) noexcept try {
  if (!owner.draws_one_in_2_to(kPlant)) return nullptr;
  if (!signposts.is_vacant(place)) {
    if (owner.draws_one_in_2_to(kReplace)) replace(owner, signposts, place);
    return nullptr;
  }
  Gap gap;
  // Not where a range lies across the place, or begins there.
  const auto find_gap = [&] {
    gap = search_from(owner, signposts.find_before(place), place);
    if (gap.pred->end() <= place) return true;
    tidy(owner, gap);
    return false;
  };
  if (!find_gap()) return nullptr;
  Node* const node = make_node(owner, {place, place}, RangeMode::exclusive, NodeState::held, 1);
  bool is_mine = signposts.reserve(node);
  while (is_mine && !link_bottom(owner, node, gap)) {
    if (find_gap()) continue;
    signposts.withdraw(node);
    is_mine = false;
  }
  if (!is_mine) {
    owner.pool.free(node);
    return nullptr;
  }
  hook(Hook::signpost_linked);
  return signposts.publish(node) ? node : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Level by level upwards. Nobody changes the node's own link on a level that it is not on yet, so
// it is set afresh for each try: what a new search found must be what the node leads to.
void OrderedList::build_upper_levels(OwnerCore& owner, Node* node) {
  const OwnerCore::Path& path = owner.path;
  for (unsigned level = 1; level < node->height; ++level) {
    for (;;) {
      // release: as in link_bottom.
      node->next(level).store(path.link[level], std::memory_order_release);
      Link expected = path.link[level];
      if (path.pred[level]->next(level).compare_exchange_strong(
              expected, link_to(node), std::memory_order_release, std::memory_order_relaxed)) {
        break;
      }
      while (!note_path(owner, node->begin(), node->height)) owner.participant.widen();
    }
  }
}

void OrderedList::retreat(Node* node) noexcept {
  // It never got a tower, so nobody unlinks it from one. A tall node stays tall all the same: by
  // its height it goes back to the pool that it came from.
  node->height = is_tall(node->height) ? node->height : 1;
  node->links.store(1, std::memory_order_relaxed);
  mark_bottom(node);
}

Node* OrderedList::find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach) {
  for (;;) {
    Node* const found = try_find_overlap(owner, range, reach);
    if (!owner.participant.widen()) [[likely]]
      return found;
  }
}

// The result says nothing if what was reached is not kept.
Node* OrderedList::try_find_overlap(OwnerCore& owner, const Range& range, std::uint64_t reach) {
  const std::uint64_t from = range.begin > reach ? range.begin - reach : 0;
  // acquire: pairs with note_meeting().
  Signposts* const signposts = signposts_.load(std::memory_order_acquire);
  const Gap gap = search_from(
      owner, signposts == nullptr ? nullptr : signpost_before(owner, *signposts, from), from);
  tidy(owner, gap);
  Node* pred = gap.pred;
  if (pred != &head_.node && pred->end() > range.begin) return pred;
  Node* node = gap.succ;
  // Several may begin at 0, and the search has passed all but the last of them.
  if (range.begin <= reach) {
    pred = &head_.node;
    node = node_of(pred->next(0).load(std::memory_order_acquire));
  }
  // A wide range does not walk over the same signposts again and again: each step that is long was
  // paid for by who planted one.
  unsigned passed = 0;
  // Not from pred's link as it is now: pred may have been unlocked, and then its link leads past
  // whatever came since. succ was its neighbour when the search saw it, and so on from there.
  while (node->begin() < range.end) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (is_marked(next)) [[unlikely]] {
      // As in tidy. pred's link did lead here: it is compared again when the run is unlinked.
      Node* const end = end_of_run(node, 0);
      // What is not kept may lead round in a circle; a link of it is marked, so it ends here.
      if (!unlink_run(owner, 0, pred, link_to(node), end) &&
          !owner.participant.keeps_what_it_reached()) {
        return nullptr;
      }
      node = end;
      continue;
    }
    if (is_signpost(*node)) {
      if (++passed > kShortWalk) {
        // A search may have been led into another list than its own, which need not have any.
        Signposts* const table = signposts_.load(std::memory_order_acquire);
        if (table != nullptr) remove(owner, *table, node);
      }
    } else if (node->end() > range.begin) {
      return node;
    }
    pred = node;
    node = unmarked_node_of(next);
  }
  return nullptr;
}

}  // namespace sp3::rangelock
