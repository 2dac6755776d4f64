// sp3 sim --explore: case after case, by seed, each with power losses and kills at all of its
// events (--crash) and a longer program without, until all seeds are done, or as many images, or
// the time is over, or somebody interrupts, or a violation is found.
//
// It may run for days: every image is counted once and nothing is kept from one seed to the next,
// so memory does not grow, and whoever stopped goes on with the next seed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/signals.h"
#include "sim/describe.h"
#include "tools/command.h"
#include "tools/print_to.h"
#include "tools/progress_bar.h"
#include "tools/sim/arguments.h"
#include "tools/sim/case_options.h"
#include "tools/sim/orders.h"
#include "tools/sim/seed_run.h"
#include "workloads/machine.h"

namespace sp3::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kUsualSeeds = "1-1000";
// Where a number of images is wanted, seeds that also choose structures and failing disks.
const std::string kSeedsForImages = fmt::format("{}-", sim::kFirstRichSeed);

volatile std::sig_atomic_t interrupted = 0;

// The seed that runs is run to its end; who is in a hurry interrupts once more.
void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

// What a campaign is to do. It ends with the first of these that is reached.
struct Goal {
  explicit Goal(const SimArguments& a)
      : seeds(parse_seeds(!a.seeds.empty() ? a.seeds
                          : a.images != 0  ? kSeedsForImages
                                           : kUsualSeeds)),
        images(a.images),
        seconds(a.seconds) {}

  const SeedRange seeds;
  const std::uint64_t images;  // 0: any number
  const double seconds;        // 0: any time
};

struct State {
  std::uint64_t next;  // seed
  std::uint64_t seeds = 0;
  sim::CrashCounts counts;
  std::optional<sim::Violation> violation;
  Clock::time_point start = Clock::now();

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  [[nodiscard]] double images_per_second() const {
    return static_cast<double>(counts.images) / std::max(seconds(), 1e-9);
  }
};

// How much of the goal is done, 0 to 1: of what will be reached first.
double share_of(const Goal& goal, const State& s) {
  const auto of = [](auto done, auto all) {
    return static_cast<double>(done) / static_cast<double>(all);
  };
  // One seed more than their distance, which as an integer may be zero.
  double share =
      static_cast<double>(s.seeds) / (static_cast<double>(goal.seeds.last - goal.seeds.first) + 1);
  if (goal.images != 0) share = std::max(share, of(s.counts.images, goal.images));
  if (goal.seconds > 0) share = std::max(share, of(s.seconds(), goal.seconds));
  return std::min(share, 1.0);
}

// Not before one seed is done, or nothing would count as sound.
bool is_reached(const Goal& goal, const State& s) {
  return s.next < goal.seeds.first || s.next > goal.seeds.last ||
         (s.seeds != 0 && share_of(goal, s) >= 1);
}

std::string duration(double seconds) {
  const auto s = static_cast<std::uint64_t>(seconds);
  if (s < 120) return fmt::format("{} s", s);
  if (s < 7200) return fmt::format("{} min", s / 60);
  return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
}

std::string summary(const State& s) {
  return fmt::format("{} seeds in {}: {}; {:.0f} images a second", s.seeds, duration(s.seconds()),
                     sim::describe(s.counts), s.images_per_second());
}

// Says how far it is.
class Report {
 public:
  void show(const Goal& goal, const State& s) {
    const double share = share_of(goal, s);
    const std::string text =
        fmt::format("seed {}, {} images, {:.0f}/s, {} left", s.next, s.counts.images,
                    s.images_per_second(), left(share, s.seconds()));
    constexpr std::uint64_t kAll = 1'000'000;
    progress_.show(text, static_cast<std::uint64_t>(share * kAll), kAll);
  }
  void clear() { progress_.clear(); }

 private:
  static std::string left(double share, double seconds) {
    constexpr double kTooEarly = 1e-6;
    return share < kTooEarly ? "?" : duration(seconds * (1 - share) / share);
  }

  ProgressBar progress_;
};

nlohmann::json state_json(const State& s, const Goal& goal) {
  nlohmann::json json = {{"first_seed", goal.seeds.first},
                         {"next_seed", s.next},
                         {"seeds", s.seeds},
                         {"images", s.counts.images},
                         {"recoveries", s.counts.checks},
                         {"nested", s.counts.nested},
                         {"killed", s.counts.killed},
                         {"programs", s.counts.runs},
                         {"continued", s.counts.continued},
                         {"failed_disks", s.counts.failed},
                         {"structures", s.counts.structures},
                         {"rotten", s.counts.rotten},
                         {"refused", s.counts.refused},
                         {"salvaged", s.counts.salvaged},
                         {"stale_loads", s.counts.stale_loads},
                         {"seconds", s.seconds()},
                         {"images_per_s", s.images_per_second()},
                         {"commit", workloads::built_from()}};
  if (s.violation) {
    json["violation"] = {
        {"seed", s.violation->seed}, {"what", s.violation->what}, {"where", s.violation->where}};
  }
  return json;
}

// How to go on where it stopped; empty if there is nothing left to do.
std::string how_to_go_on(const Goal& goal, const State& s) {
  if (is_reached(goal, s) && goal.seconds <= 0) return {};
  if (s.next > goal.seeds.last) return {};
  const bool open = goal.seeds.last == std::numeric_limits<std::uint64_t>::max();
  std::string text = fmt::format("to go on: --seeds {}-", s.next);
  if (!open) text += std::to_string(goal.seeds.last);
  if (goal.images > s.counts.images) {
    text += fmt::format(" --images {}", goal.images - s.counts.images);
  }
  return text;
}

}  // namespace

int run_campaign(const SimArguments& a) {
  if (!std::isfinite(a.seconds) || a.seconds < 0) {
    throw UsageError(fmt::format("--seconds: wanted a number from 0 on, found {}", a.seconds));
  }
  const Goal goal(a);
  State state{.next = goal.seeds.first, .counts = {}, .violation = {}};
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!base::is_ignored(signal)) std::signal(signal, on_interrupt);
  }
  Report report;
  while (!state.violation && interrupted == 0 && !is_reached(goal, state)) {
    report.show(goal, state);
    SeedRun run = run_seed(state.next, a, a.crash, nullptr);
    ++state.next;
    ++state.seeds;
    state.counts += run.counts;
    state.violation = std::move(run.violation);
  }
  report.clear();
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_to(out, "{}\n", summary(state));
  if (a.orders) print_to(out, "{}", list_orders());
  if (state.violation) {
    print_to(out, "VIOLATION at seed {}: {}\n  {}\nto replay it: {}\n", state.violation->seed,
             state.violation->what, state.violation->where,
             replay_command(state.violation->seed, a));
  } else {
    print_to(out, "0 violations\n");
    if (const std::string text = how_to_go_on(goal, state); !text.empty()) {
      print_to(out, "{}\n", text);
    }
  }
  if (!a.json.empty()) write_output(a.json, to_text(state_json(state, goal)) + "\n");
  return state.violation ? kFound : kOk;
}

}  // namespace sp3::tools
