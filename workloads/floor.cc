#include "workloads/floor.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sp3/error.h>
#include <unistd.h>

#include "emu/clock.h"
#include "emu/memory.h"

namespace sp3::workloads {

namespace {

constexpr std::uint64_t kBytes = 32 << 20;
constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kBlock = 4096;

class ScratchFile {
 public:
  explicit ScratchFile(const std::filesystem::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int error = fd_ < 0 ? errno : ::posix_fallocate(fd_, 0, kBytes);
    if (error != 0) {
      remove();
      throw Error(ErrorCode::io_error,
                  fmt::format("cannot make a scratch file: {}", std::strerror(error)),
                  {.path = path.string(), .wanted = {}, .found = {}});
    }
  }
  ~ScratchFile() { remove(); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  void remove() noexcept {
    if (fd_ >= 0) ::close(fd_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace

FloorResult measure_floor(const std::filesystem::path& path, MemoryKind memory,
                          const Latency& latency, FlushInstruction flush, unsigned lines,
                          double seconds) {
  const ScratchFile file(path);
  emu::MemoryOptions options;
  options.kind = memory;
  options.flush = flush;
  options.latency = latency;
  options.log_length = kBytes;
  const auto mapped = emu::Memory::map(file.fd(), path.string(), kBytes, options);
  const bool streaming = mapped->flush_instruction() == FlushInstruction::non_temporal;
  const std::uint64_t bytes = lines * kLine;
  const std::uint64_t unit = mapped->writes_blocks() ? kBlock : kLine;
  const std::uint64_t stride = (bytes + unit - 1) / unit * unit;
  std::vector<std::uint64_t> record(bytes / sizeof(std::uint64_t), 1);

  // Once through the file first, so that page faults are not in the result.
  for (std::uint64_t at = 0; at + stride <= kBytes; at += stride) {
    mapped->log_store(at, record.data(), bytes, streaming);
  }
  emu::FlushCounts counts;
  const std::uint64_t start = emu::ticks();
  const std::uint64_t duration = emu::ticks_from_nanoseconds(seconds * 1e9);
  std::uint64_t writes = 0;
  std::uint64_t at = 0;
  std::uint64_t now = start;
  for (; now - start < duration; ++writes) {
    record[0] = writes;
    mapped->log_store(at, record.data(), bytes, streaming);
    const emu::IoStatus flushed = mapped->log_flush(at, bytes, streaming, counts);
    const emu::IoStatus fenced = mapped->fence(counts);
    if (!flushed.ok() || !fenced.ok()) {
      throw Error(ErrorCode::io_error, "the scratch file cannot be written",
                  {.path = path.string(), .wanted = {}, .found = {}});
    }
    at = at + 2 * stride <= kBytes ? at + stride : 0;
    now = emu::ticks();
  }
  const double ns = emu::nanoseconds_from_ticks(now - start);
  return {static_cast<double>(writes) / ns * 1e9, ns / static_cast<double>(writes),
          mapped->flush_instruction()};
}

}  // namespace sp3::workloads
