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
#include <cerrno>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include <sp3/error.h>

#include "base/atomic.h"
#include "base/fence.h"
#include "base/mutant.h"
#include "base/no_cancellation.h"
#include "base/plain_access.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "log/record_walker.h"
#include "runtime/pool_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {
// A carrier takes so many words of a slab's names at a time: 4096 objects.
constexpr std::size_t kWordsAtOnce = 64;
constexpr base::Lsn kUnknown = ~base::Lsn{0};
constexpr int kFloorsTried = 8;
// Between two looks whether there is memory again.
constexpr std::chrono::milliseconds kWithoutMemory(100);
}  // namespace

Checkpointer::Checkpointer(PoolCore& pool)
    : pool_(pool),
      named_(pool.layout().slabs),
      slab_is_dirty_(pool.layout().slabs, false),
      heads_(pool.layout().max_sessions, 1),
      next_heads_(heads_),
      last_settled_(pool.layout().max_sessions),
      orphans_(pool.versions(), pool.epochs()) {
  named_slabs_.reserve(pool.layout().slabs);
  dirty_slabs_.reserve(pool.layout().slabs);
  const auto leisure = [this] { return at_leisure(); };
  for (std::size_t i = 0; i < pool.checkpoint_threads(); ++i) {
    carriers_.push_back(
        std::make_unique<HomeCarrier>(pool, pool.participant_of_carrier(i), leisure));
  }
}

Checkpointer::~Checkpointer() {
  stop();
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
  const base::NoCancellation whole;
  pool_.persister().throw_if_poisoned();
  if (is_done_) return;
  try {
    run_steps(last);
    is_done_ = last;
  } catch (const std::bad_alloc&) {
    throw;  // nothing is lost: whoever comes next goes on
  } catch (...) {
    // Nobody else hears it from the background.
    pool_.persister().poison(EIO, std::current_exception());
    throw;
  }
}

void Checkpointer::run_steps(bool last) {
  finish();  // what there was no memory for
  const auto started = emu::SteadyClock::now();
  const Choice choice = choose_floor();
  collect_names(choice);
  bring_home();
  for (index::Slab* carved : pool_.slabs().take_newly_carved()) note_dirty(carved);
  decide_superblock(choice.floor, last);
  finish();
  const std::chrono::nanoseconds took = emu::SteadyClock::now() - started;
  longest_ns_.raise_to(static_cast<std::uint64_t>(took.count()));
}

void Checkpointer::finish() {
  switch (stage_) {
    case Stage::copy_a:
      write_superblock(0);
      stage_ = Stage::copy_b;
      [[fallthrough]];
    case Stage::copy_b:
      if (!mutant(Mutant::checkpoint_writes_one_superblock)) write_superblock(1);
      note_written();
      stage_ = Stage::letting_go;
      [[fallthrough]];
    case Stage::letting_go:
      let_go();
      stage_ = Stage::recycling;
      [[fallthrough]];
    case Stage::recycling:
      recycle();
      count_.add(1);
      count_work();
      stage_ = Stage::bringing_home;
      [[fallthrough]];
    case Stage::bringing_home:
      break;
  }
}

void Checkpointer::count_work() noexcept {
  std::uint64_t lines = 0;
  std::uint64_t fences = 0;
  for (const auto& carrier : carriers_) {
    objects_.add(carrier->carried());
    lines += carrier->actor().counts.lines;
    fences += carrier->actor().counts.fences;
  }
  lines_.raise_to(lines);
  fences_.raise_to(fences);
}

// A floor beside which every session's head is known, if that lets the index give the names. A
// session runs far ahead of the floor while we have no core, more often than not when there are as
// many threads as cores. A higher floor costs a commit's time, and reading the log the caches.
Checkpointer::Choice Checkpointer::choose_floor() {
  for (int tries = 1;; ++tries) {
    const base::Stamp floor = raise_floor();
    // Whichever is less to read.
    if (!index_is_shorter_than_log()) return {floor, NamesFrom::log};
    if (heads_are_known()) return {floor, NamesFrom::index};
    if (tries == kFloorsTried) return {floor, NamesFrom::log};
  }
}

