// RangedAccess: how a transaction works with ranged objects: what sp3/ranged.h promises, on top of
// the objects that SessionCore reads, writes, makes and destroys.
//
// Header, nodes and chunks are ordinary objects with ordinary entries: what is read of them is
// validated like everything else, and log, checkpoint, recovery and allocation know nothing of
// ranges. Three things are special:
// - A chunk that is written is a *patch* (WriteMode::patch). The private copy holds the written
//   bytes at their place. At commit the chunk's entry is locked at whatever version it has by then
//   (not one that was read), the other bytes are taken from that version, and the log gets the
//   words of the written bytes alone. So writers of disjoint ranges of a chunk do not conflict.
// - What is read under a range that the transaction holds exclusively is not validated: nobody else
//   can have changed those bytes. Their version is a dependency all the same.
// - Nor is the way to a chunk that is written: who changes the header for another, or takes chunks
//   and nodes away, holds all ranges. So under a range the header stands still once it has a table,
//   and as long as a header has one version, a cell that is filled stays as it is (WayCache). That
//   the table, or a cell of it, is empty is validated: whoever writes first there fills it.
//
// Thread safety: none; a session owns one, from its first use of a ranged object on.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sp3/detail/ranged.h>

#include "base/mutant.h"
#include "index/entry.h"
#include "log/record_builder.h"
#include "runtime/patch_runs.h"
#include "runtime/range_holds.h"
#include "runtime/write_set.h"

namespace sp3::runtime {

class SessionCore;

class RangedAccess {
 public:
  explicit RangedAccess(SessionCore& core);
  ~RangedAccess();
  RangedAccess(const RangedAccess&) = delete;
  RangedAccess& operator=(const RangedAccess&) = delete;

  // The operations of sp3/ranged.h, inside a body.
  std::uint64_t create(std::uint64_t length, std::uint32_t chunk_bytes, std::uint64_t element);
  void open(std::uint64_t object, const detail::TypeInfo& element);
  void destroy(std::uint64_t object);
  std::uint64_t size(std::uint64_t object) { return header(object).length; }
  void read(std::uint64_t object, std::uint64_t offset, std::span<std::byte> to);
  void write(std::uint64_t object, std::uint64_t offset, std::span<const std::byte> from);
  void lock(std::uint64_t object, std::uint64_t begin, std::uint64_t end);
  void fill(std::uint64_t object, std::uint64_t begin, std::uint64_t end);
  void resize(std::uint64_t object, std::uint64_t length);
  detail::RangedViewData view(std::uint64_t object, std::uint64_t begin, std::uint64_t end);
  std::string check(std::uint64_t object);
  void close_view(std::uint32_t number) noexcept;
  // In a child that was forked inside the body: what is held is the parent's.
  void void_views() noexcept;

  // What commit asks for, in this order.
  [[nodiscard]] std::uint64_t patch_bytes(const WriteEntry& patch) {
    return log::RecordBuilder::runs_bytes(logged_runs(patch), patch.size8);
  }
  // With all locks held: notes the versions that patches go over. False if a chunk is gone.
  [[nodiscard]] bool note_patched_versions();
  [[nodiscard]] const std::vector<index::Seen>& unvalidated() const noexcept {
    return unvalidated_;
  }
  // Validated: puts the rest of each chunk around the written bytes. Does not fail.
  void complete_patches() noexcept;
  void add_to_record(const WriteEntry& patch, log::RecordBuilder& record) {
    record.add_runs(patch.offset, logged_runs(patch), patch.copy, patch.size8);
  }
  // Published: others may have the ranges.
  void release() noexcept { holds_.release(); }
  // Committed or aborted: views are void.
  void end_attempt() noexcept;

 private:
  // Part of a range that lies in one chunk.
  struct Piece {
    std::uint64_t number;  // of the chunk
    std::uint32_t from;    // in the chunk
    std::uint32_t bytes;
    std::uint64_t done;  // bytes of the range before this piece
  };
  // The last leaf of the chunk table that was looked at.
  struct Cursor {
    std::uint64_t object = 0;
    const detail::RangedHeader* header = nullptr;
    std::uint64_t version = kNoVersion;  // of the header, if it was read under a range
    std::uint64_t leaf_number = 0;
    const detail::RangedNode* leaf = nullptr;
    bool is_validated = false;  // the leaf: its empty cells may be believed
  };
  static constexpr std::uint64_t kNoVersion = ~std::uint64_t{0};

