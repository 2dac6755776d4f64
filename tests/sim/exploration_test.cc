// Interleavings: longer programs without crashes, whose histories must have a strict serial order.
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/sim/file.h"
#include "log/format.h"
#include "pool/layout.h"
#include "tests/sim/campaign.h"
#include "tests/sim/weakened.h"

namespace sp3::test {
namespace {

sim::Case long_case(std::uint64_t seed) {
  sim::Case c = sim::case_of(seed);
  c.cores = static_cast<int>(2 + seed % 2);
  c.transactions = 25;
  return c;
}

void explore(Seeds seeds, bool weak_memory = false, bool sessions_move = false) {
  sim::CrashLab lab({});
  const std::uint64_t last = seeds.first + (seeds.last - seeds.first) / kShare;
  for (std::uint64_t seed = seeds.first; seed <= last; ++seed) {
    INFO("seed " << seed);
    sim::Case c = long_case(seed);
    c.weak_memory = weak_memory;
    if (sessions_move) c.moving_sessions = static_cast<int>(1 + seed % 3);
    if (lab.explore(c)) continue;
    FAIL("seed " << seed << ": " << lab.violation()->what << "\n" << lab.violation()->where);
  }
  CHECK((lab.counts().stale_loads != 0) == weak_memory);
}

// Counts the runs of several segments that a program's log had, and those that began in the place
// of one, at its first segment or further in.
class LongRuns final : public sim::Observer {
 public:
  explicit LongRuns(const sim::Case& c)
      : layout_(pool::plan_layout(c.pool_bytes(), c.options.geometry)),
        headers_(layout_.segments),
        places_(layout_.segments) {}

  void event(const emu::sim::Machine&, emu::sim::Event, std::uint64_t) override {
    const emu::sim::File* const file = emu::sim::machine().files().find(sim::kPoolName);
    if (file == nullptr || file->media.size() < layout_.size) return;
    for (std::uint32_t segment = 0; segment < layout_.segments; ++segment) {
      log::SegmentHeader header;
      std::memcpy(&header, file->media.now() + layout_.segment_offset(segment), sizeof header);
      if (header.magic != log::kSegmentMagic || header.crc == headers_[segment].crc) continue;
      headers_[segment] = header;
      runs += header.segments > 1 ? 1 : 0;
      begun_anew += places_[segment] == Place::first ? 1 : 0;
      begun_inside += places_[segment] == Place::inside ? 1 : 0;
      places_[segment] = header.segments > 1 ? Place::first : Place::other;
      for (std::uint32_t i = 1; i < header.segments; ++i) places_[segment + i] = Place::inside;
    }
  }
  void end(const sim::Ledger&) override {}

  int runs = 0, begun_anew = 0, begun_inside = 0;

 private:
  enum class Place : std::uint8_t { other, first, inside };  // of the last long run there

  const pool::Layout layout_;
  std::vector<log::SegmentHeader> headers_;
  std::vector<Place> places_;
};

}  // namespace

TEST_CASE("in every explored interleaving there is a strict serial order") { explore({1, 1500}); }

TEST_CASE("in every explored interleaving of varied seeds there is one too") {
  explore({sim::kFirstVariedSeed, sim::kFirstVariedSeed + 999});
}

TEST_CASE("where cores do not see one order of all stores there is one, too") {
  explore({sim::kFirstVariedSeed, sim::kFirstVariedSeed + 599}, true);
}

TEST_CASE("in every explored interleaving in which sessions move there is one, too") {
  explore({8000, 8299}, false, true);
  explore({8300, 8499}, true, true);
}

TEST_CASE("where orders are weaker than the source states them that is found") {
  for (const char* const file : {"base/epoch.h", "base/announcements.h", "emu/spin_lock.h"}) {
    INFO(file);
    const Weakened weakened(file, std::memory_order_relaxed);
    sim::CrashLab lab({});
    const auto holds = [&](std::uint64_t seed) {
      sim::Case c = long_case(seed);
      c.weak_memory = true;
      c.moving_sessions = 0;  // or what hands them over would be weaker
      return lab.explore(c);
    };
    std::uint64_t seed = sim::kFirstVariedSeed;
    while (seed < sim::kFirstVariedSeed + 100 && holds(seed)) ++seed;
    CHECK(lab.violation());
  }
}

TEST_CASE("in bulky cases runs of several segments are recycled, and others begin in their place") {
  int runs = 0, begun_anew = 0, begun_inside = 0;
  sim::CrashLab lab({});
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    sim::Case c = sim::case_of(seed);
    if (!c.bulky) continue;
    c.transactions = 25;
    LongRuns seen(c);
    lab.observe(&seen);
    CHECK(lab.explore(c));
    CHECK(seen.runs > 0);
    runs += seen.runs;
    begun_anew += seen.begun_anew;
    begun_inside += seen.begun_inside;
  }
  INFO(runs << " runs, " << begun_anew << " begun anew, " << begun_inside << " inside");
  CHECK(runs > 70);
  CHECK(begun_anew > 40);
  CHECK(begun_inside > 20);
}

TEST_CASE("in every explored interleaving there is a strict serial order, at length", "[.full]") {
  explore({100'000, 160'000});
}

TEST_CASE("where cores do not see one order of all stores there is one, at length", "[.full]") {
  explore({3'000'000, 3'029'999}, true);
}

}  // namespace sp3::test
