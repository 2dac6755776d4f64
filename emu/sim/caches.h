// Caches: which cache lines each virtual core has, and so what the next access to one costs.
//
// Every core has a first level (direct-mapped) and a second level (eight ways, the least recently
// used goes). Behind them are a cache that all share, of sixteen ways, and the memory. A directory
// knows of each line who has it:
//
//   alone     one core; its next store is free of others
//   shared    several may have it; a store takes it from them and costs a transfer
//   written   by another core since: a transfer, as long as that core still has it
//
// A core may have several lines under way at a time; whether it waits for one is not decided here
// (pipeline.h). A line that is under way is there when it comes, however often it is asked for.
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

  // Lines are named by numbers in spaces of their own. Memory goes by the highest number of each.
  static constexpr unsigned kSpaces = 16;
  static constexpr unsigned kSpaceShift = 56;
  static constexpr std::uint64_t name_of(std::uint64_t space, std::uint64_t number) noexcept {
    return space << kSpaceShift | number;
  }

  explicit Caches(const Costs& costs);

  // After how long the line is there for a load, or a store, that asks for it `now`. `further`: the
  // line follows one just asked for, and what it takes to get it overlaps with that. `line` is a
  // name_of().
  std::uint64_t load(Core core, std::uint64_t line, std::uint64_t now, bool further);
  std::uint64_t store(Core core, std::uint64_t line, std::uint64_t now, bool further);
  // A line is made anew, in memory that was used for the like of it before: nothing is fetched, but
  // who has what was there must give it up.
  std::uint64_t make(Core core, std::uint64_t line, std::uint64_t now, bool further);

 private:
  static constexpr std::uint32_t kFirst = 768;        // lines: 48 KiB
  static constexpr std::uint32_t kSecondSets = 4096;  // of eight: 2 MiB
  static constexpr std::uint32_t kWays = 8;
  static constexpr std::uint32_t kSharedWays = 16;
  static constexpr std::size_t kFills = 16;  // lines that a core has under way at most
  static constexpr std::uint16_t kNobody = 0;
  static constexpr std::uint64_t kChunkLines = std::uint64_t{1} << 16;

  // Of a line. All zero: nobody has used it. `version` counts how often it was taken from those who
  // shared it: a copy of an older version is no copy any more.
  struct alignas(32) Line {
    std::uint64_t free_at;  // when it arrives where it was last brought
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
  struct Fill {
    std::uint32_t id = 0;
    std::uint64_t comes_at = 0;
  };
  struct OfCore {
    std::vector<Copy> first;
    std::vector<Set> second;
    std::array<Fill, kFills> fills;  // a ring, the next one being the oldest
    std::size_t next_fill = 0;
    std::uint64_t last_comes_at = 0;
  };
  // Of the shared cache: the lines' ids, most recently used first.
  struct alignas(64) SharedSet {
    std::array<std::uint32_t, kSharedWays> ways;
  };
  enum class Where : std::uint8_t { first, second, shared, nowhere };

  static Chunk make_chunk();
  Line& find(std::uint64_t name);
  OfCore& of(Core core) { return core < cores_.size() ? cores_[core] : make_core(core); }
  OfCore& make_core(Core core);
  Where take(Core core, std::uint32_t id, std::uint32_t version);
  // Whether the shared cache had the line, which it has from now on.
  bool take_shared(std::uint32_t id);
  [[nodiscard]] bool has(Core core, std::uint32_t id, std::uint32_t version);
  // Whether a core but `self` (its number + 1) has the line, and could hand it over.
  [[nodiscard]] bool others_have(const Line& line, std::uint16_t self);
  [[nodiscard]] static bool is_written_elsewhere(const Line& line, std::uint16_t self) {
    return line.owner != kNobody && line.owner != self && !line.shared;
  }
  std::uint64_t get(Core core, Line& line, bool from_a_core, std::uint64_t now, bool further);
  // Has the line brought at `cost`; from another core after whoever asked before.
  std::uint64_t bring(Core core, Line& line, bool from_a_core, std::uint64_t now,
                      std::uint32_t cost);
  // How long it takes to have a line from the core's own caches: longer if it is still under way.
  [[nodiscard]] std::uint64_t own(Core core, std::uint32_t id, std::uint64_t now,
                                  std::uint32_t cost) const;

  const Costs costs_;
  std::array<std::vector<Chunk>, kSpaces> chunks_;
  std::uint32_t used_ = 0;  // lines
  std::vector<OfCore> cores_;
  std::vector<SharedSet> shared_;
};

}  // namespace sp3::emu::sim
