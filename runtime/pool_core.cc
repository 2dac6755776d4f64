#include "runtime/pool_core.h"

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

#include <sp3/error.h>
#include <sp3/session.h>

#include "base/fence.h"
#include "base/mutant.h"
#include "base/scaled.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "pool/file_system.h"
#include "recovery/finish.h"
#include "recovery/recover.h"
#include "recovery/roots.h"
#include "runtime/checkpoint.h"
#include "runtime/flusher.h"
#include "runtime/option_limits.h"
#include "runtime/roots.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {

// It waits for transactions in flight; one of this very thread would never end.
constexpr const char* kCheckpointInside = "a checkpoint is needed inside a transaction's body";

// What they have captured is of no use once the pool is open.
Options without_callbacks(Options options) {
  options.recovery.progress = nullptr;
  options.recovery.assessed = nullptr;
  return options;
}

}  // namespace

std::shared_ptr<PoolCore> PoolCore::create(const std::filesystem::path& path, std::uint64_t size,
                                           const Options& options) {
  check_options(options, path.string());
  if (options.policy == CommitPolicy::ideal) {
    throw Error(ErrorCode::unsupported, "a pool cannot be created without concurrency control",
                {.path = path.string(), .wanted = "another CommitPolicy", .found = "ideal"});
  }
  std::error_code unknown;  // where the process is: it may be elsewhere when something has failed
  const std::filesystem::path place = std::filesystem::absolute(path, unknown);
  auto made = pool::PoolFile::create(path, size, options);
  const int fd = made->descriptor();
  std::shared_ptr<pool::PoolFile> file;  // beside the core's: locked until it has been removed
  std::shared_ptr<PoolCore> core;
  try {
    file = std::move(made);
    pool::SuperblockImage superblock = recovery::start_generation(*file);
    core.reset(new PoolCore(file, options, RecoveryReport{}, std::move(superblock)));
    core->start();
    return core;
  } catch (...) {
    // Still locked.
    pool::remove_file(unknown ? path : place, fd);
    throw;
  }
}

std::shared_ptr<PoolCore> PoolCore::open(const std::filesystem::path& path,
                                         const Options& options) {
  check_options(options, path.string());
  auto file = pool::PoolFile::open(path, options, pool::PoolFile::Access::read_write);
  file->expect_roots(root_class());
  RecoveryReport report;
  pool::SuperblockImage superblock;
  if (file->is_clean()) {
    report.checkpoint_floor = file->superblock().fixed.floor;
    report.largest_stamp = file->superblock().fixed.largest_stamp;
    superblock = recovery::start_generation(*file, options.recovery, &report);
  } else {
    recovery::Result result = recovery::recover(*file, options.recovery);
    report = std::move(result.report);
    superblock = std::move(result.superblock);
  }
  std::shared_ptr<PoolCore> core(
      new PoolCore(std::move(file), options, std::move(report), std::move(superblock)));
  core->start();
  return core;
}

PoolCore::PoolCore(std::shared_ptr<pool::PoolFile> file, const Options& options,
                   RecoveryReport recovery, pool::SuperblockImage superblock)
    : floor(superblock.fixed.floor),
      settled(superblock.fixed.floor),
      checkpoint_number(superblock.fixed.checkpoint_number),
      checkpoint_floor(superblock.fixed.floor),
      options_(without_callbacks(options)),
      file_(std::move(file)),
      recovery_(std::move(recovery)),
      fork_generation_(base::fork_generation()),
      checkpoint_threads_(runtime::checkpoint_threads(options)),
      epochs_(participant_of_carrier(checkpoint_threads_) + layout().max_sessions),
      clock_(std::max(superblock.fixed.largest_stamp, superblock.fixed.floor)),
      persister_(file_->memory(), epochs_, file_->path(), layout().max_sessions),
      slabs_(file_->memory(), layout(), file_->identity(), epochs_,
             [this](int error) { persister_.poison(error); }),
      segments_(layout().segments),
      generation_(superblock.fixed.generation),
      superblock_(std::move(superblock)),
      shared_(layout().max_sessions),
      session_open_(layout().max_sessions, false) {
  root_offset_ = recovery::offset_of_first_root(layout(), root_class());
  for (std::size_t guest = 0; guest < kGuests; ++guest) epochs_.admit(kFirstGuest + guest);
}

