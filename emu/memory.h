// Memory: the mapped pool file, and the only place where anything is made durable.
//
// All persistence of the library goes through store/log_store, flush/log_flush and fence. A store
// is durable when, after it, its range was flushed and then a fence returned success on the
// flushing thread. Offsets are bytes from the start of the file. REQUIRES everywhere: the range
// lies inside the file.
//
// Two mappings: view() is read-only, so that a stray write through a reference given to user code
// faults instead of corrupting; stores go through a second, writable one that user code never sees.
//
// Kinds (sp3::MemoryKind):
//   dax       stores to the mapping, cache-line flushes, sfence.
//   emulated  likewise on a DRAM-backed file, plus timed latency.
//   file      stores to the mapping (homes, metadata) or to a DRAM image of the log; log_flush
//             writes whole blocks of the image, durable at once where the file system lets writes
//             through; fence is one fdatasync, if there is anything else to make durable, shared by
//             all threads that wait for one.
//
// Thread safety: all members by any thread; racing stores to the same bytes are the caller's bug. A
// FlushCounts belongs to one thread at a time.
// Progress: mapped kinds are wait-free (and wait as long as the latency model says); of the file
// kind log_flush blocks for its own write, and fence for at most two fdatasyncs.
//
// The commit path (log_store, log_flush, fence) is inline: on mapped kinds it compiles to the copy,
// the flush instructions and the fence, behind a few predictable branches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <sp3/options.h>

#include "base/align.h"
#include "base/assert.h"
#include "base/prefetch.h"
#ifndef SP3_SIMULATED
#include "emu/flush.h"
#include "emu/latency.h"
#endif

namespace sp3::emu {

// The cache lines that hold a byte of the range, each of which is flushed once.
constexpr std::uint64_t lines_of(std::uint64_t begin, std::uint64_t bytes) noexcept {
  if (bytes == 0) return 0;
  return base::round_up(begin % base::kCacheLine + bytes, base::kCacheLine) / base::kCacheLine;
}

// What flushes and fences cost, counted by whoever calls for them.
struct FlushCounts {
  // 64-byte lines flushed (file: 64-byte units of log written; none: lines handed to flush).
  std::uint64_t lines = 0;
  // Fences that had something to order (file: writes through to the disk, and fdatasyncs, waited
  // for).
  std::uint64_t fences = 0;
  // Lines flushed since the last fence; kept by Memory. A fence orders what was flushed with the
  // same FlushCounts, and does nothing when that is nothing.
  std::uint64_t pending_lines = 0;

  void add_lines(std::uint64_t flushed) noexcept {
    lines += flushed;
    pending_lines += flushed;
  }
  // file: a write of so many, which are durable at once if it goes through.
  void add_written(std::uint64_t written, bool through) noexcept {
    lines += written;
    if (through) {
      ++fences;
    } else {
      pending_lines += written;
    }
  }
  // What was pending is ordered.
  void fence() noexcept {
    pending_lines = 0;
    ++fences;
  }
};

// 0, or the errno of the system call that failed. Mapped kinds never fail.
struct [[nodiscard]] IoStatus {
  int error = 0;
  [[nodiscard]] bool ok() const noexcept { return error == 0; }
};

struct MemoryOptions {
  MemoryKind kind = MemoryKind::automatic;
  FlushInstruction flush = FlushInstruction::automatic;
  Latency latency;
  // The log region: only ranges inside it may use log_store and log_flush.
  std::uint64_t log_offset = 0;
  std::uint64_t log_length = 0;
  std::uint32_t prefault_ms = 20;  // as sp3::Options
  // file: the log goes past the page cache if it can. False in tests only.
  bool write_through = true;
};

// The whole lines of a range.
struct WholeLines {
  WholeLines(std::uint64_t offset, std::size_t bytes)
      : begin(base::round_up(offset, base::kCacheLine)),
        end(base::round_down(offset + bytes, base::kCacheLine)) {}
  [[nodiscard]] bool none() const { return begin >= end; }
  std::uint64_t begin;
  std::uint64_t end;
};

// What is to be stored at a home.
struct HomeValue {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

// log_flush of the file kind writes whole blocks of this size.
inline constexpr std::uint64_t kFileBlock = 4096;

// Tests: the `countdown`-th fence or log_flush from now on fails with `error` (errno), as do all
// later ones, until disarmed with error 0. Works for every kind.
void inject_io_error(int error, std::uint64_t countdown) noexcept;

}  // namespace sp3::emu

#ifdef SP3_SIMULATED
#include "emu/sim/memory.h"
#else

namespace sp3::emu {

namespace detail {
inline std::atomic<int> injected_error{0};
}

class Memory {
 public:
  // Maps the open file. Keeps `fd` (does not close it). `path` is for messages. A descriptor opened
  // for reading only gives a memory that must not be stored to.
  // Errors: unsupported (dax wanted on what is not persistent memory; an instruction this CPU
  // lacks; latency on a kind other than emulated), wrong_size (the file ends before `size`),
  // invalid_argument (the log region is outside the file or not made of blocks), io_error,
  // permission_denied.
  static std::unique_ptr<Memory> map(int fd, const std::string& path, std::uint64_t size,
                                     const MemoryOptions& options);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The whole file, read-only.
  [[nodiscard]] const std::byte* view() const noexcept { return view_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }  // never automatic
  // Never automatic. none for the file kind.
  [[nodiscard]] FlushInstruction flush_instruction() const noexcept { return chosen_; }
  // Whether flushes write whole kFileBlock blocks, so that the log must not append to a flushed
  // block.
  [[nodiscard]] bool writes_blocks() const noexcept { return writes_blocks_; }

