// Ticket: the promise that an asynchronous transaction will be durable.
//
// Thread safety: one thread at a time; a ticket may be moved to, and waited for on, any thread.
// Lifetime: outlives its session. It must not be waited for while its pool is being closed by
//   another thread; after the pool is closed the outcome is known and wait() returns at once.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <sp3/detail/core.h>

namespace sp3 {

class Ticket {
 public:
  Ticket() noexcept = default;
  Ticket(Ticket&&) noexcept = default;
  Ticket& operator=(Ticket&&) noexcept = default;

  // Returns when the transaction, and every transaction it depends on, is durable; flushes for
  // others while it waits. A ticket is waited for once.
  // Errors: ticket_spent (waited for before, moved from, or empty); outcome_unknown (the pool was
  // poisoned before the transaction was known to be durable); forked.
  void wait();

  // Whether wait() would return at once. Never blocks. False for a spent ticket.
  [[nodiscard]] bool ready() const noexcept;

  // Whether wait() may still be called.
  [[nodiscard]] bool valid() const noexcept { return session_ != nullptr; }

 private:
  friend class Session;
  Ticket(std::shared_ptr<runtime::SessionShared> session, std::uint64_t stamp) noexcept
      : session_(std::move(session)), stamp_(stamp) {}

  std::shared_ptr<runtime::SessionShared> session_;
  std::uint64_t stamp_ = 0;  // 0: read-only, nothing to wait for beyond what run_async already did
};

}  // namespace sp3
