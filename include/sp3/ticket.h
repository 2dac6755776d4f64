// Ticket: the promise that an asynchronous transaction will be durable.
//
// Thread safety: one thread at a time; a ticket may be moved to, and waited for on, any thread.
// Lifetime: outlives its session. It must not be waited for while its pool is being closed by
//   another thread; after that the outcome is known: wait() returns at once, or throws
//   outcome_unknown if the pool had failed.
#pragma once

#include <cstdint>
#include <utility>

#include <sp3/detail/core.h>
#include <sp3/detail/export.h>

namespace sp3 {

// A ticket need not be waited for: [[maybe_unused]].
class [[maybe_unused]] SP3_API Ticket {
 public:
  Ticket() noexcept = default;
  Ticket(Ticket&& other) noexcept
      : mark_(std::exchange(other.mark_, nullptr)),
        generation_(other.generation_),
        stamp_(other.stamp_) {}
  Ticket& operator=(Ticket&& other) noexcept {
    mark_ = std::exchange(other.mark_, nullptr);
    generation_ = other.generation_;
    stamp_ = other.stamp_;
    return *this;
  }

  // Returns when the transaction, and every transaction it depends on, is durable; flushes for
  // others while it waits. A ticket is waited for once.
  // Errors: ticket_spent (waited for before, moved from, or empty); outcome_unknown (the pool was
  // poisoned before the transaction was known to be durable); forked; std::bad_alloc, after which
  // it may be waited for again.
  void wait();

  // Whether it is known that the transaction is durable: then wait() returns at once. Never blocks.
  // False for a spent ticket, and for ever if the pool failed before: wait() says so.
  [[nodiscard]] bool ready() const noexcept;

  // Whether wait() may still be called.
  [[nodiscard]] bool valid() const noexcept { return mark_ != nullptr; }

 private:
  friend class Session;
  Ticket(const runtime::CommitMark& mark, std::uint64_t generation, std::uint64_t stamp) noexcept
      : mark_(&mark), generation_(generation), stamp_(stamp) {}
  void wait_once() const;

  const runtime::CommitMark* mark_ = nullptr;  // never freed
  std::uint64_t generation_ = 0;               // of the mark: which pool, among those that used it
  std::uint64_t stamp_ = 0;  // 0: read-only, nothing to wait for beyond what run_async already did
};

}  // namespace sp3
