// Each call is an event first, at which a crash image may be taken or another core go on, and then
// its effect. A sync takes time: what is stored while it runs is not covered by it.
#include "emu/memory.h"

#include <algorithm>
#include <cstring>

#include <sp3/error.h>

#include "base/plain_access.h"
#include "emu/shared_sync.h"

namespace sp3::emu {
namespace {

using sim::Event;

constexpr std::uint64_t kPicoseconds = 1000;  // in a nanosecond

sim::Machine::Core core() noexcept { return sim::machine().core(); }

void store_event(std::uint64_t offset, std::size_t bytes) noexcept {
  sim::Machine& machine = sim::machine();
  machine.event(Event::store, offset, lines_of(offset, bytes) * machine.costs().store_line);
}

[[noreturn]] void refuse(ErrorCode code, const char* message, const std::string& path,
                         std::uint64_t wanted, std::uint64_t found) {
  throw Error(code, message,
              {.path = path, .wanted = std::to_string(wanted), .found = std::to_string(found)});
}

}  // namespace

void inject_io_error(int error, std::uint64_t countdown) noexcept {
  sim::machine().fail_io(error, countdown);
}

Memory::Memory(sim::Media& media) : media_(media) {}
Memory::~Memory() = default;

std::unique_ptr<Memory> Memory::map(int fd, const std::string& path, std::uint64_t size,
                                    const MemoryOptions& options) {
  sim::FileSystem& files = sim::machine().files();
  sim::Media& media = files.at(fd).media;
  if (size == 0 || media.size() < size) {
    refuse(ErrorCode::wrong_size, "the file is too short to map", path, size, media.size());
  }
  if (options.log_offset > size || options.log_length > size - options.log_offset ||
      options.log_offset % kFileBlock != 0 || options.log_length % kFileBlock != 0) {
    refuse(ErrorCode::invalid_argument, "the log region is outside the file or not made of blocks",
           path, size, options.log_offset);
  }
  std::unique_ptr<Memory> memory(new Memory(media));
  memory->size_ = size;
  memory->log_offset_ = options.log_offset;
  memory->log_length_ = options.log_length;
  memory->kind_ = options.kind == MemoryKind::automatic ? MemoryKind::emulated : options.kind;
  memory->writes_blocks_ = memory->kind_ == MemoryKind::file;
  memory->read_only_ = !files.is_writable(fd);
  memory->latency_ = options.latency;
  if (memory->writes_blocks_) {
    memory->chosen_ = FlushInstruction::none;
    memory->image_.resize(options.log_length);
    base::fresh_memory(memory->image_.data(), options.log_length);
    if (sim::machine().tracks_media()) {
      memory->written_.resize(options.log_length);
      memory->is_written_.resize(options.log_length / kFileBlock);
    }
    memory->sync_ = std::make_unique<SharedSync>([&media] {
      sim::Machine& machine = sim::machine();
      const std::uint64_t begun = media.begin_sync();
      machine.event(Event::fence, 1, machine.costs().file_sync);
      const int error = machine.io_error();
      if (error == 0) {
        media.end_sync(begun);
      } else {
        media.fail_sync(begun, machine.random());
      }
      return error;
    });
  } else {
    memory->chosen_ = options.flush == FlushInstruction::automatic ? FlushInstruction::non_temporal
                                                                   : options.flush;
  }
  const sim::Medium medium = memory->writes_blocks_ ? sim::Medium::sectors : sim::Medium::lines;
  if (media.medium() != medium) media.use_as(medium);
  return memory;
}

void Memory::store(std::uint64_t offset, const void* source, std::size_t bytes) noexcept {
  SP3_CHECK(!read_only_);
  store_event(offset, bytes);
  check_overtakes_nothing(offset, bytes);
  base::plain_write(view() + offset, bytes);
  media_.store(core(), offset, source, bytes, false);
}

void Memory::store_through(std::uint64_t offset, const void* source, std::size_t bytes,
                           FlushCounts& counts) noexcept {
  const WholeLines lines(offset, bytes);
  if (!stores_past_cache() || lines.none()) {
    store(offset, source, bytes);
    flush(offset, bytes, counts);
    return;
  }
  SP3_CHECK(!read_only_);
  const auto* const from = static_cast<const std::byte*>(source);
  const auto store_part = [&](std::uint64_t begin, std::uint64_t end, bool past_cache) {
    media_.store(core(), begin, from + (begin - offset), end - begin, past_cache);
  };
  store_event(offset, bytes);
  check_overtakes_nothing(offset, bytes);
  streamed_.add(core(), lines.begin, lines.end - lines.begin);
  base::plain_write(view() + offset, bytes);
  store_part(offset, lines.begin, false);
  store_part(lines.begin, lines.end, true);
  store_part(lines.end, offset + bytes, false);
  flush_lines(offset, bytes, true, counts);
  media_.flush(core(), offset, lines.begin - offset, false);
  media_.flush(core(), lines.end, offset + bytes - lines.end, false);
}

void Memory::store_word(std::uint64_t offset, std::uint64_t value) noexcept {
  SP3_CHECK(offset % 8 == 0);
  store(offset, &value, sizeof value);
}

// Latency model `line`: each line waits for the media by itself.
void Memory::flush_lines(std::uint64_t offset, std::size_t bytes, bool past_cache,
                         FlushCounts& counts) noexcept {
  const std::uint64_t lines = lines_of(offset, bytes);
  if (lines == 0) return;
  const sim::Costs& costs = sim::machine().costs();
  std::uint64_t cost = lines * costs.flush_line;
  if (latency_.model == LatencyModel::line) cost += lines * latency_.nanoseconds * kPicoseconds;
  sim::machine().event(Event::flush, offset, cost);
  if (!past_cache && !writes_blocks_) {
    media_.flush(core(), offset, bytes, chosen_ == FlushInstruction::clflush);
  }
  counts.add_lines(lines);
}

void Memory::flush(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept {
  base::plain_read(view() + offset, bytes);
  flush_lines(offset, bytes, false, counts);
}

void Memory::flush_found(std::uint64_t offset, std::size_t bytes, FlushCounts& counts) noexcept {
  if (writes_blocks_) media_.store(core(), offset, view() + offset, bytes, false);
  flush(offset, bytes, counts);
}

void Memory::log_store(std::uint64_t offset, const void* source, std::size_t bytes,
                       bool streaming) noexcept {
  SP3_CHECK(offset >= log_offset_ && offset - log_offset_ + bytes <= log_length_);
  sim::Machine& machine = sim::machine();
  machine.event(Event::store, offset,
                lines_of(offset, bytes) *
                    (std::uint64_t{machine.costs().store_line} + machine.costs().log_line));
  base::plain_write(log_view(offset), bytes);
  if (writes_blocks_) {
    std::memcpy(image_.data() + (offset - log_offset_), source, bytes);
  } else {
    const bool past_cache = streaming && chosen_ == FlushInstruction::non_temporal;
    check_overtakes_nothing(offset, bytes);
    if (past_cache) streamed_.add(core(), offset, bytes);
    media_.store(core(), offset, source, bytes, past_cache);
  }
}

IoStatus Memory::log_flush(std::uint64_t offset, std::size_t bytes, bool streamed,
                           FlushCounts& counts) noexcept {
  if (bytes == 0) return {};
  if (!writes_blocks_) {
    if (const int error = sim::machine().io_error()) return {error};
    base::plain_read(log_view(offset), bytes);
    flush_lines(offset, bytes, streamed && chosen_ == FlushInstruction::non_temporal, counts);
    return {};
  }
  const std::uint64_t first = base::round_down(offset, kFileBlock);
  const std::uint64_t length = base::round_up(offset + bytes, kFileBlock) - first;
  sim::machine().event(Event::flush, first, sim::machine().costs().file_write);
  if (const int error = sim::machine().io_error()) {
    write_some_sectors(first, length);
    return {error};
  }
  base::plain_read(log_view(first), length);
  check_written_once(first, length);
  media_.write_sectors(core(), first, log_view(first), length);
  const bool through = sim::machine().writes_through();
  if (through) {
    const std::uint64_t written = media_.begin_sync();
    sim::machine().event(Event::fence, first, sim::machine().costs().file_sync);
    media_.end_write(first, length, written);
  }
  counts.add_written(lines_of(first, length), through);
  return {};
}

// A write that failed: a disk takes sectors in any order. Often all have arrived, or none.
void Memory::write_some_sectors(std::uint64_t offset, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kSector = 512;
  sim::Random& choose = sim::machine().random();
  const std::uint64_t fate = choose.below(4);
  for (std::uint64_t at = offset; at < offset + bytes; at += kSector) {
    const bool arrived = fate == 0 || (fate != 1 && choose.one_in(2));
    if (arrived) media_.write_sectors(core(), at, log_view(at), kSector);
  }
}

void Memory::check_written_once(std::uint64_t offset, std::uint64_t bytes) noexcept {
  for (std::uint64_t at = offset - log_offset_; at < offset - log_offset_ + bytes;
       at += kFileBlock) {
    if (written_.empty()) return;
    const bool is_same = std::memcmp(&written_[at], &image_[at], kFileBlock) == 0;
    const bool block_is_fresh_or_unchanged = !is_written_[at / kFileBlock] || is_same;
    SP3_CHECK(block_is_fresh_or_unchanged);
    is_written_[at / kFileBlock] = true;
    std::memcpy(&written_[at], &image_[at], kFileBlock);
  }
}

void Memory::check_overtakes_nothing(std::uint64_t offset, std::size_t bytes) const noexcept {
  const bool what_was_streamed_is_seen = streamed_.are_seen_by(core(), offset, bytes);
  SP3_CHECK(what_was_streamed_is_seen);
}

// The added wait begins with the fence, and the lines drain meanwhile.
std::uint64_t Memory::fence_cost(std::uint64_t lines) const noexcept {
  const sim::Costs& costs = sim::machine().costs();
  const std::uint64_t once = latency_.model == LatencyModel::line ? 0 : latency_.nanoseconds;
  const std::uint64_t added = once + lines * std::uint64_t{latency_.per_line_nanoseconds};
  if (added == 0) return costs.fence;
  return std::max<std::uint64_t>(costs.fence, added * kPicoseconds + costs.clock);
}

IoStatus Memory::fence(FlushCounts& counts) noexcept {
  if (counts.pending_lines == 0) return {};
  if (writes_blocks_) {
    if (const int error = sync_->wait()) return {error};
  } else {
    if (const int error = sim::machine().io_error()) return {error};
    sim::machine().fence(fence_cost(counts.pending_lines));
    streamed_.fence(core());
    media_.fence(core());
  }
  counts.fence();
  return {};
}

void Memory::log_discard(std::uint64_t offset, std::size_t bytes) noexcept {
  if (!writes_blocks_) return;
  const std::uint64_t begin = offset - log_offset_;
  base::plain_write(log_view(offset), bytes);
  std::memset(image_.data() + begin, 0, bytes);
  for (std::uint64_t at = begin; at < begin + bytes && !written_.empty(); at += kFileBlock) {
    is_written_[at / kFileBlock] = false;
  }
}

std::uint64_t Memory::syncs() const noexcept { return sync_ ? sync_->syncs() : 0; }

}  // namespace sp3::emu
