#include "rangelock/domain.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/plain_access.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

NodePool::NodePool(Domain& domain) : domain_(domain) {
  domain.reserve_batches(domain.pools_ + 1, domain.chunks_.size());
  ++domain.pools_;
}

NodePool::~NodePool() {
  give_back();
  const std::lock_guard hold(domain_.mutex_);
  if (spare_ != nullptr) domain_.empty_.push(*spare_);
  --domain_.pools_;
}

void NodePool::give_back() noexcept {
  const std::lock_guard hold(domain_.mutex_);
  for (const bool tall : {false, true}) domain_.adopt(tall, *this);
}

[[gnu::noinline]] Node* NodePool::take_tall() { return take<true>(); }
[[gnu::noinline]] void NodePool::note_tall(Node* node) noexcept { note<true>(node); }

void NodePool::refill(bool tall) {
  hook(Hook::before_refill);
  NodeBatch& free = free_[tall];
  // Own limbo first: the working set stays small, and in this core's cache.
  if (more_[tall].is_empty()) reclaim(tall);
  if (more_[tall].is_empty()) {
    domain_.take(tall, free);
  } else {
    NodeBatch& batch = more_[tall].pop();
    free.fill_from(batch);
    if (spare_ != nullptr) domain_.give_empty(*spare_);
    spare_ = &batch;
  }
  free.forget_eras();
  for (std::size_t i = 1; i <= std::min(kAhead, free.size); ++i) {
    base::prefetch_for_write(free.nodes[free.size - i]);
  }
}

void NodePool::turn(bool tall) noexcept {
  retired_[tall].retired = domain_.eras().retire();
  limbo_[tall].add(batch_of(retired_[tall]));
  reclaim(tall);
}

void NodePool::reclaim(bool tall) noexcept {
  BatchStack& more = more_[tall];
  limbo_[tall].release_to(more, domain_.eras());
  if (more.size() > kSurplus) domain_.give(tall, more.cut_below(kSurplus));
}

// All that is in it, so that it is empty.
NodeBatch& NodePool::batch_of(NodeBatch& full) noexcept {
  NodeBatch& batch = spare_ != nullptr ? *std::exchange(spare_, nullptr) : domain_.take_empty();
  batch.fill_from(full);
  return batch;
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

void Domain::take(bool tall, NodeBatch& into) {
  const std::lock_guard hold(mutex_);
  if (depot_[tall].is_empty()) release_orphans(tall);
  if (!depot_[tall].is_empty()) {
    NodeBatch& batch = depot_[tall].pop();
    into.fill_from(batch);
    return empty_.push(batch);
  }
  if (!free_rest_[tall].is_empty()) return into.fill_from(free_rest_[tall]);

  reserve_batches(pools_, chunks_.size() + 1);
  const std::size_t each = rangelock::node_bytes(tall);
  const std::size_t nodes = tall ? NodeBatch::kMost / 8 : NodeBatch::kMost;
  const std::align_val_t alignment{base::kCacheLine};
  std::unique_ptr<std::byte, Free> chunk(
      static_cast<std::byte*>(::operator new[](nodes* each, alignment)));
  std::byte* const bytes = chunk.get();
  chunks_.push_back(std::move(chunk));
  bytes_ += nodes * each;
  base::fresh_memory(bytes, nodes * each);
  for (std::size_t i = nodes; i-- > 0;) into.push(::new (bytes + i * each) Node);
}

void Domain::give(bool tall, BatchStack&& batches) noexcept {
  const std::lock_guard hold(mutex_);
  depot_[tall].push_all(std::move(batches));
}

NodeBatch& Domain::take_empty() noexcept {
  const std::lock_guard hold(mutex_);
  return empty_.pop();
}

void Domain::give_empty(NodeBatch& batch) noexcept {
  const std::lock_guard hold(mutex_);
  empty_.push(batch);
}

// See the head of domain.h.
void Domain::reserve_batches(std::size_t pools, std::size_t chunks) {
  while (batches_.size() < pools + chunks) {
    batches_.push_back(std::make_unique<NodeBatch>());
    empty_.push(*batches_.back());
  }
}

template <class Out>
void Domain::merge(NodeBatch& rest, NodeBatch& from, Out&& out) noexcept {
  rest.fill_from(from);
  if (!rest.is_full()) return;
  NodeBatch& batch = empty_.pop();
  batch.fill_from(rest);
  out(batch);
  rest.fill_from(from);
}

// Leaves the pool without nodes.
void Domain::adopt(bool tall, NodePool& pool) noexcept {
  const auto to_depot = [&](NodeBatch& batch) { depot_[tall].push(batch); };
  depot_[tall].push_all(std::move(pool.more_[tall]));
  merge(free_rest_[tall], pool.free_[tall], to_depot);
  orphans_[tall].add_all(pool.limbo_[tall]);
  NodeBatch& retired = pool.retired_[tall];
  if (retired.is_empty()) return;
  retired.retired = eras_.retire();
  merge(retired_rest_[tall], retired, [&](NodeBatch& batch) { orphans_[tall].add(batch); });
}

void Domain::release_orphans(bool tall) noexcept {
  orphans_[tall].release_to(depot_[tall], eras_);
  NodeBatch& rest = retired_rest_[tall];
  const bool is_kept = eras_.announced().any_of([&](std::uint64_t announcement) {
    return Eras::keeps(announcement, rest.born, rest.retired);
  });
  if (is_kept) return;
  merge(free_rest_[tall], rest, [&](NodeBatch& batch) { depot_[tall].push(batch); });
}

}  // namespace sp3::rangelock
