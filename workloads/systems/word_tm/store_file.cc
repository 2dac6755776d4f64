#include "workloads/systems/word_tm/store_file.h"

#include <array>
#include <utility>

#include <sp3/error.h>

#include "base/align.h"

namespace sp3::workloads::word_tm {

namespace {

constexpr std::uint64_t kVersion = 1;
using Header = std::array<std::uint64_t, 3>;  // magic, version, size

[[noreturn]] void refuse(ErrorCode code, const char* message, const std::string& path,
                         std::uint64_t wanted, std::uint64_t found) {
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = std::to_string(wanted);
  facts.found = std::to_string(found);
  throw Error(code, message, facts);
}

}  // namespace

StoreFile StoreFile::create(const std::filesystem::path& path, std::uint64_t size) {
  size = base::round_up(size, kHeader);
  pool::remove_file(path);
  pool::NewFile file(path);
  file.reserve(size);
  file.publish();
  return {file.release(), path.string(), size};
}

StoreFile StoreFile::open(const std::filesystem::path& path, std::uint64_t magic) {
  pool::Descriptor file = pool::open_locked(path, true);
  const std::uint64_t size = pool::file_size(file.get(), path.string());
  if (size < kHeader) {
    refuse(ErrorCode::wrong_size, "the store is too short", path.string(), kHeader, size);
  }
  Header header{};
  pool::read_prefix(file.get(), header.data(), sizeof header, path.string());
  if (header[0] != magic) {
    refuse(ErrorCode::not_a_pool, "the store is another system's or was never completed",
           path.string(), magic, header[0]);
  }
  if (header[1] != kVersion) {
    refuse(ErrorCode::wrong_version, "unknown version", path.string(), kVersion, header[1]);
  }
  if (header[2] != size) {
    refuse(ErrorCode::wrong_size, "the store's size changed", path.string(), header[2], size);
  }
  return {std::move(file), path.string(), size};
}

std::unique_ptr<emu::Memory> StoreFile::map(const Options& options, FlushInstruction flush) const {
  emu::MemoryOptions wanted;
  wanted.kind = options.memory;
  wanted.flush = flush;
  wanted.latency = options.latency;
  wanted.log_offset = 0;
  wanted.log_length = size_;
  wanted.prefault_ms = options.prefault_ms;
  return emu::Memory::map(file_.get(), path_, size_, wanted);
}

void StoreFile::complete(emu::Memory& memory, std::uint64_t magic) const {
  emu::FlushCounts counts;
  const Header header{magic, kVersion, size_};
  memory.log_store(0, header.data(), sizeof header, false);
  if (!memory.log_flush(0, sizeof header, false, counts).ok() || !memory.fence(counts).ok()) {
    refuse(ErrorCode::io_error, "the store's header cannot be written", path_, sizeof header, 0);
  }
}

std::string why_not_mapped(const char* system, const Options& options) {
  if (options.memory == MemoryKind::emulated || options.memory == MemoryKind::dax) return {};
  return std::string(system) + " flushes cache lines: it needs emulated or dax memory";
}

}  // namespace sp3::workloads::word_tm
