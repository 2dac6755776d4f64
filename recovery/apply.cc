#include "recovery/apply.h"

#include <algorithm>

#include "base/mutant.h"
#include "emu/step.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

// Flushes what a delta stored.
void flush_runs(emu::Memory& memory, const log::WriteView& write,
                emu::FlushCounts& counts) noexcept {
  // Runs that share a line, or follow it, are flushed as one.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  for_each_store(write, [&](std::uint64_t first, std::span<const std::byte> words) {
    if (begin != end && base::round_down(first, base::kCacheLine) <= end && first >= begin) {
      end = std::max(end, first + words.size());
      return;
    }
    if (begin != end && !mutant(Mutant::no_flush_replayed_words)) {
      memory.flush(begin, end - begin, counts);
    }
    begin = first;
    end = first + words.size();
  });
  if (mutant(Mutant::no_flush_replayed_last_words)) return;
  if (begin != end) memory.flush(begin, end - begin, counts);
}

}  // namespace

void apply_write(emu::Memory& memory, const log::WriteView& write) noexcept {
  emu::step(emu::Step::recovery_replay);
  for_each_store(write, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    memory.store(offset, bytes.data(), bytes.size());
  });
}

void apply_and_flush(emu::Memory& memory, const log::WriteView& write,
                     emu::FlushCounts& counts) noexcept {
  apply_write(memory, write);
  flush_runs(memory, write, counts);
}

}  // namespace sp3::recovery
