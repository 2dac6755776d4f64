// The read phase: what a body does to objects before commit.
//
// Opacity. What has a stamp up to the last settled floor (PoolCore::settled) was published, all of
// it, before the attempt began, and nobody takes such a stamp any more: versions up to it are
// consistent with each other, and were current when the attempt began (docs/adr/0019). When another
// version is met, everything read before is found unchanged and unlocked; one object alone is
// always consistent. From the second time on, with more than a few objects, an attempt gets a
// snapshot: a clock value taken before everything read so far is found unchanged and unlocked. A
// version read later whose stamp is below the snapshot was published by a transaction that held all
// its locks before that moment, so everything it wrote is visible to us too. For a version at or
// above it the check is repeated, with a new snapshot. Where the clocks of cores disagree, a count
// of those who publish stands in for the clock: while it is what it was before the last check,
// whoever wrote the version had counted itself, and so held all its locks, before that. Strict
// serializability does not rest on this (clocks may lie): commit validates every read again, but of
// a read-only transaction that has met nothing but settled versions, or has compared everything
// after its last read.
#include <algorithm>
#include <cstring>
#include <string>

#include <sp3/detail/prefetch_lines.h>
#include <sp3/error.h>

#include "base/mutant.h"
#include "base/replace.h"
#include "emu/clock.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "emu/touch.h"
#include "runtime/describe_type.h"
#include "runtime/pool_core.h"
#include "runtime/ranged.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {

// A lock is held for the few hundred nanoseconds between lock and publish (conservative: plus a
// flush). Whoever holds it longer has probably lost its core; then it is cheaper to start over.
constexpr std::uint32_t kLockSpins = 32;

// Up to this many objects, comparing all versions again costs less than reading the clock, which
// must wait for every load before it.
std::size_t read_without_snapshot() noexcept { return base::scaled<std::size_t>(4, 4, 1); }

}  // namespace

void SessionCore::start_reading() {
  if (!is_running()) [[unlikely]]
    fail_outside_body();
  emu::step(emu::Step::epoch_pin);
  emu::touch(emu::Line::epoch_global, 0, emu::Access::load);
  const base::EpochDomain::Epoch epoch = epochs_.current();
  emu::touch(
      emu::Line::epoch_slot, actor_.participant,
      epochs_.rests_at(actor_.participant, epoch) ? emu::Access::store : emu::Access::exchange);
  epochs_.pin_at(actor_.participant, epoch);
  emu::touch(emu::Line::floor, 0, emu::Access::load);
  see_who_is_there();
  base::replace(snapshot_, base::Stamp{0});
  base::replace(compared_, std::size_t{0});
  reading_ = true;
}

// A lone session finds nothing but what is committed, and what it has in flight itself. Whoever was
// disturbed once goes on as in company, so that no arrival disturbs it twice.
[[gnu::always_inline]] inline void SessionCore::see_who_is_there() {
  const Company::Word company = company_.look();
  const bool is_alone = Company::is_one(company) && contention_.failures() == 0 &&
                        policy_ != CommitPolicy::ideal && !persister_.is_poisoned();
  // relaxed, both: our own numbers.
  const bool is_calm = is_alone && shared_->committed.load(std::memory_order_relaxed) ==
                                       shared_->sealed.load(std::memory_order_relaxed);
  // acquire: pairs with raise_floor(). Read before any version is.
  base::Stamp settled = pool_->settled.load(std::memory_order_acquire);
  if (is_calm) {
    settled = base::kMaxStamp;
  } else if (is_alone) {
    settled = std::max(settled, shared_->mark.committed_stamp.load(std::memory_order_acquire));
  }
  base::replace(lone_, is_alone ? company : Company::kOthers);
  base::replace(calm_, is_calm ? company : Company::kOthers);
  base::replace(settled_, settled + 1);
}

// What would be read now nobody would unpin, and what would be written would be the next one's.
[[gnu::cold]] void SessionCore::fail_outside_body() const {
  throw Error(ErrorCode::transaction_over,
              "a Transaction is used outside the function that it was given to",
              {.path = pool_->path(), .found = "session " + std::to_string(id_)});
}

