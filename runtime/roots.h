// RootNode: a name and the object it stands for. The first node, at PoolCore::root_offset(), has no
// name and starts the list.
#pragma once

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

}  // namespace sp3::runtime

template <>
struct sp3::TypeTag<sp3::runtime::RootNode> {
  static constexpr std::string_view name = "sp3.RootNode";
  static constexpr std::uint32_t version = 1;
};
