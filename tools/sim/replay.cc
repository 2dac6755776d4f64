// sp3 sim --replay: one case, its events as they come, up to a violation or the end.
//
// --history instead writes what its transactions read and wrote, for other checkers.
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "emu/step.h"
#include "emu/touch.h"
#include "oracle/history_json.h"
#include "sim/crasher.h"
#include "tools/command.h"
#include "tools/sim/arguments.h"
#include "tools/sim/case_options.h"

namespace sp3::tools {
namespace {

using emu::sim::Event;

std::string name_of_touch(std::uint64_t what) {
  constexpr const char* kLines[] = {"entry of the object",
                                    "version of the object",
                                    "committed number of session",
                                    "sealed number of session",
                                    "persisted number of session",
                                    "announcement of session",
                                    "ring of session",
                                    "epoch slot",
                                    "global epoch",
                                    "floor",
                                    "serial gate"};
  constexpr const char* kAccesses[] = {"reads", "writes", "swaps"};
  return fmt::format("{} the {} {}", kAccesses[what & 3], kLines[what >> 2 & 63], what >> 8);
}

std::string name_of(Event event, std::uint64_t what) {
  switch (event) {
    case Event::step:
      return std::string(emu::step_name(static_cast<emu::Step>(what)));
    case Event::store:
      return fmt::format("stores at {}", what);
    case Event::flush:
      return fmt::format("flushes at {}", what);
    case Event::fence:
      return what == 0 ? "fence" : "sync";
    case Event::file:
      return "changes a file";
    case Event::touch:
      return name_of_touch(what);
    case Event::interleave:
      return "-";
    case Event::pause:
      return "waits";
    case Event::mutex:
      return "takes a mutex";
    case Event::block:
      return "sleeps";
    case Event::end:
      return "ends";
  }
  return "?";
}

class Trace final : public sim::Observer {
 public:
  explicit Trace(bool print) : print_(print) {}

  void event(const emu::sim::Machine& machine, Event event, std::uint64_t what) override {
    if (!print_) return;
    fmt::print("{:>7} {:>9} ns  core {:<2} {}\n", machine.events(), machine.now(), machine.core(),
               name_of(event, what));
  }
  void end(const sim::Ledger& ledger) override {
    history_ = ledger.list_history();
    for (sim::Ledger::Number tx = 0; print_ && tx < ledger.size(); ++tx) {
      fmt::print("{}\n", ledger.describe(tx));
    }
  }
  [[nodiscard]] const oracle::History& history() const { return history_; }

 private:
  const bool print_;
  oracle::History history_;
};

}  // namespace

int run_replay(const SimArguments& a) {
  const std::uint64_t seed = a.replay ? *a.replay : parse_seeds(a.seeds).first;
  const sim::Case c = case_for(seed, a);
  sim::Bench bench({});
  Trace trace(a.history.empty());
  bench.observe(&trace);
  if (a.history.empty()) fmt::print("{}\n", c.describe());
  const bool good = a.history.empty() ? bench.run(c) : bench.explore(c);
  if (!a.history.empty()) write_output(a.history, oracle::to_json(trace.history()));
  std::FILE* const out = a.history == "-" ? stderr : stdout;
  if (good) {
    fmt::print(out, "seed {}: no violation, {} distinct images\n", seed, bench.counts().images);
    return kOk;
  }
  fmt::print(out, "VIOLATION: {}\n  {}\n", bench.violation()->what, bench.violation()->where);
  return kFound;
}

}  // namespace sp3::tools
