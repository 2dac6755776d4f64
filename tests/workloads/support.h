// Small stores of any system, for tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/temp_path.h"
#include "workloads/system.h"

namespace sp3::test {

// Options with which the system can hold some thousand entries. Its natural memory: emulated, or
// file for systems that know no other.
inline workloads::SystemOptions small_options(std::string_view system, const TempPath& path) {
  workloads::SystemOptions options;
  options.path = path.path();
  options.pool_size = 24 << 20;
  options.pool.memory = MemoryKind::emulated;
  if (!workloads::why_unsupported(system, {.kind = workloads::WorkloadKind::bptree}, options)
           .empty()) {
    options.pool.memory = MemoryKind::file;
  }
  return options;
}

// Whether this build has the system: those from outside are optional.
inline bool has_system(std::string_view name) {
  return std::ranges::any_of(workloads::systems(),
                             [&](const workloads::SystemInfo& info) { return info.name == name; });
}

inline std::vector<workloads::Item> items_of(workloads::System& system) {
  std::vector<workloads::Item> items;
  system.visit([&](const workloads::Item& item) {
    items.push_back(item);
    return true;
  });
  return items;
}

// The same with room for bank and tpcc.
inline workloads::SystemOptions application_options(std::string_view system, const TempPath& path) {
  workloads::SystemOptions options = small_options(system, path);
  options.pool_size = 160 << 20;
  return options;
}

// Tag and row by key, to be compared.
using StoredRows = std::map<std::uint64_t, std::pair<std::uint64_t, std::vector<std::byte>>>;

inline StoredRows rows_of(workloads::System& system) {
  StoredRows rows;
  for (workloads::Item& item : items_of(system)) rows[item.key] = {item.tag, std::move(item.row)};
  return rows;
}

}  // namespace sp3::test
