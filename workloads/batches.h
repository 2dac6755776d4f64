// Filling a structure: many items, a transaction for as many of them as make a record of some
// 16 KiB.
#pragma once

#include <algorithm>
#include <cstdint>

#include <sp3/sp3.h>

namespace sp3::workloads {

// Calls each(tx, i) for every i below `items`, in order. `bytes` is what one adds to a record.
template <class Each>
void for_each_batched(Session& session, std::uint64_t items, std::uint64_t bytes, Each&& each) {
  const std::uint64_t batch = std::max<std::uint64_t>(1, 16384 / bytes);
  for (std::uint64_t next = 0; next < items;) {
    const std::uint64_t end = std::min(items, next + batch);
    session.run([&](Transaction& tx) {
      for (std::uint64_t i = next; i < end; ++i) each(tx, i);
    });
    next = end;
  }
}

}  // namespace sp3::workloads