PoolCore::~PoolCore() {
  if (was_inherited()) {
    // Their threads live in the parent, and a condition variable with waiters cannot be destroyed.
    (void)flusher_.release();
    (void)checkpointer_.release();
    // Ranges of the parent's transactions may be held in them.
    (void)owned_ranged_locks_.release();
    return;
  }
  stop_background();
  free_versions();
}

// Where no checkpoint came last (after an error, or because nothing is logged) entries still lead
// to versions in DRAM. Those from the depot's chunks go with it, large ones one by one.
void PoolCore::free_versions() noexcept {
  for (std::uint32_t number = 0; number < layout().slabs; ++number) {
    index::Slab* slab = slabs_.at(number);
    if (slab == nullptr || VersionPool::is_pooled(slab->type_size)) continue;
    for (std::uint32_t slot = 0; slot < slab->slots; ++slot) {
      index::Seen seen;
      // Unlocked, since no session is open any more.
      if (!slab->entry(slot).try_read(seen) || seen.at_home() || seen.destroyed()) continue;
      VersionPool::free_large(depot_, seen.version(), slab->type_size);
    }
  }
}

void PoolCore::start() {
  session_open_[kOwnSession] = true;
  checkpointer_ = std::make_unique<Checkpointer>(*this);
  flusher_ = std::make_unique<Flusher>(*this);
  ensure_root();
  try {
    checkpointer_->start();
    flusher_->start();
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::io_error, "a thread for the background could not be started",
                {.path = file_->path(), .wanted = "two threads", .found = error.what()});
  }
}

// Also after a crash between the pool's creation and its first transaction.
void PoolCore::ensure_root() {
  const auto root = Ptr<RootNode>::from_offset(root_offset_);
  std::unique_ptr<SessionCore> session = open_session();
  const auto body = [&](Transaction& tx) {
    try {
      tx.read(root);
      return;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::invalid_pointer && e.code() != ErrorCode::destroyed_object) throw;
    }
    // Slot 0 of slab 0, if nothing else was ever made in this pool.
    if (tx.make<RootNode>() == root) return;
    throw Error(ErrorCode::damaged_metadata, recovery::kMissingRoots,
                {.path = file_->path(), .offset = root_offset_});
  };
  session->run(detail::body_of(body), SessionCore::Durability::synchronous);
  session->close();
}

void PoolCore::stop_background() noexcept {
  if (flusher_) flusher_->stop();
  if (checkpointer_) checkpointer_->stop();
}

void PoolCore::throw_unusable() const {
  if (!was_inherited()) persister_.throw_if_poisoned();
  throw Error(ErrorCode::forked, "the pool was opened before fork(); it belongs to the parent",
              {.path = file_->path()});
}

RangedLocks& PoolCore::make_ranged_locks() {
  const std::lock_guard guard(mutex_);
  if (owned_ranged_locks_ == nullptr) {
    owned_ranged_locks_ = std::make_unique<RangedLocks>(options_.range_lock, layout().max_sessions);
    ranged_locks_.store(owned_ranged_locks_.get(), std::memory_order_release);
  }
  return *owned_ranged_locks_;
}

SessionShared& PoolCore::shared(base::SessionId id) {
  const std::lock_guard guard(mutex_);
  if (!shared_[id]) {
    const auto& superblock = file_->identity();
    const std::uint32_t seed = log::seed(superblock.uuid, id, generation_);
    shared_[id] = std::make_unique<SessionShared>(*this, id, file_->memory(), layout(), segments_,
                                                  generation_, seed);
    persister_.add(*shared_[id]);
    epochs_.admit(participant_of(id));
  }
  return *shared_[id];
}

std::vector<SessionShared*> PoolCore::all_shared() const {
  const std::lock_guard guard(mutex_);
  std::vector<SessionShared*> all;
  for (const auto& shared : shared_) {
    if (shared) all.push_back(shared.get());
  }
  return all;
}

void PoolCore::wait_for_grace() {
  const auto target = epochs_.current() + 2;
  emu::Spin spin;
  while (epochs_.current() < target) {
    if (!epochs_.try_advance()) spin.rest();
  }
}

