// RootNode: a name and the object it stands for. The first node, at PoolCore::root_offset(), has no
// name and starts the list.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <sp3/ptr.h>
#include <sp3/type.h>

namespace sp3::runtime {

struct RootNode {
  static constexpr std::size_t kNameBytes = 48;
  char name[kNameBytes] = {};
  std::uint64_t type = 0;    // fingerprint of the target's type
  std::uint64_t target = 0;  // its Ptr
  Ptr<RootNode> next;
};
static_assert(sizeof(RootNode) == 72);

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

}  // namespace sp3::runtime

template <>
struct sp3::TypeTag<sp3::runtime::RootNode> {
  static constexpr std::string_view name = "sp3.RootNode";
  static constexpr std::uint32_t version = 1;
};
