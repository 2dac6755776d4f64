#include "workloads/floor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sp3/error.h>

#include "base/align.h"
#include "emu/clock.h"
#include "emu/memory.h"
#include "pool/file_system.h"
#include "runtime/option_limits.h"
#include "workloads/scratch_file.h"

namespace sp3::workloads {

namespace {

constexpr std::uint64_t kBytes = 32 << 20;
constexpr unsigned kSlices = 51;

}  // namespace

FloorResult measure_floor(const std::filesystem::path& beside, MemoryKind memory,
                          const Latency& latency, FlushInstruction flush, unsigned lines,
                          double seconds) {
  // As whoever opens a pool with them is told: a latency of seconds would be measured for minutes.
  Options asked;
  asked.memory = memory;
  asked.latency = latency;
  asked.flush = flush;
  runtime::check_options(asked, beside.string());
  const ScratchFile file(beside);
  const std::string path = file.path().string();
  const int error = ::posix_fallocate(file.descriptor(), 0, kBytes);
  if (error != 0) pool::throw_system_error(error, "posix_fallocate", path);
  emu::MemoryOptions options;
  options.kind = memory;
  options.flush = flush;
  options.latency = latency;
  options.log_length = kBytes;
  const auto mapped = emu::Memory::map(file.descriptor(), path, kBytes, options);
  const bool streaming = mapped->flush_instruction() == FlushInstruction::non_temporal;
  const std::uint64_t bytes = lines * base::kCacheLine;
  const std::uint64_t unit = mapped->writes_blocks() ? emu::kFileBlock : base::kCacheLine;
  const std::uint64_t stride = base::round_up(bytes, unit);
  std::vector<std::uint64_t> record(bytes / sizeof(std::uint64_t), 1);

  // Once through the file first, so that page faults are not in the result.
  for (std::uint64_t at = 0; at + stride <= kBytes; at += stride) {
    mapped->log_store(at, record.data(), bytes, streaming);
  }
  emu::FlushCounts counts;
  std::uint64_t at = 0;
  const auto write = [&] {
    ++record[0];
    mapped->log_store(at, record.data(), bytes, streaming);
    const emu::IoStatus flushed = mapped->log_flush(at, bytes, streaming, counts);
    const emu::IoStatus fenced = mapped->fence(counts);
    if (!flushed.ok() || !fenced.ok()) {
      throw Error(
          ErrorCode::io_error, "the scratch file cannot be written",
          {.path = path, .found = std::strerror(flushed.ok() ? fenced.error : flushed.error)});
    }
    at = at + 2 * stride <= kBytes ? at + stride : 0;
  };
  // The mean of each slice; the median of those, since whoever takes the core away for a while
  // would else be part of what a write costs.
  const std::uint64_t slice = emu::ticks_from_nanoseconds(seconds * 1e9 / kSlices);
  std::vector<double> means;
  for (unsigned i = 0; i < kSlices; ++i) {
    const std::uint64_t start = emu::ticks();
    std::uint64_t now = start;
    std::uint64_t writes = 0;
    for (; writes == 0 || now - start < slice; ++writes) {
      write();
      now = emu::ticks();
    }
    means.push_back(emu::nanoseconds_from_ticks(now - start) / static_cast<double>(writes));
  }
  const auto median = means.begin() + kSlices / 2;
  std::nth_element(means.begin(), median, means.end());
  return {1e9 / *median, *median, mapped->flush_instruction()};
}

}  // namespace sp3::workloads
