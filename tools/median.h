// The median of a few measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace sp3::tools {

// Of an even number the lower one in the middle. REQUIRES: there is one.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

}  // namespace sp3::tools