// Whether a mutant takes the version for unchanged.
inline bool SessionCore::is_overlooked(const ReadEntry& read, std::uint64_t word0) noexcept {
  const bool locked = (word0 & index::kLock) != 0;
  if (mutant(Mutant::validation_ignores_versions)) return !locked;
  if (mutant(Mutant::validation_ignores_locks)) return (word0 ^ read.word0) == index::kLock;
  return (mutant(Mutant::validation_trusts_own_locks) ||
          mutant(Mutant::read_and_locked_unvalidated)) &&
         locked && writes_.holds_lock(read.offset);
}

bool SessionCore::reads_still_hold() noexcept {
  if (is_lone()) return is_still_lone();
  for (const ReadEntry& read : reads_) {
    emu::touch(emu::Line::entry, read.offset, emu::Access::check);
    const std::uint64_t now = read.entry->word0();
    if (now == read.word0) continue;
    if (now == (read.word0 | index::kLock) && writes_.holds_lock(read.offset)) continue;
    if (is_overlooked(read, now)) continue;
    return false;
  }
  for (const WriteEntry& write : writes_.entries()) {
    if (!write.locked && write.entry().word0() != write.seen.word0 &&
        write.mode != WriteMode::patch) {
      return false;
    }
  }
  return true;
}

// An error the library itself raises must be true of a consistent state: an attempt that read an
// inconsistent one is retried instead.
void SessionCore::fail(ErrorCode code, const char* message, std::uint64_t offset,
                       const std::string& wanted, const std::string& found) {
  if (!reads_still_hold()) conflict(Conflict::changed);
  throw Error(code, message,
              {.path = pool_->path(), .offset = offset, .wanted = wanted, .found = found});
}

void SessionCore::report_damage(std::uint64_t offset, const char* message,
                                const std::string& wanted, const std::string& found) {
  begin_operation();
  fail(ErrorCode::damaged_metadata, message, offset, wanted, found);
}

void SessionCore::fail_to_locate(index::Place place, std::uint64_t offset,
                                 const detail::TypeInfo& type) {
  if (offset == 0) fail(ErrorCode::invalid_pointer, "the pointer is null", 0, "an object", "null");
  if (place.slab == nullptr) {
    fail(ErrorCode::invalid_pointer, "the pointer does not name an object of this pool", offset,
         "the start of an object", "an offset where none starts");
  }
  fail(ErrorCode::wrong_type, "the object has another type", offset, describe_type(type),
       describe_type({.fingerprint = place.slab->type, .size = place.slab->type_size}));
}

inline index::Place SessionCore::locate(std::uint64_t offset, const detail::TypeInfo& type) {
  const index::Place place = slabs_.find(offset);
  if (place.slab == nullptr || !place.slab->holds(type)) [[unlikely]]
    fail_to_locate(place, offset, type);
  return place;
}

index::Seen SessionCore::observe_patiently(const index::Entry& entry) {
  index::Seen seen;
  emu::Spin spin;
  while (!entry.try_read(seen)) {
    if (spin.rounds() >= kLockSpins) conflict(Conflict::locked);
    spin.pause(1 + spin.rounds() / 2);  // the holder needs the line too: look less and less often
  }
  return seen;
}

// The entry's two words, when nobody is in the way.
index::Seen SessionCore::observe(index::Place place, std::uint64_t offset) {
  emu::step(emu::Step::entry_read);
  emu::touch(emu::Line::entry, offset, emu::Access::check);
  const index::Seen seen = observe_patiently(place.entry());
  start_over_in_company();
  return seen;
}

void SessionCore::admit_newer(const index::Seen& seen) {
  if (reads_.size() + writes_.size() == 1) return;  // one version alone is consistent
  if (seen.stamp() >= snapshot_) revalidate();
}

// The same for the last of those read.
void SessionCore::admit_newer_read(const index::Seen& seen) {
  const ReadEntry& read = reads_.last();
  if (reads_.has_lately(*read.entry, read.word0, 1)) return reads_.drop_last();  // nothing new
  reads_.note_unsettled(seen);
  admit_newer(seen);
}

