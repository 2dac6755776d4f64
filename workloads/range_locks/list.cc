#include "workloads/range_locks/list.h"

#include "rangelock/hook.h"

namespace sp3::workloads {

using rangelock::is_marked;
using rangelock::kMark;
using rangelock::Link;
using rangelock::link_to;
using rangelock::Node;
using rangelock::node_of;
using rangelock::OrderedList;
using rangelock::OwnerCore;

namespace {

// Where `node` goes relative to `at`: before it, behind it, or nowhere, because they conflict.
// Readers that overlap are ordered by their begins.
enum class Place { before, behind, conflict };
Place place_of(const Node* node, const Node* at) {
  if (at->begin() >= node->end()) return Place::before;
  if (node->begin() >= at->end()) return Place::behind;
  if (node->mode == RangeMode::exclusive || at->mode == RangeMode::exclusive) {
    return Place::conflict;
  }
  return node->begin() >= at->begin() ? Place::behind : Place::before;
}

// Takes a marked node off the list, if it is still where it was seen.
bool unlink(OwnerCore& owner, std::atomic<Link>& link, Node* node, Node* next) {
  Link expected = link_to(node);
  if (!link.compare_exchange_strong(expected, link_to(next), std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
    return false;
  }
  owner.pool.retire(node);
  return true;
}

void mark(Node* node) { node->next(0).fetch_or(kMark, std::memory_order_acq_rel); }

}  // namespace

RivalToken ListLock::acquire(OwnerCore& owner, const Range& range, RangeMode mode) {
  Node* const node = owner.pool.allocate(1, owner.participant.era());
  node->set_range(range);
  node->owner = owner.number;
  node->height = 1;
  node->mode = mode;
  node->next(0).store(OrderedList::end_link(), std::memory_order_relaxed);
  RivalToken token{.range = range, .mode = mode, .owner = &owner, .place = node, .held = true};
  Link empty = OrderedList::end_link();
  if (head_.load(std::memory_order_relaxed) == empty &&
      head_.compare_exchange_strong(empty, link_to(node) | kMark, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {
    return token;
  }
  const rangelock::Pin pin(owner, rangelock::Pin::Keeps::all);
  token.held = insert(owner, node);
  return token;
}

// seq_cst where a node is linked and where the list is then looked through: a reader and a writer
// that link at the same time must not both miss the other (store buffering).
bool ListLock::insert(OwnerCore& owner, Node* node) {
restart:
  std::atomic<Link>* previous = &head_;
  Link link = head_.load(std::memory_order_acquire);
  if (is_marked(link)) {  // the fast path's; from here on it is a node like others
    head_.compare_exchange_strong(link, link & ~kMark, std::memory_order_acq_rel,
                                  std::memory_order_relaxed);
    link = head_.load(std::memory_order_acquire);
    if (is_marked(link)) goto restart;
  }
  for (;;) {
    if (is_marked(link)) goto restart;  // what we came over was unlocked
    Node* const at = node_of(link);
    const Link next = at->next(0).load(std::memory_order_acquire);
    if (is_marked(next)) {
      if (!unlink(owner, *previous, at, node_of(next))) goto restart;
      link = next & ~kMark;
      continue;
    }
    const Place place = place_of(node, at);
    if (place == Place::conflict) {
      owner.pool.free(node);
      return false;
    }
    if (place == Place::behind) {
      previous = &at->next(0);
      link = previous->load(std::memory_order_acquire);
      continue;
    }
    // release: as in OrderedList::link_bottom.
    node->next(0).store(link, std::memory_order_release);
    rangelock::hook(rangelock::Hook::before_link);
    if (!previous->compare_exchange_strong(link, link_to(node), std::memory_order_seq_cst,
                                           std::memory_order_acquire)) {
      goto restart;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool clear = node->mode == RangeMode::shared ? is_clear_for_reader(owner, node)
                                                       : is_clear_for_writer(owner, node);
    if (!clear) mark(node);
    return clear;
  }
}

// Behind an overlapping reader there may be a writer that began later.
bool ListLock::is_clear_for_reader(OwnerCore&, Node* node) {
  Node* at = node_of(node->next(0).load(std::memory_order_acquire));
  while (at->begin() < node->end()) {
    const Link next = at->next(0).load(std::memory_order_acquire);
    if (!is_marked(next) && at->mode == RangeMode::exclusive) return false;
    at = node_of(next);
  }
  return true;
}

// Before a writer there may be a reader that was linked ahead of a shorter neighbour.
bool ListLock::is_clear_for_writer(OwnerCore&, Node* node) {
  Node* at = node_of(head_.load(std::memory_order_acquire));
  while (link_to(at) != OrderedList::end_link() && at != node) {
    const Link next = at->next(0).load(std::memory_order_acquire);
    if (!is_marked(next) && at->end() > node->begin()) return false;
    at = node_of(next);
  }
  return true;
}

void ListLock::unlock(const RivalToken& token) {
  Node* const node = static_cast<Node*>(token.place);
  rangelock::hook(rangelock::Hook::before_unlock);
  if (head_.load(std::memory_order_relaxed) == (link_to(node) | kMark)) {
    Link expected = link_to(node) | kMark;
    if (head_.compare_exchange_strong(expected, OrderedList::end_link(), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
      token.owner->pool.retire(node);
      return;
    }
  }
  // An atomic read-modify-write: a store would lose a neighbour that is linked at the same time.
  mark(node);
}

}  // namespace sp3::workloads
