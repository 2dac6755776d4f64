// How a checkpoint stays out of the way and still loses nothing.
//
// - The floor. Announce-then-read on both sides (Dekker): a transaction announces itself, then
//   reads the floor and takes a larger stamp; we publish the floor, then look at the announcements.
//   So once every announcement seen is gone or above the floor, no stamp up to it will ever be
//   taken, and the records with such stamps are all in the logs.
// - What to write: the objects those records name, found by reading the logs, so that the commit
//   path keeps no list.
// - Which version: the newest one, even if its stamp is above the floor (the one as of the floor
//   may be gone). It is copied under a pin, and written only when it is committed: a home must
//   never hold what a crash would undo. Replay from the floor over newer homes is right, because
//   all records above the floor are applied again in order.
// - Readers of the home copy: a version is captured only if the entry points away from home, so
//   from then until we swing it back nobody new reads the home; one grace period after the capture
//   nobody old does.
// - Who else wants the core: in the background it works in short bursts, while there is time.
// - Letting go: superblock A, then B, then the entries swing home, then versions and segments are
//   reused.
#include "runtime/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <utility>

#include <sp3/error.h>

#include "base/mutant.h"
#include "base/scaled.h"
#include "emu/clock.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "log/record_walker.h"
#include "runtime/pool_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {
// DRAM for copies of captured versions.
std::size_t batch_bytes() noexcept { return base::scaled<std::size_t>(4 << 20, 4 << 20, 1); }
constexpr base::Lsn kUnknown = ~base::Lsn{0};
}  // namespace

Checkpointer::Checkpointer(PoolCore& pool)
    : pool_(pool),
      named_(pool.layout().slabs),
      slab_is_dirty_(pool.layout().slabs, false),
      heads_(pool.layout().max_sessions, 1),
      last_settled_(pool.layout().max_sessions),
      versions_(pool.versions(), pool.epochs()),
      orphans_(pool.versions(), pool.epochs()) {
  actor_.participant = PoolCore::kCheckpointerParticipant;
  pool_.epochs().admit(actor_.participant);
}

Checkpointer::~Checkpointer() {
  stop();
  versions_.free_all();
  orphans_.free_all();
}

// For those who wait for the checkpoint: one in the background makes haste for them.
std::unique_lock<emu::Mutex> Checkpointer::take_turn() {
  // relaxed, both: seen soon enough.
  waiting_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock turn(running_);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  in_background_ = false;
  return turn;
}

void Checkpointer::run(bool last) {
  const auto turn = take_turn();
  run_locked(last);
}

void Checkpointer::run_unless_done(std::uint64_t since) {
  const auto turn = take_turn();
  if (count_.get() == since) run_locked(false);
}

void Checkpointer::run_locked(bool last) {
  pool_.persister().throw_if_poisoned();
  try {
    run_steps(last);
  } catch (...) {
    // Half a checkpoint (memory ran out) has forgotten names that only the log still knows: nobody
    // may go on as if it had not. The next opening recovers them.
    pool_.persister().poison(ENOMEM);
    throw;
  }
}

void Checkpointer::run_steps(bool last) {
  const std::uint64_t started = emu::ticks();
  captured_.clear();
  last_settled_.assign(last_settled_.size(), 0);
  const base::Stamp floor = raise_floor();
  collect_names(floor);
  bring_home();
  for (index::Slab* carved : pool_.slabs().take_newly_carved()) note_dirty(carved);
  write_superblocks(floor, last);
  swing();
  recycle(floor);
  count_.add(1);
  objects_.add(captured_.size());
  lines_.raise_to(actor_.counts.lines);
  fences_.raise_to(actor_.counts.fences);
  longest_ns_.raise_to(
      static_cast<std::uint64_t>(emu::nanoseconds_from_ticks(emu::ticks() - started)));
}

