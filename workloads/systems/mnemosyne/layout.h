// Where things are in a store of Mnemosyne's, and how much.
//
//   StoreFile::kHeader   one line: the time up to which all logs are truncated
//   then                 one line for each log: the position of its head
//   then                 the logs, kLogs of log_bytes each
//   then                 the words, from 0 on
//
// Recovery believes a record only if its time is above the truncation time, so the heads may lag.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/align.h"
#include "workloads/systems/word_tm/store_file.h"

namespace sp3::workloads::mnemosyne {

struct Layout {
  static constexpr std::uint64_t kLogs = 64;
  static constexpr std::uint64_t kTruncated = word_tm::StoreFile::kHeader;
  static constexpr std::uint64_t kHeads = kTruncated + base::kCacheLine;
  static constexpr std::uint64_t kLogStart = kTruncated + 8192;
  static_assert(kHeads + kLogs * base::kCacheLine <= kLogStart);

  explicit Layout(std::uint64_t file_size)
      : log_bytes(base::round_down(
            std::clamp<std::uint64_t>(file_size / (4 * kLogs), 16 << 10, 1 << 20), 4096)),
        words_at(kLogStart + kLogs * log_bytes),
        words((file_size - words_at) / sizeof(std::uint64_t)) {}

  static constexpr std::uint64_t kLeast = 4 << 20;  // bytes of a file that has room for it all

  [[nodiscard]] std::uint64_t log_capacity() const { return log_bytes / sizeof(std::uint64_t); }
  [[nodiscard]] std::uint64_t log_at(std::uint64_t log) const {
    return kLogStart + log * log_bytes;
  }
  [[nodiscard]] static constexpr std::uint64_t head_at(std::uint64_t log) {
    return kHeads + log * base::kCacheLine;
  }
  [[nodiscard]] std::uint64_t word_at(std::uint64_t word) const {
    return words_at + word * sizeof(std::uint64_t);
  }

  std::uint64_t log_bytes;
  std::uint64_t words_at;
  std::uint64_t words;
};

}  // namespace sp3::workloads::mnemosyne
