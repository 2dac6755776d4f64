// Session: one thread's way into a pool. It owns a log and a space of transaction IDs.
//
// Thread safety: one thread at a time (it may move between threads). Use by two at once is mostly
//   refused (session_busy), but not for certain, which would cost each transaction a locked
//   instruction: it may hang or crash the process, write what neither meant to, and leave a log
//   that the next open refuses (damaged_log; RecoveryOptions::accept_loss gives up what hangs on
//   the session). Different sessions of a pool run in parallel.
// Ownership: a session keeps its pool's core alive, but the pool can only be closed when all its
//   sessions are.
// Memory: what the largest transaction took in DRAM for lists of what it read and wrote, one to two
//   hundred bytes for each object written, serves later ones until the session is closed. Whether a
//   transaction is too large is found out when its body has returned.
// Progress: a transaction is run again, after a random pause, if it conflicts with another, or if
//   another session was opened while it ran in the only one. After Options::serial_after_aborts
//   attempts it takes the serial gate: new attempts of others wait, at first for 50 ms at most,
//   later for up to 3.2 s (docs/CONCURRENCY.md). Who finds no space in the log waits for a
//   checkpoint, which waits for every body that runs, and is passed by few who ask later.
// Cancellation (pthread_cancel, of deferred type): no function of the library is a cancellation
//   point. A thread is cancelled in the program's own code; in a body that aborts the transaction,
//   as pthread_exit does. What RecoveryOptions has called runs with cancellation disabled.
// Nesting: inside a body another pool may be used; all threads must nest pools in the same order.
// Source: paper section III-B; design choices in docs/COMMIT_PROTOCOL.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <sp3/detail/core.h>
#include <sp3/detail/export.h>
#include <sp3/statistics.h>
#include <sp3/ticket.h>
#include <sp3/transaction.h>

namespace sp3 {

// What may be run as a transaction. Not noexcept: a conflict leaves the body by an exception. What
// the body's own objects do when they are destroyed must not use the transaction: it may have ended.
template <class F>
concept TransactionBody =
    std::is_invocable_v<F&, Transaction&> && !std::is_nothrow_invocable_v<F&, Transaction&>;

class SP3_API Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Closes the session. If that fails the pool is poisoned, which Pool::close() will say. Inside
  // its own transaction, or while another thread runs one, it cannot be closed: then the pool goes
  // on counting it as open.
  ~Session();

  // Runs `body(tx)` as a transaction, again after conflicts, and returns what it returned.
  // On return the transaction and every transaction it depends on are durable (per the pool's
  // MemoryKind). An exception of `body` aborts the transaction and is rethrown; so does the end of
  // the thread inside it, except that where a handler of an exception has called run(), C++ ends
  // the process. The result is moved (or else copied) twice: inside the transaction, which what its
  // constructor throws then aborts; and to the caller, when the transaction is committed, which is
  // so whatever is thrown then.
  // Errors: nested_transaction, session_busy, session_closed, transaction_too_large, pool_full,
  // outcome_unknown, forked, what Transaction's members throw and, if the log is full, what
  // Pool::checkpoint() does.
  template <class F>
  requires TransactionBody<F>
  auto run(F&& body) {
    using Result = std::decay_t<std::invoke_result_t<F&, Transaction&>>;
    if constexpr (std::is_void_v<Result>) {
      run_erased(detail::body_of(body));
    } else {
      std::optional<Result> result;
      auto keep = [&](Transaction& tx) { result.emplace(std::invoke(body, tx)); };
      run_erased(detail::body_of(keep));
      return std::move(*result);
    }
  }

  // Runs `body(tx)` as a transaction whose effects are visible to others on return, and durable
  // when the ticket says so. After a crash it is there whole or not at all, and only if every
  // transaction it depends on is. What a session writes becomes durable in the order in which it
  // was run: who has waited for one ticket of a writing transaction, or has run() one, need not
  // wait for those that the session gave before. Errors: as run().
  template <class F>
  requires TransactionBody<F> Ticket run_async(F&& body) {
    return run_async_erased(detail::body_of(body));
  }

  // Makes everything this session has committed asynchronously durable.
  // Errors: nested_transaction, session_busy, session_closed, outcome_unknown, forked.
  void flush();

  // Flushes, returns the session to the pool. Closing twice is harmless.
  // Errors: outcome_unknown (the session is closed all the same); nested_transaction, session_busy,
  // forked (it stays open).
  void close();

  [[nodiscard]] bool is_open() const noexcept { return core_ != nullptr; }
  // This session's number in the pool; part of its transaction IDs.
  [[nodiscard]] std::uint16_t id() const noexcept;
  [[nodiscard]] SessionStatistics statistics() const noexcept;

 private:
  friend class Pool;
  explicit Session(std::unique_ptr<runtime::SessionCore> core) noexcept;

  void run_erased(detail::Body body);
  Ticket run_async_erased(detail::Body body);

  std::unique_ptr<runtime::SessionCore> core_;
};

}  // namespace sp3