  // Homes and metadata (not the log region). Every aligned 8-byte word that is covered whole is
  // stored at once, never torn.
  void store(std::uint64_t offset, const void* source, std::size_t bytes) noexcept;
  // store() and flush() in one, for homes that nobody reads until the fence: on mapped kinds whole
  // lines go past the cache (unless clflush or none was chosen), so that a cold home is not read
  // first. Before the fence other threads may see them later than what was stored afterwards.
  void store_through(std::uint64_t offset, const void* source, std::size_t bytes,
                     FlushCounts& counts) noexcept;
  // The same for many homes, faster where they are cold: so little lies between one store and the
  // next that the core waits for the translations of many pages at the same time.
  void store_through(std::span<const HomeValue> values, FlushCounts& counts) noexcept;
  [[nodiscard]] bool stores_past_cache() const noexcept { return stores_past_cache_; }
  // An aligned 8-byte store that is never torn.
  void store_word(std::uint64_t offset, std::uint64_t value) noexcept;
  // Hints for a pass over many homes; wrong ones cost time only. prefetch_store asks for one line
  // that is about to be stored to; populate maps the pages of a range for storing, where stores
  // would otherwise fault on each.
  void prefetch_store(std::uint64_t offset) const noexcept {
    base::prefetch_for_write(writable_ + offset);
  }
  void populate(std::uint64_t offset, std::size_t bytes) noexcept;
  void flush(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept;
  // For bytes that were found, not stored by this process; also of the log. file: dirties their
  // pages first. Where a sync failed for an earlier process, the page cache holds what the disk
  // does not have and counts it as written, so that no sync would write it.
  void flush_found(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept;

  // The log region.
  // `streaming`: may use non-temporal stores (synchronous commit by the owner only), if they were
  // chosen. REQUIRES then: offset and bytes are multiples of a line.
  void log_store(std::uint64_t offset, const void* source, std::size_t bytes,
                 bool streaming) noexcept;
  // `streamed`: the range was stored with streaming = true since it was last flushed.
  IoStatus log_flush(std::uint64_t offset, std::size_t bytes, bool streamed,
                     FlushCounts& counts) noexcept;
  // The log's bytes as stored, flushed or not (file: the DRAM image, zero until stored to; what an
  // earlier process wrote is in view() only).
  [[nodiscard]] const std::byte* log_view(std::uint64_t offset) const noexcept {
    return log_at(offset);
  }
  // The range will not be read through log_view() until it is stored to again (file: frees DRAM).
  void log_discard(std::uint64_t offset, std::size_t bytes) noexcept;

  // Everything this thread flushed before (with `counts`) is durable when this returns ok. file:
  // once an fdatasync has failed, every later fence that has something to wait for fails; one with
  // nothing pending (no lines, or only blocks that were durable when written) returns ok.
  IoStatus fence(FlushCounts& counts) noexcept;

  // file: fdatasync calls so far; else 0.
  [[nodiscard]] std::uint64_t syncs() const noexcept;

 private:
  struct Cold;  // what the commit path does not touch
  Memory();

  [[nodiscard]] std::byte* log_at(std::uint64_t offset) const noexcept {
    SP3_ASSERT(offset >= log_offset_ && offset - log_offset_ <= log_length_);
    return log_ + (offset - log_offset_);
  }
  void flush_mapped(std::byte* at, std::size_t bytes, FlushInstruction instruction,
                    FlushCounts& counts) noexcept;
  void flush_slowly(FlushInstruction instruction, std::byte* first, const std::byte* end) noexcept;
  void fence_mapped(FlushCounts& counts) noexcept;
  IoStatus log_flush_checked(std::uint64_t offset, std::size_t bytes, bool streamed,
                             FlushCounts& counts) noexcept;
  IoStatus fence_checked(FlushCounts& counts) noexcept;
  // relaxed: whoever injects an error and expects it at a certain call orders the two itself.
  static bool error_armed() noexcept {
    return detail::injected_error.load(std::memory_order_relaxed) != 0;
  }

  std::byte* log_ = nullptr;  // the byte at log_offset_: in the writable mapping, or the image
  std::uint64_t log_offset_ = 0;
  std::uint64_t log_length_ = 0;
  MemoryKind kind_ = MemoryKind::file;
  FlushInstruction chosen_ = FlushInstruction::none;
  // chosen_, or for non_temporal the best flush.
  FlushInstruction per_line_ = FlushInstruction::none;
  bool needs_sfence_ = true;
  bool writes_blocks_ = false;
  bool stores_past_cache_ = false;
  LatencyTicks latency_;
  std::byte* writable_ = nullptr;  // null if the descriptor is read-only
  const std::byte* view_ = nullptr;
  std::uint64_t size_ = 0;
  std::unique_ptr<Cold> cold_;
};

// Implementation of the commit path.

inline void Memory::log_store(std::uint64_t offset, const void* source, std::size_t bytes,
                              bool streaming) noexcept {
  SP3_ASSERT(offset - log_offset_ + bytes <= log_length_);
  std::byte* const to = log_at(offset);
  if (streaming && chosen_ == FlushInstruction::non_temporal) {
    stream_copy(to, static_cast<const std::byte*>(source), bytes);
  } else {
    std::memcpy(to, source, bytes);
  }
}

// Every line that holds a byte of the range is flushed once. Nothing is ordered until the fence.
inline void Memory::flush_mapped(std::byte* at, std::size_t bytes, FlushInstruction instruction,
                                 FlushCounts& counts) noexcept {
  if (bytes == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  std::byte* const first = at - address % base::kCacheLine;
  const std::uint64_t lines = lines_of(address, bytes);
  std::byte* const end = first + lines * base::kCacheLine;
  if (latency_.charges_lines()) [[unlikely]] {
    flush_slowly(instruction, first, end);
  } else {
    flush_lines(instruction, first, end);
  }
  counts.add_lines(lines);
}

// Orders the flushes and streaming stores of this thread before all its later stores. clflush needs
// no sfence: it is ordered with stores and with other clflushes by itself.
inline void Memory::fence_mapped(FlushCounts& counts) noexcept {
  if (counts.pending_lines == 0) return;
  if (needs_sfence_) {
    sfence();
  } else {
    // No instruction; keeps the compiler from moving later stores before the flushes.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  if (latency_.charges_fences()) [[unlikely]]
    latency_.charge_fence(counts.pending_lines);
  counts.fence();
}

// Always inline, for a commit's sake: the compiler's own choice hangs on what is compiled beside it.
[[gnu::always_inline]] inline IoStatus Memory::log_flush(std::uint64_t offset, std::size_t bytes,
                                                         bool streamed,
                                                         FlushCounts& counts) noexcept {
  SP3_ASSERT(offset - log_offset_ + bytes <= log_length_);
  if (writes_blocks_ || error_armed()) [[unlikely]] {
    return log_flush_checked(offset, bytes, streamed, counts);
  }
  // Streamed lines never were in the cache: they are counted, and only the fence is needed.
  const bool past_cache = streamed && chosen_ == FlushInstruction::non_temporal;
  flush_mapped(log_at(offset), bytes, past_cache ? FlushInstruction::none : per_line_, counts);
  return {};
}

inline IoStatus Memory::fence(FlushCounts& counts) noexcept {
  if (writes_blocks_ || error_armed()) [[unlikely]]
    return fence_checked(counts);
  fence_mapped(counts);
  return {};
}

}  // namespace sp3::emu

#endif  // SP3_SIMULATED