std::unique_ptr<SessionCore> PoolCore::open_session() {
  throw_if_unusable();
  std::size_t id = 0;
  bool has_company = false;
  {
    const std::lock_guard guard(mutex_);
    if (closing_)
      throw Error(ErrorCode::pool_closed, "the pool is being closed", {.path = file_->path()});
    while (id < session_open_.size() && session_open_[id]) ++id;
    if (id == session_open_.size()) {
      throw Error(ErrorCode::too_many_sessions, "all sessions of the pool are open",
                  {.path = file_->path(),
                   .wanted = "one more",
                   .found = std::to_string(session_open_.size() - 1) + " open"});
    }
    session_open_[id] = true;
    has_company = company.arrive();
  }
  try {
    shared(static_cast<base::SessionId>(id));
    if (has_company && !mutant(Mutant::arrival_does_not_wait)) await_commits_under_way();
    const std::lock_guard guard(mutex_);
    auto session = std::make_unique<SessionCore>(shared_from_this(), *shared_[id]);
    sessions_.push_back(session.get());
    return session;
  } catch (...) {
    const std::lock_guard guard(mutex_);
    session_open_[id] = false;
    company.leave(/*last=*/0);
    throw;
  }
}

void PoolCore::session_closed(SessionCore& session) noexcept {
  checkpointer_->inherit(session.versions());
  const std::lock_guard guard(mutex_);
  closed_sessions_ += session.statistics();
  std::erase(sessions_, &session);
  session_open_[session.shared().id] = false;
  // relaxed: the session's thread is here.
  company.leave(session.shared().last_stamp.load(std::memory_order_relaxed));
}

void PoolCore::await_commits_under_way() const {
  base::heavy_fence();
  for (const SessionShared* session : all_shared()) {
    // Not until it is idle: where a commit takes long it hardly ever is. Once it has a stamp all
    // that it writes is locked. acquire: pairs with take_stamp() and withdraw().
    for (emu::Spin spin; session->announced.load(std::memory_order_acquire) == kPending;)
      spin.pause();
  }
}

void PoolCore::throw_if_inside_body(const SessionCore* except, const char* message) {
  for_each_session([&](const SessionCore& session) {
    if (&session == except || !session.runs_here()) return;
    throw Error(ErrorCode::nested_transaction, message,
                {.path = file_->path(), .found = "session " + std::to_string(session.shared().id)});
  });
}

void PoolCore::checkpoint() {
  throw_if_unusable();
  throw_if_inside_body(nullptr, kCheckpointInside);
  if (logs()) checkpointer_->run();
}

void PoolCore::wait_for_log_space(const SessionCore& waiter) {
  throw_if_inside_body(&waiter, kCheckpointInside);
  checkpointer_->run_unless_done(checkpointer_->count());
}

// The checkpoint is one that began after now: what frees the slabs may be no older.
PoolCore::Slabs PoolCore::wait_for_slabs(SessionCore& waiter, bool patient,
                                         std::optional<std::uint64_t>& freed) {
  throw_if_inside_body(&waiter, kCheckpointInside);
  const std::uint64_t before = freed.value_or(checkpointer_->slabs_freed());
  bool asked = collect_slots(waiter, /*again=*/false);
  // Bounded: a body may take as long as it likes.
  const auto most = base::scaled<std::uint32_t>(emu::Spin::kSpins + 400, 32);
  emu::Spin spin;
  for (std::uint32_t round = 0; patient && asked && round < most; ++round) {
    spin.rest();
    waiter.slots().answer_if_asked();  // by one who waits here as well
    asked = collect_slots(waiter, /*again=*/true);
  }
  checkpointer_->run();
  freed = checkpointer_->slabs_freed();
  if (*freed != before) return Slabs::freed;
  // What was committed behind its floor may leave slabs empty; so may slots still asked for.
  return asked || has_news() ? Slabs::none_yet : Slabs::none;
}

// What sessions keep is of use to others now. `again`: looks only after those that were asked and
// have not answered. Returns whether there are any.
bool PoolCore::collect_slots(const SessionCore& waiter, bool again) {
  const std::lock_guard guard(mutex_);
  for (SessionCore* const session : sessions_) {
    if (session != &waiter && (!again || session->slots().is_asked())) session->slots().claim();
  }
  base::heavy_fence();
  bool asked = false;
  for (SessionCore* const session : sessions_) {
    if (session == &waiter) continue;
    SlotCache& slots = session->slots();
    if (slots.is_claimed()) slots.decide(session->is_idle());
    asked = asked || slots.is_asked();
  }
  return asked;
}