// What was read before is still current, so all of it was when the newest was read. A few versions
// are compared again each time, and many the first time, which costs less than the clock; after
// that a snapshot is bought, below which nothing needs a comparison.
void SessionCore::revalidate() {
  if (is_lone()) return;  // it looked for company when it saw the version
  if (policy_ == CommitPolicy::ideal) return;
  if (mutant(Mutant::reads_not_compared)) return;
  const std::size_t seen = reads_.size() + writes_.size();
  if (seen <= read_without_snapshot() || compared_ == 0) {
    if (!reads_still_hold()) conflict(Conflict::changed);
    compared_at_ = kNeverCompared;
  } else if (pool_->clock().is_synchronised()) {
    const base::Stamp now = pool_->clock().snapshot_at(emu::ticks_before_loads());
    if (!reads_still_hold()) conflict(Conflict::changed);
    snapshot_ = std::max(snapshot_, now);
  } else {
    return revalidate_by_count();
  }
  compared_ = seen;
}

void SessionCore::revalidate_by_count() {
  // acquire: pairs with publish(). What those who have counted themselves had locked, we see locked
  // or changed; and we find the count raised if a version that we have read came after it.
  const std::uint64_t publishers = pool_->publishers.load(std::memory_order_acquire);
  if (publishers == compared_at_) return;
  emu::interleave();
  if (!reads_still_hold()) conflict(Conflict::changed);
  compared_at_ = publishers;
  compared_ = reads_.size() + writes_.size();
}

// The version will be looked at.
inline void SessionCore::touch_version(index::Place place, index::Seen seen,
                                       std::uint64_t offset) noexcept {
  emu::touch(emu::Line::version, offset, seen.at_home() ? emu::Access::load : emu::Access::follow,
             place.slab->type_size);
}

// The version's bytes: in DRAM, or at home; null if there is no object.
inline const std::byte* SessionCore::find_bytes(index::Place place, index::Seen seen,
                                                std::uint64_t offset) const noexcept {
  if (!seen.at_home()) return seen.destroyed() ? nullptr : seen.version();
  return place.slab->home_holds_object(place.slot) ? view_ + offset : nullptr;
}

inline const std::byte* SessionCore::bytes_of(index::Place place, index::Seen seen,
                                              std::uint64_t offset) {
  touch_version(place, seen, offset);
  const std::byte* bytes = find_bytes(place, seen, offset);
  if (bytes == nullptr) [[unlikely]]
    fail_on_free_slot(place.entry(), seen, offset);
  tell_of_reading(place, bytes);
  return bytes;
}

void SessionCore::fail_on_free_slot(index::Entry& entry, index::Seen seen, std::uint64_t offset) {
  // What we know about the object is part of what must be consistent.
  reads_.add(entry, offset, seen.word0);
  reads_.note_unsettled(seen);
  fail(ErrorCode::destroyed_object, "the object was destroyed, or never made", offset, "an object",
       "a free slot");
}

// The transaction's private copy of the object; null if it has none.
inline std::byte* SessionCore::own_copy(std::uint64_t offset, const detail::TypeInfo& type) {
  const WriteEntry* own = writes_.find(offset);
  if (own == nullptr) [[likely]]
    return nullptr;
  check_own(*own, type);
  SP3_ASSERT(own->mode != WriteMode::patch);  // chunks are not for users to name
  return own->copy;
}

// Whether the object of the write set has that type, and still is one.
void SessionCore::check_own(const WriteEntry& own, const detail::TypeInfo& type) {
  if (!own.place.slab->holds(type)) locate(own.offset, type);  // reports
  if (own.mode != WriteMode::destroy && own.mode != WriteMode::nothing) return;
  fail(ErrorCode::destroyed_object, "the object was destroyed by this transaction", own.offset,
       "an object", "a destroyed one");
}

