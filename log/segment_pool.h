// SegmentPool: which segments of the log region are free.
//
// Thread safety: any thread (a mutex, taken once per run of segments).
// Fairness: requests line up in the order in which they were first refused, those for as many
//   segments as one. Who asks for less than the first in line does not pass it, so that the next
//   checkpoints free enough; who asks for more may, a few times, for there can be room while the
//   first waits for its checkpoint. So no stream of larger requests keeps it out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emu/threads.h"

namespace sp3::log {

class SegmentPool {
 public:
  explicit SegmentPool(std::uint32_t segments) : used_(segments, false), free_count_(segments) {}

  // The first of `count` contiguous free segments, now taken. Searches on from the last one handed
  // out, so that the region wears evenly. nullopt: not now; wait for a checkpoint. Errors:
  // std::bad_alloc, and then nothing is taken.
  std::optional<std::uint32_t> take(std::uint32_t count);
  // Who was refused `count` segments does not ask for them again: others need not wait.
  void give_up(std::uint32_t count) noexcept;
  void give_back(std::uint32_t first, std::uint32_t count);
  // Whether `count` segments would be refused for the sake of an earlier request: that waits for a
  // checkpoint, whoever is behind it for its turn.
  [[nodiscard]] bool yields(std::uint32_t count) const;
  // Larger requests that pass a smaller one which is first in line.
  static constexpr std::uint32_t kMostPasses = 8;

  [[nodiscard]] std::uint32_t total() const noexcept {
    return static_cast<std::uint32_t>(used_.size());
  }
  [[nodiscard]] std::uint32_t used() const;

 private:
  [[nodiscard]] bool is_behind_another(std::uint32_t count) const;
  void line_up(std::uint32_t count);
  void leave_line(std::uint32_t count) noexcept;

  mutable emu::Mutex mutex_;  // guards all below
  std::vector<bool> used_;
  std::uint32_t free_count_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> line_;      // what was refused, each size once, the earliest first
  std::uint32_t passed_first_ = 0;       // others served while it waits
  std::uint32_t refused_for_first_ = 0;  // others, since it asked last; it may never come back
};

}  // namespace sp3::log
