#include "tools/recovery/crashed_pool.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "emu/clock.h"
#include "pool/file_system.h"
#include "pool/pool_file.h"
#include "recovery/recover.h"
#include "workloads/process_usage.h"

namespace sp3::tools::recovery_bench {

namespace {

std::fstream open_file(const std::filesystem::path& path, std::ios::openmode mode) {
  std::fstream file;
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file.open(path, mode | std::ios::binary);
  return file;
}

}  // namespace

CrashedPool::CrashedPool(std::filesystem::path path, Options options)
    : path_(std::move(path)), options_(std::move(options)) {
  const pool::Layout layout =
      pool::PoolFile::open(path_, options_, pool::PoolFile::Access::read_only)->layout();
  metadata_ = {0, std::vector<char>(layout.log_offset)};
  slabs_ = {layout.slabs_offset, std::vector<char>(layout.size - layout.slabs_offset)};
  std::fstream file = open_file(path_, std::ios::in);
  for (Kept* kept : {&metadata_, &slabs_}) {
    file.seekg(static_cast<std::streamoff>(kept->offset));
    file.read(kept->bytes.data(), static_cast<std::streamsize>(kept->bytes.size()));
  }
}

void CrashedPool::restore() const {
  std::fstream file = open_file(path_, std::ios::in | std::ios::out);
  for (const Kept* kept : {&metadata_, &slabs_}) {
    file.seekp(static_cast<std::streamoff>(kept->offset));
    file.write(kept->bytes.data(), static_cast<std::streamsize>(kept->bytes.size()));
  }
  file.close();
  // On a disk recovery would wait for these writes too, and be charged for them.
  const pool::Descriptor synced = pool::open_regular_file(path_, true);
  if (::fsync(synced.get()) != 0) {
    throw std::system_error(errno, std::generic_category(), "fsync of the restored pool");
  }
  if (options_.memory == MemoryKind::emulated) return;  // its file is memory, wherever it lies
  // After a power failure nothing is in the page cache. Here it still has what was put back, and
  // what the recovery before has read. All of it is clean and nobody maps it, so it can go.
  const int error = ::posix_fadvise(synced.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "posix_fadvise of the restored pool");
  }
}

std::uint32_t CrashedPool::image() const {
  std::fstream file = open_file(path_, std::ios::in);
  file.seekg(static_cast<std::streamoff>(slabs_.offset));
  std::vector<char> part(std::min<std::size_t>(slabs_.bytes.size(), std::size_t{1} << 20));
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < slabs_.bytes.size();) {
    const std::size_t now = std::min(part.size(), slabs_.bytes.size() - done);
    file.read(part.data(), static_cast<std::streamsize>(now));
    crc = base::crc32c(crc, part.data(), now);
    done += now;
  }
  return crc;
}

RecoveryRun CrashedPool::recover(RecoveryStrategy strategy, std::uint32_t threads,
                                 const std::function<void(const Progress&)>& progress) {
  restore();
  const RecoveryOptions options{
      .strategy = strategy, .threads = threads, .accept_loss = false, .progress = progress};
  RecoveryRun run;
  {
    workloads::MemoryPeak peak;
    const double cpu = workloads::cpu_seconds();
    const std::uint64_t start = emu::ticks();
    const auto file = pool::PoolFile::open(path_, options_, pool::PoolFile::Access::read_write);
    run.report = recovery::recover(*file, options).report;
    run.seconds = emu::nanoseconds_from_ticks(emu::ticks() - start) * 1e-9;
    run.cpu_seconds = workloads::cpu_seconds() - cpu;
    run.memory_peak = peak.bytes();
    run.flush = file->memory().flush_instruction();
  }
  if (run.report.was_clean) {
    throw std::runtime_error(fmt::format("{}: the pool had been closed", path_.string()));
  }
  run.image = image();
  return run;
}

}  // namespace sp3::tools::recovery_bench