base::Stamp Checkpointer::raise_floor() {
  last_settled_.assign(last_settled_.size(), 0);
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
  // (2) Dekker: see runtime/owner_side.h. The fence comes once the sessions are listed.
  pool_.floor.store(floor, std::memory_order_release);
  if (mutant(Mutant::floor_settled_before_awaited)) {
    pool_.settled.store(floor, std::memory_order_release);
  }
  // Listed after the floor was published: a session that is missing was opened later (both take the
  // pool's mutex), and so reads the new floor before it takes its first stamp.
  if (!mutant(Mutant::checkpoint_lists_sessions_early)) sessions = pool_.all_shared();
  base::heavy_fence();
  for (const auto& s : sessions) {
    if (!mutant(Mutant::checkpoint_floor_not_awaited)) await_stamps_up_to(floor, *s);
  }
  // release: pairs with start_reading(), which so sees what we have seen published.
  emu::touch(emu::Line::floor, 0, emu::Access::store);
  pool_.settled.store(floor, std::memory_order_release);
  return floor;
}

// Returns when every transaction of the session with a stamp up to `floor` is committed.
void Checkpointer::await_stamps_up_to(base::Stamp floor, SessionShared& session) {
  emu::Spin spin;
  while (true) {
    const base::Stamp announced = session.announced.load(std::memory_order_acquire);  // (4)
    if (announced == kIdle || announced > floor) break;
    spin.pause();
  }
  // At once, before the session runs away from it.
  last_settled_[session.id] = session.last_sealed_up_to(floor).value_or(kUnknown);
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
  if (covered != 0) pool_.persister().wait({covered, session.id}, own().actor());
}

// The objects that transactions up to the floor have changed, and perhaps others, each once, as a
// bitmap for each slab. Also moves the sessions' heads: the first LSN that recovery will still
// need. The log names the objects, and the index knows them.
void Checkpointer::collect_names(const Choice& choice) {
  next_heads_ = heads_;
  switch (choice.names) {
    case NamesFrom::index:
      collect_from_index();
      break;
    case NamesFrom::log:
      collect_from_log(choice.floor);
      break;
  }
  std::sort(named_slabs_.begin(), named_slabs_.end());
}

bool Checkpointer::heads_are_known() const {
  return std::find(last_settled_.begin(), last_settled_.end(), kUnknown) == last_settled_.end();
}

bool Checkpointer::index_is_shorter_than_log() const {
  std::uint64_t segments = 0;
  for (const auto& session : pool_.all_shared()) {
    for (const log::SessionLog::Run& run : session->log.runs()) segments += run.segments;
  }
  return pool_.slabs().index_bytes() < segments * pool_.layout().segment_size;
}

// REQUIRES: heads_are_known(), and everything up to the floor is settled, hence published: an entry
// that says "at home" by now has no version up to the floor that is not.
void Checkpointer::collect_from_index() {
  for (std::size_t id = 0; id < heads_.size(); ++id) {
    next_heads_[id] = std::max(heads_[id], last_settled_[id] + 1);
  }
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
  for (const auto& carrier : carriers_) carrier->forget_not_swung();  // they were not at home
}

void Checkpointer::collect_from_log(base::Stamp floor) {
  for (const auto& carrier : carriers_) {
    for (const std::uint64_t offset : carrier->not_swung()) name(offset);
    carrier->forget_not_swung();
  }
  for (const auto& session : pool_.all_shared()) {
    emu::step(emu::Step::checkpoint_collect);
    if (session->sealed.load(std::memory_order_acquire) != 0) collect_session(*session, floor);
  }
}

void Checkpointer::collect_session(SessionShared& session, base::Stamp floor) {
  // Only what was persisted when the floor settled is read: it does not change any more, and it
  // covers all stamps up to the floor.
  const base::Lsn upto = session.persisted_lsn.load(std::memory_order_acquire);
  base::Lsn& head = next_heads_[session.id];
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
    base::plain_read(record.data(), record.length());
    if (record.stamp() > floor) return;
    head = record.lsn() + 1;
    record.for_each_write([&](const log::WriteView& write) { name(write.slot); });
  });
  // A record missed would be lost with its segment.
  if (end != upto + 1) throw_damaged(session.id, upto, end - 1);
}

