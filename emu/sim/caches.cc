#include "emu/sim/caches.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

namespace sp3::emu::sim {

Caches::Caches(const Costs& costs) : costs_(costs) {}

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
  return there ? Where::second : Where::nowhere;
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

std::uint64_t Caches::bring(Line& line, bool from_a_core, std::uint64_t now, bool further) const {
  if (!from_a_core) return further ? costs_.fetch_next : costs_.fetch;
  line.free_at = std::max(line.free_at, now) + (further ? costs_.transfer_next : costs_.transfer);
  return line.free_at - now;
}

std::uint64_t Caches::access(Core core, std::uint64_t name, Access access, std::uint64_t now,
                             bool further) {
  Line& line = find(name);
  const std::uint32_t id = line.id;
  const auto self = static_cast<std::uint16_t>(core + 1);
  const bool dirty_elsewhere = line.owner != self && line.owner != kNobody && !line.shared;
  const bool stores = access != Access::load;
  std::uint64_t cost = access == Access::exchange ? costs_.exchange : 0;
  if (stores && (line.shared || dirty_elsewhere)) {
    // Whoever has it, has it no longer.
    const bool at_hand = others_have(line, self);
    ++line.version;
    take(core, id, line.version);
    cost += bring(line, at_hand, now, further);
  } else {
    const Where where = take(core, id, line.version);
    if (where == Where::first) {
      cost += costs_.hit;
    } else if (where == Where::second) {
      cost += costs_.near;
    } else {
      cost += bring(line, dirty_elsewhere && others_have(line, self), now, further);
    }
  }
  if (stores) {
    line.owner = self;
    line.shared = false;
  } else if (line.owner == kNobody) {
    line.owner = self;
  } else if (line.owner != self) {
    line.shared = true;
  }
  return cost;
}

std::uint64_t Caches::make(Core core, std::uint64_t name, std::uint64_t now, bool further) {
  Line& line = find(name);
  const auto self = static_cast<std::uint16_t>(core + 1);
  std::uint64_t cost = costs_.hit;
  if (line.shared || line.owner != self) {
    const bool at_hand = others_have(line, self);
    ++line.version;
    if (at_hand) cost = bring(line, at_hand, now, further);
  }
  take(core, line.id, line.version);
  line.owner = self;
  line.shared = false;
  return cost;
}

}  // namespace sp3::emu::sim