base::Stamp Checkpointer::raise_floor() {
  // relaxed: only we store it.
  base::Stamp floor =
      std::max(pool_.clock().now(), pool_.floor.load(std::memory_order_relaxed) + 1);
  auto sessions = pool_.all_shared();
  for (const auto& s : sessions) {
    // a stale one is waited for
    floor = std::max(floor, s->last_stamp.load(std::memory_order_relaxed));
  }
  emu::step(emu::Step::checkpoint_floor);
  if (mutant(Mutant::checkpoint_lists_sessions_early)) {
    // Time for a session to be opened, which would be a matter of luck.
    for (emu::Spin spin; spin.rounds() < 50;) spin.pause();
  }
  // (2) seq_cst, Dekker: see runtime/owner_side.h.
  pool_.floor.store(floor, std::memory_order_seq_cst);
  // Listed after the floor was published: a session that is missing was opened later (both take the
  // pool's mutex), and so reads the new floor before it takes its first stamp.
  if (!mutant(Mutant::checkpoint_lists_sessions_early)) sessions = pool_.all_shared();
  for (const auto& s : sessions) {
    if (!mutant(Mutant::checkpoint_floor_not_awaited)) await_stamps_up_to(floor, *s);
  }
  return floor;
}

// Returns when every transaction of the session with a stamp up to `floor` is committed.
void Checkpointer::await_stamps_up_to(base::Stamp floor, SessionShared& session) {
  emu::Spin spin;
  while (true) {
    const base::Stamp announced = session.announced.load(std::memory_order_seq_cst);  // (4)
    if (announced == kIdle || announced == kHeld || announced > floor) break;
    spin.pause();
  }
  // At once, before the session runs away from it.
  if (!session.last_sealed_up_to(floor, &last_settled_[session.id])) {
    last_settled_[session.id] = kUnknown;
  }
  // The last sealed item that the floor covers; items are in stamp order.
  const std::uint64_t sealed = session.sealed.load(std::memory_order_acquire);
  base::Stamp covered = 0;
  for (std::uint64_t n = session.committed.load(std::memory_order_acquire) + 1; n <= sealed; ++n) {
    const base::Stamp stamp = session.ring.read(n).stamp;
    // Committed meanwhile: what we read may be a later item's.
    if (session.committed.load(std::memory_order_acquire) >= n) continue;
    if (stamp > floor) break;
    covered = stamp;
  }
  if (covered != 0) pool_.persister().wait({covered, session.id}, actor_);
}

// The objects that transactions up to the floor have changed, and perhaps others, each once, as a
// bitmap for each slab. Also moves the sessions' heads: the first LSN that recovery will still
// need. The log names the objects, and the index knows them: whichever is less to read.
void Checkpointer::collect_names(base::Stamp floor) {
  if (!index_is_shorter_than_log() || !collect_from_index()) collect_from_log(floor);
  std::sort(named_slabs_.begin(), named_slabs_.end());
}

bool Checkpointer::index_is_shorter_than_log() const {
  std::uint64_t segments = 0;
  for (const auto& session : pool_.all_shared()) {
    for (const log::SessionLog::Run& run : session->log.runs()) segments += run.segments;
  }
  return pool_.slabs().index_bytes() < segments * pool_.layout().segment_size;
}