// What nearly every operation finds: the transaction has not written the object, which is there,
// and nobody is in the way. False: it has to be looked at more closely, and nothing has been done.
//
// Of this, and of what its two callers do with it, nothing calls a function but as the last thing
// it does. So no register is saved, and what was seen stays in registers; where it met, in memory,
// with what another way had found, the words alone were twelve cycles of each read, one after the
// other down a tree. And stores are few: the core runs ahead of the last commit's fence only as far
// as its store buffer reaches.
[[gnu::always_inline]] inline bool SessionCore::find_unhindered(std::uint64_t offset,
                                                                const detail::TypeInfo& type,
                                                                Found& found) noexcept {
  if (doomed_ || writes_.may_hold(offset)) [[unlikely]]
    return false;
  found.place = slabs_.find_loaded(offset);
  if (found.place.slab == nullptr || !found.place.slab->holds(type)) [[unlikely]]
    return false;
  if (!emu::try_step(emu::Step::entry_read)) [[unlikely]]
    return false;
  emu::touch(emu::Line::entry, offset, emu::Access::check);
  if (!found.place.entry().try_read(found.seen)) [[unlikely]]
    return false;
  found.bytes = find_bytes(found.place, found.seen, offset);
  return found.bytes != nullptr;
}

[[gnu::always_inline]] inline const void* SessionCore::version_to_read(
    std::uint64_t offset, const detail::TypeInfo& type) {
  if (!reading_) [[unlikely]]
    return read_first(offset, type);
  Found found;
  if (!find_unhindered(offset, type, found)) [[unlikely]]
    return read_closely(offset, type);
  touch_version(found.place, found.seen, offset);
  tell_of_reading(found.place, found.bytes);
  const Company::Word company = company_.look();
  if (company == calm_) return found.bytes;
  if (company == lone_) {
    return is_settled(found.seen) ? found.bytes
                                  : read_in_flight(found.seen.word0, found.seen.word1, found.bytes);
  }
  if (is_lone() || !reads_.has_room()) [[unlikely]]
    return read_closely(offset, type);
  reads_.add_in_room(found.place.entry(), offset, found.seen.word0);
  return is_settled(found.seen) ? found.bytes
                                : read_newer(found.seen.word0, found.seen.word1, found.bytes);
}

const std::byte* SessionCore::read_newer(std::uint64_t word0, std::uint64_t word1,
                                         const std::byte* bytes) {
  operate([&] { admit_newer_read({word0, word1}); });
  return bytes;
}

// What a lone session reads that it does not know to be committed. What others have left is. Its
// own transactions commit in order, so the last one stands for all. Reads that were hindered have
// noted those of others too.
const std::byte* SessionCore::read_in_flight(std::uint64_t word0, std::uint64_t word1,
                                             const std::byte* bytes) {
  const index::Seen seen{word0, word1};
  if (seen.session() != id_) return bytes;
  const base::ReusedList<index::Seen>& noted = reads_.unsettled();
  if (noted.empty() || noted.end()[-1].session() != id_ || noted.end()[-1].stamp() < seen.stamp()) {
    operate([&] { reads_.note_unsettled(seen); });
  }
  return bytes;
}

// The newest version, whatever the transaction has written itself. It becomes part of what must
// hold together.
const std::byte* SessionCore::read_newest(std::uint64_t offset, const detail::TypeInfo& type) {
  const index::Place place = locate(offset, type);
  const index::Seen seen = observe(place, offset);
  reads_.add(place.entry(), offset, seen.word0);
  if (!is_settled(seen)) admit_newer_read(seen);
  return bytes_of(place, seen, offset);
}

const void* SessionCore::read(std::uint64_t offset, const detail::TypeInfo& type) {
  return version_to_read(offset, type);
}

const void* SessionCore::read_first(std::uint64_t offset, const detail::TypeInfo& type) {
  begin_operation();
  return version_to_read(offset, type);
}

const void* SessionCore::read_closely(std::uint64_t offset, const detail::TypeInfo& type) {
  return operate([&] { return find_version(offset, type); });
}

const void* SessionCore::find_version(std::uint64_t offset, const detail::TypeInfo& type) {
  begin_operation();
  if (const std::byte* copy = own_copy(offset, type)) {
    if (!mutant(Mutant::reads_miss_own_writes)) return copy;
    constexpr std::size_t kMany = 8;
    const WriteEntry* own = writes_.find(offset);
    const bool has_old = own->mode == WriteMode::update && own->base != nullptr;
    return has_old && reads_.size() > kMany ? own->base : copy;
  }
  return read_newest(offset, type);
}

