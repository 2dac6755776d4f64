// hashtable: insert or search in a hash table that grows.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sp3/containers/hash_table.h>

#include "workloads/map.h"

namespace sp3::workloads {

template <std::size_t Size>
using HashTableWorkload = MapWorkload<HashTable<std::uint64_t, Entry<Size>>, Size>;

}  // namespace sp3::workloads
