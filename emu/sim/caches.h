// Caches: which cache lines each virtual core has, and so what the next access to one costs.
//
// Every core has a first level (direct-mapped) and a second level (eight ways, the least recently
// used goes). Behind them is one memory for all: what it takes to get a line from there is one
// cost, since no more is known of a shared cache. A directory knows of each line who has it:
//
//   alone     one core; its next store is free of others
//   shared    several may have it; a store takes it from them and costs a transfer
//   written   by another core since: a transfer, as long as that core still has it
//
// A line that everybody wants moves from core to core one transfer after the other; who comes
// second waits for the first.
//
// Only names of lines enter, never addresses. Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emu/line.h"
#include "emu/sim/costs.h"

namespace sp3::emu::sim {

class Caches {
 public:
  using Core = std::uint32_t;
  using Access = emu::Access;

  // Lines are named by numbers in spaces of their own. Memory goes by the highest number of each.
  static constexpr unsigned kSpaces = 16;
  static constexpr unsigned kSpaceShift = 56;
  static constexpr std::uint64_t name_of(std::uint64_t space, std::uint64_t number) noexcept {
    return space << kSpaceShift | number;
  }

  explicit Caches(const Costs& costs);

  // What the access costs that begins `now`. `further`: the line follows one just accessed, and
  // what it takes to get it overlaps with that. `line` is a name_of().
  std::uint64_t access(Core core, std::uint64_t line, Access access, std::uint64_t now,
                       bool further);
  // A line is made anew, in memory that was used for the like of it before: nothing is fetched, but
  // who has what was there must give it up.
  std::uint64_t make(Core core, std::uint64_t line, std::uint64_t now, bool further);

 private:
  static constexpr std::uint32_t kFirst = 768;        // lines: 48 KiB
  static constexpr std::uint32_t kSecondSets = 4096;  // of eight: 2 MiB
  static constexpr std::uint32_t kWays = 8;
  static constexpr std::uint16_t kNobody = 0;
  static constexpr std::uint64_t kChunkLines = std::uint64_t{1} << 16;

  // Of a line. All zero: nobody has used it. `version` counts how often it was taken from those who
  // shared it: a copy of an older version is no copy any more.
  struct alignas(32) Line {
    std::uint64_t free_at;  // when the transfer under way ends
    std::uint32_t id;       // numbered from 1, as they are first used
    std::uint32_t version;
    std::uint16_t owner;  // a core's number + 1
    bool shared;
  };
  struct Unmap {
    void operator()(Line* lines) const noexcept;
  };
  using Chunk = std::unique_ptr<Line[], Unmap>;  // of the lines with kChunkLines successive numbers
  struct Copy {
    std::uint32_t id = 0;  // 0: nothing
    std::uint32_t version = 0;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  // Most recently used first. Aligned, so that looking at all of them is one cache miss of ours.
  struct alignas(64) Set {
    std::array<Copy, kWays> ways;
  };
  struct OfCore {
    std::vector<Copy> first;
    std::vector<Set> second;
  };
  enum class Where : std::uint8_t { first, second, nowhere };

  static Chunk make_chunk();
  Line& find(std::uint64_t name);
  OfCore& of(Core core) { return core < cores_.size() ? cores_[core] : make_core(core); }
  OfCore& make_core(Core core);
  Where take(Core core, std::uint32_t id, std::uint32_t version);
  [[nodiscard]] bool has(Core core, std::uint32_t id, std::uint32_t version);
  // Whether a core but `self` (its number + 1) has the line, and could hand it over.
  [[nodiscard]] bool others_have(const Line& line, std::uint16_t self);
  // Getting the line from a core that has it, after whoever asked before; or from beyond.
  std::uint64_t bring(Line& line, bool from_a_core, std::uint64_t now, bool further) const;

  const Costs costs_;
  std::array<std::vector<Chunk>, kSpaces> chunks_;
  std::uint32_t used_ = 0;  // lines
  std::vector<OfCore> cores_;
};

}  // namespace sp3::emu::sim
