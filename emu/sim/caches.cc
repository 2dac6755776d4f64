#include "emu/sim/caches.h"

#include <algorithm>

#include "emu/sim/random.h"

namespace sp3::emu::sim {

Caches::Caches(const Costs& costs) : costs_(costs), buckets_(std::size_t{1} << 12) {}

namespace {
// Lines of one object are looked up one after the other: their places are neighbours.
std::uint64_t place_of(std::uint64_t name) noexcept { return mix(name >> 3) * 8 + (name & 7); }
}  // namespace

std::uint32_t Caches::find(std::uint64_t name) {
  std::size_t mask = buckets_.size() - 1;
  std::size_t at = place_of(name) & mask;
  for (; buckets_[at] != 0; at = (at + 1) & mask) {
    if (lines_[buckets_[at] - 1].name == name) return buckets_[at] - 1;
  }
  Line line;
  line.name = name;
  lines_.push_back(line);
  buckets_[at] = static_cast<std::uint32_t>(lines_.size());
  if (lines_.size() * 2 > buckets_.size()) {
    buckets_.assign(buckets_.size() * 4, 0);
    mask = buckets_.size() - 1;
    for (std::uint32_t id = 0; id < lines_.size(); ++id) {
      at = place_of(lines_[id].name) & mask;
      while (buckets_[at] != 0) at = (at + 1) & mask;
      buckets_[at] = id + 1;
    }
  }
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

Caches::OfCore& Caches::of(Core core) {
  if (core >= cores_.size()) cores_.resize(core + 1);
  OfCore& mine = cores_[core];
  if (mine.first.empty()) {
    mine.first.resize(kFirst);
    mine.second.resize(std::size_t{kSecondSets} * kWays);
  }
  return mine;
}

// Lines are numbered as they are first used, so neighbours in time fall into different sets, as
// neighbours in memory do.
Caches::Where Caches::take(Core core, std::uint32_t id, std::uint32_t version) {
  OfCore& mine = of(core);
  const Copy wanted{id, version};
  Copy& first = mine.first[id % kFirst];
  if (first == wanted) return Where::first;
  first = wanted;
  const auto set =
      mine.second.begin() + static_cast<std::ptrdiff_t>(std::size_t{id % kSecondSets} * kWays);
  const auto last = set + kWays - 1;
  auto found = set;
  while (found != last && found->id != id) ++found;
  const bool there = *found == wanted;
  std::move_backward(set, found, found + 1);  // the least recently used goes
  *set = wanted;
  return there ? Where::second : Where::nowhere;
}

bool Caches::has(Core core, std::uint32_t id, std::uint32_t version) {
  OfCore& its = of(core);
  const Copy wanted{id, version};
  const auto set =
      its.second.begin() + static_cast<std::ptrdiff_t>(std::size_t{id % kSecondSets} * kWays);
  return its.first[id % kFirst] == wanted || std::find(set, set + kWays, wanted) != set + kWays;
}

std::uint64_t Caches::transfer(Line& line, std::uint64_t now) const {
  line.free_at = std::max(line.free_at, now) + costs_.transfer;
  return line.free_at - now;
}

std::uint64_t Caches::access(Core core, std::uint64_t name, Access access, std::uint64_t now,
                             bool further) {
  const std::uint32_t id = find(name);
  Line& line = lines_[id];
  const bool dirty_elsewhere = line.owner != core && line.owner != kNobody && !line.shared;
  const bool stores = access != Access::load;
  std::uint64_t cost = access == Access::exchange ? costs_.exchange : 0;
  if (stores && (line.shared || dirty_elsewhere)) {
    // Whoever has it, has it no longer.
    const bool at_hand = dirty_elsewhere ? has(line.owner, id, line.version) : true;
    ++line.version;
    take(core, id, line.version);
    cost += at_hand ? transfer(line, now) : further ? costs_.fetch_next : costs_.fetch;
  } else {
    const Where where = take(core, id, line.version);
    if (where == Where::first) {
      cost += costs_.hit;
    } else if (where == Where::second) {
      cost += costs_.near;
    } else if (dirty_elsewhere && has(line.owner, id, line.version)) {
      cost += transfer(line, now);
    } else {
      cost += further ? costs_.fetch_next : costs_.fetch;
    }
  }
  if (stores) {
    line.owner = static_cast<std::uint16_t>(core);
    line.shared = false;
  } else if (line.owner == kNobody) {
    line.owner = static_cast<std::uint16_t>(core);
  } else if (line.owner != core) {
    line.shared = true;
  }
  return cost;
}

std::uint64_t Caches::make(Core core, std::uint64_t name) {
  const std::uint32_t id = find(name);
  Line& line = lines_[id];
  if (line.owner != core || line.shared) ++line.version;
  take(core, id, line.version);
  line.owner = static_cast<std::uint16_t>(core);
  line.shared = false;
  return costs_.hit;
}

}  // namespace sp3::emu::sim
