// bptree: insert or search in a B+ tree.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sp3/containers/bp_tree.h>

#include "workloads/map.h"

namespace sp3::workloads {

template <std::size_t Size>
using BpTreeWorkload = MapWorkload<BpTree<std::uint64_t, Entry<Size>>, Size>;

}  // namespace sp3::workloads
