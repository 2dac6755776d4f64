// Lines that cores have stored past the cache and not fenced. Such stores wait in buffers of their
// core, out of the order that other stores keep: another core may see them late, and what it stores
// to such a line itself may be lost under them. Simulated memory shows all stores at once, so that
// this is not seen by its effect; here is who would meet it. Not safe for threads, as all that
// belongs to the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/align.h"
#include "emu/sim/machine.h"

namespace sp3::emu::sim {

class StreamedLines {
 public:
  // `core` stores these whole lines past the cache.
  void add(Machine::Core core, std::uint64_t offset, std::size_t bytes) {
    for_each_line(offset, bytes, [&](std::uint64_t line) { streamed_by_[line] = core; });
  }

  // From now on all see what `core` has stored.
  void fence(Machine::Core core) noexcept {
    std::erase_if(streamed_by_, [&](const auto& line) { return line.second == core; });
  }

  // False if another core has streamed to a line of these bytes and not fenced.
  [[nodiscard]] bool are_seen_by(Machine::Core core, std::uint64_t offset,
                                 std::size_t bytes) const noexcept {
    if (streamed_by_.empty()) return true;
    bool seen = true;
    for_each_line(offset, bytes, [&](std::uint64_t line) {
      const auto found = streamed_by_.find(line);
      seen = seen && (found == streamed_by_.end() || found->second == core);
    });
    return seen;
  }

 private:
  template <class Visitor>
  static void for_each_line(std::uint64_t offset, std::size_t bytes, Visitor&& visit) {
    for (std::uint64_t line = base::round_down(offset, base::kCacheLine); line < offset + bytes;
         line += base::kCacheLine) {
      visit(line);
    }
  }

  std::unordered_map<std::uint64_t, Machine::Core> streamed_by_;
};

}  // namespace sp3::emu::sim
