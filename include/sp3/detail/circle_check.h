// CircleCheck: whether a list that is followed comes to an end. Not part of the API.
#pragma once

#include <bit>
#include <cstdint>

#include <sp3/detail/export.h>

namespace sp3::detail {

// Finds out that a list goes round in a circle, as bytes of a damaged pool may have it: within
// three times as many steps as it has nodes. However long a list is, it is none. Source: Brent, "An
// improved Monte Carlo factorization algorithm", BIT 1980.
class CircleCheck {
 public:
  // For each node in turn: whether it was met before.
  [[nodiscard]] bool comes_back_to(std::uint64_t offset) noexcept {
    if (offset == mark_) return true;
    if (std::has_single_bit(++steps_)) mark_ = offset;
    return false;
  }

 private:
  std::uint64_t mark_ = 0;  // one of the nodes met so far; another whenever the steps have doubled
  std::uint64_t steps_ = 0;
};

}  // namespace sp3::detail
