// Caches: which cache lines each virtual core has, and so what the next access to one costs.
//
// Every core has a first level (direct-mapped) and a second level (eight ways, the least recently
// used goes). Behind them is one memory for all: what it takes to get a line from there is one cost,
// since no more is known of a shared cache. A directory knows of each line who has it:
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

#include <cstdint>
#include <vector>

#include "emu/sim/costs.h"

namespace sp3::emu::sim {

class Caches {
 public:
  using Core = std::uint32_t;
  enum class Access : std::uint8_t { load, store, exchange };

  explicit Caches(const Costs& costs);

  // What the access costs that begins `now`. `further`: the line follows one just accessed.
  std::uint64_t access(Core core, std::uint64_t line, Access access, std::uint64_t now,
                       bool further);
  // A line is made anew in memory that the core has at hand: nothing is fetched.
  std::uint64_t make(Core core, std::uint64_t line);

 private:
  static constexpr std::uint32_t kFirst = 768;        // lines: 48 KiB
  static constexpr std::uint32_t kSecondSets = 4096;  // of eight: 2 MiB
  static constexpr std::uint32_t kWays = 8;
  static constexpr Core kNobody = 0xffff;

  // Of a line, by its name. `version` counts how often it was taken from those who shared it: a copy
  // of an older version is no copy any more.
  struct Line {
    std::uint64_t name = 0;
    std::uint64_t free_at = 0;  // when the transfer under way ends
    std::uint32_t version = 0;
    std::uint16_t owner = kNobody;
    bool shared = false;
  };
  struct Copy {
    std::uint32_t id = ~std::uint32_t{0};  // its number
    std::uint32_t version = 0;
    friend bool operator==(const Copy&, const Copy&) = default;
  };
  struct OfCore {
    std::vector<Copy> first;
    std::vector<Copy> second;
  };
  enum class Where : std::uint8_t { first, second, nowhere };

  std::uint32_t find(std::uint64_t name);
  OfCore& of(Core core);
  Where take(Core core, std::uint32_t id, std::uint32_t version);
  [[nodiscard]] bool has(Core core, std::uint32_t id, std::uint32_t version);
  std::uint64_t transfer(Line& line, std::uint64_t now) const;

  const Costs costs_;
  std::vector<Line> lines_;             // numbered as they come
  std::vector<std::uint32_t> buckets_;  // by name: number + 1, open addressing
  std::vector<OfCore> cores_;
};

}  // namespace sp3::emu::sim
