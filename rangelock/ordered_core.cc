#include "rangelock/ordered_core.h"

#include <bit>

#include "base/atomic.h"
#include "emu/spin.h"
#include "rangelock/fast_path.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

OrderedCore::Shared::~Shared() {
  // relaxed: the destructor is alone.
  for (auto& list : lists) delete list.load(std::memory_order_relaxed);
}

OrderedList& OrderedCore::Shared::list(unsigned length_class) {
  base::Atomic<OrderedList*>& place = lists[length_class];
  OrderedList* list = place.load(std::memory_order_acquire);
  if (list != nullptr) return *list;
  auto made = std::make_unique<OrderedList>(kSharedHeight);
  if (place.compare_exchange_strong(list, made.get(), std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    list = made.release();
  }
  return *list;
}

OrderedCore::~OrderedCore() = default;

// Class k holds lengths in (2^(k-1), 2^k].
unsigned OrderedCore::class_of(const Range& range) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(range.end - range.begin - 1));
  return std::min(width, kClasses - 1);
}

std::uint64_t OrderedCore::reach_of(unsigned length_class) noexcept {
  return length_class == kClasses - 1 ? kRangeMax : std::uint64_t{1} << length_class;
}

void OrderedCore::clear(OwnerCore& owner) noexcept {
  exclusive_.clear(owner.pool);
  for (auto& place : shared_.lists) {
    if (OrderedList* const list = place.load(std::memory_order_relaxed)) list->clear(owner.pool);
  }
}

[[gnu::always_inline]] inline Node* OrderedCore::attempt_exclusive(OwnerCore& owner,
                                                                   const Range& range,
                                                                   Blocker& blocker) {
  // relaxed: a guess, only for the state; a shared range that takes us for held retreats early.
  const NodeState state =
      classes_.load(std::memory_order_relaxed) != 0 ? NodeState::tentative : NodeState::held;
  Node* const node = exclusive_.link_disjoint(owner, range, state, blocker);
  if (node == nullptr) return nullptr;
  hook(Hook::before_resolve);
  // (4) seq_cst, store buffering: we link, then look for shared ranges; attempt_shared sets the
  // class and links, then looks for exclusive ones (5).
  const std::uint64_t classes = classes_.load(std::memory_order_seq_cst);
  if (classes != 0 && !is_clear_of_shared(owner, node, classes, blocker)) [[unlikely]]
    return nullptr;
  exclusive_.build_tower(owner, node);
  return node;
}

// Decides about an exclusive range that is linked. If it has to retreat the result is false.
[[gnu::noinline]] bool OrderedCore::is_clear_of_shared(OwnerCore& owner, Node* node,
                                                       std::uint64_t classes, Blocker& blocker) {
  base::atomic_fence(std::memory_order_seq_cst);
  if (const Node* const reader = find_shared(owner, node->range(), classes)) {
    blocker = reader->as_blocker();
    retreat_unbuilt(node);
    return false;
  }
  // release: a shared range that waits for this decision (5).
  node->state.store(NodeState::held, std::memory_order_release);
  return true;
}

[[gnu::always_inline]] inline Node* OrderedCore::attempt_inline(OwnerCore& owner,
                                                                const Range& range, RangeMode mode,
                                                                Blocker& blocker) {
  const Pin pin(owner, Pin::Keeps::of_then);
  return mode == RangeMode::exclusive ? attempt_exclusive(owner, range, blocker)
                                      : attempt_shared(owner, range, blocker);
}

Node* OrderedCore::attempt(OwnerCore& owner, const Range& range, RangeMode mode, Blocker& blocker) {
  return attempt_inline(owner, range, mode, blocker);
}

Node* OrderedCore::attempt_shared(OwnerCore& owner, const Range& range, Blocker& blocker) {
  // Cheaper than linking and retreating.
  if (const Node* const writer = exclusive_.find_overlap(owner, range, 0);
      writer != nullptr && writer->state.load(std::memory_order_relaxed) == NodeState::held) {
    blocker = writer->as_blocker();
    return nullptr;
  }
  const unsigned length_class = class_of(range);
  OrderedList& list = shared_.list(length_class);
  const std::uint64_t bit = std::uint64_t{1} << length_class;
  // release: the list is made before (4) sees its bit. seq_cst: see (4).
  if ((classes_.load(std::memory_order_seq_cst) & bit) == 0) {
    classes_.fetch_or(bit, std::memory_order_seq_cst);
  }
  Node* const node = list.link_any(owner, range);
  // (5) seq_cst, store buffering: pairs with (4).
  base::atomic_fence(std::memory_order_seq_cst);
  constexpr std::uint32_t kPatience = 1000;  // then it has lost its core, and we fail without need
  for (emu::Spin spin;; spin.pause()) {
    const Node* const writer = exclusive_.find_overlap(owner, range, 0);
    if (writer == nullptr) break;
    if (writer->state.load(std::memory_order_acquire) == NodeState::held ||
        spin.rounds() > kPatience) {
      blocker = writer->as_blocker();
      retreat_unbuilt(node);
      return nullptr;
    }
  }
  list.build_tower(owner, node);
  return node;
}

