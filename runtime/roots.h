// RootNode: a name and the object it stands for. The first node, at PoolCore::root_offset(), has no
// name and starts the list.
#pragma once

#include <cstdint>
#include <string_view>

#include <sp3/ptr.h>
#include <sp3/report.h>
#include <sp3/type.h>

#include "pool/format.h"

namespace sp3::pool {
class PoolFile;
}

namespace sp3::runtime {

struct RootNode {
  static constexpr std::size_t kNameBytes = 48;
  char name[kNameBytes] = {};
  std::uint64_t type = 0;    // fingerprint of the target's type
  std::uint64_t target = 0;  // its Ptr
  Ptr<RootNode> next;
};
static_assert(sizeof(RootNode) == 72);

// For pool::PoolFile::expect_roots: whoever opens or judges a pool says it.
pool::ObjectClass root_class();

// Adds to `report` what keeps a pool from being opened whose metadata is as it was sealed: slab 0
// is of another type or, in a pool that was closed, has not the first node. REQUIRES: the file
// expects root_class().
void check_roots(const pool::PoolFile& file, CheckReport& report);

}  // namespace sp3::runtime

template <>
struct sp3::TypeTag<sp3::runtime::RootNode> {
  static constexpr std::string_view name = "sp3.RootNode";
  static constexpr std::uint32_t version = 1;
};
