// Finding the runs of segments in the log region by their headers alone: there are no links to
// follow.
//
// Headers of recycled segments stay where they are until overwritten, so a run found here may be
// history; whoever walks a session's log takes only runs that hold the LSN wanted next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/executor.h"
#include "log/format.h"
#include "pool/layout.h"

namespace sp3::log {

// What a log's bytes are read with.
struct LogSource {
  const std::byte* file = nullptr;  // the whole pool file, as layout describes it
  pool::Layout layout;
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t generation = 0;         // the superblock's
  std::uint64_t checkpoint_number = 0;  // the superblock's

  [[nodiscard]] std::uint32_t seed_of(SessionId session) const {
    return seed(uuid, session, generation);
  }
};

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t end() const { return offset + length; }
};

struct SegmentRun {
  std::uint64_t offset = 0;  // of the SegmentHeader in the file
  std::uint64_t bytes = 0;
  Lsn first_lsn = 0;
  std::uint32_t segment = 0;
  SessionId session = 0;
};

// A header that is intact and still cannot be.
struct BadHeader {
  std::uint32_t segment = 0;
  std::uint64_t generation = 0;
  std::string what;
};

// The largest numbers in any intact header of the superblock's or a later generation. What comes
// into force next must be above them, or a log that was given up would be believed again. Numbers
// more than kFarthest above the superblock's are left out: no pool ever gets there, and bytes made
// up to look like a header must not use up the numbers that are left. A header of such a generation
// is none: nothing that is given up would ever make it history.
struct Newest {
  std::uint64_t generation = 0;
  std::uint64_t checkpoint_number = 0;
};
inline constexpr std::uint64_t kFarthest = std::uint64_t{1} << 32;

struct RunSearch {
  std::vector<SegmentRun> runs;  // by session, first LSN, segment
  std::vector<BadHeader> bad;
  Newest newest;  // of `runs` and `bad`, and of headers that are hidden in others' runs
};

// Reads every segment's header, in parallel. Runs may overlap, since history is among them.
RunSearch find_runs(const LogSource& source, emu::Executor& executor);

}  // namespace sp3::log
