// Mapped kinds need little beyond the inline paths of memory.h. The file kind is here:
//
//   log_store --> image (DRAM) --log_flush: BlockWriter--> disk, or by way of the page cache
//   store -----> shared mapping = page cache --fence: fdatasync--> disk
//
// The log does not go through the mapping because then each fdatasync would write whole folios of
// the page cache, a megabyte for one record; writing fresh blocks touches just those blocks.
#include "emu/memory.h"

#include <cerrno>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <sp3/error.h>

#include "emu/block_writer.h"
#include "emu/mapping.h"
#include "emu/shared_sync.h"
#include "emu/word_copy.h"

namespace sp3::emu {
namespace {

// The error armed by inject_io_error comes when this has counted down to zero.
std::atomic<std::uint64_t> calls_before_error{0};

// The errno this call shall fail with, 0 for none.
int injected_failure() noexcept {
  // (2) acquire pairs with (1): the countdown belongs to the error.
  const int error = detail::injected_error.load(std::memory_order_acquire);
  if (error == 0) return 0;
  // relaxed: only the number matters, and every call takes a different one.
  std::uint64_t left = calls_before_error.load(std::memory_order_relaxed);
  while (left != 0 &&
         !calls_before_error.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left <= 1 ? error : 0;
}

// EINTR does not end a sync: nothing was reported as written, nor as lost.
int sync_data(int fd) noexcept {
  while (fdatasync(fd) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

[[noreturn]] void refuse(ErrorCode code, const std::string& message, const std::string& path,
                         std::string wanted, std::string found) {
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = std::move(wanted);
  facts.found = std::move(found);
  throw Error(code, message, std::move(facts));
}

void check_size(int fd, const std::string& path, std::uint64_t size, const MemoryOptions& options) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    const int error = errno;
    refuse(ErrorCode::io_error, "fstat failed", path, "the size of the file",
           std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")");
  }
  if (size == 0 || static_cast<std::uint64_t>(status.st_size) < size) {
    refuse(ErrorCode::wrong_size, "the file is too short to map", path,
           size == 0 ? "more than 0 bytes" : "at least " + std::to_string(size) + " bytes",
           std::to_string(status.st_size) + " bytes");
  }
  const std::string region =
      std::to_string(options.log_length) + " bytes at " + std::to_string(options.log_offset);
  if (options.log_offset > size || options.log_length > size - options.log_offset) {
    refuse(ErrorCode::invalid_argument, "the log region is outside the file", path,
           "a region within " + std::to_string(size) + " bytes", region);
  }
  if (options.log_offset % kFileBlock != 0 || options.log_length % kFileBlock != 0) {
    refuse(ErrorCode::invalid_argument, "the log region is not made of whole blocks", path,
           "multiples of " + std::to_string(kFileBlock), region);
  }
}

void check_latency(const std::string& path, MemoryKind kind, const Latency& latency) {
  const bool wanted = latency.nanoseconds != 0 || latency.per_line_nanoseconds != 0;
  if (!wanted || kind == MemoryKind::emulated) return;
  refuse(ErrorCode::unsupported, "latency can be added to emulated memory only", path,
         std::string("memory kind ") + to_string(MemoryKind::emulated), to_string(kind));
}

FlushInstruction choose_flush(const std::string& path, MemoryKind kind, FlushInstruction wanted) {
  if (kind == MemoryKind::file) return FlushInstruction::none;
  if (!cpu_has(wanted)) {
    refuse(ErrorCode::unsupported, "this CPU lacks the flush instruction", path, to_string(wanted),
           std::string("a CPU whose best is ") + to_string(best_flush()));
  }
  if (wanted != FlushInstruction::automatic) return wanted;
  if (kind == MemoryKind::dax && platform_flushes_caches()) return FlushInstruction::none;
  return FlushInstruction::non_temporal;  // docs/adr/0018-synchronous-records-go-past-the-cache.md
}

// As much as Linux maps around a page that is read for the first time, unless told otherwise.
constexpr std::uint64_t kNeighbourhood = std::uint64_t{64} << 10;

// What makes the kernel map pages for storing. Of a file in memory a page that is mapped for
// reading can be stored to without another fault, and the kernel maps its neighbours in the same
// one: 0.4 instead of 0.9 us a page. File systems that write back want to hear of each page's first
// store.
int advice_to_populate(int fd) noexcept {
  struct statfs system {};
  const bool in_memory = fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
  return in_memory ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
}

// Maps the first pages of the log for writing, so that the commit path does not fault on them: on
// tmpfs a first touch took 1 us (12 us where the hypervisor faults too) instead of 0.03. The log is
// used from its start and its segments are used again, so the first part is what counts; and
// opening a pool must stay quick however large its log is: 20 ms reach some 80 MiB, or 7 where the
// hypervisor faults. Kernels before 5.14 refuse, no harm done.
void populate_log(std::byte* log, std::uint64_t length, int advice,
                  std::uint32_t milliseconds) noexcept {
  constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;
  const std::uint64_t budget = ticks_from_nanoseconds(1e6 * milliseconds);
  const std::uint64_t start = ticks();
  for (std::uint64_t at = 0; at < length && ticks() - start < budget; at += kChunk) {
    const std::uint64_t bytes = length - at < kChunk ? length - at : kChunk;
    if (madvise(log + at, bytes, advice) != 0) return;
  }
}

}  // namespace

struct Memory::Cold {
  explicit Cold(int descriptor)
      : fd(descriptor),
        advice_to_populate(emu::advice_to_populate(descriptor)),
        sync([descriptor] { return sync_data(descriptor); }) {}

