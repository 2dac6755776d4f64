// sp3 sim --replay: what a campaign runs of one seed, with its events up to the violation.
//
// --history instead writes what the transactions of the longer program read and wrote, for other
// checkers.
#include <cstdio>

#include <fmt/format.h>

#include "oracle/history_json.h"
#include "pool/layout.h"
#include "sim/describe.h"
#include "tools/command.h"
#include "tools/print_to.h"
#include "tools/sim/arguments.h"
#include "tools/sim/case_options.h"
#include "tools/sim/on_abort.h"
#include "tools/sim/seed_run.h"

namespace sp3::tools {
namespace {

using emu::sim::Event;

// The events of the program that runs, or ran last, as text.
class Trace final : public sim::Observer {
 public:
  explicit Trace(const sim::Case& c)
      : layout_(pool::plan_layout(c.pool_bytes(), c.options.geometry)) {}

  void event(const emu::sim::Machine& machine, Event event, std::uint64_t what) override {
    if (ended_) {  // this is another program
      text_.clear();
      ended_ = false;
    }
    text_ += fmt::format("{:>7} {:>9} ns  core {:<2} {}\n", machine.events(), machine.now(),
                         machine.core(), sim::describe_event(layout_, event, what));
  }
  void end(const sim::Ledger& ledger) override {
    for (sim::Ledger::Number tx = 0; tx < ledger.size(); ++tx) text_ += ledger.describe(tx) + "\n";
    history_ = ledger.list_history();
    ended_ = true;
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const oracle::History& history() const { return history_; }

 private:
  const pool::Layout layout_;
  std::string text_;
  bool ended_ = false;
  oracle::History history_;
};

}  // namespace

int run_replay(const SimArguments& a) {
  const std::uint64_t seed = *a.replay;
  const bool wants_history = !a.history.empty();
  const sim::Case c = wants_history ? long_case_for(seed, a) : case_for(seed, a);
  Trace trace(c);
  const PrintOnAbort print(trace.text());
  std::FILE* const out = a.history == "-" ? stderr : stdout;
  print_to(out, "{}\n", c.describe());
  std::fflush(out);
  const SeedRun run =
      wants_history ? run_long_program(seed, a, &trace) : run_seed(seed, a, true, &trace);
  if (wants_history) write_output(a.history, oracle::to_json(trace.history()));
  if (run.violation || a.trace) print_to(out, "{}", trace.text());
  if (run.violation) {
    print_to(out, "VIOLATION: {}\n  {}\n", run.violation->what, run.violation->where);
    return kFound;
  }
  if (wants_history) {  // its program meets no power loss, of which the counts are
    print_to(out, "clean: a strict serial order explains all {} transactions\n",
             trace.history().size());
    return kOk;
  }
  print_to(out, "clean: no violation at {} points; {}\n", run.counts.points,
           sim::describe(run.counts));
  return kOk;
}

}  // namespace sp3::tools
