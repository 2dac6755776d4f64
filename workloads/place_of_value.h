// place_of_value: where the nodes of peers keep their values.
#pragma once

#include <cstdint>

namespace sp3::workloads {

// Where a value of `size` stands behind the first `head` of a node, all counted alike: at `head` or,
// if it then touches fewer units of persistence and the node no more, at the next unit. The node
// begins where a unit does.
constexpr std::uint64_t place_of_value(std::uint64_t head, std::uint64_t size, std::uint64_t unit) {
  const auto units_before = [unit](std::uint64_t end) { return (end + unit - 1) / unit; };
  const auto touched = [&](std::uint64_t at) { return units_before(at + size) - at / unit; };
  const std::uint64_t next = units_before(head) * unit;
  const bool pays =
      touched(next) < touched(head) && units_before(next + size) == units_before(head + size);
  return pays ? next : head;
}

}  // namespace sp3::workloads