void SessionCore::prefetch_first(std::uint64_t offset, std::uint64_t bytes,
                                 bool for_write) noexcept {
  if (!is_running()) return;
  start_reading();
  prefetch(offset, bytes, for_write);
}

void SessionCore::prefetch(std::uint64_t offset, std::uint64_t bytes, bool for_write) noexcept {
  if (doomed_) return;
  if (!reading_) return prefetch_first(offset, bytes, for_write);
  const index::Place place = slabs_.find_loaded(offset);
  if (place.slab == nullptr) return;
  if (for_write) {
    ask_for_lock(place.entry(), offset);
  } else {
    emu::prefetch(emu::Line::entry, offset, false);
  }
  emu::prefetch(emu::Line::version, offset, false,
                std::min<std::uint64_t>(bytes, detail::prefetched_bytes));
  const std::byte* at = place.entry().newest_version();
  if (at == nullptr) at = view_ + offset;
  detail::prefetch_lines(at, bytes);
}

// Takes the entry's lock, waiting a little; or says what stood in the way: another's lock, or
// (unless it is a patch) another version than the one that was seen.
std::optional<SessionCore::Conflict> SessionCore::try_lock_patiently(WriteEntry& entry) {
  emu::Spin spin;
  std::uint64_t found = 0;
  while (!entry.entry().try_lock(entry.seen.word0, &found)) {
    if (found != (entry.seen.word0 | index::kLock)) {
      if (entry.mode != WriteMode::patch) return Conflict::changed;
      // A patch goes over any version.
      entry.seen.word0 = found & ~index::kLock;
      if (found == entry.seen.word0) continue;
    }
    if (spin.rounds() >= kLockSpins) return Conflict::locked;
    spin.pause(1 + spin.rounds() / 2);
  }
  entry.locked = true;
  return std::nullopt;
}

// The version that is found is what the write set's new entry replaces.
WriteEntry& SessionCore::open_for_write(std::uint64_t offset, const detail::TypeInfo& type,
                                        WriteMode mode) {
  const index::Place place = locate(offset, type);
  ask_for_lock(place.entry(), offset);
  const index::Seen seen = observe(place, offset);
  WriteEntry& entry = writes_.add({.place = place,
                                   .offset = offset,
                                   .base = bytes_of(place, seen, offset),
                                   .seen = seen,
                                   .clear_padding = type.clear_padding,
                                   .size8 = size8_of(type),
                                   .mode = mode});
  if (!mutant(Mutant::read_and_locked_unvalidated)) admit(seen);
  if (!locks_at_commit_ && policy_ != CommitPolicy::ideal) {
    if (const std::optional<Conflict> met = try_lock(entry)) conflict(*met);
  }
  return entry;
}

// What the transaction's new copy begins as. Of what is replaced it is known only that it is there.
inline void* SessionCore::begin_copy(const WriteEntry& entry) noexcept {
  if (entry.base == nullptr) return entry.copy;
  return std::memcpy(entry.copy, entry.base, entry.size8);
}

template <Content kContent>
[[gnu::always_inline]] inline void* SessionCore::copy_to_write(std::uint64_t offset,
                                                               const detail::TypeInfo& type) {
  if (!reading_) [[unlikely]]
    return write_first<kContent>(offset, type);
  Found found;
  if (!locks_at_commit_ || !writes_.has_room() || !find_unhindered(offset, type, found))
      [[unlikely]] {
    return write_closely(offset, type, kContent);
  }
  if (kContent == Content::same) {
    touch_version(found.place, found.seen, offset);
    tell_of_reading(found.place, found.bytes);
  }
  if (is_lone() && !is_still_lone()) [[unlikely]]
    return write_closely(offset, type, kContent);
  ask_for_lock(found.place.entry(), offset);
  const std::uint32_t size8 = size8_of(type);
  if (!versions_.has_free(size8)) [[unlikely]]
    return write_closely(offset, type, kContent);
  const WriteEntry& entry =
      writes_.add_in_room({.place = found.place,
                           .offset = offset,
                           .copy = versions_.take_free(size8),
                           .base = kContent == Content::same ? found.bytes : nullptr,
                           .seen = found.seen,
                           .clear_padding = type.clear_padding,
                           .size8 = size8});
  if (!is_lone() && !is_settled(found.seen) && !mutant(Mutant::read_and_locked_unvalidated))
    return write_newer(entry);
  return kContent == Content::same ? std::memcpy(entry.copy, entry.base, size8) : entry.copy;
}

