// sp3 sim --explore: case after case, by seed, each with power losses and kills at all of its events
// (--crash) and a longer program without, until all seeds are done, the time is over, somebody
// interrupts, or a violation is found.
//
// Pools differ by an identity that the seed chooses, so no image of one seed is one of another, and
// what was seen need only be kept for as long as a seed takes: a campaign of any length fits.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "sim/crasher.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/sim/arguments.h"
#include "tools/sim/case_options.h"
#include "workloads/machine.h"

namespace sp3::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLongProgram = 25;  // transactions a core, where nothing crashes

volatile std::sig_atomic_t interrupted = 0;
// What an assertion of the library says when it ends the process.
char aborted_at[64] = "";

void on_interrupt(int /*signal*/) { interrupted = 1; }

void on_abort(int /*signal*/) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, aborted_at, std::strlen(aborted_at));
}

struct Totals {
  std::uint64_t seeds = 0;
  sim::CrashCounts counts;

  void add(const sim::CrashCounts& more) {
    counts.runs += more.runs;
    counts.points += more.points;
    counts.images += more.images;
    counts.checks += more.checks;
    counts.nested += more.nested;
    counts.killed += more.killed;
    counts.continued += more.continued;
  }
};

std::string summary(const Totals& t, double seconds) {
  return fmt::format(
      "{} seeds, {} distinct images, {} recoveries ({} after a crash in recovery, {} after a "
      "kill), "
      "{} programs ({} on recovered pools); {:.0f} images a second",
      t.seeds, t.counts.images, t.counts.checks, t.counts.nested, t.counts.killed, t.counts.runs,
      t.counts.continued, seconds > 0 ? static_cast<double>(t.counts.images) / seconds : 0);
}

// Says how far it is: on a terminal as a bar, elsewhere as a line now and then.
class Report {
 public:
  explicit Report(const SeedRange& seeds) : seeds_(seeds) {}

  void show(std::uint64_t seed, const Totals& totals) {
    progress_.show(fmt::format("seed {}, {} images", seed, totals.counts.images),
                   seed - seeds_.first, seeds_.last - seeds_.first + 1);
    constexpr std::chrono::seconds kEvery{30};
    if (Clock::now() - last_ < kEvery) return;
    last_ = Clock::now();
    if (::isatty(STDERR_FILENO) == 0) {
      fmt::print(stderr, "seed {}: {}\n", seed, summary(totals, seconds()));
    }
  }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  void clear() { progress_.clear(); }

 private:
  const SeedRange seeds_;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

// What there is to say about a seed; empty if all is well.
std::optional<sim::Violation> run_seed(std::uint64_t seed, const SimArguments& a, Totals& totals) {
  if (a.crash) {
    sim::Bench bench({});
    bench.run(case_for(seed, a));
    totals.add(bench.counts());
    if (bench.violation()) return bench.violation();
  }
  sim::Case c = case_for(seed, a);
  if (a.case_transactions == 0) c.transactions = kLongProgram;
  sim::Bench bench({});
  bench.explore(c);
  totals.add(bench.counts());
  return bench.violation();
}

nlohmann::json to_json(const Totals& t, const SeedRange& seeds, std::uint64_t next,
                       double seconds) {
  return {{"first_seed", seeds.first},
          {"next_seed", next},
          {"seeds", t.seeds},
          {"images", t.counts.images},
          {"recoveries", t.counts.checks},
          {"nested", t.counts.nested},
          {"killed", t.counts.killed},
          {"programs", t.counts.runs},
          {"continued", t.counts.continued},
          {"seconds", seconds},
          {"commit", workloads::built_from()}};
}

}  // namespace

int run_campaign(const SimArguments& a) {
  const SeedRange seeds = parse_seeds(a.seeds);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  std::signal(SIGABRT, on_abort);
  Totals totals;
  Report report(seeds);
  std::optional<sim::Violation> violation;
  std::uint64_t seed = seeds.first;
  for (; seed <= seeds.last && !violation && interrupted == 0; ++seed) {
    if (a.seconds > 0 && report.seconds() >= a.seconds) break;
    *fmt::format_to_n(aborted_at, sizeof aborted_at - 1, "\nsp3: while running seed {}\n", seed)
         .out = '\0';
    violation = run_seed(seed, a, totals);
    ++totals.seeds;
    report.show(seed, totals);
  }
  report.clear();
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  fmt::print(out, "{}\n", summary(totals, report.seconds()));
  nlohmann::json json = to_json(totals, seeds, seed, report.seconds());
  if (violation) {
    json["violation"] = {
        {"seed", violation->seed}, {"what", violation->what}, {"where", violation->where}};
    fmt::print(out, "VIOLATION at seed {}: {}\n  {}\nto replay it: ./dev crash {}\n",
               violation->seed, violation->what, violation->where, violation->seed);
  } else if (seed <= seeds.last) {
    fmt::print(out, "to go on: --seeds {}-{}\n", seed, seeds.last);
  }
  if (!a.json.empty()) write_output(a.json, json.dump(2) + "\n");
  return violation ? kFound : kOk;
}

}  // namespace sp3::tools
