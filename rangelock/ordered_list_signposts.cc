// What keeps an ordered list's signposts where they are of use: they are removed, and move closer
// to each other and apart. Searches from them, and their planting, are in ordered_list.cc.
#include <memory>
#include <new>

#include "base/prefetch.h"
#include "rangelock/hook.h"
#include "rangelock/ordered_list.h"

namespace sp3::rangelock {

namespace {

// How often, one time in 2^bits, what calls for another distance changes it.
constexpr unsigned kMoveCloser = 4;
constexpr unsigned kMoveApart = 3;
// Acquisitions of an owner from one meeting to the next, below which it meets others too often.
constexpr std::uint64_t kOften = 32;
// More than about a tenth of the searches.
constexpr std::uint32_t kManyMisses = 32;

}  // namespace

// Removes the signposts inside the range, from `first` on; unless a held range is in its way behind
// them: then that is the result. Ends early at a marked link if what it reached is not kept: that
// may lead round in a circle, which has such a link.
const Node* OrderedList::make_way(OwnerCore& owner, Node* first, const Range& range) noexcept {
  const auto next_of = [](const Node* node) {
    return node->next(0).load(std::memory_order_acquire);
  };
  for (const Node* node = first; node->begin() < range.end;) {
    const Link next = next_of(node);
    if (is_marked(next)) {
      if (!owner.participant.keeps_what_it_reached()) return nullptr;
    } else if (!is_signpost(*node)) {
      return node;
    }
    node = node_of(next);
  }
  Signposts& signposts = *signposts_.load(std::memory_order_acquire);
  for (Node* node = first; node->begin() < range.end; node = node_of(next_of(node))) {
    if (is_marked(next_of(node))) {
      if (!owner.participant.keeps_what_it_reached()) return nullptr;
      continue;
    }
    if (!is_signpost(*node)) break;  // it has just come; the next search finds it
    remove(owner, signposts, node);
  }
  if (owner.draws_one_in_2_to(kMoveApart)) signposts.move_apart();
  return nullptr;
}

// Unless the node may have been used again since it was reached.
void OrderedList::remove(OwnerCore& owner, Signposts& signposts, Node* signpost) noexcept {
  hook(Hook::before_removal);
  if (!owner.participant.keeps_what_it_reached()) return;
  signposts.withdraw(signpost);
  hook(Hook::signpost_withdrawn);
  mark(signpost);
}

// Makes room in the table. What is at a place where none would be planted now is left from when
// they were closer to each other; otherwise there are more places than the table has entries.
void OrderedList::replace(OwnerCore& owner, Signposts& signposts, std::uint64_t place) noexcept {
  Node* const other = signposts.occupant(place);
  if (other == nullptr) return;
  if (signposts.is_place(other->begin()) && owner.draws_one_in_2_to(kMoveApart))
    signposts.move_apart();
  remove(owner, signposts, other);
}

// Of the nodes that a walk from there passes, removes the signposts at places where none would be
// planted now. Returns whether there were any.
bool OrderedList::remove_stale(OwnerCore& owner, Signposts& signposts, Node* from) noexcept {
  bool any = false;
  Node* node = from;
  for (unsigned i = 0; i <= kShortWalk && node != &end_.node; ++i) {
    const Link next = node->next(0).load(std::memory_order_acquire);
    if (!is_marked(next) && is_signpost(*node) && !signposts.is_place(node->begin())) {
      remove(owner, signposts, node);
      any = true;
    }
    node = node_of(next);
  }
  return any;
}

// Not while signposts are missed often: there are about as many places as the table can hold.
void OrderedList::move_closer(OwnerCore& owner, Signposts& signposts, const Range& range) noexcept {
  if (!owner.draws_one_in_2_to(kMoveCloser)) return;
  if (owner.misses < kManyMisses) signposts.move_closer(range);
}

// An acquisition has found another link than the one that it was about to replace. If that leads to
// a range far from its own, the two shall not meet again.
void OrderedList::note_meeting(OwnerCore& owner, const Range& range, Link found) noexcept {
  if (is_marked(found)) return;  // pred was unlocked
  const Node& winner = *unmarked_node_of(found);
  if (is_signpost(winner) || &winner == &end_.node ||
      Signposts::are_neighbours(range, winner.range())) {
    return;
  }
  const std::uint64_t now = owner.acquired.get();
  const bool often = now - owner.last_meeting < kOften;
  owner.last_meeting = now;
  Signposts* signposts = signposts_.load(std::memory_order_acquire);
  if (signposts != nullptr) {
    if (often) move_closer(owner, *signposts, range);
    return;
  }
  std::unique_ptr<Signposts> made(new (std::nothrow) Signposts(range));
  // release: the table is made before link() and find_overlap() find it. Without memory it goes
  // without.
  if (made != nullptr &&
      signposts_.compare_exchange_strong(signposts, made.get(), std::memory_order_release,
                                         std::memory_order_relaxed)) {
    static_cast<void>(made.release());  // the list has it
  }
}

// No pin, here and in the next two: nothing that is read is relied on, and memory for nodes stays
// theirs.
inline const Node* OrderedList::signpost_near(std::uint64_t address) const noexcept {
  const Signposts* const signposts = signposts_.load(std::memory_order_acquire);
  return signposts == nullptr ? nullptr : signposts->occupant(signposts->place_before(address));
}

void OrderedList::ask_ahead(std::uint64_t address) const noexcept {
  if (const Node* const signpost = signpost_near(address)) base::prefetch_for_write(signpost);
}

// No further: where ranges lie so densely that a search passes several, to follow them here takes
// as long as there.
void OrderedList::ask_ahead(std::span<const Range> ranges) const noexcept {
  for (const Range& range : ranges) ask_ahead(range.begin);
  for (const Range& range : ranges) {
    const Node* const signpost = signpost_near(range.begin);
    if (signpost != nullptr) {
      __builtin_prefetch(node_of(signpost->next(0).load(std::memory_order_relaxed)));
    }
  }
}

void OrderedList::release(OwnerCore& owner, Node* node) noexcept {
  const Signposts* const signposts = signposts_.load(std::memory_order_acquire);
  // An unlock waits for nobody, so it does not pass on what it has retired.
  if (signposts == nullptr || node->height != 1 || !owner.pool.retires_at_once()) return mark(node);
  release_nearby(owner, *signposts, node);
}

// Whoever comes next would have to take its line from us to pass the node. That it is linked
// directly behind the signpost is what makes this cheap: to search for its predecessor is not.
void OrderedList::release_nearby(OwnerCore& owner, const Signposts& signposts,
                                 Node* node) noexcept {
  const Pin pin(owner, Pin::Keeps::of_then);  // once it is marked it may be anybody's
  hook(Hook::unlocking_nearby);
  Node* const signpost = signposts.find(signposts.place_before(node->begin()));
  const Link succ = mark_bottom(node);
  hook(Hook::unlocked_nearby);
  Link expected = link_to(node);
  if (signpost != nullptr && owner.participant.keeps_what_it_reached() &&
      signpost->next(0).load(std::memory_order_relaxed) == expected &&
      signpost->next(0).compare_exchange_strong(expected, succ, std::memory_order_acq_rel,
                                                std::memory_order_relaxed)) {
    owner.pool.retire(node);
  }
}

}  // namespace sp3::rangelock
