// ReadSet and WriteSet: what one attempt of a transaction has looked at and wants to change.
//
// Thread safety: none; a session owns one of each and reuses their memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sp3/type.h>

#include "base/align.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/reused_list.h"
#include "index/slab_table.h"

namespace sp3::runtime {

struct ReadEntry {
  index::Entry* entry;
  std::uint64_t offset;  // the object's Ptr
  std::uint64_t word0;   // the entry's at the read, which says the version
};

class ReadSet {
 public:
  // Errors: std::bad_alloc, and then nothing was added.
  void add(index::Entry& entry, std::uint64_t offset, std::uint64_t word0) {
    entries_.make_room(1);
    add_in_room(entry, offset, word0);
  }
  // The same where that takes no memory.
  [[nodiscard]] bool has_room() const noexcept { return entries_.has_room(); }
  void add_in_room(index::Entry& entry, std::uint64_t offset, std::uint64_t word0) noexcept {
    ReadEntry& read = entries_.append_in_room();
    read.entry = &entry;
    read.offset = offset;
    read.word0 = word0;
  }
  void drop_last() noexcept { entries_.drop_last(); }
  void clear() noexcept {
    if (!entries_.empty()) entries_.clear();
    if (!unsettled_.empty()) forget_unsettled();
  }

  // Whether that version is one of the last few that were read, but for the `newest` newest.
  [[nodiscard]] bool has_lately(const index::Entry& entry, std::uint64_t word0,
                                std::size_t newest = 0) const noexcept {
    constexpr std::size_t kFew = 4;
    const ReadEntry* const upto = entries_.end() - newest;
    const std::size_t older = size() - newest;
    for (const ReadEntry* read = upto - std::min(older, kFew); read != upto; ++read) {
      if (read->entry == &entry && read->word0 == word0) return true;
    }
    return false;
  }

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] const ReadEntry& last() const noexcept { return entries_.end()[-1]; }
  [[nodiscard]] const ReadEntry* begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] const ReadEntry* end() const noexcept { return entries_.end(); }

  // Of the versions read, those that were not known to be committed. Errors: as add().
  void note_unsettled(const index::Seen& seen) { unsettled_.append() = seen; }
  [[nodiscard]] const base::ReusedList<index::Seen>& unsettled() const noexcept {
    return unsettled_;
  }
  void forget_unsettled() noexcept { unsettled_.clear(); }

 private:
  base::ReusedList<ReadEntry> entries_;
  base::ReusedList<index::Seen> unsettled_;
};

// What an object of the type takes in a version and in a record.
inline std::uint32_t size8_of(const detail::TypeInfo& type) noexcept {
  return static_cast<std::uint32_t>(base::round_up(type.size, 8));
}

enum class WriteMode : std::uint8_t {
  update,   // a new version of an existing object
  patch,    // some bytes of an existing object, put over whatever version it has at commit
  make,     // a new object; its entry is locked since make(), but in a lone session's
  destroy,  // the object goes
  nothing,  // made and destroyed by the same transaction
};

struct WriteEntry {
  index::Place place;
  std::uint64_t offset = 0;         // the object's Ptr
  std::byte* copy = nullptr;        // the private copy, size8 bytes; null if destroy came first
  const std::byte* base = nullptr;  // the version it differs from; null if all of it is new
  // The entry's words under that version; of a patch, those that its lock was taken on.
  index::Seen seen;
  void (*clear_padding)(void*) = nullptr;
  std::uint32_t size8 = 0;  // sizeof the type rounded up to 8
  std::uint32_t runs = 0;   // of a patch: which bytes of `copy` are written (runtime/patch_runs.h)
  WriteMode mode = WriteMode::update;
  bool locked = false;

  [[nodiscard]] index::Entry& entry() const { return place.entry(); }
};

class WriteSet {
 public:
  // The entry for the object at `offset`; null if there is none. Invalidated by add().
  WriteEntry* find(std::uint64_t offset) noexcept {
    return may_hold(offset) ? find_slowly(offset) : nullptr;
  }
  // Whether there may be one.
  [[nodiscard]] bool may_hold(std::uint64_t offset) const noexcept {
    // Most transactions read before they write: then nothing is hashed.
    return filter_ != 0 && (filter_ & filter_bit(offset)) != 0;
  }

  // A new entry. Errors: std::bad_alloc, and then there is none.
  WriteEntry& add(const WriteEntry& what) {
    const bool indexed = entries_.size() >= kScanned;
    if (indexed) make_room_in_index();
    entries_.make_room(1);
    WriteEntry& entry = put(what);
    if (indexed) index_last();
    return entry;
  }
  // The same where that takes neither memory nor a place in the index.
  [[nodiscard]] bool has_room() const noexcept {
    return entries_.size() < kScanned && entries_.has_room();
  }
  [[gnu::always_inline]] WriteEntry& add_in_room(const WriteEntry& what) {
    SP3_ASSERT(has_room());
    return put(what);
  }

  void clear() noexcept {
    if (indexed_ != 0) forget_index();
    entries_.clear();
    filter_ = 0;
  }

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] base::ReusedList<WriteEntry>& entries() noexcept { return entries_; }
  [[nodiscard]] const base::ReusedList<WriteEntry>& entries() const noexcept { return entries_; }

  // Whether the transaction itself holds the lock on the object at `offset`.
  [[nodiscard]] bool holds_lock(std::uint64_t offset) noexcept {
    const WriteEntry* w = find(offset);
    return w != nullptr && w->locked;
  }

 private:
  // Up to this many entries are searched one after the other; more through a hash table.
  static constexpr std::size_t kScanned = 8;

  static std::uint64_t hash(std::uint64_t offset) noexcept { return base::spread(offset); }
  static std::uint64_t filter_bit(std::uint64_t offset) noexcept {
    return std::uint64_t{1} << (hash(offset) >> 58);
  }
  // Where in the table the search for an object begins. REQUIRES: the table is there.
  [[nodiscard]] std::size_t first_cell(std::uint64_t offset) const noexcept {
    return hash(offset) >> table_shift_;
  }
  // All of `what` is stored once, and nothing before.
  [[gnu::always_inline]] WriteEntry& put(const WriteEntry& what) {
    WriteEntry& entry = entries_.append_in_room();
    // Field by field: assigned at once it takes fewer instructions, but what was just stored in
    // parts is then read as a whole, which waits for the stores, 12 % of a swap.
    entry.place.slab = what.place.slab;
    entry.place.slot = what.place.slot;
    entry.size8 = what.size8;
    entry.offset = what.offset;
    entry.copy = what.copy;
    entry.base = what.base;
    entry.seen.word0 = what.seen.word0;
    entry.seen.word1 = what.seen.word1;
    entry.clear_padding = what.clear_padding;
    entry.mode = what.mode;
    entry.locked = what.locked;
    entry.runs = what.runs;
    filter_ |= filter_bit(what.offset);
    return entry;
  }

  WriteEntry* find_slowly(std::uint64_t offset) noexcept;
  void make_room_in_index();
  void index_last() noexcept;
  void insert(std::size_t position) noexcept;
  void remove(std::size_t position) noexcept;
  void forget_index() noexcept;

  base::ReusedList<WriteEntry> entries_;
  std::uint64_t filter_ = 0;
  std::vector<std::uint32_t> table_;  // open addressing: position + 1, or 0; size a power of two
  unsigned table_shift_ = 0;          // of a hash, for an index into table_
  std::size_t indexed_ = 0;           // entries in table_
};

}  // namespace sp3::runtime