// Not inline, so that an unlock that only marks saves no registers; whatever it calls is, so that
// registers are saved once (0021).
[[gnu::noinline, gnu::flatten]] void OrderedCore::release_elsewhere(OwnerCore& owner,
                                                                    Node* node) noexcept {
  const Range range = node->range();
  OrderedList& list =
      node->mode == RangeMode::exclusive ? exclusive_ : shared_.list_of(class_of(range));
  list.release(owner, node);
  queue_.released(range);
}

// As retreat, for a node that has no tower yet.
void OrderedCore::retreat_unbuilt(Node* node) noexcept {
  const Blocker seen = node->as_blocker();
  OrderedList::retreat(node);
  queue_.retreated(seen);
}

Node* OrderedCore::find_shared(OwnerCore& owner, const Range& range, std::uint64_t classes) {
  for (; classes != 0; classes &= classes - 1) {
    const auto length_class = static_cast<unsigned>(std::countr_zero(classes));
    OrderedList& list = shared_.list_of(length_class);
    if (list.is_empty()) continue;
    if (Node* const node = list.find_overlap(owner, range, reach_of(length_class))) return node;
  }
  return nullptr;
}

bool OrderedCore::find_conflict(OwnerCore& owner, const Range& range, RangeMode mode,
                                Blocker& blocker) {
  const Pin pin(owner, Pin::Keeps::of_then);
  // seq_cst fence, store buffering: callers have announced themselves elsewhere (grid_core.cc).
  base::atomic_fence(std::memory_order_seq_cst);
  const Node* node = exclusive_.find_overlap(owner, range, 0);
  if (node == nullptr && mode == RangeMode::exclusive) {
    node = find_shared(owner, range, classes_.load(std::memory_order_seq_cst));
  }
  if (node == nullptr) return false;
  blocker = node->as_blocker();
  return true;
}

void OrderedCore::list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const {
  const auto add = [&](const Node& node) {
    // relaxed: whoever knows of an acquisition that has returned sees its decision.
    if (node.state.load(std::memory_order_relaxed) == NodeState::tentative) return;
    node.look_at_plain_part();
    holders.push_back({node.range(), node.mode, owner.domain.token_of(node.owner)});
  };
  const Pin pin(owner, Pin::Keeps::all);
  exclusive_.for_each(add);
  for (const auto& place : shared_.lists) {
    if (const OrderedList* const list = place.load(std::memory_order_acquire)) list->for_each(add);
  }
}

}  // namespace sp3::rangelock

namespace sp3 {

// --- the public interface ------------------------------------------------------------------------

using rangelock::Node;

SkiplistRangeLock::SkiplistRangeLock(const RangeLockOptions& options)
    : BlockingRangeLock(options),
      core_(std::make_unique<rangelock::OrderedCore>(options.max_height, queue())) {}

SkiplistRangeLock::~SkiplistRangeLock() {
  check_idle();
  const rangelock::Guest guest(domain());
  core_->clear(guest.core());
}

bool SkiplistRangeLock::attempt(rangelock::Claim& claim, rangelock::Blocker& blocker) {
  const Node* const node = core_->attempt(*claim.owner, claim.range, claim.mode, blocker);
  claim.place = rangelock::link_to(node);
  return node != nullptr;
}

void SkiplistRangeLock::try_fill(RangeHandle& handle) {
  try_fill_by(
      handle, [&](rangelock::Claim & claim) __attribute__((always_inline)) {
        rangelock::Blocker blocker;
        const Node* const node =
            core_->attempt_inline(*claim.owner, claim.range, claim.mode, blocker);
        claim.place = rangelock::link_to(node);
        return node != nullptr;
      });
}

void SkiplistRangeLock::release_handle(RangeHandle& handle) {
  if (!release_at_once(
          handle, [](const rangelock::Claim&) { return true; },
          [this](rangelock::OwnerCore& owner, std::uintptr_t place, Range) {
            core_->release(owner, rangelock::unmarked_node_of(place));
          })) [[unlikely]]
    release_slowly(handle);
}

[[gnu::noinline]] void SkiplistRangeLock::release_slowly(RangeHandle& handle) {
  release_by(handle, [this](const rangelock::Claim& claim) {
    core_->release(*claim.owner, rangelock::unmarked_node_of(claim.place));
  });
}

// Shared ranges only look at what exclusive ones link to.
void SkiplistRangeLock::ask_ahead(std::span<const Range> ranges, RangeMode mode) const noexcept {
  if (mode == RangeMode::exclusive) core_->exclusive().ask_ahead(ranges);
}

void SkiplistRangeLock::ask_ahead(std::span<const RangeHandle> handles) const noexcept {
  for (const RangeHandle& handle : handles) {
    if (handle && handle.mode() == RangeMode::exclusive) {
      core_->exclusive().ask_ahead(handle.range().begin);
    }
  }
}

void SkiplistRangeLock::list_holders(std::vector<RangeHolder>& holders) const {
  const rangelock::Guest guest(domain());
  core_->list_holders(guest.core(), holders);
}

}  // namespace sp3