// False if a head cannot be told, because its session went too far ahead of the floor at once.
// REQUIRES: everything up to the floor is settled, hence published: an entry that says "at home" by
// now has no version up to the floor that is not.
bool Checkpointer::collect_from_index() {
  if (std::find(last_settled_.begin(), last_settled_.end(), kUnknown) != last_settled_.end()) {
    return false;
  }
  for (std::size_t id = 0; id < heads_.size(); ++id) {
    heads_[id] = std::max(heads_[id], last_settled_[id] + 1);
  }
  not_swung_.clear();  // they are not at home
  for (std::uint32_t number = 0; number < pool_.layout().slabs; ++number) {
    index::Slab* slab = pool_.slabs().at(number);
    if (slab == nullptr) continue;
    emu::step(emu::Step::checkpoint_collect);
    for (std::uint32_t slot = 0; slot < slab->slots; ++slot) {
      if (slot % 64 == 0) breathe();
      if (slab->entry(slot).points_home()) continue;
      names_of(*slab)[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
  }
  return true;
}

void Checkpointer::collect_from_log(base::Stamp floor) {
  for (const std::uint64_t offset : std::exchange(not_swung_, {})) name(offset);
  for (const auto& session : pool_.all_shared()) {
    emu::step(emu::Step::checkpoint_collect);
    if (session->sealed.load(std::memory_order_acquire) != 0) collect_session(*session, floor);
  }
}

void Checkpointer::collect_session(SessionShared& session, base::Stamp floor) {
  // Only what was persisted when the floor settled is read: it does not change any more, and it
  // covers all stamps up to the floor.
  const base::Lsn upto = session.persisted_lsn.load(std::memory_order_acquire);
  base::Lsn& head = heads_[session.id];
  if (upto < head) return;
  std::vector<log::LiveRun> runs;
  for (const log::SessionLog::Run& run : session.log.runs()) {
    const std::uint64_t bytes = std::uint64_t{run.segments} * pool_.layout().segment_size;
    runs.push_back(
        {{pool_.memory().log_view(pool_.layout().segment_offset(run.first_segment)), bytes},
         run.first_lsn});
  }
  const base::Lsn end = log::for_each_record(runs, head, upto, [&](const log::RecordView& record) {
    breathe();
    if (record.stamp() > floor) return;
    head = record.lsn() + 1;
    record.for_each_write([&](const log::WriteView& write) { name(write.slot); });
  });
  // A record missed would be lost with its segment.
  SP3_CHECK(end == upto + 1);
}

void Checkpointer::name(std::uint64_t offset) {
  // Only we free slabs, so this is safe unpinned. One that is gone was left over from the last
  // checkpoint and freed since.
  const index::Place place = pool_.slabs().find(offset);
  if (place.slab == nullptr) return;
  names_of(*place.slab)[place.slot / 64] |= std::uint64_t{1} << (place.slot % 64);
}

pool::Bitmap& Checkpointer::names_of(const index::Slab& slab) {
  pool::Bitmap& names = named_[slab.number];
  if (names.empty()) {
    names.resize((slab.slots + 63) / 64);
    named_slabs_.push_back(slab.number);
  }
  return names;
}

// Captures and writes what was named, in address order, a batch of copies at a time.
void Checkpointer::bring_home() {
  for (const std::uint32_t number : std::exchange(named_slabs_, {})) {
    const pool::Bitmap named = std::exchange(named_[number], {});
    capture_slab(*pool_.slabs().at(number), named);
  }
  finish_batch();
}

void Checkpointer::capture_slab(index::Slab& slab, const pool::Bitmap& named) {
  for (std::size_t word = 0; word < named.size(); ++word) {
    for (std::uint64_t bits = named[word]; bits != 0; bits &= bits - 1) {
      capture({&slab, static_cast<std::uint32_t>(word * 64) +
                          static_cast<std::uint32_t>(std::countr_zero(bits))});
      breathe();
      if (batch_.size() >= batch_bytes()) finish_batch();
    }
  }
}

void Checkpointer::capture(const index::Place& place) {
  emu::step(emu::Step::checkpoint_capture);
  Captured c{place,
             {},
             place.slab->offset_of(place.slot),
             batch_.size(),
             static_cast<std::uint32_t>(base::round_up(place.slab->type_size, 8))};
  pool_.epochs().pin(actor_.participant);
  emu::Spin spin;
  while (!place.entry().try_read(c.seen)) {
    // Under encounter-time locks this may last as long as a body does: not pinned.
    pool_.epochs().unpin(actor_.participant);
    spin.pause();
    pool_.epochs().pin(actor_.participant);
  }
  // At home: an earlier checkpoint brought this version there.
  const bool skipped = mutant(Mutant::checkpoint_skips_overwritten) &&
                       c.seen.stamp() > pool_.floor.load(std::memory_order_relaxed);
  if (!c.seen.at_home() && !skipped) {
    if (!c.seen.destroyed()) {
      batch_.insert(batch_.end(), c.seen.version(), c.seen.version() + c.size8);
    }
    batch_captured_.push_back(c);
  }
  pool_.epochs().unpin(actor_.participant);
}

void Checkpointer::finish_batch() {
  if (batch_captured_.empty()) return;
  // A home must never hold what a crash would undo.
  for (const Captured& c : batch_captured_) {
    if (mutant(Mutant::checkpoint_copies_uncommitted)) break;
    pool_.persister().wait({c.seen.stamp(), c.seen.session()}, actor_);
  }
  // Whoever read a home copy before its object's version was published is gone after this.
  if (!mutant(Mutant::checkpoint_writes_under_readers)) wait_for_grace();
  write_batch_home();
  batch_captured_.clear();
  batch_.clear();
}

void Checkpointer::write_batch_home() {
  emu::Memory& memory = pool_.memory();
  for (const Captured& c : batch_captured_) {
    breathe();
    emu::step(emu::Step::checkpoint_home);
    if (!c.seen.destroyed()) {
      const std::byte* const copy = batch_.data() + c.copy;
      if (mutant(Mutant::no_flush_home)) {
        memory.store(c.offset, copy, c.size8);
      } else {
        memory.store_through(c.offset, copy, c.size8, actor_.counts);
      }
      bytes_.add(c.size8);
    }
    if (c.place.slab->home_holds_object(c.place.slot) == c.seen.destroyed()) {
      // Seen by readers only when the entry points home, which it does not until we swing it.
      c.place.slab->set_home(c.place.slot, !c.seen.destroyed());
      note_dirty(c.place.slab);
    }
  }
  captured_.insert(captured_.end(), batch_captured_.begin(), batch_captured_.end());
}

void Checkpointer::note_dirty(index::Slab* slab) {
  if (slab_is_dirty_[slab->number]) return;
  slab_is_dirty_[slab->number] = true;
  dirty_slabs_.push_back(slab);
}

void Checkpointer::fence() {
  const emu::IoStatus status = pool_.memory().fence(actor_.counts);
  if (status.ok() || mutant(Mutant::failed_checkpoint_fence_is_forgotten)) return;
  pool_.persister().poison(status.error);
  pool_.persister().throw_if_poisoned();
}

void Checkpointer::write_metadata(int copy) {
  for (const std::uint32_t number : freed_slabs_)
    pool_.slabs().store_freed(number, copy, actor_.counts);
  for (index::Slab* slab : dirty_slabs_) pool_.slabs().store_metadata(*slab, copy, actor_.counts);
}

void Checkpointer::write_superblocks(base::Stamp floor, bool last) {
  pool::SuperblockImage& image = pool_.superblock_;
  image.fixed.number += 1;
  image.fixed.checkpoint_number += 1;
  if (!mutant(Mutant::checkpoint_floor_not_stored)) image.fixed.floor = floor;
  image.fixed.largest_stamp = std::max(image.fixed.largest_stamp, floor);
  image.fixed.state = static_cast<std::uint32_t>(last ? pool::State::clean : pool::State::open);
  if (!mutant(Mutant::checkpoint_heads_not_stored)) image.heads = heads_;
  // Decided once, so that both copies say the same. Carved again: its own description follows.
  std::erase_if(freed_slabs_, [&](std::uint32_t n) { return !pool_.slabs().is_free(n); });
  constexpr emu::Step kMetadata[2] = {emu::Step::checkpoint_metadata_a,
                                      emu::Step::checkpoint_metadata_b};
  constexpr emu::Step kSuperblock[2] = {emu::Step::checkpoint_superblock_a,
                                        emu::Step::checkpoint_superblock_b};
  constexpr Mutant kNoFenceOfMetadata[2] = {Mutant::no_fence_checkpoint_metadata_a,
                                            Mutant::no_fence_checkpoint_metadata_b};
  constexpr Mutant kNoFenceOfSuperblock[2] = {Mutant::no_fence_checkpoint_superblock_a,
                                              Mutant::no_fence_checkpoint_superblock_b};
  for (const int copy : {0, 1}) {
    if (copy == 1 && mutant(Mutant::checkpoint_writes_one_superblock)) break;
    emu::step(kMetadata[copy]);
    write_metadata(copy);
    // (P2, P4) homes and this copy's metadata before the superblock that vouches for them
    if (!mutant(kNoFenceOfMetadata[copy])) fence();
    emu::step(kSuperblock[copy]);
    pool::write_superblock(pool_.memory(), pool_.layout(), copy, image, actor_.counts);
    // (P3, P5) both superblocks before anything they make obsolete is reused
    if (!mutant(kNoFenceOfSuperblock[copy])) fence();
  }
  // relaxed: sessions put it into segment headers, where any durable number is right.
  pool_.checkpoint_number.store(image.fixed.checkpoint_number, std::memory_order_relaxed);
  for (index::Slab* slab : dirty_slabs_) slab_is_dirty_[slab->number] = false;
  dirty_slabs_.clear();
  freed_slabs_.clear();
}

void Checkpointer::swing() {
  // Without concurrency control no lock keeps writers away from an entry.
  if (pool_.options().policy == CommitPolicy::ideal) return;
  for (const Captured& c : captured_) {
    breathe();
    swing_one(c);
  }
}

// The home copy is the newest version: let the entry say so, and retire the DRAM copy.
void Checkpointer::swing_one(const Captured& c) {
  emu::step(emu::Step::checkpoint_swing);
  std::uint64_t found = 0;
  std::uint64_t word0 = c.seen.word0;
  if (mutant(Mutant::checkpoint_swings_newer_versions)) {
    word0 = c.place.entry().word0() & ~index::kLock;
  }
  if (!c.place.entry().try_lock(word0, &found)) {
    // Newer: the next checkpoint finds it. Locked: perhaps only to be unlocked unchanged.
    if (found == (c.seen.word0 | index::kLock)) not_swung_.push_back(c.offset);
    return;
  }
  // The stamp stays, so that a later writer gets a larger one and readers are not disturbed.
  if (mutant(Mutant::checkpoint_zeroes_stamps)) word0 = 0;
  c.place.entry().publish(word0, index::pack_word1(c.seen.session(), 0));
  if (!c.seen.destroyed())
    versions_.retire(c.seen.version(), c.size8, pool_.epochs().retirement_epoch());
}

void Checkpointer::recycle(base::Stamp floor) {
  emu::step(emu::Step::checkpoint_recycle);
  freed_slabs_ = pool_.slabs().free_empty_slabs(floor);
  slabs_freed_.add(freed_slabs_.size());
  // Helpers may still be flushing from segments whose records are all committed.
  wait_for_grace();
  for (const auto& s : pool_.all_shared()) {
    s->head.store(heads_[s->id], std::memory_order_relaxed);  // relaxed: the flusher looks again
    base::Stamp idle = kIdle;
    // Keeps the owner from starting a record while its last run is taken away.
    const bool held = s->announced.compare_exchange_strong(idle, kHeld, std::memory_order_seq_cst);
    s->log.recycle(floor, held);
    if (held) s->announced.store(kIdle, std::memory_order_release);
  }
  versions_.collect();
  {
    const std::lock_guard guard(orphans_mutex_);
    orphans_.collect();
  }
  pool_.slabs().reclaim();
}

// Returns when everyone pinned now has unpinned. REQUIRES: not pinned.
void Checkpointer::wait_for_grace() {
  const auto target = pool_.epochs().current() + 2;
  emu::Spin spin;
  while (pool_.epochs().current() < target) {
    if (!pool_.epochs().try_advance()) spin.rest();
  }
}

void Checkpointer::inherit(VersionPool& versions) {
  const std::lock_guard guard(orphans_mutex_);
  versions.bequeath(orphans_);
  orphans_.collect();  // where nothing is logged there are no checkpoints to do it
}

// ------------------------------------------------------------------------------------ background

void Checkpointer::start() {
  if (!pool_.options().checkpoint.background || !pool_.logs()) return;
  thread_ = emu::Thread([this] { work(); });
}

void Checkpointer::stop() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::request() noexcept {
  {
    const std::lock_guard guard(mutex_);
    requested_ = true;
  }
  changed_.notify_all();
}

void Checkpointer::run_in_background() {
  const std::lock_guard guard(running_);
  in_background_ = true;
  run_locked(false);
}

// Whether nobody waits for this checkpoint, nor will soon for log space.
bool Checkpointer::at_leisure() {
  // relaxed: as in take_turn().
  if (!in_background_ || waiting_.load(std::memory_order_relaxed) != 0) return false;
  const log::SegmentPool& segments = pool_.segments();
  if (segments.used() > segments.total() / 4 * 3) return false;
  const std::lock_guard guard(mutex_);
  return !stopping_;
}

void Checkpointer::work() {
  const std::uint32_t interval_ms = pool_.options().checkpoint.interval_ms;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto wake = [this] { return stopping_ || requested_; };
    if (interval_ms == 0) {
      changed_.wait(lock, wake);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(interval_ms), wake);
    }
    if (stopping_) return;
    requested_ = false;
    lock.unlock();
    try {
      if (pool_.has_news()) run_in_background();
    } catch (const std::exception&) {
      return;  // the pool is poisoned; everyone who waits is told by the persister
    }
    lock.lock();
  }
}

}  // namespace sp3::runtime