  int fd;
  int advice_to_populate;
  SharedSync sync;
  Mapping view;
  Mapping writable;
  // file:
  Mapping image;  // of the log
  std::optional<BlockWriter> log_writer;
};

Memory::Memory() = default;
Memory::~Memory() = default;

std::unique_ptr<Memory> Memory::map(int fd, const std::string& path, std::uint64_t size,
                                    const MemoryOptions& options) {
  check_size(fd, path, size, options);
  const int flags = fcntl(fd, F_GETFL);
  const bool read_only = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;

  std::unique_ptr<Memory> memory(new Memory());
  Memory& m = *memory;
  m.cold_ = std::make_unique<Cold>(fd);
  Cold& cold = *m.cold_;

  m.kind_ = options.kind;
  const bool maybe_dax = options.kind == MemoryKind::automatic || options.kind == MemoryKind::dax;
  if (maybe_dax && !read_only) {
    // Where libpmem cannot map, automatic takes file, which is as durable on any file and needs
    // nothing of what may stop libpmem (a system without /proc, say). What stops any mapping stops
    // that one too, and says why.
    std::string failure;
    if (auto persistent = Mapping::of_persistent(fd, size, failure)) {
      cold.writable = std::move(*persistent);
      m.kind_ = MemoryKind::dax;
    } else if (options.kind == MemoryKind::dax) {
      if (!failure.empty()) {
        refuse(ErrorCode::io_error, "libpmem cannot map the file", path,
               std::to_string(size) + " bytes mapped", failure);
      }
      refuse(ErrorCode::unsupported, "the file is not on persistent memory", path,
             "a file on a DAX file system", "a file that libpmem would have to msync");
    }
  }
  // For a reader the kinds do not differ: nothing is ever flushed.
  if (m.kind_ == MemoryKind::automatic) m.kind_ = MemoryKind::file;
  check_latency(path, m.kind_, options.latency);

  m.chosen_ = choose_flush(path, m.kind_, options.flush);
  m.per_line_ = m.chosen_ == FlushInstruction::non_temporal ? best_flush() : m.chosen_;
  m.needs_sfence_ = m.chosen_ != FlushInstruction::clflush;
  m.writes_blocks_ = m.kind_ == MemoryKind::file;
  m.stores_past_cache_ = !m.writes_blocks_ && m.chosen_ != FlushInstruction::clflush &&
                         m.chosen_ != FlushInstruction::none;
  m.latency_ = LatencyTicks(options.latency);
  m.size_ = size;
  m.log_offset_ = options.log_offset;
  m.log_length_ = options.log_length;

  cold.view = Mapping::of_file(fd, path, size, false);
  m.view_ = cold.view.data();
  if (!read_only) {
    if (cold.writable.data() == nullptr) cold.writable = Mapping::of_file(fd, path, size, true);
    m.writable_ = cold.writable.data();
  }
  if (m.writes_blocks_) {
    if (m.log_length_ != 0) cold.image = Mapping::of_zeros(path, m.log_length_);
    m.log_ = cold.image.data();
    cold.log_writer.emplace(fd, m.log_offset_, kFileBlock,
                            options.write_through && !read_only && m.log_length_ != 0);
  } else if (!read_only) {
    m.log_ = m.writable_ + m.log_offset_;
    populate_log(m.log_, m.log_length_, cold.advice_to_populate, options.prefault_ms);
  } else {
    m.log_ = cold.view.data() + m.log_offset_;  // log_view() works; a store would fault
  }
  return memory;
}

void Memory::store(std::uint64_t offset, const void* source, std::size_t bytes) noexcept {
  SP3_ASSERT(writable_ != nullptr && offset <= size_ && bytes <= size_ - offset);
  copy_words(writable_ + offset, static_cast<const std::byte*>(source), bytes);
}

void Memory::store_through(std::uint64_t offset, const void* source, std::size_t bytes,
                           FlushCounts& counts) noexcept {
  SP3_ASSERT(writable_ != nullptr && offset <= size_ && bytes <= size_ - offset);
  const auto* const from = static_cast<const std::byte*>(source);
  const auto by_way_of_cache = [&](std::uint64_t begin, std::uint64_t end) {
    copy_words(writable_ + begin, from + (begin - offset), end - begin);
    flush_mapped(writable_ + begin, end - begin, per_line_, counts);
  };
  const WholeLines lines(offset, bytes);
  if (!stores_past_cache_ || lines.none()) return by_way_of_cache(offset, offset + bytes);
  by_way_of_cache(offset, lines.begin);
  stream_copy(writable_ + lines.begin, from + (lines.begin - offset), lines.end - lines.begin);
  flush_mapped(writable_ + lines.begin, lines.end - lines.begin, FlushInstruction::none, counts);
  by_way_of_cache(lines.end, offset + bytes);
}

void Memory::store_through(std::span<const HomeValue> values, FlushCounts& counts) noexcept {
  // Where each line is waited for, nothing overlaps anyway.
  const bool can_stream = stores_past_cache_ && !latency_.charges_lines();
  std::uint64_t lines = 0;
  for (const HomeValue& value : values) {
    const std::size_t bytes = value.bytes.size();
    if (!can_stream || (value.offset | bytes) % base::kCacheLine != 0) [[unlikely]] {
      store_through(value.offset, value.bytes.data(), bytes, counts);
      continue;
    }
    SP3_ASSERT(value.offset <= size_ && bytes <= size_ - value.offset);
    stream_copy(writable_ + value.offset, value.bytes.data(), bytes);
    lines += bytes / base::kCacheLine;
  }
  counts.add_lines(lines);
}

void Memory::store_word(std::uint64_t offset, std::uint64_t value) noexcept {
  SP3_ASSERT(writable_ != nullptr && offset % kWord == 0 && offset + kWord <= size_);
  store_aligned_word(writable_ + offset, value);
}

// file: the stores are in the page cache already; they are counted, and the fence writes them out.
void Memory::flush(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept {
  SP3_ASSERT(writable_ != nullptr && offset <= size_ && bytes <= size_ - offset);
  flush_mapped(writable_ + offset, bytes, per_line_, counts);
}

void Memory::flush_found(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept {
  if (writes_blocks_) {
    SP3_ASSERT(writable_ != nullptr && offset <= size_ && bytes <= size_ - offset);
    for (std::uint64_t at = base::round_down(offset, base::kPage); at < offset + bytes;
         at += base::kPage) {
      // relaxed: nobody changes the word, others may do the same to it.
      const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(writable_ + at));
      word.store(word.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
  }
  flush(offset, bytes, counts);
}

// Model `line`: each flush is followed by its own wait, so none overlaps with another.
void Memory::flush_slowly(FlushInstruction instruction, std::byte* first,
                          const std::byte* end) noexcept {
  for (std::byte* line = first; line != end; line += base::kCacheLine) {
    flush_lines(instruction, line, line + base::kCacheLine);
    latency_.charge_line();
  }
}

// file: the blocks that hold the range go from the image to the file.
IoStatus Memory::log_flush_checked(std::uint64_t offset, std::size_t bytes, bool streamed,
                                   FlushCounts& counts) noexcept {
  if (const int error = injected_failure()) return {error};
  if (bytes == 0) return {};
  if (!writes_blocks_) {
    const bool past_cache = streamed && chosen_ == FlushInstruction::non_temporal;
    flush_mapped(log_at(offset), bytes, past_cache ? FlushInstruction::none : per_line_, counts);
    return {};
  }
  const std::uint64_t first = base::round_down(offset, kFileBlock);
  const std::uint64_t length = base::round_up(offset + bytes, kFileBlock) - first;
  const BlockWriter& writer = *cold_->log_writer;
  if (const int error = writer.write(log_at(first), length, first)) return {error};
  counts.add_written(lines_of(first, length), writer.writes_through());
  return {};
}

IoStatus Memory::fence_checked(FlushCounts& counts) noexcept {
  if (const int error = injected_failure()) return {error};
  if (!writes_blocks_) {
    fence_mapped(counts);
    return {};
  }
  if (counts.pending_lines == 0) return {};
  if (const int error = cold_->sync.wait()) return {error};
  counts.fence();
  return {};
}

void Memory::populate(std::uint64_t offset, std::size_t bytes) noexcept {
  SP3_ASSERT(writable_ != nullptr && offset <= size_ && bytes <= size_ - offset);
  const std::uint64_t first = base::round_down(offset, base::kPage);
  if (cold_->advice_to_populate == MADV_POPULATE_READ) {
    // One read maps all of its neighbourhood that was ever stored to, and without the walk that
    // madvise takes for each page: 0.25 instead of 0.4 us a page.
    for (std::uint64_t at = first; at < offset + bytes; at += kNeighbourhood) {
      (void)*static_cast<const volatile std::byte*>(writable_ + at);
    }
    return;
  }
  // Refused by kernels before 5.14 and at the end of a file; the stores then fault one by one.
  (void)madvise(writable_ + first, offset + bytes - first, cold_->advice_to_populate);
}

void Memory::log_discard(std::uint64_t offset, std::size_t bytes) noexcept {
  if (!writes_blocks_) return;
  SP3_ASSERT(offset >= log_offset_ && offset - log_offset_ + bytes <= log_length_);
  const std::uint64_t first = base::round_up(offset, base::kPage);
  const std::uint64_t end = base::round_down(offset + bytes, base::kPage);
  if (first < end) (void)madvise(log_at(first), end - first, MADV_DONTNEED);
}

std::uint64_t Memory::syncs() const noexcept { return cold_->sync.syncs(); }

void inject_io_error(int error, std::uint64_t countdown) noexcept {
  // Disarmed while the countdown changes; (1) release pairs with (2). relaxed: (1) publishes both.
  detail::injected_error.store(0, std::memory_order_relaxed);
  calls_before_error.store(countdown, std::memory_order_relaxed);
  detail::injected_error.store(error, std::memory_order_release);
}

}  // namespace sp3::emu
