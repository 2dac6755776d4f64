// The public handles: thin, checked entrances to the runtime.
#include <mutex>
#include <utility>

#include <sp3/sp3.h>

#include "base/mutant.h"
#include "base/no_cancellation.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "pool/check.h"
#include "recovery/inspect_log.h"
#include "runtime/pool_core.h"
#include "runtime/roots.h"
#include "runtime/session_core.h"

namespace sp3 {

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_closed() {
  throw Error(ErrorCode::session_closed, "the session is closed");
}

[[gnu::always_inline]] inline runtime::SessionCore& opened(
    const std::unique_ptr<runtime::SessionCore>& core) {
  if (!core) [[unlikely]]
    fail_closed();
  return *core;
}

}  // namespace

// -------------------------------------------------------------------------------------------- Pool

// The core for the length of a call: close() lets go of it when nobody is in one.
class Pool::InUse {
 public:
  explicit InUse(const Pool& pool) : lock_(pool.in_use_, std::defer_lock) {
    // Looked at first, so that who comes again and again does not keep out the one who lets go.
    if (pool.is_open()) {
      lock_.lock();
      core_ = pool.core_.get();
    }
    if (core_ == nullptr) throw Error(ErrorCode::pool_closed, "the pool is closed");
  }
  runtime::PoolCore* operator->() const noexcept { return core_; }

 private:
  std::shared_lock<std::shared_mutex> lock_;
  runtime::PoolCore* core_ = nullptr;
};

Pool::Pool(std::shared_ptr<runtime::PoolCore> core) noexcept
    : core_(std::move(core)), is_closed_(core_ == nullptr) {}

Pool::Pool(Pool&& other) noexcept : Pool(std::move(other.core_)) {
  other.is_closed_.store(true, std::memory_order_release);
}

Pool& Pool::operator=(Pool&& other) noexcept {
  if (this != &other) {
    Pool doomed(std::move(*this));
    core_ = std::move(other.core_);
    is_closed_.store(core_ == nullptr, std::memory_order_release);
    other.is_closed_.store(true, std::memory_order_release);
  }
  return *this;
}

Pool::~Pool() {
  if (!core_) return;
  const base::NoCancellation whole;
  try {
    close();
  } catch (const std::exception&) {
    // Nothing acknowledged is lost: the next opening recovers. close() would have said why.
  }
  core_.reset();
}

Pool Pool::create(const std::filesystem::path& path, std::uint64_t size, const Options& options) {
  const base::NoCancellation whole;
  return Pool(runtime::PoolCore::create(path, size, options));
}

Pool Pool::open(const std::filesystem::path& path, const Options& options) {
  const base::NoCancellation whole;
  return Pool(runtime::PoolCore::open(path, options));
}

PoolInfo Pool::inspect(const std::filesystem::path& path) {
  const base::NoCancellation whole;
  return pool::PoolFile::open(path, Options{}, pool::PoolFile::Access::read_only)->info();
}

CheckReport Pool::check(const std::filesystem::path& path) {
  const base::NoCancellation whole;
  const auto file = pool::PoolFile::open(path, Options{}, pool::PoolFile::Access::read_only);
  file->expect_roots(runtime::root_class());
  CheckReport report = pool::check(*file);
  recovery::check_log(*file, report);
  runtime::check_roots(*file, report);
  return report;
}

Session Pool::session() { return Session(InUse(*this)->open_session()); }

void Pool::checkpoint() { InUse(*this)->checkpoint(); }

void Pool::close() {
  if (!core_) return;
  const base::NoCancellation whole;
  try {
    core_->close();
  } catch (const Error& e) {
    // With sessions open, or in a forked child, the pool stays as it is.
    if (e.code() != ErrorCode::sessions_open && e.code() != ErrorCode::forked) let_go();
    throw;
  } catch (...) {
    // Without memory for its checkpoint: the next opening recovers. Or without memory to say why it
    // cannot be closed: then it stays as it is.
    if (core_->is_closing()) let_go();
    throw;
  }
  let_go();
}

