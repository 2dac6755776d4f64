#include "rangelock/domain.h"

#include <new>
#include <utility>

#include "base/prefetch.h"

namespace sp3::rangelock {

NodeChain NodePool::Unlinked::chain() noexcept {
  for (std::size_t i = 0; i < size; ++i) base::prefetch_for_write(nodes[i]);
  NodeChain chain;
  for (std::size_t i = 0; i < size; ++i) chain.push(nodes[i]);
  size = 0;
  return chain;
}

void NodePool::give_back() noexcept {
  for (const bool tall : {false, true}) {
    newest_->batches[tall].push(retired_[tall].chain());
    for (Bag& bag : limbo_) {
      domain_.adopt(tall, bag.batches[tall]);
      bag.epoch = 0;
    }
    NodeChain rest;
    while (free_[tall] != nullptr) {
      rest.push(std::exchange(free_[tall], free_[tall]->pool_next));
      if (rest.size == kBatch) more_[tall].push(rest);  // whoever takes one needs no more
    }
    more_[tall].push(rest);
    domain_.give(tall, more_[tall], more_[tall].size());
  }
}

void NodePool::refill(bool tall) {
  // Own limbo first: the working set stays small, and in this core's cache.
  if (more_[tall].empty()) {
    for (Bag& bag : limbo_) {
      if (bag.epoch != 0 && bag.epoch + 2 <= domain_.epochs().current()) empty(bag);
    }
  }
  free_[tall] = (more_[tall].empty() ? domain_.take(tall) : more_[tall].pop()).first;
}

// Puts the batch into the newest bag, closes that and opens the next. If even the oldest is still
// watched, the newest just grows: a pinned thread that does not run holds up memory, not us.
void NodePool::turn(bool tall) noexcept {
  base::EpochDomain& epochs = domain_.epochs();
  newest_->batches[tall].push(retired_[tall].chain());
  epochs.try_advance();
  Bag* const oldest = newest_ == &limbo_.back() ? limbo_.data() : newest_ + 1;
  if (oldest->epoch != 0 && oldest->epoch + 2 > epochs.current()) return;
  empty(*oldest);
  newest_->epoch = epochs.retirement_epoch();  // not before the last node in it was unlinked
  newest_ = oldest;
}

void NodePool::empty(Bag& bag) noexcept {
  for (const bool tall : {false, true}) {
    NodeBatches& more = more_[tall];
    more.push_all(bag.batches[tall]);
    if (more.size() > kSurplus) domain_.give(tall, more, more.size() - kSurplus);
  }
  bag.epoch = 0;
}

namespace {
// Before anything of that size is allocated.
std::size_t checked_owners(std::size_t owners) {
  if (owners >= 1 && owners <= Domain::kMaxOwners) return owners;
  throw Error(
      ErrorCode::invalid_argument, "the owners of a range-lock domain",
      {.wanted = "1 to " + std::to_string(Domain::kMaxOwners), .found = std::to_string(owners)});
}
}  // namespace

void Domain::Free::operator()(std::byte* bytes) const noexcept {
  ::operator delete[](bytes, std::align_val_t{base::kCacheLine});
}

// Number 0 is the guest's: epochs look at all numbers up to the highest one in use.
Domain::Domain(std::size_t owners)
    : epochs_(checked_owners(owners) + 1), owners_(owners + 1), guest_(*this, 0, 0) {
  owners_[0] = &guest_;
  epochs_.admit(0);
}

Domain::~Domain() { SP3_CHECK(live_owners_ == 0); }

std::unique_ptr<OwnerCore> Domain::admit(std::uint64_t token) {
  const std::lock_guard hold(mutex_);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i] != nullptr) continue;
    auto owner = std::make_unique<OwnerCore>(*this, static_cast<std::uint32_t>(i), token);
    owners_[i] = owner.get();
    ++live_owners_;
    epochs_.admit(i);
    return owner;
  }
  throw Error(ErrorCode::invalid_argument, "a range-lock domain has no room for another owner",
              {.found = std::to_string(owners_.size() - 1) + " owners"});
}

void Domain::dismiss(OwnerCore& owner) noexcept {
  const std::lock_guard hold(mutex_);
  owners_[owner.number] = nullptr;
  --live_owners_;
}

std::uint64_t Domain::token_of(std::uint32_t number) const {
  const std::lock_guard hold(mutex_);
  // relaxed: a token changed meanwhile is reported old or new.
  const OwnerCore* const owner = number < owners_.size() ? owners_[number] : nullptr;
  return owner == nullptr ? 0 : owner->token.load(std::memory_order_relaxed);
}

std::uint64_t Domain::node_bytes() const {
  const std::lock_guard hold(mutex_);
  return bytes_;
}

std::size_t Domain::owners() const {
  const std::lock_guard hold(mutex_);
  return live_owners_;
}

NodeChain Domain::take(bool tall) {
  const std::lock_guard hold(mutex_);
  if (orphans_.newest != 0) epochs_.try_advance();
  if (orphans_.newest != 0 && orphans_.newest + 2 <= epochs_.current()) {
    for (const bool each : {false, true}) {
      depot_[each].push_all(orphans_.nodes[each]);
      orphans_.nodes[each].push_all(later_orphans_.nodes[each]);
    }
    orphans_.newest = std::exchange(later_orphans_.newest, 0);
  }
  if (!depot_[tall].empty()) return depot_[tall].pop();

  const std::size_t each = rangelock::node_bytes(tall);
  const std::size_t nodes = tall ? kBatch / 8 : kBatch;
  const std::align_val_t alignment{base::kCacheLine};
  std::unique_ptr<std::byte, Free> chunk(
      static_cast<std::byte*>(::operator new[](nodes* each, alignment)));
  std::byte* const bytes = chunk.get();
  chunks_.push_back(std::move(chunk));
  bytes_ += nodes * each;
  NodeChain chain;
  for (std::size_t i = nodes; i-- > 0;) chain.push(::new (bytes + i * each) Node);
  return chain;
}

void Domain::give(bool tall, NodeBatches& batches, std::size_t count) noexcept {
  const std::lock_guard hold(mutex_);
  depot_[tall].push_oldest(batches, count);
}

void Domain::adopt(bool tall, NodeBatches& batches) noexcept {
  if (batches.empty()) return;
  const std::lock_guard hold(mutex_);
  Orphans& orphans = orphans_.newest == 0 ? orphans_ : later_orphans_;
  orphans.nodes[tall].push_all(batches);
  orphans.newest = epochs_.retirement_epoch();
}

}  // namespace sp3::rangelock
