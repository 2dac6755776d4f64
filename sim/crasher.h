// Crasher: loses power (or kills the process) at the events of a simulated run, over and over,
// while the run itself stands still: crash images are made from the run's Media and taken to other
// machines, where the real recovery runs and its result is held against the run's ledger.
//
// An image is counted once, however often it arises; it is checked again only when its ledger asks
// for more than it did, or against another ledger. Some images go further:
//   nested      recovery, or the opening of a closed pool, is watched in turn, and crashes at its
//               own events, to a depth of three
//   continued   a whole program runs on the recovered pool, with crashes at its events
//   killed      the process dies and the caches survive; then recovery, with power losses
//   rotten      the media has lost something of one copy of the metadata (sim/rot.h); recovery
//               crashes at its own events, and programs run on what it mended
//
// CrashLab: what all crashers of one campaign share. Nothing of a run that it watches changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "sim/case.h"
#include "sim/ledger.h"
#include "sim/rot.h"

namespace sp3::sim {

struct CrashOptions {
  std::uint32_t most_enumerated = 64;  // possible images of one point, all tried; if more,
  std::uint32_t samples = 24;          // this many, the extremes among them
  std::uint32_t nested_one_in = 40;    // images whose recovery is watched
  std::uint32_t nested_samples = 4;    // images of a point further in
  std::uint32_t nested_depth = 3;
  std::uint32_t continued_one_in = 400;       // images on which another program runs
  std::uint32_t continued_clean_one_in = 20;  // of those of a closed pool
  std::uint32_t killed_one_in = 8;            // points at which the process is killed as well
  std::uint32_t opened_nested_one_in = 16;    // of a structure's images after a crash in recovery
  std::uint32_t continued_killed_one_in = 0;  // of them, those after which a program runs; 0: none
  std::uint32_t rotten_one_in = 0;            // images that are recovered rotten as well; 0: none
  std::uint32_t continued_rotten_one_in = 4;  // of them
  std::uint32_t rotten_log_one_in = 4;        // of them
};

// Few images of each event; many of them rot as well, and then every recovery is watched.
inline CrashOptions rotting() {
  CrashOptions options;
  options.most_enumerated = 4;
  options.samples = 4;
  options.nested_one_in = 400;
  options.nested_depth = 2;
  options.continued_one_in = 4000;
  options.killed_one_in = 16;
  options.rotten_one_in = 4;
  return options;
}

struct CrashCounts {
  std::uint64_t runs = 0;
  std::uint64_t points = 0;  // events at which something new could be lost
  std::uint64_t images = 0;  // distinct ones
  std::uint64_t checks = 0;  // recoveries checked
  std::uint64_t nested = 0;  // of them after a crash in recovery
  std::uint64_t killed = 0;
  std::uint64_t continued = 0;    // runs on a recovered pool
  std::uint64_t failed = 0;       // runs in which a flush, fence, write or sync failed
  std::uint64_t structures = 0;   // structures opened and read
  std::uint64_t rotten = 0;       // recoveries of rotten images
  std::uint64_t refused = 0;      // of them those that ended in an error
  std::uint64_t salvaged = 0;     // recoveries that were told to accept what was lost
  std::uint64_t stale_loads = 0;  // that gave something else than the newest

  CrashCounts& operator+=(const CrashCounts& more) noexcept {
    for (std::uint64_t CrashCounts::*count :
         {&CrashCounts::runs, &CrashCounts::points, &CrashCounts::images, &CrashCounts::checks,
          &CrashCounts::nested, &CrashCounts::killed, &CrashCounts::continued, &CrashCounts::failed,
          &CrashCounts::structures, &CrashCounts::rotten, &CrashCounts::refused,
          &CrashCounts::salvaged, &CrashCounts::stale_loads}) {
      this->*count += more.*count;
    }
    return *this;
  }
};

struct Violation {
  std::uint64_t seed = 0;  // of the case, which replays it
  std::string what;
  std::string where;        // the case, the event and the image
  std::uint64_t event = 0;  // of the run; 0: at its end
};

// Who follows the program of a case: its events before they happen, until a violation, and what its
// transactions did. Not the programs that run on recovered pools.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void event(const emu::sim::Machine& machine, emu::sim::Event event,
                     std::uint64_t what) = 0;
  virtual void end(const Ledger& ledger) = 0;
};

class CrashLab {
 public:
  explicit CrashLab(const CrashOptions& options) : options_(options) {}

  [[nodiscard]] const CrashOptions& options() const noexcept { return options_; }
  [[nodiscard]] const CrashCounts& counts() const noexcept { return counts_; }
  // Of the traces of all programs so far.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_; }
  // The first one; a campaign stops at it.
  [[nodiscard]] const std::optional<Violation>& violation() const noexcept { return violation_; }

  void observe(Observer* observer) noexcept { observer_ = observer; }

  // Runs a case to its end with crashes all along. False if there is a violation.
  bool run(const Case& c);
  // The same without a crash: only the interleaving is tried, and the history checked.
  bool explore(const Case& c);

 private:
  friend class Crasher;
  struct Hash {
    std::size_t operator()(const emu::sim::Hash128& h) const noexcept { return h.low; }
  };
  // A machine that recovers images.
  struct Level {
    explicit Level(const emu::sim::Config& config) : machine(config) {}
    emu::sim::Machine machine;
  };

  Level& level(std::uint32_t depth);
  void report(const Case& c, std::string what, std::string where, std::uint64_t event);
  // Where a program starts: an image, and what recovery made of it; or nothing yet.
  struct Start {
    emu::sim::Media* base = nullptr;
    const std::vector<emu::sim::Media::Choice>* choices = nullptr;  // null: the process was killed
    const Rot* rot = nullptr;                                       // of the image, if it has any
    bool rotten = false;                                            // it or one before has
    std::optional<State> found;
    std::uint32_t run = 0;    // programs that ran on this pool before
    std::uint32_t depth = 0;  // runs that stand still meanwhile
    std::string history;      // how it came to this
  };
  void run_program(const Case& c, const Start& start, bool crash);

  CrashOptions options_;
  CrashCounts counts_;
  std::optional<Violation> violation_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::unordered_set<emu::sim::Hash128, Hash> images_;
  std::unordered_set<emu::sim::Hash128, Hash> checked_;
  Observer* observer_ = nullptr;
  std::uint64_t seed_ = 0;  // of the case that run() or explore() was given
  std::uint64_t trace_ = 0;
};

}  // namespace sp3::sim
