// StoreFile: the file behind a word store, locked, with one header page that says whose it is.
//
//   byte 0      magic (of the system), version, size of the file, all 64-bit; zeros
//   kHeader     the system's own area, zero when the file is made
//
// The header is written and durable last, so a file that has it is complete.
// Thread safety: none. Errors: those of sp3::Pool::create and open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sp3/options.h>

#include "emu/memory.h"
#include "pool/file_system.h"

namespace sp3::workloads::word_tm {

class StoreFile {
 public:
  static constexpr std::uint64_t kHeader = 4096;

  // Makes a file of `size` bytes (rounded to whole blocks), replacing any at the path.
  static StoreFile create(const std::filesystem::path& path, std::uint64_t size);
  // Errors besides: not_a_pool, wrong_version, wrong_size.
  static StoreFile open(const std::filesystem::path& path, std::uint64_t magic);

  // Maps it all, as one region for log_store and log_flush: the inline paths of emu::Memory.
  [[nodiscard]] std::unique_ptr<emu::Memory> map(const Options& options,
                                                 FlushInstruction flush) const;
  // What the system wrote so far is durable, and so is the header, on return.
  void complete(emu::Memory& memory, std::uint64_t magic) const;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  StoreFile(pool::Descriptor file, std::string path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  pool::Descriptor file_;
  std::string path_;
  std::uint64_t size_;
};

// The reason why a system of cache lines cannot use this memory; empty if it can.
std::string why_not_mapped(const char* system, const Options& options);

}  // namespace sp3::workloads::word_tm
