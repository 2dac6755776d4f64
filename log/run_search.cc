#include "log/run_search.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/mutant.h"

namespace sp3::log {
namespace {

constexpr std::uint32_t kSegmentsPerTask = 256;

struct Found {
  std::vector<SegmentRun> runs;
  std::vector<BadHeader> bad;
  Newest newest;
};

void raise(std::uint64_t& newest, std::uint64_t found, std::uint64_t in_force) {
  if (found > in_force && found - in_force > kFarthest) return;
  newest = std::max(newest, found);
}

// Why an intact header of this or a later generation cannot be true; empty if it can.
std::string find_contradiction(const SegmentHeader& header, std::uint32_t segment,
                               const LogSource& source) {
  if (header.generation > source.generation) {
    return fmt::format("a log segment of generation {} in a pool whose superblock says {}",
                       header.generation, source.generation);
  }
  if (header.checkpoint_number > source.checkpoint_number) {
    return fmt::format(
        "a log segment started after checkpoint {} in a pool whose superblock says {}",
        header.checkpoint_number, source.checkpoint_number);
  }
  if (header.session >= source.layout.max_sessions) {
    return fmt::format("a log segment of session {} in a pool of {} sessions", header.session,
                       source.layout.max_sessions);
  }
  if (header.segments == 0 || header.segments > source.layout.segments - segment) {
    return fmt::format("a run of {} log segments where at most {} fit", header.segments,
                       source.layout.segments - segment);
  }
  if (header.first_lsn == 0) return "a log segment that starts at LSN 0";
  return {};
}

// The segment's header, if it is intact and of this or a later generation.
std::optional<SegmentHeader> read_header(const LogSource& source, std::uint32_t segment) {
  SegmentHeader header;
  std::memcpy(&header, source.file + source.layout.segment_offset(segment), sizeof header);
  if (header.magic != kSegmentMagic) return std::nullopt;
  // Older generations are history, whatever they say.
  if (header.generation < source.generation &&
      !base::mutant(base::Mutant::recovery_ignores_generation)) {
    return std::nullopt;
  }
  if (header.generation > source.generation && header.generation - source.generation > kFarthest) {
    return std::nullopt;
  }
  const std::uint32_t own_seed = seed(source.uuid, header.session, header.generation);
  if (checksum(header, own_seed, segment) != header.crc &&
      !base::mutant(base::Mutant::recovery_ignores_header_checksum)) {
    return std::nullopt;
  }
  return header;
}

void examine(const LogSource& source, std::uint32_t segment, Found& found) {
  const std::optional<SegmentHeader> intact = read_header(source, segment);
  if (!intact) return;
  const SegmentHeader& header = *intact;
  raise(found.newest.generation, header.generation, source.generation);
  raise(found.newest.checkpoint_number, header.checkpoint_number, source.checkpoint_number);

  std::string contradiction = find_contradiction(header, segment, source);
  if (!contradiction.empty()) {
    found.bad.push_back({segment, header.generation, std::move(contradiction)});
    return;
  }
  SegmentRun run;
  run.offset = source.layout.segment_offset(segment);
  run.bytes = std::uint64_t{header.segments} * source.layout.segment_size;
  run.first_lsn = header.first_lsn;
  run.segment = segment;
  run.session = header.session;
  found.runs.push_back(run);
}

}  // namespace

RunSearch find_runs(const LogSource& source, emu::Executor& executor) {
  const std::uint32_t segments = source.layout.segments;
  std::vector<Found> found((segments + kSegmentsPerTask - 1) / kSegmentsPerTask);
  executor.parallel_for(found.size(), [&](std::size_t task) {
    const auto begin = static_cast<std::uint32_t>(task) * kSegmentsPerTask;
    const std::uint32_t end = begin + std::min(segments - begin, kSegmentsPerTask);
    for (std::uint32_t segment = begin; segment < end; ++segment)
      examine(source, segment, found[task]);
  });

  RunSearch all;
  for (Found& part : found) {
    all.runs.insert(all.runs.end(), part.runs.begin(), part.runs.end());
    std::move(part.bad.begin(), part.bad.end(), std::back_inserter(all.bad));
    raise(all.newest.generation, part.newest.generation, source.generation);
    raise(all.newest.checkpoint_number, part.newest.checkpoint_number, source.checkpoint_number);
  }
  std::sort(all.runs.begin(), all.runs.end(), [](const SegmentRun& a, const SegmentRun& b) {
    return std::tie(a.session, a.first_lsn, a.segment) <
           std::tie(b.session, b.first_lsn, b.segment);
  });
  return all;
}

}  // namespace sp3::log
