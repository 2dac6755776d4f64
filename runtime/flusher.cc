#include "runtime/flusher.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "base/mutant.h"
#include "base/scaled.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "runtime/checkpoint.h"
#include "runtime/pool_core.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {
constexpr std::uint32_t kSlowTickMs = 100;  // without watermarks
}  // namespace

Flusher::Flusher(PoolCore& pool)
    : pool_(pool),
      own_(pool.shared(PoolCore::kOwnSession)),
      owner_(own_),
      looks_(pool.layout().max_sessions),
      group_period_(std::chrono::microseconds(pool.options().async.group_microseconds)) {
  actor_.participant = PoolCore::kFlusherParticipant;
  pool_.epochs().admit(actor_.participant);
}

Flusher::~Flusher() { stop(); }

void Flusher::start() {
  thread_ = emu::Thread([this] { work(); });
}

void Flusher::stop() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Flusher::wake() noexcept {
  {
    const std::lock_guard guard(mutex_);
    group_expected_.store(true, std::memory_order_relaxed);
  }
  wake_up_.notify_all();
}

void Flusher::work() {
  const std::uint32_t watermark_ms =
      pool_.options().watermark_ms != 0 ? pool_.options().watermark_ms : kSlowTickMs;
  // As long as the shorter of two periods, or somewhat less: watermarks come with every so many.
  const std::uint32_t ticks_per_watermark =
      (watermark_ms - 1) / pool_.options().long_transaction_ms + 1;
  const auto tick =
      std::chrono::microseconds(std::chrono::milliseconds(watermark_ms)) / ticks_per_watermark;
  std::uint32_t ticks = 0;
  auto next_tick = emu::SteadyClock::now() + tick;
  next_look_ = emu::SteadyClock::now() + group_period_;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool groups = group_expected_.load(std::memory_order_relaxed);
    const auto until = groups ? std::min(next_tick, next_look_) : next_tick;
    wake_up_.wait_until(lock, until, [&] {
      return stopping_ || (!groups && group_expected_.load(std::memory_order_relaxed));
    });
    if (stopping_) return;
    lock.unlock();
    if (pool_.persister().is_poisoned()) return;
    try {
      look_for_groups(groups);
      if (emu::SteadyClock::now() >= next_tick) {
        if (++ticks >= ticks_per_watermark) {
          if (pool_.options().watermark_ms != 0 && pool_.logs()) write_watermarks();
          ticks = 0;  // not where memory for them lacked
        }
        look_for_long_transactions();
        next_tick = emu::SteadyClock::now() + tick;
      }
    } catch (const std::bad_alloc&) {
      // There may be memory at the next tick. Until then the core is for those who give some back.
      next_tick = emu::SteadyClock::now() + tick;
    }
    lines_.raise_to(actor_.counts.lines);
    fences_.raise_to(actor_.counts.fences);
    lock.lock();
  }
}

// Flushes groups if it is time to; `expected`: whether there were to be any when we fell asleep.
void Flusher::look_for_groups(bool expected) {
  const auto now = emu::SteadyClock::now();
  if (expected && now < next_look_) return;
  next_look_ = now + group_period_;
  if (!expected) return;  // a group that just begins has all its time
  quiet_looks_ = flush_groups() ? 0 : quiet_looks_ + 1;
  if (quiet_looks_ <= base::scaled(16, 16, 1)) return;
  quiet_looks_ = 0;  // without a group: time to slow down
  group_expected_.store(false, std::memory_order_relaxed);
  // Who left something to a group before this fence may have seen the flag up, and is seen now.
  base::heavy_fence();
  if (flush_groups()) group_expected_.store(true, std::memory_order_relaxed);
}

void Flusher::look_for_long_transactions() {
  ++round_;
  const auto now = emu::SteadyClock::now();
  const auto limit = std::chrono::milliseconds(pool_.options().long_transaction_ms);
  pool_.for_each_session([&](SessionCore& session) {
    Look& look = looks_[session.shared().id];
    const std::uint64_t attempts = session.attempts();
    const bool was_there = look.round + 1 == round_;  // or another of its number
    look.round = round_;
    const bool pinned = pool_.epochs().is_pinned(pool_.participant_of(session.shared().id));
    if (!was_there || !pinned || attempts != look.attempts) {
      look.attempts = attempts;
      look.attempt_seen = now;
      look.counted = false;
    } else if (!look.counted && now - look.attempt_seen > limit) {
      look.counted = true;
      long_session_.store(session.shared().id, std::memory_order_relaxed);
      long_transactions_.add(1);
    }
  });
}

