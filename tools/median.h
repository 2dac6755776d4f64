// The median of a few measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace sp3::tools {

// Of an even number the lower one in the middle. REQUIRES: there is one, and they are sorted.
template <class T>
const T& median_of_sorted(const std::vector<T>& values) {
  return values[(values.size() - 1) / 2];
}

// The same of values in any order.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return median_of_sorted(values);
}

}  // namespace sp3::tools
