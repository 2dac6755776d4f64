// ReadSet and WriteSet: what one attempt of a transaction has looked at and wants to change.
//
// Thread safety: none; a session owns one of each and reuses their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "base/reused_list.h"
#include "index/slab_table.h"

namespace sp3::runtime {

struct ReadEntry {
  index::Entry* entry;
  std::uint64_t offset;  // the object's Ptr
  index::Seen seen;      // at the read
};

class ReadSet {
 public:
  // Errors: std::bad_alloc, and then nothing was added.
  void add(index::Entry& entry, std::uint64_t offset, index::Seen seen) {
    ReadEntry& read = entries_.append();
    read.entry = &entry;
    read.offset = offset;
    // Word by word: copied at once, it would wait for its own stores.
    read.seen.word0 = seen.word0;
    read.seen.word1 = seen.word1;
  }
  void clear() noexcept { entries_.clear(); }

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] ReadEntry* begin() noexcept { return entries_.begin(); }
  [[nodiscard]] ReadEntry* end() noexcept { return entries_.end(); }

 private:
  base::ReusedList<ReadEntry> entries_;
};

enum class WriteMode : std::uint8_t {
  update,   // a new version of an existing object
  patch,    // some bytes of an existing object, put over whatever version it has at commit
  make,     // a new object; its entry is locked since make()
  destroy,  // the object goes
  nothing,  // made and destroyed by the same transaction
};

struct WriteEntry {
  index::Place place;
  std::uint64_t offset = 0;         // the object's Ptr
  std::byte* copy = nullptr;        // the private copy, size8 bytes; null for destroy
  const std::byte* base = nullptr;  // the version it replaces; null for make, unused by patch
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
    // Most transactions read before they write: then nothing is hashed.
    if (filter_ == 0 || (filter_ & filter_bit(offset)) == 0) return nullptr;
    return find_slowly(offset);
  }

  // A new entry; all of `what` is stored once, and nothing before. Errors: std::bad_alloc, and then
  // there is none.
  [[gnu::always_inline]] WriteEntry& add(const WriteEntry& what) {
    const bool indexed = entries_.size() >= kScanned;
    if (indexed) [[unlikely]]
      make_room_in_index();
    WriteEntry& entry = entries_.append();
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
    if (indexed) [[unlikely]]
      index_last();
    return entry;
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
  WriteEntry* find_slowly(std::uint64_t offset) noexcept;
  void make_room_in_index();
  void index_last() noexcept;
  void insert(std::size_t position) noexcept;
  void remove(std::size_t position) noexcept;
  void forget_index() noexcept;

  base::ReusedList<WriteEntry> entries_;
  std::uint64_t filter_ = 0;
  std::vector<std::uint32_t> table_;  // open addressing: position + 1, or 0; size a power of two
  std::size_t indexed_ = 0;           // entries in table_
};

}  // namespace sp3::runtime