void Checkpointer::throw_damaged(base::SessionId session, base::Lsn wanted, base::Lsn found) const {
  throw Error(
      ErrorCode::damaged_log,
      "the log of session " + std::to_string(session) + " was damaged while the pool was open",
      {.path = pool_.path(),
       .wanted = "its records up to LSN " + std::to_string(wanted),
       .found = "those up to LSN " + std::to_string(found)});
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

// Carries what was named, in address order.
void Checkpointer::bring_home() {
  std::vector<NamedObjects> work;
  for (const std::uint32_t number : named_slabs_) {
    const std::size_t words = named_[number].size();
    for (std::size_t word = 0; word < words; word += kWordsAtOnce) {
      work.push_back(
          {pool_.slabs().at(number), &named_[number], word, std::min(words, word + kWordsAtOnce)});
    }
  }
  for (const auto& carrier : carriers_) carrier->begin();
  carrying_ = std::clamp<std::size_t>(work.size(), 1, carriers_.size());
  base::Atomic<std::size_t> next{0};
  for_carriers_at_work([&](HomeCarrier& carrier) {
    // relaxed: only a number.
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < work.size();) {
      carrier.carry(work[i]);
    }
    carrier.finish();
    // (P15) a fence orders what its own thread has flushed; a single one's is (P2)
    if (carriers_.size() > 1 && !mutant(Mutant::no_fence_of_carriers)) carrier.fence();
  });
  for (const std::uint32_t number : named_slabs_) named_[number] = {};
  named_slabs_.clear();
  for (const auto& carrier : carriers_) {
    for (index::Slab* slab : carrier->take_dirty_slabs()) note_dirty(slab);
  }
}

void Checkpointer::note_dirty(index::Slab* slab) noexcept {
  if (slab_is_dirty_[slab->number]) return;
  slab_is_dirty_[slab->number] = true;
  dirty_slabs_.push_back(slab);
}

void Checkpointer::write_metadata(int copy) {
  emu::FlushCounts& counts = own().actor().counts;
  for (const std::uint32_t number : freed_slabs_) pool_.slabs().store_freed(number, copy, counts);
  for (index::Slab* slab : dirty_slabs_) pool_.slabs().store_metadata(*slab, copy, counts);
}

// What both copies say.
void Checkpointer::decide_superblock(base::Stamp floor, bool last) noexcept {
  floor_ = floor;
  pool::SuperblockImage& image = pool_.superblock_;
  image.fixed.number += 1;
  image.fixed.checkpoint_number += 1;
  if (!mutant(Mutant::checkpoint_floor_not_stored)) image.fixed.floor = floor;
  image.fixed.largest_stamp = std::max(image.fixed.largest_stamp, floor);
  image.fixed.state = static_cast<std::uint32_t>(last ? pool::State::clean : pool::State::open);
  heads_ = next_heads_;  // of one size: takes no memory
  if (!mutant(Mutant::checkpoint_heads_not_stored)) image.heads = heads_;
  // Carved again: its own description follows.
  std::erase_if(freed_slabs_, [&](std::uint32_t n) { return !pool_.slabs().is_free(n); });
  stage_ = Stage::copy_a;
}

void Checkpointer::write_superblock(int copy) {
  constexpr emu::Step kMetadata[2] = {emu::Step::checkpoint_metadata_a,
                                      emu::Step::checkpoint_metadata_b};
  constexpr emu::Step kSuperblock[2] = {emu::Step::checkpoint_superblock_a,
                                        emu::Step::checkpoint_superblock_b};
  constexpr Mutant kNoFenceOfMetadata[2] = {Mutant::no_fence_checkpoint_metadata_a,
                                            Mutant::no_fence_checkpoint_metadata_b};
  constexpr Mutant kNoFenceOfSuperblock[2] = {Mutant::no_fence_checkpoint_superblock_a,
                                              Mutant::no_fence_checkpoint_superblock_b};
  emu::step(kMetadata[copy]);
  write_metadata(copy);
  // (P2, P4) homes and this copy's metadata before the superblock that vouches for them
  if (!mutant(kNoFenceOfMetadata[copy])) own().fence();
  emu::step(kSuperblock[copy]);
  pool::write_superblock(pool_.memory(), pool_.layout(), copy, pool_.superblock_,
                         own().actor().counts);
  // (P3, P5) both superblocks before anything they make obsolete is reused
  if (!mutant(kNoFenceOfSuperblock[copy])) own().fence();
}

