// What benchmarks that measure again and again share: how often and how long, and whose turn it is.
#pragma once

#include <algorithm>

namespace sp3::tools {

// Of --repeat and --seconds. Throw UsageError.
void check_repeat(unsigned repeat);
void check_seconds(double seconds);

// Calls measure(cell, r) for every cell in every repetition r. Neighbours of one group alternate,
// so that a machine that changes its pace changes it for all of them. REQUIRES: groups are
// contiguous.
template <class Cells, class SameGroup, class Measure>
void in_turn(Cells& cells, unsigned repeat, const SameGroup& same_group, const Measure& measure) {
  for (auto first = cells.begin(); first != cells.end();) {
    const auto last = std::find_if_not(first, cells.end(),
                                       [&](const auto& cell) { return same_group(*first, cell); });
    for (unsigned r = 0; r < repeat; ++r) {
      for (auto cell = first; cell != last; ++cell) measure(*cell, r);
    }
    first = last;
  }
}

}  // namespace sp3::tools
