#include "workloads/range_locks/combiner.h"

#include "base/assert.h"
#include "emu/spin.h"
#include "rangelock/domain.h"

namespace sp3::workloads {

struct alignas(64) CombinerLock::Request {
  RivalToken* token = nullptr;
  bool lock = false;
  bool done = false;
  std::atomic<bool> wait{false};
  std::atomic<Request*> next{nullptr};
};

CombinerLock::CombinerLock()
    : tail_(new Request), spare_(std::make_unique<Request*[]>(kMostOwners)) {}

CombinerLock::~CombinerLock() {
  delete tail_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kMostOwners; ++i) delete spare_[i];
}

RivalToken CombinerLock::try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
  RivalToken token{.range = {begin, end}, .owner = &owner.core()};
  submit(owner.core().number, token, true);
  return token;
}

RivalToken CombinerLock::try_lock_shared(RangeOwner& owner, std::uint64_t begin,
                                         std::uint64_t end) {
  RivalToken token{.range = {begin, end}, .mode = RangeMode::shared, .owner = &owner.core()};
  submit(owner.core().number, token, true);
  return token;
}

void CombinerLock::unlock(const RivalToken& token) {
  RivalToken copy = token;
  submit(token.owner->number, copy, false);
}

void CombinerLock::serve(Request& request) {
  RivalToken& token = *request.token;
  if (!request.lock) {
    tree_.erase(static_cast<IntervalTree::Node*>(token.place));
  } else if (!tree_.has_conflict(token.range, token.mode)) {
    token.place = tree_.insert(token.range, token.mode);
    token.held = true;
  }
  request.done = true;
}

void CombinerLock::submit(std::uint32_t owner, RivalToken& token, bool lock) {
  SP3_CHECK(owner < kMostOwners);
  if (spare_[owner] == nullptr) spare_[owner] = new Request;
  Request* const next = spare_[owner];
  next->next.store(nullptr, std::memory_order_relaxed);
  next->done = false;
  next->wait.store(true, std::memory_order_relaxed);
  Request* const mine = tail_.exchange(next, std::memory_order_acq_rel);
  mine->token = &token;
  mine->lock = lock;
  mine->next.store(next, std::memory_order_release);
  spare_[owner] = mine;
  // acquire: pairs with the combiner's release below; what it did to token and tree is ours to see.
  for (emu::Spin spin; mine->wait.load(std::memory_order_acquire); spin.pause()) {
  }
  if (mine->done) return;

  constexpr unsigned kServe = 256;
  Request* at = mine;
  for (unsigned served = 0; served < kServe; ++served) {
    Request* const behind = at->next.load(std::memory_order_acquire);
    if (behind == nullptr) break;
    serve(*at);
    at->wait.store(false, std::memory_order_release);
    at = behind;
  }
  at->wait.store(false, std::memory_order_release);  // the next to combine, now or once it comes
}

}  // namespace sp3::workloads
