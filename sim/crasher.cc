#include "sim/crasher.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "pool/pool_file.h"
#include "recovery/recover.h"
#include "sim/images.h"
#include "sim/objects.h"
#include "sim/program.h"

namespace sp3::sim {

using emu::sim::Event;
using emu::sim::File;
using emu::sim::Hash128;
using emu::sim::Machine;
using emu::sim::Media;
using emu::sim::Random;

// Watches one run: a program's (depth 0), or a recovery's inside another crasher's check.
class Crasher : public emu::sim::Watcher {
 public:
  // `depth`: recoveries that are being watched around this one. `runs`: programs run before on this
  // pool.
  Crasher(Bench& bench, const Case& c, const Ledger& ledger, std::uint32_t depth, std::uint32_t run,
          std::string history)
      : bench_(bench),
        case_(c),
        ledger_(ledger),
        depth_(depth),
        run_(run),
        history_(std::move(history)),
        choose_(c.seed * 8 + depth * 2 + run) {}

  void before(Machine& machine, Event event, std::uint64_t what) override {
    if (bench_.violation_) return;
    File* const file = machine.files().find(kPoolName);
    if (file == nullptr) return;
    if (file->media.version() == version_ && ledger_.demands() == demands_) return;
    version_ = file->media.version();
    demands_ = ledger_.demands();
    point_ = fmt::format("event {} ({} {})", machine.events(), static_cast<int>(event), what);
    ++bench_.counts_.points;
    lose_power(file->media);
    if (depth_ == 0 && choose_.one_in(bench_.options_.killed_one_in)) kill(file->media);
  }

 private:
  void lose_power(Media& media) {
    const CrashOptions& options = bench_.options_;
    const bool inside = depth_ > 0;
    for_each_image(media, inside ? options.nested_samples : options.most_enumerated,
                   inside ? options.nested_samples : options.samples, choose_,
                   [&](const std::vector<Media::Choice>& choices, const Hash128& hash) {
                     if (!is_new(hash)) return;
                     check(media, choices);
                   });
  }

  bool is_new(const Hash128& hash) {
    if (bench_.violation_) return false;
    if (bench_.images_.insert(hash).second) ++bench_.counts_.images;
    const Hash128 demanded{emu::sim::mix(demands_ + 1), emu::sim::mix(run_ + 77)};
    return bench_.checked_.insert(hash ^ demanded).second;
  }

  void check(Media& media, const std::vector<Media::Choice>& choices) {
    Bench::Level& level = bench_.level(depth_);
    level.machine.files().put(kPoolName).media.follow(media, choices);
    const bool nested = depth_ < bench_.options_.nested_depth &&
                        choose_.one_in(depth_ == 0 ? bench_.options_.nested_one_in : 8);
    const std::string image = describe(choices);
    const std::optional<State> state = recover(level, nested, image);
    if (!state || depth_ != 0 || run_ > 2) return;
    if (choose_.one_in(bench_.options_.continued_one_in)) go_on(media, choices, *state, image);
  }

  void kill(Media& media) {
    ++bench_.counts_.killed;
    Bench::Level& level = bench_.level(depth_);
    level.machine.files().put(kPoolName).media.follow_killed(media);
    recover(level, true, "the process is killed");
  }

  // The real recovery of what is on the level's machine, held against the ledger.
  std::optional<State> recover(Bench::Level& level, bool nested, const std::string& image) {
    ++bench_.counts_.checks;
    if (depth_ > 0) ++bench_.counts_.nested;
    Crasher inside(bench_, case_, ledger_, depth_ + 1, run_, nested ? where(image) : std::string());
    const Machine::Use use(level.machine);
    level.machine.watch(nested ? &inside : nullptr);
    State state;
    std::string fault;
    try {
      auto file =
          pool::PoolFile::open(kPoolName, case_.options, pool::PoolFile::Access::read_write);
      int copy = file->current_copy();
      if (file->superblock().fixed.state != static_cast<std::uint32_t>(pool::State::clean)) {
        recovery::recover(*file, case_.options.recovery);
        level.machine.event(Event::step, ~std::uint64_t{0});  // and once more when it is done
        copy = 0;
      }
      fault = read_state(*file, copy, state);
      if (fault.empty()) fault = ledger_.find_fault(state);
    } catch (const std::exception& e) {
      fault = std::string("recovery refuses: ") + e.what();
    }
    level.machine.watch(nullptr);
    if (fault.empty()) return state;
    bench_.report(case_, fault, where(image));
    return std::nullopt;
  }

  // Another program runs on what was recovered, and crashes all along in its turn.
  void go_on(Media& media, const std::vector<Media::Choice>& choices, const State& state,
             const std::string& image) {
    ++bench_.counts_.continued;
    Case next = case_;
    next.seed = emu::sim::mix(case_.seed + choose_());
    next.options.recovery.threads = static_cast<std::uint32_t>(1 + next.seed % 3);
    next.transactions = std::min(next.transactions, 3);
    bench_.run_case(next, run_ + 1, &media, choices, state, depth_ + 1, where(image));
  }

  std::string describe(const std::vector<Media::Choice>& choices) const {
    if (choices.empty()) return "nothing more";
    std::string text;
    for (const Media::Choice& c : choices) text += fmt::format(" {}:{}", c.unit, c.content);
    return "units" + text;
  }

  std::string where(const std::string& image) const {
    return history_ + (history_.empty() ? "" : ", then ") + point_ + ", " + image;
  }

  Bench& bench_;
  const Case& case_;
  const Ledger& ledger_;
  const std::uint32_t depth_;
  const std::uint32_t run_;
  const std::string history_;
  Random choose_;
  std::uint64_t version_ = 0;
  std::uint64_t demands_ = ~std::uint64_t{0};
  std::string point_;
};

Bench::Level& Bench::level(std::uint32_t depth) {
  while (levels_.size() <= depth) levels_.push_back(std::make_unique<Level>(emu::sim::Config{}));
  return *levels_[depth];
}

void Bench::report(const Case& c, std::string what, std::string where) {
  if (violation_) return;
  violation_ = Violation{c.seed, std::move(what), c.describe() + "; " + std::move(where)};
}

bool Bench::run(const Case& c) {
  ++counts_.runs;
  // Images are told apart within a run; pools of different runs differ in their identity.
  checked_.clear();
  run_case(c, 0, nullptr, {}, std::nullopt, 0, {});
  return !violation_;
}

State Bench::run_case(const Case& c, std::uint32_t run, const Media* base,
                      const std::vector<Media::Choice>& choices, std::optional<State> found,
                      std::uint32_t depth, const std::string& history) {
  Ledger ledger(run);
  Machine machine(c.machine());
  if (base != nullptr) machine.files().put(kPoolName).media.copy(*base, choices);
  // What recovery found is certain as soon as the pool is open; until then as the crash left it.
  if (found && found->made) ledger.start_from(found->values, true);
  Program program(c, ledger, found);
  Crasher crasher(*this, c, ledger, depth, run, history);
  machine.watch(&crasher);
  const Machine::Ended ended = machine.run([&] { program.main(); });
  machine.watch(nullptr);
  if (ended != Machine::Ended::normally) {
    report(c, ended == Machine::Ended::hung ? "the run never ends" : "every core sleeps", history);
  } else if (!machine.uncaught().empty()) {
    report(c, "an error nobody expected: " + machine.uncaught(), history);
  } else if (!program.fault().empty()) {
    report(c, program.fault(), history);
  } else if (const auto anomaly = ledger.history().find_anomaly()) {
    report(c, anomaly->name + ": " + anomaly->explanation, history);
  }
  return {};
}

}  // namespace sp3::sim
