#include "emu/sim/caches.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include "base/align.h"

namespace sp3::emu::sim {

Caches::Caches(const Costs& costs) : costs_(costs) {
  const std::uint64_t shared = (std::uint64_t{costs.shared_mib} << 20) / 1000;
  shared_.resize(shared / (base::kCacheLine * kSharedWays) + 1);
}

// Every event looks lines up, and what they are about is spread over all of memory: a line takes
// one access, in pages that are as large as can be had.
Caches::Chunk Caches::make_chunk() {
  constexpr std::size_t kBytes = kChunkLines * sizeof(Line);
  static_assert(kBytes == std::size_t{2} << 20, "a huge page");
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  ::madvise(mapped, kBytes, MADV_HUGEPAGE);
  return Chunk(static_cast<Line*>(mapped));
}

void Caches::Unmap::operator()(Line* lines) const noexcept {
  ::munmap(lines, kChunkLines * sizeof(Line));
}

Caches::Line& Caches::find(std::uint64_t name) {
  const std::uint64_t number = name & ((std::uint64_t{1} << kSpaceShift) - 1);
  std::vector<Chunk>& chunks = chunks_[name >> kSpaceShift];
  const std::size_t chunk = number / kChunkLines;
  if (chunk >= chunks.size()) [[unlikely]]
    chunks.resize(chunk + 1);
  if (chunks[chunk] == nullptr) [[unlikely]]
    chunks[chunk] = make_chunk();
  Line& line = chunks[chunk][number % kChunkLines];
  if (line.id == 0) line.id = ++used_;
  return line;
}

Caches::OfCore& Caches::make_core(Core core) {
  while (cores_.size() <= core) {
    OfCore& one = cores_.emplace_back();
    one.first.resize(kFirst);
    one.second.resize(kSecondSets);
  }
  return cores_[core];
}

// Lines are numbered as they are first used, so neighbours in time fall into different sets, as
// neighbours in memory do.
Caches::Where Caches::take(Core core, std::uint32_t id, std::uint32_t version) {
  OfCore& mine = of(core);
  const Copy wanted{id, version};
  Copy& first = mine.first[id % kFirst];
  if (first == wanted) return Where::first;
  first = wanted;
  auto& set = mine.second[id % kSecondSets].ways;
  std::size_t found = 0;
  while (found != kWays - 1 && set[found].id != id) ++found;
  const bool there = set[found] == wanted;
  for (std::size_t i = found; i > 0; --i) set[i] = set[i - 1];  // the least recently used goes
  set[0] = wanted;
  if (there) return Where::second;
  return take_shared(id) ? Where::shared : Where::nowhere;
}

bool Caches::take_shared(std::uint32_t id) {
  auto& set = shared_[id % shared_.size()].ways;
  const auto found = std::find(set.begin(), set.end() - 1, id);
  const bool there = *found == id;
  std::copy_backward(set.begin(), found, found + 1);  // the least recently used goes
  set[0] = id;
  return there;
}

bool Caches::has(Core core, std::uint32_t id, std::uint32_t version) {
  OfCore& its = of(core);
  const Copy wanted{id, version};
  const auto& set = its.second[id % kSecondSets].ways;
  return its.first[id % kFirst] == wanted || std::find(set.begin(), set.end(), wanted) != set.end();
}

bool Caches::others_have(const Line& line, std::uint16_t self) {
  return line.shared || (line.owner != kNobody && line.owner != self &&
                         has(line.owner - 1U, line.id, line.version));
}

std::uint64_t Caches::bring(Core core, Line& line, bool from_a_core, std::uint64_t now,
                            std::uint32_t cost) {
  OfCore& mine = of(core);
  Fill& fill = mine.fills[mine.next_fill];
  mine.next_fill = (mine.next_fill + 1) % kFills;
  std::uint64_t begun = std::max(now, fill.comes_at);  // with as many under way as can be
  if (from_a_core) begun = std::max(begun, line.free_at);
  line.free_at = begun + cost;
  fill = {line.id, line.free_at};
  mine.last_comes_at = std::max(mine.last_comes_at, line.free_at);
  return line.free_at - now;
}

std::uint64_t Caches::own(Core core, std::uint32_t id, std::uint64_t now,
                          std::uint32_t cost) const {
  const OfCore& mine = cores_[core];
  std::uint64_t there = now + cost;
  if (mine.last_comes_at <= there) return cost;
  for (const Fill& fill : mine.fills) {
    if (fill.id == id) there = std::max(there, fill.comes_at);
  }
  return there - now;
}

std::uint64_t Caches::get(Core core, Line& line, bool from_a_core, std::uint64_t now,
                          bool further) {
  const Where where = take(core, line.id, line.version);
  if (where == Where::first) return own(core, line.id, now, costs_.hit);
  if (where == Where::second) return own(core, line.id, now, costs_.near);
  const std::uint32_t cost = from_a_core ? (further ? costs_.transfer_next : costs_.transfer)
                             : where == Where::shared
                                 ? (further ? costs_.shared_next : costs_.shared)
                                 : (further ? costs_.fetch_next : costs_.fetch);
  return bring(core, line, from_a_core, now, cost);
}

std::uint64_t Caches::load(Core core, std::uint64_t name, std::uint64_t now, bool further) {
  Line& line = find(name);
  const auto self = static_cast<std::uint16_t>(core + 1);
  const bool from_a_core = is_written_elsewhere(line, self) && others_have(line, self);
  const std::uint64_t delay = get(core, line, from_a_core, now, further);
  if (line.owner == kNobody) {
    line.owner = self;
  } else if (line.owner != self) {
    line.shared = true;
  }
  return delay;
}

std::uint64_t Caches::store(Core core, std::uint64_t name, std::uint64_t now, bool further) {
  Line& line = find(name);
  const auto self = static_cast<std::uint16_t>(core + 1);
  bool from_a_core = false;
  if (line.shared || is_written_elsewhere(line, self)) {
    from_a_core = others_have(line, self);
    ++line.version;  // whoever has it, has it no longer
  }
  const std::uint64_t delay = get(core, line, from_a_core, now, further);
  line.owner = self;
  line.shared = false;
  return delay;
}

std::uint64_t Caches::make(Core core, std::uint64_t name, std::uint64_t now, bool further) {
  Line& line = find(name);
  const auto self = static_cast<std::uint16_t>(core + 1);
  std::uint64_t cost = costs_.hit;
  if (line.shared || line.owner != self) {
    const bool at_hand = others_have(line, self);
    ++line.version;
    if (at_hand) {
      cost = bring(core, line, true, now, further ? costs_.transfer_next : costs_.transfer);
    }
  }
  take(core, line.id, line.version);
  line.owner = self;
  line.shared = false;
  return cost;
}

}  // namespace sp3::emu::sim
