#include "workloads/workload.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace sp3::workloads {

const char* to_string(WorkloadKind kind) noexcept {
  switch (kind) {
    case WorkloadKind::sps:
      return "sps";
    case WorkloadKind::queue:
      return "queue";
    case WorkloadKind::hashtable:
      return "hashtable";
    case WorkloadKind::rbtree:
      return "rbtree";
    case WorkloadKind::bptree:
      return "bptree";
  }
  return "?";
}

WorkloadKind workload_from_name(std::string_view name) {
  for (const WorkloadKind kind : kAllWorkloads) {
    if (name == to_string(kind)) return kind;
  }
  throw std::invalid_argument(
      fmt::format("workload: wanted sps, queue, hashtable, rbtree or bptree, found '{}'", name));
}

namespace {

void check_ratio(const char* member, double value) {
  if (!(value >= 0.0 && value <= 1.0)) {
    throw std::invalid_argument(fmt::format("{}: wanted 0 to 1, found {}", member, value));
  }
}

}  // namespace

void WorkloadSpec::validate() const {
  if (entries < 2 || entries >= (std::uint64_t{1} << 32)) {
    throw std::invalid_argument(fmt::format("entries: wanted 2 to 2^32 - 1, found {}", entries));
  }
  if (std::ranges::find(kEntrySizes, entry_size) == std::end(kEntrySizes)) {
    throw std::invalid_argument(fmt::format("entry size: wanted one of {}, found {}",
                                            fmt::join(kEntrySizes, ", "), entry_size));
  }
  if (!(zipf >= 0.0 && zipf < 1.0)) {
    throw std::invalid_argument(fmt::format("zipf: wanted 0 <= theta < 1, found {}", zipf));
  }
  check_ratio("insert ratio", insert_ratio);
  check_ratio("fill", fill);
}

bool WorkloadSpec::present_at_start(std::uint64_t key) const {
  if (fill >= 1.0) return true;
  return Rng(seed ^ 0x66696c6cULL, key).uniform() < fill;
}

}  // namespace sp3::workloads