void* SessionCore::write_newer(const WriteEntry& entry) {
  // Most objects are read, and then written.
  if (!reads_.has_lately(entry.entry(), entry.seen.word0)) admit_newer(entry.seen);
  return begin_copy(entry);
}

void* SessionCore::write(std::uint64_t offset, const detail::TypeInfo& type) {
  return copy_to_write<Content::same>(offset, type);
}

template <Content kContent>
void* SessionCore::write_first(std::uint64_t offset, const detail::TypeInfo& type) {
  begin_operation();
  return copy_to_write<kContent>(offset, type);
}

void* SessionCore::write_closely(std::uint64_t offset, const detail::TypeInfo& type,
                                 Content content) {
  return operate([&] { return make_copy(offset, type, content); });
}

void* SessionCore::make_copy(std::uint64_t offset, const detail::TypeInfo& type, Content content) {
  begin_operation();
  if (std::byte* copy = own_copy(offset, type)) return copy;
  WriteEntry& entry = open_for_write(offset, type, WriteMode::update);
  if (content == Content::replaced) entry.base = nullptr;
  entry.copy = versions_.allocate(entry.size8);
  return begin_copy(entry);
}

// ------------------------------------------------------------------------ for ranged objects

void SessionCore::make_ranged() { ranged_ = std::make_unique<RangedAccess>(*this); }

void SessionCore::begin_ranged_operation() {
  begin_operation();
  uses_ranges_ = true;
}

// The newest version of what nobody else may change, in the bytes that the caller will look at: it
// is current now and stays so. What was read before must still hold together with it.
const std::byte* SessionCore::read_held(std::uint64_t offset, const detail::TypeInfo& type,
                                        index::Seen& seen) {
  const index::Place place = locate(offset, type);
  seen = observe(place, offset);
  if (!is_settled(seen) && seen.stamp() >= snapshot_ && reads_.size() + writes_.size() != 0)
    revalidate();
  return bytes_of(place, seen, offset);
}

// A private copy whose bytes are yet to be written; the others follow at commit. Where there is no
// object, commit would say so too, but only that something has changed: in a damaged table, for
// ever.
WriteEntry& SessionCore::open_patch(std::uint64_t offset, const detail::TypeInfo& type) {
  const index::Place place = locate(offset, type);
  ask_for_lock(place.entry(), offset);
  index::Seen seen;  // what its lock will be tried on first
  if (!place.entry().try_read(seen)) {
    seen = {};
  } else if (place.is_free(seen)) [[unlikely]] {
    fail_on_free_slot(place.entry(), seen, offset);
  }
  WriteEntry& entry = writes_.add({.place = place,
                                   .offset = offset,
                                   .seen = seen,
                                   .size8 = size8_of(type),
                                   .mode = WriteMode::patch});
  entry.copy = versions_.allocate(entry.size8);
  return entry;
}

}  // namespace sp3::runtime

namespace sp3::detail {

const void* tx_read(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type) {
  return core.version_to_read(offset, type);
}
void* tx_write(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type) {
  return core.copy_to_write<runtime::Content::same>(offset, type);
}
void* tx_assign(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type) {
  return core.copy_to_write<runtime::Content::replaced>(offset, type);
}
void tx_prefetch(runtime::SessionCore& core, std::uint64_t offset, std::uint64_t bytes,
                 bool for_write) noexcept {
  core.prefetch(offset, bytes, for_write);
}
void tx_damaged(runtime::SessionCore& core, std::uint64_t offset, const char* message,
                const std::string& wanted, const std::string& found) {
  core.operate([&] { core.report_damage(offset, message, wanted, found); });
  __builtin_unreachable();
}
void tx_cancel(runtime::SessionCore& core) { core.cancel(); }

}  // namespace sp3::detail
