// Objects that a transaction makes or destroys.
#include <cstring>

#include <sp3/error.h>

#include "emu/spin.h"
#include "runtime/pool_core.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

std::vector<index::Place>& SessionCore::find_slots(const detail::TypeInfo& type) {
  try {
    return slots_.find(type);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::pool_full) throw;
    slab_waits_.any = true;
    if (writes_.size() > slab_waits_.furthest) {
      slab_waits_.furthest = writes_.size();
      slab_waits_.since_furthest = 0;
    }
    if (!pool_is_full() && logs_) conflict(Conflict::pool_full);
    throw;
  }
}

void SessionCore::refuse_without_locks() const {
  if (policy_ != CommitPolicy::ideal) return;
  throw Error(ErrorCode::unsupported,
              "objects cannot be made or destroyed without concurrency control",
              {.path = pool_->path(), .wanted = "another CommitPolicy", .found = "ideal"});
}

std::uint64_t SessionCore::make(const detail::TypeInfo& type, void** storage) {
  begin_operation();
  refuse_without_locks();
  std::vector<index::Place>& free = find_slots(type);
  const index::Place place = free.back();
  WriteEntry& entry = writes_.add({.place = place,
                                   .offset = place.slab->offset_of(place.slot),
                                   .clear_padding = type.clear_padding,
                                   .size8 = size8_of(type),
                                   .mode = WriteMode::make});
  free.pop_back();  // once the entry has it
  // The slot is ours alone; only the checkpointer may hold the lock, for an instant. Locked until
  // publish, so that no reader meets a half-born object.
  emu::Spin spin;
  std::uint64_t found = 0;
  do {
    while (!entry.entry().try_read(entry.seen)) spin.pause();
  } while (!entry.entry().try_lock(entry.seen.word0, &found));
  entry.locked = true;
  // Who freed the slot may have changed what was read: a stale pointer must not lead to our object.
  if (entry.seen.stamp() != 0) admit(entry.seen);
  entry.copy = versions_.allocate(entry.size8);
  std::memset(entry.copy, 0, entry.size8);
  *storage = entry.copy;
  return entry.offset;
}

void SessionCore::destroy(std::uint64_t offset, const detail::TypeInfo& type) {
  begin_operation();
  refuse_without_locks();
  WriteEntry* own = writes_.find(offset);
  if (own == nullptr) {
    open_for_write(offset, type, WriteMode::destroy);
    return;
  }
  check_own(*own, type);
  if (own->mode == WriteMode::patch) {
    own->seen = observe(own->place, offset);
    own->mode = WriteMode::destroy;
    admit(own->seen);
  } else {
    own->mode = own->mode == WriteMode::make ? WriteMode::nothing : WriteMode::destroy;
  }
}

}  // namespace sp3::runtime
