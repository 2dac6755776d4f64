// VersionPool: DRAM for object versions: private copies that become the newest version at publish.
//
// A version is a cache-line aligned block; its size follows from the object's type, so it has no
// header. Each session (and the checkpointer) has a pool; blocks move between them in batches
// through the pool-wide VersionDepot, because what a session publishes is mostly retired by someone
// else.
//
// Reclamation: retire() remembers an epoch (base/epoch.h); collect() frees what is old enough.
// Thread safety: VersionPool: one thread; VersionDepot: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/epoch.h"
#include "base/plain_access.h"
#include "base/reused_list.h"
#include "base/scaled.h"
#include "emu/threads.h"
#include "runtime/version_guard.h"

namespace sp3::runtime {

// Blocks of 64 * n bytes for n up to this are pooled; larger ones come from the heap.
inline constexpr std::size_t kPooledLines = 64;

class VersionDepot {
 public:
  using Batch = std::vector<std::byte*>;
  static constexpr std::size_t kBatch = 64;

  // A batch of blocks of `lines` cache lines. Errors: std::bad_alloc.
  Batch take(std::size_t lines);
  void give(std::size_t lines, Batch batch) noexcept;

  // Blocks too large to pool, from the heap.
  std::byte* allocate_large(std::size_t bytes);
  void free_large(std::byte* block, std::size_t bytes) noexcept;

  // Bytes held for versions, free pooled blocks included.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  mutable emu::Mutex mutex_;
  std::array<std::vector<Batch>, kPooledLines + 1> batches_;
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
  std::uint64_t bytes_ = 0;  // of chunks
  std::atomic<std::uint64_t> large_bytes_{0};
};

class VersionPool {
 public:
  VersionPool(VersionDepot& depot, base::EpochDomain& epochs) : depot_(depot), epochs_(epochs) {}
  // Hands all free blocks back. REQUIRES: nothing is retired any more.
  ~VersionPool();
  VersionPool(const VersionPool&) = delete;
  VersionPool& operator=(const VersionPool&) = delete;

  [[gnu::always_inline]] std::byte* allocate(std::size_t bytes) {
    if (!has_free(bytes)) [[unlikely]]
      return allocate_slowly(lines_of(bytes));
    return take_free(bytes);
  }
  // The same where a block lies ready.
  [[nodiscard]] bool has_free(std::size_t bytes) const noexcept {
    const std::size_t lines = lines_of(bytes);
    return lines <= kPooledLines && !free_[lines].empty();
  }
  std::byte* take_free(std::size_t bytes) noexcept {
    std::vector<std::byte*>& free = free_[lines_of(bytes)];
    std::byte* block = free.back();
    free.pop_back();
    VersionGuard::note_used(block, lines_of(bytes) * 64);
    return block;
  }
  // A block nobody else has seen. Without memory to note it, it is lost until the depot goes.
  void free(std::byte* block, std::size_t bytes) noexcept;
  // Makes room for `blocks` calls of retire(), which come when nothing may fail any more.
  void prepare_to_retire(std::size_t blocks) { retired_.make_room(blocks); }
  // A block that pinned readers may still hold, with its retirement epoch: never a smaller one than
  // of the block before. REQUIRES: there is room.
  void retire(std::byte* block, std::size_t bytes, base::EpochDomain::Epoch epoch) noexcept {
    Retired& retired = retired_.append_in_room();
    retired.block = block;
    retired.bytes = bytes;
    retired.epoch = epoch;
    retired_bytes_ += bytes;
  }
  // Frees what is old enough, if there is enough of it to be worth looking; whether it looked.
  bool collect() {
    if (retired_.size() < collect_at_ && retired_bytes_ < kCollectAtBytes) return false;
    collect_now();
    return true;
  }
  // Gives everything retired to `heir` (a pool that lives on); without memory to note it, it is
  // lost.
  // REQUIRES: external synchronisation.
  void bequeath(VersionPool& heir) noexcept;
  // Frees everything retired now. REQUIRES: nobody is pinned any more.
  void free_all();
  [[nodiscard]] bool has_retired() const noexcept { return !retired_.empty(); }

  // Whether blocks of so many bytes belong to the depot's chunks, and go with it.
  static bool is_pooled(std::size_t bytes) noexcept { return lines_of(bytes) <= kPooledLines; }
  // A block of so many bytes that is not pooled. REQUIRES: nobody looks at it any more.
  static void free_large(VersionDepot& depot, std::byte* block, std::size_t bytes) noexcept {
    depot.free_large(block, lines_of(bytes) * 64);
  }

 private:
  struct Retired {
    std::byte* block;
    std::size_t bytes;
    base::EpochDomain::Epoch epoch;
  };
  // Little, so that what is handed out again is still in the cache.
  static std::size_t collect_at() noexcept { return base::scaled<std::size_t>(64, 1); }
  // More that must be retired before it is worth to look again.
  static std::size_t collect_again_at() noexcept { return base::scaled<std::size_t>(16, 1); }
  static constexpr std::size_t kCollectAtBytes = 1 << 20;

  static std::size_t lines_of(std::size_t bytes) { return (bytes + 63) / 64; }

  void put_free(std::size_t lines, std::byte* block) noexcept {
    VersionGuard::note_free(block, lines * 64);
    std::vector<std::byte*>& free = free_[lines];
    if (free.size() == free.capacity() && !make_room(free, lines)) [[unlikely]]
      return;
    free.push_back(block);
  }
  std::byte* allocate_slowly(std::size_t lines);
  bool make_room(std::vector<std::byte*>& free, std::size_t lines) noexcept;
  void collect_now();

  VersionDepot& depot_;
  base::EpochDomain& epochs_;
  std::array<std::vector<std::byte*>, kPooledLines + 1> free_;
  base::ReusedList<Retired> retired_;  // oldest first
  std::size_t retired_bytes_ = 0;
  std::size_t collect_at_ = collect_at();
};

}  // namespace sp3::runtime
