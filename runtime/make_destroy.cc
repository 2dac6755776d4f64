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

void SessionCore::fail_without_locks() const {
  throw Error(ErrorCode::unsupported,
              "objects cannot be made or destroyed without concurrency control",
              {.path = pool_->path(), .wanted = "another CommitPolicy", .found = "ideal"});
}

// The slot is ours alone; only the checkpointer may hold the lock, for an instant, or who patches a
// chunk that was here and finds that out. Locked until
// publish, so that no reader meets a half-born object; but a lone session waits with that for its
// commit, and lets in those who come before: their reads find a free slot.
[[gnu::always_inline]] inline void SessionCore::claim(WriteEntry& entry) {
  emu::Spin spin;
  std::uint64_t found = 0;
  while (true) {
    while (!entry.entry().try_read(entry.seen)) spin.pause();
    if (is_lone()) return;
    if (entry.entry().try_lock(entry.seen.word0, &found)) break;
  }
  entry.locked = true;
}

[[gnu::always_inline]] inline std::uint64_t SessionCore::make_object(const detail::TypeInfo& type,
                                                                     void** storage) {
  begin_operation();
  require_locks();
  std::vector<index::Place>& free = find_slots(type);
  const index::Place place = free.back();
  WriteEntry& entry = writes_.add({.place = place,
                                   .offset = place.slab->offset_of(place.slot),
                                   .clear_padding = type.clear_padding,
                                   .size8 = size8_of(type),
                                   .mode = WriteMode::make});
  free.pop_back();  // once the entry has it
  claim(entry);
  // Who freed the slot may have changed what was read: a stale pointer must not lead to our object.
  if (is_lone()) {
    start_over_in_company();
  } else if (entry.seen.stamp() != 0) {
    admit(entry.seen);
  }
  entry.copy = versions_.allocate(entry.size8);
  std::memset(entry.copy, 0, entry.size8);
  *storage = entry.copy;
  return entry.offset;
}

std::uint64_t SessionCore::make(const detail::TypeInfo& type, void** storage) {
  return make_object(type, storage);
}

void SessionCore::destroy(std::uint64_t offset, const detail::TypeInfo& type) {
  begin_operation();
  require_locks();
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

namespace sp3::detail {

std::uint64_t tx_make(runtime::SessionCore& core, const TypeInfo& type, void** storage) {
  return core.operate([&] { return core.make_object(type, storage); });
}
void tx_destroy(runtime::SessionCore& core, std::uint64_t offset, const TypeInfo& type) {
  core.operate([&] { core.destroy(offset, type); });
}

}  // namespace sp3::detail