void Pool::let_go() noexcept {
  is_closed_.store(true, std::memory_order_release);
  const std::unique_lock alone(in_use_);
  // No session is open; but who closed the last ones may not have let go yet, and the file is to be
  // free when close() returns.
  for (emu::Spin spin; core_.use_count() > 1;) spin.rest();
  core_.reset();
}

PoolInfo Pool::info() const { return InUse(*this)->info(); }
PoolStatistics Pool::statistics() const { return InUse(*this)->statistics(); }
const RecoveryReport& Pool::recovery_report() const { return InUse(*this)->recovery_report(); }

// ----------------------------------------------------------------------------------------- Session

Session::Session(std::unique_ptr<runtime::SessionCore> core) noexcept : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    Session doomed(std::move(*this));
    core_ = std::move(other.core_);
  }
  return *this;
}

Session::~Session() {
  if (!core_) return;
  try {
    close();
  } catch (...) {
    // The pool is poisoned, which its close() will say; or see below.
  }
  // Still open: in a forked child nobody may hold what its destructor would lock; and inside its
  // own transaction it is needed to the end of that.
  (void)core_.release();
}

void Session::run_erased(detail::Body body) {
  opened(core_).run(body, runtime::SessionCore::Durability::synchronous);
}

Ticket Session::run_async_erased(detail::Body body) {
  runtime::SessionCore& core = opened(core_);  // the body may move this session
  const base::Stamp stamp = core.run(body, runtime::SessionCore::Durability::asynchronous);
  runtime::CommitMark& mark = core.shared().mark;
  // relaxed: it changes only after the session is gone.
  return {mark, mark.generation.load(std::memory_order_relaxed), stamp};
}

void Session::flush() { opened(core_).flush(); }

void Session::close() {
  if (!core_) return;
  const base::NoCancellation whole;  // the last to hold a pool that was not closed ends its threads
  try {
    core_->close();
  } catch (const Error& e) {
    // The session is closed all the same if the pool is poisoned; else it stays as it is.
    if (e.code() == ErrorCode::outcome_unknown) core_.reset();
    throw;
  }
  core_.reset();
}

std::uint16_t Session::id() const noexcept { return core_ ? core_->shared().id : 0; }

SessionStatistics Session::statistics() const noexcept {
  return core_ ? core_->statistics() : SessionStatistics{};
}

// ------------------------------------------------------------------------------------------ Ticket

bool Ticket::ready() const noexcept {
  return mark_ != nullptr && mark_->covers(stamp_, generation_);
}

void Ticket::wait() {
  if (mark_ == nullptr)
    throw Error(ErrorCode::ticket_spent, "the ticket was waited for before, or holds nothing");
  try {
    wait_once();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    mark_ = nullptr;
    throw;
  }
  mark_ = nullptr;
}

void Ticket::wait_once() const {
  const runtime::CommitMark& mark = *mark_;
  if (base::mutant(base::Mutant::ticket_does_not_wait)) return;
  emu::Spin spin;
  while (!mark.covers(stamp_, generation_)) {
    const runtime::SessionShared* session = mark.session.load(std::memory_order_acquire);
    if (session == nullptr) {
      if (mark.covers(stamp_, generation_)) return;  // closed meanwhile
      throw Error(ErrorCode::outcome_unknown,
                  "the pool went away before the transaction was durable");
    }
    runtime::PoolCore* pool = session->core;
    pool->throw_if_unusable();
    // Without a guest's place we cannot help; the flusher will.
    if (const std::size_t participant = pool->enter_guest(); participant != 0) {
      runtime::Actor actor{participant, {}};
      const base::ScopeExit leave([&] { pool->leave_guest(actor); });
      pool->persister().wait({stamp_, session->id}, actor);
      return;
    }
    spin.pause();
  }
}

}  // namespace sp3