void PoolCore::note_log_growth() noexcept {
  const std::uint64_t used = segments_.used();
  if (used * 100 >= std::uint64_t{segments_.total()} * options_.checkpoint.log_percent) {
    checkpointer_->request();
  }
}

bool PoolCore::has_news() const {
  for (const auto& s : all_shared()) {
    // relaxed: what is missed now is found next time.
    if (s->sealed.load(std::memory_order_relaxed) != 0 &&
        s->last_stamp.load(std::memory_order_relaxed) > floor.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void PoolCore::close() {
  if (was_inherited()) throw_unusable();
  {
    const std::lock_guard guard(mutex_);
    if (std::find(session_open_.begin() + 1, session_open_.end(), true) != session_open_.end()) {
      throw Error(ErrorCode::sessions_open, "the pool cannot be closed while sessions are open",
                  {.path = file_->path(),
                   .wanted = "no open session",
                   .found = std::to_string(
                       std::count(session_open_.begin() + 1, session_open_.end(), true))});
    }
    closing_ = true;
  }
  stop_background();
  emu::step(emu::Step::pool_close);
  checkpointer_->run(/*last=*/true);
}

bool PoolCore::is_closing() const {
  const std::lock_guard guard(mutex_);
  return closing_;
}

std::size_t PoolCore::enter_guest() noexcept {
  std::uint32_t in = guests_.load(std::memory_order_relaxed);
  while (true) {
    const auto free = static_cast<std::uint32_t>(std::countr_one(in));
    if (free >= kGuests) return 0;
    if (guests_.compare_exchange_weak(in, in | 1U << free, std::memory_order_acq_rel)) {
      return kFirstGuest + free;
    }
  }
}

void PoolCore::leave_guest(const Actor& guest) noexcept {
  // relaxed, both: for people.
  guest_lines_.fetch_add(guest.counts.lines, std::memory_order_relaxed);
  guest_fences_.fetch_add(guest.counts.fences, std::memory_order_relaxed);
  guests_.fetch_and(~(1U << (guest.participant - kFirstGuest)), std::memory_order_acq_rel);
}

PoolInfo PoolCore::info() const {
  if (was_inherited()) throw_unusable();
  PoolInfo info = file_->description();
  const index::SlabTable::AtHome at_home = slabs_.at_home();
  info.slabs_carved = at_home.slabs;
  info.objects = at_home.objects;
  info.generation = generation_;
  info.checkpoint_number = checkpoint_number.load(std::memory_order_relaxed);
  info.checkpoint_floor = checkpoint_floor.load(std::memory_order_relaxed);
  info.clean = false;  // it is open
  return info;
}

PoolStatistics PoolCore::statistics() const {
  if (was_inherited()) throw_unusable();
  PoolStatistics s;
  {
    const std::lock_guard guard(mutex_);
    s.sessions = closed_sessions_;
    for (const SessionCore* session : sessions_) s.sessions += session->statistics();
  }
  s.sessions.log_bytes += flusher_->log_bytes();
  s.sessions.helped_lines += guest_lines_.load(std::memory_order_relaxed);
  s.sessions.helped_fences += guest_fences_.load(std::memory_order_relaxed);
  s.long_transactions = flusher_->long_transactions();
  s.long_transaction_session = flusher_->long_transaction_session();
  s.checkpoints = checkpointer_->count();
  s.checkpoint_objects = checkpointer_->objects();
  s.checkpoint_bytes = checkpointer_->bytes();
  s.checkpoint_lines = checkpointer_->lines();
  s.checkpoint_fences = checkpointer_->fences();
  s.checkpoint_longest_ns = checkpointer_->longest_ns();
  s.flusher_lines = flusher_->lines();
  s.flusher_fences = flusher_->fences();
  s.log_bytes_used = std::uint64_t{segments_.used()} * layout().segment_size;
  s.log_bytes_total = layout().log_bytes;
  s.slabs_used = slabs_.slabs_used();
  s.slabs_total = layout().slabs;
  s.version_bytes = depot_.bytes();
  s.index_bytes = slabs_.index_bytes();
  return s;
}

}  // namespace sp3::runtime
