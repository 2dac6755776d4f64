// Applying one write entry: to its home, and to what is known to be allocated.
//
// Thread safety: any thread; writes of one slot must be ordered by the caller.
// REQUIRES everywhere: SlabPlan::check() found the write good, and bitmaps are loaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sp3/detail/prefetch_lines.h>

#include "emu/memory.h"
#include "log/record_reader.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Whether the write brings a whole object.
inline bool replaces_home(const log::WriteView& write) {
  return write.kind == log::WriteKind::image || write.kind == log::WriteKind::make;
}

// Whether the write says if its slot is allocated.
inline bool allocates(const log::WriteView& write) {
  return write.kind == log::WriteKind::make || write.kind == log::WriteKind::destroy;
}

// The write entry at `at`. REQUIRES: of an accepted record.
inline log::WriteView write_at(const std::byte* at) {
  log::WriteView write;
  log::RecordView::read_write(at, write);
  return write;
}

// Asks for the header of a write entry.
inline void ask_for_header(const std::byte* at) {
  __builtin_prefetch(at);
  __builtin_prefetch(at + sizeof(log::WriteHeader) - 1);
}
// Asks for the first lines of a write entry, of which its header is one.
inline void ask_for_log(const std::byte* at) {
  __builtin_prefetch(at);
  __builtin_prefetch(at + base::kCacheLine);
}
inline void ask_for_payload(const log::WriteView& write) {
  const std::byte* const begin = write.payload.data();
  const std::size_t before = reinterpret_cast<std::uintptr_t>(begin) % base::kCacheLine;
  detail::prefetch_lines(begin - before, before + write.payload.size());
}
// Asks for what apply_write stores to.
inline void ask_for_home(const emu::Memory& memory, const log::WriteView& write) {
  const std::size_t bytes = std::min(write.payload.size(), detail::prefetched_bytes);
  for (std::uint64_t i = 0; i < bytes; i += base::kCacheLine) memory.prefetch_store(write.slot + i);
}
// Asks for what a ValueBlock stores to: nothing is read of lines that are replaced whole.
inline void ask_for_home_through(const emu::Memory& memory, const log::WriteView& write) {
  const bool whole_lines = memory.stores_past_cache() && replaces_home(write) &&
                           (write.slot | write.object().size()) % base::kCacheLine == 0;
  if (!whole_lines) ask_for_home(memory, write);
}

// Calls visit(offset, bytes) for each stretch of home that the write replaces.
template <class Visitor>
void for_each_store(const log::WriteView& write, Visitor&& visit) {
  switch (write.kind) {
    case log::WriteKind::make:
    case log::WriteKind::image:
      visit(write.slot, write.object());
      break;
    case log::WriteKind::delta:
      log::for_each_run(write.payload, [&](std::uint64_t offset, std::span<const std::byte> words) {
        visit(write.slot + offset, words);
      });
      break;
    case log::WriteKind::destroy:
    case log::WriteKind::range:
      break;
  }
}

// What a make or destroy says. REQUIRES: allocates(write).
inline void apply_allocation(SlabPlan& plan, const log::WriteView& write) noexcept {
  if (write.kind == log::WriteKind::make) {
    plan.set(write.slot);
  } else {
    plan.clear(write.slot);
  }
}

// Stores the new bytes.
void apply_write(emu::Memory& memory, const log::WriteView& write) noexcept;

// The same, and flushed: durable at the caller's next fence with `counts`.
void apply_and_flush(emu::Memory& memory, const log::WriteView& write,
                     emu::FlushCounts& counts) noexcept;

}  // namespace sp3::recovery