// Both copies have what they hold.
void Checkpointer::note_written() noexcept {
  const pool::Superblock& written = pool_.superblock_.fixed;
  // relaxed: sessions put it into segment headers, where any durable number is right.
  pool_.checkpoint_number.store(written.checkpoint_number, std::memory_order_relaxed);
  pool_.checkpoint_floor.store(written.floor, std::memory_order_relaxed);  // for people
  for (index::Slab* slab : dirty_slabs_) slab_is_dirty_[slab->number] = false;
  dirty_slabs_.clear();
  freed_slabs_.clear();
}

// What locks objects: beside a lone session too, which must know.
void Checkpointer::let_go() {
  pool_.company.carriers_come();
  const base::ScopeExit gone([this] { pool_.company.carriers_go(); });
  if (!mutant(Mutant::carriers_do_not_wait)) pool_.await_commits_under_way();
  swing();
  freed_slabs_ = pool_.slabs().free_empty_slabs(floor_);
  slabs_freed_.add(freed_slabs_.size());
}

void Checkpointer::swing() {
  // Without concurrency control no lock keeps writers away from an entry.
  if (pool_.options().policy == CommitPolicy::ideal) return;
  for_carriers_at_work([](HomeCarrier& carrier) { carrier.swing(); });
}

void Checkpointer::recycle() {
  emu::step(emu::Step::checkpoint_recycle);
  // Helpers may still be flushing from segments whose records are all committed.
  pool_.wait_for_grace();
  for (const auto& s : pool_.all_shared()) {
    s->head.store(heads_[s->id], std::memory_order_relaxed);  // relaxed: the flusher looks again
    // Keeps the owner from starting a record while its last run is taken away.
    s->held.store(true, std::memory_order_relaxed);  // relaxed: the fence orders it
    base::heavy_fence();
    const bool is_idle = s->announced.load(std::memory_order_acquire) == kIdle;
    if (!is_idle) s->held.store(false, std::memory_order_relaxed);
    s->log.recycle(floor_, is_idle);
    if (is_idle) s->held.store(false, std::memory_order_release);
  }
  for (const auto& carrier : carriers_) carrier->collect();
  {
    const std::lock_guard guard(orphans_mutex_);
    orphans_.collect();
  }
  pool_.slabs().reclaim();
}

// Threads of our own and not an executor's: a process may fork at any time, and a child in which
// oneTBB's locks were inherited held could not open a pool.
void Checkpointer::for_carriers_at_work(const std::function<void(HomeCarrier&)>& body) {
  std::vector<std::exception_ptr> errors(carrying_);
  const auto guarded = [&](std::size_t i) noexcept {
    try {
      body(*carriers_[i]);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::vector<emu::Thread> others;
  others.reserve(carrying_);
  std::size_t started = 1;
  try {
    for (; started < carrying_; ++started) {
      others.emplace_back([&guarded, i = started] { guarded(i); });
    }
  } catch (const std::exception&) {  // no more threads, or no memory for them
    // What they would do is done by this one.
  }
  guarded(0);
  for (; started < carrying_; ++started) guarded(started);
  for (emu::Thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::uint64_t Checkpointer::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& carrier : carriers_) sum += carrier->bytes();
  return sum;
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
  bool owed = false;  // one that had no memory, of whose stamps nobody will hear again
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto wake = [this] { return stopping_ || requested_; };
    if (owed) {
      // The core is for those who give memory back, however often they ask for a checkpoint.
      changed_.wait_for(lock, kWithoutMemory, [this] { return stopping_; });
    } else if (interval_ms == 0) {
      changed_.wait(lock, wake);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(interval_ms), wake);
    }
    if (stopping_) return;
    requested_ = false;
    lock.unlock();
    try {
      if (owed || pool_.has_news()) run_in_background();
      owed = false;
    } catch (const std::exception&) {
      // A checkpoint that failed has poisoned the pool; who waits is told by the persister.
      if (pool_.persister().is_poisoned()) return;
      owed = true;  // no memory for one, or to see whether it is needed
    }
    lock.lock();
  }
}

}  // namespace sp3::runtime
