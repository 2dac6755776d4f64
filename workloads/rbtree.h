// rbtree: insert or search in a red-black tree.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sp3/containers/rb_tree.h>

#include "workloads/map.h"

namespace sp3::workloads {

template <std::size_t Size>
using RbTreeWorkload = MapWorkload<RbTree<std::uint64_t, Entry<Size>>, Size>;

}  // namespace sp3::workloads