// Flushes what was sealed at the last look and still is not durable; whether anything of a group is
// in flight.
bool Flusher::flush_groups() {
  bool any = false;
  for (const auto& s : pool_.all_shared()) {
    Look& look = looks_[s->id];
    // relaxed: a number that is out of date by a moment is caught in the next round.
    if (s->persisted.load(std::memory_order_relaxed) < look.sealed) {
      pool_.persister().flush(*s, actor_, /*owner=*/false);
    }
    pool_.persister().advance(*s);
    look.sealed = s->sealed.load(std::memory_order_relaxed);
    any = any || s->committed.load(std::memory_order_relaxed) <
                     s->left_to_group.load(std::memory_order_relaxed);
  }
  return any;
}

void Flusher::write_watermarks() {
  std::vector<base::Tid> marks;  // the stamp stands for an LSN
  base::Stamp newest = 0;
  for (const auto& s : pool_.all_shared()) {
    if (s == &own_) continue;
    Look& look = looks_[s->id];
    const std::uint64_t sealed = s->sealed.load(std::memory_order_acquire);
    const bool idle = sealed == look.sealed_at_watermarks &&
                      (s->persisted.load(std::memory_order_acquire) == sealed ||
                       mutant(Mutant::watermark_above_durable));
    look.sealed_at_watermarks = sealed;
    const base::Lsn durable = mutant(Mutant::watermark_above_durable)
                                  ? s->ring.read(sealed).lsn
                                  : s->persisted_lsn.load(std::memory_order_acquire);
    if (durable <= look.watermark) continue;
    // A busy session's own later records say how far it is durable, but they lie in the run that is
    // not found when its header is damaged: of each run, one record that recovery would need is
    // covered from elsewhere. A mark as far as `durable` covers the runs begun before it as well.
    // relaxed: what is missed now is found next time.
    const base::Lsn needed =
        std::max(s->head.load(std::memory_order_relaxed), s->log.begin_of_run(durable));
    if (!idle && (look.watermark >= needed || needed > durable)) continue;
    marks.push_back({durable, s->id});
    newest = std::max(newest, s->last_stamp.load(std::memory_order_relaxed));
  }
  if (marks.empty() || !seal_watermark(marks, newest)) return;
  pool_.persister().flush(own_, actor_, /*owner=*/true);
  if (pool_.persister().is_poisoned()) return;
  pool_.persister().advance(own_);
  for (const base::Tid& mark : marks) looks_[mark.session].watermark = mark.stamp;
}

// A record of the library's own session; it names no object and depends on nothing. Its stamp is
// above `newest`, so that a checkpoint that lets go of it has brought home whatever it vouches for.
bool Flusher::seal_watermark(const std::vector<base::Tid>& marks, base::Stamp newest) {
  // The checkpointer holds our last run for an instant: next time will do.
  if (!owner_.try_announce()) return false;
  const base::ScopeExit withdraw([this] { owner_.withdraw(); });
  const std::uint64_t bytes = log::RecordBuilder::max_record_bytes(0, marks.size());
  // relaxed: our own number, and any that the superblock has had will do.
  const bool room =
      own_.log.could_ever_hold(bytes) &&
      own_.log.reserve(bytes, pool_.checkpoint_number.load(std::memory_order_relaxed)) !=
          log::SessionLog::Reserved::no &&
      own_.ring.has_room(own_.sealed.load(std::memory_order_relaxed),
                         own_.committed.load(std::memory_order_acquire), 0);
  if (!room) {
    own_.log.forgo();  // nobody has to wait for this
    return false;
  }
  const base::Stamp stamp =
      owner_.take_stamp(pool_.clock().now_after_loads(), pool_.floor, /*above=*/newest);
  record_.reset();
  for (const base::Tid& mark : marks) record_.add_dependency(mark.session, mark.stamp);
  // relaxed: a lower number than the true one is still true.
  record_.seal(own_.log.next_lsn(), stamp, own_.persisted_lsn.load(std::memory_order_relaxed),
               own_.log.seed(), log::RecordKind::watermark);
  const std::lock_guard guard(own_.log.block_lock());
  const auto appended =
      own_.log.append(record_.data(), static_cast<std::uint32_t>(record_.size()), stamp, false);
  owner_.put({.stamp = stamp,
              .lsn = own_.log.next_lsn() - 1,
              .offset = appended.offset,
              .bytes = appended.bytes},
             {});
  owner_.seal(/*published=*/true);
  log_bytes_.add(appended.bytes);
  return true;
}

}  // namespace sp3::runtime
