// Memory on the simulated machine: the contract of emu/memory.h, whose stores go to a Media.
//
// dax and emulated: lines, flushed and fenced. All flush instructions exist. `none` stands for a
// platform that flushes its caches (eADR): what was handed to flush() is certain at the next fence.
// file: sectors; the log through an image in DRAM, as in the native one.
#pragma once

#include <memory>

#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "emu/sim/streamed_lines.h"

namespace sp3::emu {

class SharedSync;

class Memory {
 public:
  static std::unique_ptr<Memory> map(int fd, const std::string& path, std::uint64_t size,
                                     const MemoryOptions& options);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] const std::byte* view() const noexcept { return media_.now(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }
  [[nodiscard]] FlushInstruction flush_instruction() const noexcept { return chosen_; }
  [[nodiscard]] bool writes_blocks() const noexcept { return writes_blocks_; }

  void store(std::uint64_t offset, const void* source, std::size_t bytes) noexcept;
  void store_through(std::uint64_t offset, const void* source, std::size_t bytes,
                     FlushCounts& counts) noexcept;
  void store_through(std::span<const HomeValue> values, FlushCounts& counts) noexcept {
    for (const HomeValue& value : values)
      store_through(value.offset, value.bytes.data(), value.bytes.size(), counts);
  }
  [[nodiscard]] bool stores_past_cache() const noexcept {
    return !writes_blocks_ && chosen_ != FlushInstruction::clflush &&
           chosen_ != FlushInstruction::none;
  }
  void store_word(std::uint64_t offset, std::uint64_t value) noexcept;
  void prefetch_store(std::uint64_t /*offset*/) const noexcept {}
  void populate(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept {}
  void flush(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept;

  void flush_found(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept;

  void log_store(std::uint64_t offset, const void* source, std::size_t bytes,
                 bool streaming) noexcept;
  IoStatus log_flush(std::uint64_t offset, std::size_t bytes, bool streamed,
                     FlushCounts& counts) noexcept;
  [[nodiscard]] const std::byte* log_view(std::uint64_t offset) const noexcept {
    return writes_blocks_ ? image_.data() + (offset - log_offset_) : media_.now() + offset;
  }
  void log_discard(std::uint64_t offset, std::size_t bytes) noexcept;

  IoStatus fence(FlushCounts& counts) noexcept;
  [[nodiscard]] std::uint64_t syncs() const noexcept;

 private:
  explicit Memory(sim::Media& media);
  void write_some_sectors(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void check_written_once(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void check_overtakes_nothing(std::uint64_t offset, std::size_t bytes) const noexcept;
  void flush_lines(std::uint64_t offset, std::size_t bytes, bool past_cache,
                   FlushCounts& counts) noexcept;
  [[nodiscard]] std::uint64_t fence_cost(std::uint64_t lines) const noexcept;

  sim::Media& media_;
  std::shared_ptr<sim::File> file_;
  std::uint64_t size_ = 0;
  std::uint64_t log_offset_ = 0;
  std::uint64_t log_length_ = 0;
  MemoryKind kind_ = MemoryKind::emulated;
  FlushInstruction chosen_ = FlushInstruction::clwb;
  bool writes_blocks_ = false;
  bool read_only_ = false;
  Latency latency_;
  std::vector<std::byte> image_;  // file: of the log
  // What was written of the image since its segment was discarded, by blocks. A device may tear
  // what it writes, so no block is written again with other bytes.
  std::vector<std::byte> written_;
  std::vector<bool> is_written_;
  sim::StreamedLines streamed_;
  std::unique_ptr<SharedSync> sync_;
};

}  // namespace sp3::emu
