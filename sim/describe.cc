#include "sim/describe.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "emu/step.h"
#include "emu/touch.h"

namespace sp3::sim {
namespace {

std::string at(std::string_view region, std::uint64_t offset) {
  return fmt::format("{} + {:#x}", region, offset);
}

std::string describe_touch(std::uint64_t what) {
  constexpr std::array<std::string_view, 11> kLines{
      "entry of the object at",
      "version of the object at",
      "committed number of session",
      "sealed number of session",
      "persisted number of session",
      "announcement of session",
      "ring of session",
      "epoch slot",
      "global epoch",
      "floor",
      "serial gate",
  };
  static_assert(kLines.size() == static_cast<std::size_t>(emu::Line::gate) + 1);
  constexpr std::array<std::string_view, 5> kAccesses{"load of", "look at", "load behind",
                                                      "store to", "exchange of"};
  static_assert(kAccesses.size() == static_cast<std::size_t>(emu::Access::exchange) + 1);
  const emu::sim::Touch touch = emu::sim::unpack_touch(what);
  const auto line = static_cast<std::size_t>(touch.line);
  const auto access = static_cast<std::size_t>(touch.access);
  if (line >= kLines.size() || access >= kAccesses.size()) return fmt::format("touch {}", what);
  std::string text = fmt::format("{} the {}", kAccesses[access], kLines[line]);
  if (touch.line <= emu::Line::version) {
    text += fmt::format(" {:#x}", touch.which);
  } else if (touch.line <= emu::Line::epoch_slot) {
    text += fmt::format(" {}", touch.which);
  }
  return text;
}

std::string_view describe_file_change(emu::sim::FileChange change) {
  using emu::sim::FileChange;
  switch (change) {
    case FileChange::make:
      return "making of a file";
    case FileChange::resize:
      return "resizing of a file";
    case FileChange::name:
      return "naming of a file";
    case FileChange::sync_directory:
      return "sync of the directory";
    case FileChange::remove:
      return "removal of a file";
  }
  return "change to a file";
}

}  // namespace

std::string describe_place(const pool::Layout& layout, std::uint64_t offset) {
  const std::uint64_t superblocks = 2 * layout.superblock_bytes;
  if (offset < superblocks) {
    const bool second = offset >= layout.superblock_bytes;
    return at(second ? "superblock B" : "superblock A", offset - layout.superblock_offset(second));
  }
  for (const int copy : {0, 1}) {
    const std::uint64_t begin = layout.directory_offset[copy];
    if (offset < begin || offset - begin >= layout.directory_bytes) continue;
    return at(copy == 0 ? "metadata A" : "metadata B", offset - begin);
  }
  if (offset >= layout.log_offset && offset - layout.log_offset < layout.log_bytes) {
    const auto segment = static_cast<std::uint32_t>((offset - layout.log_offset) /
                                                    std::max(layout.segment_size, 1U));
    return at(fmt::format("log segment {}", segment), offset - layout.segment_offset(segment));
  }
  if (layout.in_slabs(offset)) {
    const std::uint32_t slab = layout.slab_of(offset);
    return at(fmt::format("slab {}", slab), offset - layout.slab_offset(slab));
  }
  return fmt::format("offset {:#x}, which nothing uses", offset);
}

std::string describe_event(const pool::Layout& layout, emu::sim::Event event, std::uint64_t what) {
  using emu::sim::Event;
  switch (event) {
    case Event::step:
      return fmt::format("step {}", emu::step_name(static_cast<emu::Step>(what)));
    case Event::store:
      return "store to " + describe_place(layout, what);
    case Event::flush:
      return "flush of " + describe_place(layout, what);
    case Event::fence:
      return what == 0 ? "fence" : "fdatasync";
    case Event::file:
      return std::string(describe_file_change(static_cast<emu::sim::FileChange>(what)));
    case Event::touch:
      return describe_touch(what);
    case Event::interleave:
      return "between two accesses";
    case Event::pause:
      return "wait for another core";
    case Event::mutex:
      return "taking of a mutex";
    case Event::block:
      return "falling asleep";
    case Event::end:
      return "end";
    case Event::access:
      return "atomic access";
  }
  return fmt::format("event {} {}", static_cast<int>(event), what);
}

std::string describe(const CrashCounts& n) {
  std::string text = fmt::format(
      "{} distinct images, {} recoveries ({} after a crash in recovery, {} after a kill), {} "
      "programs ({} on recovered pools, {} on a failing disk), {} structures read",
      n.images, n.checks, n.nested, n.killed, n.runs, n.continued, n.failed, n.structures);
  if (n.rotten != 0) {
    text += fmt::format(", {} rotten ({} refused, {} salvaged)", n.rotten, n.refused, n.salvaged);
  }
  if (n.stale_loads != 0) text += fmt::format(", {} stale loads", n.stale_loads);
  return text;
}

std::string describe_choice(const pool::Layout& layout, std::uint32_t unit_bytes,
                            const emu::sim::Media::Choice& choice) {
  const std::string place = describe_place(layout, std::uint64_t{choice.unit} * unit_bytes);
  return fmt::format("content {} of the {} at {}", choice.content,
                     unit_bytes == 64 ? "line" : "sector", place);
}

}  // namespace sp3::sim
