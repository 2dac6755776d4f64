#include "recovery/apply.h"

#include <algorithm>

#include "base/mutant.h"
#include "emu/step.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

void apply_write(emu::Memory& memory, SlabPlan& plan, const log::WriteView& write) noexcept {
  emu::step(emu::Step::recovery_replay);
  switch (write.kind) {
    case log::WriteKind::make:
      plan.set(write.slot);
      [[fallthrough]];
    case log::WriteKind::image:
      memory.store(write.slot, write.object().data(), write.object().size());
      break;
    case log::WriteKind::delta:
      log::for_each_run(write.payload, [&](std::uint64_t offset, std::span<const std::byte> words) {
        memory.store(write.slot + offset, words.data(), words.size());
      });
      break;
    case log::WriteKind::destroy:
      plan.clear(write.slot);
      break;
    case log::WriteKind::range:
      break;
  }
}

void flush_write(emu::Memory& memory, const log::WriteView& write,
                 emu::FlushCounts& counts) noexcept {
  if (write.kind == log::WriteKind::destroy) return;
  if (write.kind != log::WriteKind::delta) {
    if (mutant(Mutant::no_flush_replayed_object)) return;
    memory.flush(write.slot, write.object().size(), counts);
    return;
  }
  // Runs that share a line, or follow it, are flushed as one.
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  log::for_each_run(write.payload, [&](std::uint64_t offset, std::span<const std::byte> words) {
    const std::uint64_t first = write.slot + offset;
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

}  // namespace sp3::recovery
