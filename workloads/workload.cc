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
    case WorkloadKind::ranges:
      return "ranges";
    case WorkloadKind::bank:
      return "bank";
    case WorkloadKind::tpcc:
      return "tpcc";
  }
  return "?";
}

std::string workload_names() {
  std::string names;
  for (const WorkloadKind kind : kAllWorkloads) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(kind));
  }
  return names;
}

WorkloadKind workload_from_name(std::string_view name) {
  for (const WorkloadKind kind : kAllWorkloads) {
    if (name == to_string(kind)) return kind;
  }
  std::string names = workload_names();
  for (const WorkloadKind kind : kNamedWorkloads) {
    if (name == to_string(kind)) return kind;
    names += fmt::format(", {}", to_string(kind));
  }
  throw std::invalid_argument(fmt::format("workload: wanted one of {}, found '{}'", names, name));
}

std::string name_of(const WorkloadSpec& spec) {
  if (spec.mix == Mix::paper) return to_string(spec.kind);
  return fmt::format("{} {}", to_string(spec.kind), to_string(spec.mix));
}

namespace {

void check_ratio(const char* member, double value) {
  if (!(value >= 0.0 && value <= 1.0)) {
    throw std::invalid_argument(fmt::format("{}: wanted 0 to 1, found {}", member, value));
  }
}

void check_ranges(const WorkloadSpec& spec) {
  if (spec.range_most < 1 || spec.range_most > std::uint64_t{1} << 30) {
    throw std::invalid_argument(
        fmt::format("range most: wanted 1 byte to 1 GiB, found {}", spec.range_most));
  }
  if (spec.range_least < 1 || spec.range_least > spec.range_most) {
    throw std::invalid_argument(fmt::format("range least: wanted 1 to {}, the longest, found {}",
                                            spec.range_most, spec.range_least));
  }
  if (!(spec.range_zipf >= 0.0 && spec.range_zipf < 1.0)) {
    throw std::invalid_argument(
        fmt::format("range zipf: wanted 0 <= theta < 1, found {}", spec.range_zipf));
  }
  if (spec.range_mix == std::array<std::uint32_t, 3>{} ||
      std::ranges::max(spec.range_mix) > 1'000'000) {
    throw std::invalid_argument("range mix: wanted three shares up to 1000000, not all of them 0");
  }
  if (spec.entries < 8) {
    throw std::invalid_argument(fmt::format("entries: wanted 8 or more, found {}", spec.entries));
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
  if (mix != Mix::paper && fill < 1.0) {
    throw std::invalid_argument(
        fmt::format("fill: wanted 1 with mix {}, found {}", to_string(mix), fill));
  }
  if (kind == WorkloadKind::ranges) check_ranges(*this);
  if (kind == WorkloadKind::tpcc && (warehouses < 1 || warehouses > kMostWarehouses)) {
    throw std::invalid_argument(
        fmt::format("warehouses: wanted 1 to {}, found {}", kMostWarehouses, warehouses));
  }
}

std::uint64_t WorkloadSpec::least_range() const {
  return std::min(std::max<std::uint64_t>(1, range_least / entry_size), entries / 8);
}
// A range fits into the log and into what is before it.
std::uint64_t WorkloadSpec::most_range() const {
  return std::max(least_range(), std::min(range_most / entry_size, entries / 8));
}

std::size_t OperationStream::draws_for(std::uint64_t entries, unsigned threads,
                                       std::optional<std::uint64_t> operations) {
  constexpr std::size_t kFewThreads = 16;  // more run for a part of the time each
  const std::size_t wanted = std::min(kMostDraws, kDrawsPerEntry * entries / threads);
  if (operations) return std::min(std::max(kDraws, wanted), 3 * *operations + 3);  // swaps take two
  return std::max(kDraws * kFewThreads / std::max<std::size_t>(threads, kFewThreads), wanted);
}

OperationStream::OperationStream(const WorkloadSpec& spec, const Zipf& zipf, unsigned thread,
                                 std::size_t draws)
    : rng_(spec.seed, thread),
      kind_(spec.kind),
      entries_(spec.entries),
      insert_below_(
          spec.insert_ratio >= 1.0 ? 0 : static_cast<std::uint64_t>(spec.insert_ratio * 0x1.0p64)),
      always_insert_(spec.insert_ratio >= 1.0),
      next_tag_(static_cast<std::uint64_t>(thread + 1) << kProducerShift),
      mix_(spec.range_mix),
      mixed_(spec.mix != Mix::paper),
      shares_(mixed_ ? shares_of(spec.mix) : MixShares{}),
      zipf_(zipf),
      first_added_(Rng(spec.seed ^ 0x616464ULL, thread).below(spec.entries)),
      home_(kind_ == WorkloadKind::tpcc ? thread % spec.warehouses : 0) {
  if (kind_ == WorkloadKind::queue || kind_ == WorkloadKind::tpcc) return;
  draws_.resize(draws != 0 ? draws : draws_for(entries_, 1, std::nullopt));
  Rng rng(spec.seed, ~std::uint64_t{thread});
  for (std::uint32_t& draw : draws_) {
    draw = static_cast<std::uint32_t>(shares_.searches_newest ? zipf.rank(rng) : zipf.item(rng));
  }
  if (kind_ != WorkloadKind::ranges) return;
  const Zipf sizes(spec.most_range() - spec.least_range() + 1, spec.range_zipf);
  counts_.resize(draws_.size());
  for (std::uint32_t& count : counts_) {
    count = static_cast<std::uint32_t>(spec.least_range() + sizes.rank(rng));
  }
}

Operation OperationStream::next_range() {
  const std::uint64_t item = this->item();
  const std::uint64_t count = counts_[next_draw_ - 1];
  const std::uint64_t log = entries_ / 8;
  const std::uint64_t kind = rng_.below(std::uint64_t{mix_[0]} + mix_[1] + mix_[2]);
  if (kind < mix_[0]) {
    return {OperationKind::read_range, std::min(item, entries_ - count), 0, count};
  }
  if (kind < std::uint64_t{mix_[0]} + mix_[1]) {
    return {OperationKind::write_range, std::min(item, entries_ - log - count), ++next_tag_, count};
  }
  if (log_at_ + count > log) log_at_ = 0;
  const std::uint64_t at = entries_ - log + log_at_;
  log_at_ += count;
  return {OperationKind::write_range, at, ++next_tag_, count};
}

std::uint64_t OperationStream::added_key(std::uint64_t n) const {
  return entries_ + zipf_.scramble((first_added_ + n) % entries_);
}

Operation OperationStream::next_mixed() {
  const std::uint64_t drawn = item();
  const std::uint64_t percent = rng_.below(100);
  std::uint64_t below = shares_.add;
  if (percent < below) return {OperationKind::insert, added_key(added_++), ++next_tag_};
  below += shares_.insert;
  if (percent < below) return {OperationKind::insert, drawn, ++next_tag_};
  below += shares_.modify;
  if (percent < below) return {OperationKind::modify, drawn, ++next_tag_};
  below += shares_.scan;
  if (percent < below) {
    return {OperationKind::scan, drawn, 0, 1 + rng_.below(kMostScanned)};
  }
  if (!shares_.searches_newest) return {OperationKind::search, drawn, 0};
  // A rank counts back from what this thread has added, then on among what was there: a function of
  // the thread alone, and so are its operations.
  const std::uint64_t newest =
      drawn < added_ ? added_key(added_ - 1 - drawn) : zipf_.scramble(drawn - added_);
  return {OperationKind::search, newest, 0};
}

bool WorkloadSpec::present_at_start(std::uint64_t key) const {
  if (key >= entries) return false;
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
