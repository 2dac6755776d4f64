#include "runtime/version_pool.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace sp3::runtime {

namespace {
std::byte* allocate_aligned(std::size_t bytes) {
  auto* block = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
}  // namespace

void VersionDepot::Free::operator()(std::byte* p) const noexcept { std::free(p); }

VersionDepot::Batch VersionDepot::take(std::size_t lines) {
  const std::lock_guard guard(mutex_);
  if (!batches_[lines].empty()) {
    Batch batch = std::move(batches_[lines].back());
    batches_[lines].pop_back();
    return batch;
  }
  const std::size_t bytes = kBatch * lines * 64;
  Batch batch;
  batch.reserve(2 * kBatch);
  std::unique_ptr<std::byte, Free> chunk(allocate_aligned(bytes));
  chunks_.push_back(std::move(chunk));  // which frees it if there is no memory to keep it
  VersionGuard::note_new(chunks_.back().get(), bytes);
  bytes_ += bytes;
  // From the end, so that blocks are handed out in ascending order.
  for (std::size_t i = kBatch; i-- > 0;) batch.push_back(chunks_.back().get() + i * lines * 64);
  return batch;
}

void VersionDepot::give(std::size_t lines, Batch batch) noexcept try {
  const std::lock_guard guard(mutex_);
  batches_[lines].push_back(std::move(batch));
} catch (const std::bad_alloc&) {
  // Lost to everybody until the depot goes, whose chunks they are.
}

std::byte* VersionDepot::allocate_large(std::size_t bytes) {
  std::byte* block = allocate_aligned(bytes);
  base::fresh_memory(block, bytes);
  large_bytes_.fetch_add(bytes, std::memory_order_relaxed);  // relaxed: a statistic
  return block;
}

void VersionDepot::free_large(std::byte* block, std::size_t bytes) noexcept {
  base::plain_write(block, bytes);
  std::free(block);
  large_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

std::uint64_t VersionDepot::bytes() const {
  const std::lock_guard guard(mutex_);
  return bytes_ + large_bytes_.load(std::memory_order_relaxed);
}

VersionPool::~VersionPool() {
  SP3_ASSERT(retired_.empty());
  for (std::size_t lines = 1; lines <= kPooledLines; ++lines) {
    if (!free_[lines].empty()) depot_.give(lines, std::move(free_[lines]));
  }
}

std::byte* VersionPool::allocate_slowly(std::size_t lines) {
  if (lines > kPooledLines) return depot_.allocate_large(lines * 64);
  if (!retired_.empty()) collect_now();
  if (free_[lines].empty()) free_[lines] = depot_.take(lines);
  return take_free(lines * 64);
}

void VersionPool::free(std::byte* block, std::size_t bytes) noexcept {
  const std::size_t lines = lines_of(bytes);
  if (lines > kPooledLines) {
    depot_.free_large(block, lines * 64);
  } else {
    put_free(lines, block);
  }
}

// False if there is no memory.
bool VersionPool::make_room(std::vector<std::byte*>& free, std::size_t lines) noexcept try {
  constexpr std::size_t kMost = 2 * VersionDepot::kBatch;
  if (free.size() >= kMost) {
    // The older half goes; what was freed last is still in the cache.
    VersionDepot::Batch batch;
    batch.reserve(kMost);
    batch.assign(free.begin(), free.begin() + VersionDepot::kBatch);
    depot_.give(lines, std::move(batch));
    free.erase(free.begin(), free.begin() + VersionDepot::kBatch);
  }
  free.reserve(kMost);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void VersionPool::collect_now() {
  epochs_.try_advance();
  const auto now = epochs_.current();
  std::size_t old = 0;
  for (; old < retired_.size() && epochs_.may_free(retired_[old].epoch, now); ++old) {
    retired_bytes_ -= retired_[old].bytes;
    free(retired_[old].block, retired_[old].bytes);
  }
  retired_.drop_front(old);
  collect_at_ = std::max(collect_at(), retired_.size() + collect_again_at());
}

void VersionPool::free_all() {
  for (const Retired& r : retired_) free(r.block, r.bytes);
  retired_.clear();
  retired_bytes_ = 0;
}

void VersionPool::bequeath(VersionPool& heir) noexcept {
  // Restamped, the heir's list stays in order.
  const auto now = epochs_.retirement_epoch();
  try {
    heir.prepare_to_retire(retired_.size());
    for (const Retired& r : retired_) heir.retire(r.block, r.bytes, now);
  } catch (const std::bad_alloc&) {
  }
  retired_.clear();
  retired_bytes_ = 0;
}

}  // namespace sp3::runtime
