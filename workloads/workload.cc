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

OperationStream::OperationStream(const WorkloadSpec& spec, const Zipf& zipf, unsigned thread,
                                 std::size_t draws)
    : rng_(spec.seed, thread),
      kind_(spec.kind),
      entries_(spec.entries),
      insert_below_(
          spec.insert_ratio >= 1.0 ? 0 : static_cast<std::uint64_t>(spec.insert_ratio * 0x1.0p64)),
      always_insert_(spec.insert_ratio >= 1.0),
      next_tag_(static_cast<std::uint64_t>(thread + 1) << 48) {
  if (kind_ == WorkloadKind::queue) return;
  draws_.resize(std::clamp<std::size_t>(draws, 1, kMostDraws));
  Rng rng(spec.seed, ~std::uint64_t{thread});
  for (std::uint32_t& draw : draws_) draw = static_cast<std::uint32_t>(zipf.item(rng));
}

bool WorkloadSpec::present_at_start(std::uint64_t key) const {
  if (fill >= 1.0) return true;
  return Rng(seed ^ 0x66696c6cULL, key).uniform() < fill;
}

std::vector<std::uint64_t> WorkloadSpec::initial_keys() const {
  const Zipf order(entries, 0.0);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t key = order.scramble(i);
    if (present_at_start(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace sp3::workloads