  // Where chunks and leaves were found under ranges, by this transaction or an earlier one.
  struct WayCache {
    struct Place {
      std::uint64_t object = 0;
      std::uint64_t version = 0;  // of its header
      std::uint64_t what = 0;     // chunk_key or leaf_key
      std::uint64_t offset = 0;

      [[nodiscard]] bool is_of(const Cursor& cursor, std::uint64_t key) const noexcept {
        return object == cursor.object && version == cursor.version && what == key;
      }
    };
    static constexpr std::size_t kPlaces = 256;
    std::array<Place, kPlaces> places;

    static std::uint64_t chunk_key(std::uint64_t number) noexcept { return 2 * number; }
    static std::uint64_t leaf_key(std::uint64_t number) noexcept { return 2 * number + 1; }
    Place& at(std::uint64_t object, std::uint64_t key) noexcept {
      return places[(object / sizeof(detail::RangedHeader) + key) % kPlaces];
    }
  };

  template <class Visitor>
  static void for_each_piece(std::uint32_t chunk_bytes, std::uint64_t offset, std::uint64_t bytes,
                             Visitor&& visit);

  // What the log gets of a patch.
  [[nodiscard]] std::span<const log::ByteRun> logged_runs(const WriteEntry& patch) noexcept {
    const std::span<const log::ByteRun> runs = runs_.list(patch.runs);
    return base::mutant(base::Mutant::patch_logs_first_run_only) ? runs.first(1) : runs;
  }
  const detail::RangedHeader& header(std::uint64_t object);
  const detail::RangedHeader& held_header(std::uint64_t object);
  void check_shape(const detail::RangedHeader& header, std::uint64_t object);
  void check_range(const detail::RangedHeader& header, std::uint64_t object, std::uint64_t begin,
                   std::uint64_t end);
  void check_length(std::uint64_t length) const;
  template <class Changes>
  void all_or_nothing(Changes&& changes);
  void take(const RangedSpace& space, const Range& range);
  void take_whole(std::uint64_t object);
  WriteEntry* own_chunk(std::uint64_t chunk, const detail::TypeInfo& type);
  const std::byte* version_of(std::uint64_t chunk, const detail::TypeInfo& type,
                              const RangedSpace& space, const Piece& piece, std::uint64_t offset);
  void copy_piece(const detail::RangedHeader& header, const RangedSpace& space, std::uint64_t chunk,
                  const Piece& piece, std::uint64_t offset, std::byte* to);
  void write_piece(std::uint64_t object, const detail::TypeInfo& type, const Piece& piece,
                   const std::byte* from);

  // The chunk table (ranged_table.cc).
  std::uint64_t find_chunk(std::uint64_t object, std::uint64_t number);
  std::uint64_t find_held_chunk(std::uint64_t object, std::uint64_t number);
  std::uint64_t find_leaf(std::uint64_t number);
  std::uint64_t find_or_make_chunk(std::uint64_t object, std::uint64_t number);
  void grow(std::uint64_t object, std::uint64_t length);
  void shrink(std::uint64_t object, std::uint64_t length);
  bool drop(std::uint64_t offset, std::uint32_t level, std::uint64_t first, std::uint64_t keep,
            const detail::TypeInfo& chunk_type);
  struct Check;

  SessionCore& core_;
  RangeHolds holds_;
  PatchRuns runs_;
  std::vector<index::Seen> unvalidated_;  // read under exclusive ranges
  Cursor cursor_;
  WayCache ways_;
  Cursor checked_;  // object and version of the header that was checked last
  // relaxed, all of it: one thread at a time has the session and its views.
  std::shared_ptr<std::atomic<std::uint64_t>> attempts_;
};

inline const detail::TypeInfo& ranged_header_type() noexcept {
  return detail::type_info<detail::RangedHeader>;
}
// The type of chunks of that size; null if there are none.
const detail::TypeInfo* ranged_chunk_type(std::uint32_t chunk_bytes) noexcept;
// How many levels of nodes a table for `length` bytes has.
std::uint32_t ranged_levels(std::uint64_t length, std::uint32_t chunk_bytes) noexcept;

}  // namespace sp3::runtime
