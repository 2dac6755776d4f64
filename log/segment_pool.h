// SegmentPool: which segments of the log region are free.
//
// Thread safety: any thread (a mutex, taken once per run of segments).
// Fairness: while a large request waits for contiguous segments, smaller ones are refused too, so
//   that the next checkpoints free enough for it.
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
  // out, so that the region wears evenly. nullopt: not now; wait for a checkpoint.
  std::optional<std::uint32_t> take(std::uint32_t count);
  // Who was refused `count` segments does not ask for them again: smaller requests need not wait.
  void give_up(std::uint32_t count) noexcept;
  void give_back(std::uint32_t first, std::uint32_t count);
  // Whether `count` segments would be refused for the sake of a larger request: that waits for a
  // checkpoint, whoever is smaller for its turn.
  [[nodiscard]] bool yields(std::uint32_t count) const;

  [[nodiscard]] std::uint32_t total() const noexcept {
    return static_cast<std::uint32_t>(used_.size());
  }
  [[nodiscard]] std::uint32_t used() const;

 private:
  [[nodiscard]] bool has_precedence_over(std::uint32_t count) const;

  mutable emu::Mutex mutex_;
  std::vector<bool> used_;
  std::uint32_t free_count_;
  std::uint32_t next_ = 0;
  std::uint32_t waiting_for_ = 0;     // a refused request for this many contiguous segments
  std::uint32_t refused_for_it_ = 0;  // smaller requests refused since; it may never come back
};

}  // namespace sp3::log
