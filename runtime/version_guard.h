// VersionGuard: what simulated builds know about free versions. A free block is filled with a
// pattern: whoever still reads it sees that, a write to it is found when it is handed out again,
// and a block that is freed twice is known by it. Native builds: nothing.
#pragma once

#include <cstddef>
#include <cstring>

#include "base/assert.h"
#include "base/plain_access.h"

namespace sp3::runtime {

class VersionGuard {
 public:
#ifdef SP3_SIMULATED
  // The block is fresh from the heap.
  static void note_new(std::byte* block, std::size_t bytes) {
    base::fresh_memory(block, bytes);
    std::memset(block, kFree, bytes);
  }
  static void note_free(std::byte* block, std::size_t bytes) {
    const bool freed_twice = is_free(block, bytes);
    SP3_CHECK(!freed_twice);
    base::plain_write(block, bytes);
    std::memset(block, kFree, bytes);
  }
  static void note_used(std::byte* block, std::size_t bytes) {
    const bool untouched_while_free = is_free(block, bytes);
    SP3_CHECK(untouched_while_free);
    base::plain_write(block, bytes);
    std::memset(block, kUsed, bytes);
  }

 private:
  static constexpr int kFree = 0xF5;
  static constexpr int kUsed = 0xA7;
  static bool is_free(const std::byte* block, std::size_t bytes) {
    // Every byte is what the first is, and is followed by its like.
    return bytes == 0 || (*block == static_cast<std::byte>(kFree) &&
                          std::memcmp(block, block + 1, bytes - 1) == 0);
  }
#else
  static void note_new(std::byte* /*block*/, std::size_t /*bytes*/) {}
  static void note_free(std::byte* /*block*/, std::size_t /*bytes*/) {}
  static void note_used(std::byte* /*block*/, std::size_t /*bytes*/) {}
#endif
};

}  // namespace sp3::runtime
