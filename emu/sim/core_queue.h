// CoreQueue: the cores by when each goes on, the first on top: a tournament, every core a leaf and
// each node the earlier of its two children.
//
// Which of two is earlier is anybody's guess, so a binary heap mispredicts at every level; here a
// level is a minimum of two numbers. Equal times go by core number, so the order is one. Cores with
// the time kNever stay at the bottom. set() and second() are O(log cores), the others O(1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.h"

namespace sp3::emu::sim {

class CoreQueue {
 public:
  using Core = std::uint32_t;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  static constexpr unsigned kCoreBits = 12;
  // Times from here on are kNever.
  static constexpr std::uint64_t kLatest = kNever >> kCoreBits;

  void clear() {
    keys_.clear();
    cores_ = 0;
  }
  // Cores are added in the order of their numbers.
  void add(std::uint64_t time) {
    SP3_CHECK(cores_ <= kCoreMask);
    if (cores_ == leaves()) grow();
    set(static_cast<Core>(cores_++), time);
  }
  void set(Core core, std::uint64_t time) {
    std::size_t at = leaves() + core;
    keys_[at] = key_of(core, time);
    for (at /= 2; at > 0; at /= 2) keys_[at] = std::min(keys_[2 * at], keys_[2 * at + 1]);
  }
  [[nodiscard]] Core top() const { return static_cast<Core>(keys_[1] & kCoreMask); }
  [[nodiscard]] std::uint64_t first() const { return time_of(keys_[1]); }
  // When the one after the top goes on: the earliest of those that only the top has beaten.
  [[nodiscard]] std::uint64_t second() const {
    std::uint64_t key = kNobody;
    for (std::size_t at = leaves() + top(); at > 1; at /= 2) key = std::min(key, keys_[at ^ 1]);
    return time_of(key);
  }

 private:
  static constexpr std::uint64_t kCoreMask = (std::uint64_t{1} << kCoreBits) - 1;
  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  static std::uint64_t key_of(Core core, std::uint64_t time) {
    return std::min(time, kLatest) << kCoreBits | core;
  }
  static std::uint64_t time_of(std::uint64_t key) {
    const std::uint64_t time = key >> kCoreBits;
    return time == kLatest ? kNever : time;
  }
  [[nodiscard]] std::size_t leaves() const { return keys_.size() / 2; }

  void grow() {
    const std::vector<std::uint64_t> old = keys_;
    const std::size_t had = leaves();
    keys_.assign(std::max<std::size_t>(2, 4 * had), kNobody);
    for (std::size_t core = 0; core < had; ++core)
      set(static_cast<Core>(core), time_of(old[had + core]));
  }

  std::vector<std::uint64_t> keys_;  // [1] the root, [2 n] and [2 n + 1] the children of [n]
  std::size_t cores_ = 0;
};

}  // namespace sp3::emu::sim
