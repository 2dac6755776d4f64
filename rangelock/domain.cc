#include "rangelock/domain.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/plain_access.h"
#include "base/prefetch.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

RetiredChain NodePool::Unlinked::chain(Eras& eras) noexcept {
  if (size == 0) return {};
  for (std::size_t i = 0; i < size; ++i) base::prefetch_for_write(nodes[i]);
  RetiredChain chain{.nodes = {}, .born = ~Era{0}, .retired = eras.retire()};
  for (std::size_t i = 0; i < size; ++i) {
    chain.born = std::min(chain.born, nodes[i]->born);
    chain.nodes.push(nodes[i]);
  }
  size = 0;
  return chain;
}

void NodePool::give_back() noexcept {
  for (const bool tall : {false, true}) {
    limbo_[tall].add(retired_[tall].chain(domain_.eras()));
    domain_.adopt(tall, limbo_[tall]);
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
  hook(Hook::before_refill);
  // Own limbo first: the working set stays small, and in this core's cache.
  if (more_[tall].empty()) reclaim(tall);
  free_[tall] = (more_[tall].empty() ? domain_.take(tall) : more_[tall].pop()).first;
}

void NodePool::turn(bool tall) noexcept {
  limbo_[tall].add(retired_[tall].chain(domain_.eras()));
  reclaim(tall);
}

void NodePool::reclaim(bool tall) noexcept {
  NodeBatches& more = more_[tall];
  limbo_[tall].release_to(more, domain_.eras());
  if (more.size() > kSurplus) domain_.give(tall, more, more.size() - kSurplus);
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

// Number 0 is the guest's: whoever reclaims looks at all numbers up to the highest one in use.
Domain::Domain(std::size_t owners)
    : eras_(checked_owners(owners) + 1), owners_(owners + 1), guest_(*this, 0, 0) {
  owners_[0] = &guest_;
  eras_.admit(0);
}

Domain::~Domain() { SP3_CHECK(live_owners_ == 0); }

std::unique_ptr<OwnerCore> Domain::admit(std::uint64_t token) {
  const std::lock_guard hold(mutex_);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i] != nullptr) continue;
    auto owner = std::make_unique<OwnerCore>(*this, static_cast<std::uint32_t>(i), token);
    owners_[i] = owner.get();
    ++live_owners_;
    eras_.admit(i);
    return owner;
  }
  throw Error(ErrorCode::invalid_argument, "a range-lock domain has no room for another owner",
              {.wanted = "fewer owners at a time, or a RangeLockDomain of more",
               .found = std::to_string(owners_.size() - 1) + " owners"});
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
  if (depot_[tall].empty()) orphans_[tall].release_to(depot_[tall], eras_);
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
  base::fresh_memory(bytes, nodes * each);
  for (std::size_t i = nodes; i-- > 0;) chain.push(::new (bytes + i * each) Node);
  return chain;
}

void Domain::give(bool tall, NodeBatches& batches, std::size_t count) noexcept {
  const std::lock_guard hold(mutex_);
  depot_[tall].push_oldest(batches, count);
}

void Domain::adopt(bool tall, Limbo& limbo) noexcept {
  const std::lock_guard hold(mutex_);
  orphans_[tall].add_all(limbo);
}

}  // namespace sp3::rangelock
