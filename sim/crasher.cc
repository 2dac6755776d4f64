#include "sim/crasher.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/scaled.h"
#include "pool/pool_file.h"
#include "recovery/finish.h"
#include "recovery/recover.h"
#include "sim/describe.h"
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

// Watches one run: a program's, or that of a recovery inside another crasher's check.
class Crasher : public emu::sim::Watcher {
 public:
  // What a recovery made of a log that had lost something.
  struct Salvaged {
    State state;
    std::string fault;
    bool operator==(const Salvaged& other) const {
      return fault == other.fault && state.made == other.state.made &&
             state.values == other.state.values;
    }
  };
  // How the run came to be watched. The depth counts the runs that stand still meanwhile.
  struct Place {
    std::uint32_t depth = 0;
    std::uint32_t recoveries = 0;  // of them recoveries, since the last program
    std::uint32_t run = 0;         // programs that ran on this pool before
    std::string history;
    Contents contents;  // of the structure when the program began
    // What it found was in caches only: what opening then makes of it is Crasher::kill's to check.
    bool after_kill = false;
    bool rotten = false;  // the media has lost something already, and that is enough
    // What each recovery from here on must make of it, accepting the loss. Null: of everything.
    const Salvaged* salvaged = nullptr;
  };

  // Without `crash` it only shows the events to the observer.
  Crasher(CrashLab& lab, const Case& c, const Ledger& ledger, Place place, bool crash = true)
      : lab_(lab),
        case_(c),
        ledger_(ledger),
        place_(std::move(place)),
        crash_(crash),
        choose_(c.seed * 64 + std::uint64_t{8} * place_.depth + place_.run) {}

  // Only what has changed since the last event, on media or in what must survive, can show
  // anything new.
  void before(Machine& machine, Event event, std::uint64_t what) override {
    if (lab_.violation_) return;
    if (place_.depth == 0 && lab_.observer_ != nullptr) {
      lab_.observer_->event(machine, event, what);
    }
    if (!crash_) return;
    File* const file = machine.files().find(kPoolName);
    if (file == nullptr || (place_.after_kill && !ledger_.has_started())) return;
    if (file->media.version() == version_ && ledger_.demands() == demands_) return;
    version_ = file->media.version();
    demands_ = ledger_.demands();
    at_ = {machine.events(), event, what};
    ++lab_.counts_.points;
    const CrashOptions& options = lab_.options_;
    lose_power(file->media);
    const std::uint32_t rarer = place_.depth == 0 ? 1 : 16;
    if (may_nest() && choose_.one_in(std::uint64_t{options.killed_one_in} * rarer)) {
      kill(file->media, options.continued_killed_one_in);
    }
  }

  // The process dies, and the caches survive. One in `continued_one_in` such deaths is followed by
  // another program; 0: none.
  void kill(Media& media, std::uint32_t continued_one_in) {
    if (lab_.violation_) return;
    ++lab_.counts_.killed;
    CrashLab::Level& level = lab_.level(place_.depth);
    level.machine.files().put(kPoolName).media.follow_killed(media);
    const auto found = recover(level, true, nullptr);
    if (!found || !may_go_on(*found)) return;
    if (continued_one_in != 0 && choose_.one_in(continued_one_in)) {
      go_on(media, nullptr, nullptr, found->state);
    }
  }

  // The first event to crash at is one that finds the media changed.
  void wait_for_change(std::uint64_t version) {
    version_ = version;
    demands_ = ledger_.demands();
  }

 private:
  static constexpr std::uint32_t kMostRuns = 3;
  // A recovery, once watched, watches one in so many of those that follow its crashes.
  static constexpr std::uint32_t kNestedOnceMore = 8;

  using Choices = std::vector<Media::Choice>;
  struct Moment {
    std::uint64_t number = 0;
    Event event{};
    std::uint64_t what = 0;
  };
  struct Recovered {
    State state;
    bool was_clean = false;
    bool was_opened = false;  // so that the contents of its structure are known
  };

  [[nodiscard]] bool may_go_on(const Recovered& found) const {
    const bool is_known = found.was_opened || case_.structure == StructureKind::none;
    return !lab_.violation_ && place_.run < kMostRuns && is_known;
  }
  [[nodiscard]] bool may_nest() const { return place_.recoveries < lab_.options_.nested_depth; }

  void lose_power(Media& media) {
    const CrashOptions& options = lab_.options_;
    const bool further = place_.depth > 0;  // many of those, so a few images of each event
    for_each_image(media, further ? options.nested_samples : options.most_enumerated,
                   further ? options.nested_samples : options.samples, choose_,
                   [&](const Choices& choices, const Hash128& hash) {
                     if (!is_new(hash)) return;
                     check(media, choices);
                     if (is_to_rot()) check_rotten(media, choices);
                   });
  }

  bool is_new(const Hash128& hash) {
    if (lab_.violation_) return false;
    if (lab_.images_.insert(hash).second) ++lab_.counts_.images;
    const Hash128 demanded{emu::sim::mix(demands_), emu::sim::mix(~demands_)};
    return lab_.checked_.insert(hash ^ demanded).second;
  }

  void check(Media& media, const Choices& choices) {
    const CrashOptions& options = lab_.options_;
    CrashLab::Level& level = lab_.level(place_.depth);
    level.machine.files().put(kPoolName).media.follow(media, choices);
    const std::uint32_t one_in = place_.recoveries > 0 ? kNestedOnceMore
                                 : place_.run > 0      ? options.nested_one_in * 4
                                                       : options.nested_one_in;
    const bool nested = may_nest() && choose_.one_in(one_in);
    const auto found = recover(level, nested, &choices);
    if (!found || !may_go_on(*found)) return;
    const std::uint64_t rarer = std::uint64_t{1} << (6 * place_.run);
    if (choose_.one_in(rarer * (found->was_clean ? options.continued_clean_one_in
                                                 : options.continued_one_in))) {
      go_on(media, &choices, nullptr, found->state);
    }
  }

  bool is_to_rot() {
    const std::uint32_t one_in = lab_.options_.rotten_one_in;
    return one_in != 0 && !lab_.violation_ && !place_.rotten && choose_.one_in(one_in);
  }

  // The same image, when the media has lost something of it. What another copy makes good must not
  // be noticed, at whatever event of the mending power fails again.
  void check_rotten(Media& media, const Choices& choices) {
    ++lab_.counts_.rotten;
    CrashLab::Level& level = lab_.level(place_.depth);
    Media& image = level.machine.files().put(kPoolName).media;
    image.follow(media, choices);
    const Rot rot = choose_one(level, image);
    image.rot(rot.offset, rot.bytes.data(), rot.bytes.size());
    if (is_in_log(rot) && !rot.curable) {
      salvage(level, choices, rot);
      return;
    }
    const auto found = recover(level, may_nest(), &choices, &rot);
    if (!found || !may_go_on(*found)) return;
    if (choose_.one_in(lab_.options_.continued_rotten_one_in)) {
      go_on(media, &choices, &rot, found->state);
    }
  }

  Rot choose_one(CrashLab::Level& level, const Media& image) {
    const Machine::Use use(level.machine);
    const bool closed =
        pool::PoolFile::open(kPoolName, case_.options, pool::PoolFile::Access::read_only)
            ->is_clean();
    return !closed && choose_.one_in(lab_.options_.rotten_log_one_in)
               ? choose_log_rot(layout(), image.now(), choose_)
               : choose_rot(layout(), image.now(), choose_);
  }
  [[nodiscard]] bool is_in_log(const Rot& rot) const {
    return rot.offset - layout().log_offset < layout().log_bytes;
  }

  // The log has lost something that recovery would read. Unless that passes for a torn tail, it is
  // refused, and the pool is left as it is; and it can be accepted. Then recovery makes the same of
  // it however often it is cut short, in metadata that is whole, and nothing in the pool makes
  // anybody fail otherwise than by an error.
  void salvage(CrashLab::Level& level, const Choices& choices, const Rot& rot) {
    const Machine::Use use(level.machine);
    Media& media = level.machine.files().put(kPoolName).media;
    Media before;
    before.copy(media, {});
    try {
      recover_file(false);
    } catch (const Error& e) {
      ++lab_.counts_.refused;
      if (media.hash() != before.hash())
        report("a recovery that refuses has written", choices, rot);
    }
    Salvaged salvaged;
    const auto again = [&](Crasher* watcher) {
      media.copy(before, {});
      level.machine.watch(watcher);
      std::string fault = try_salvage(level.machine, salvaged, watcher != nullptr);
      level.machine.watch(nullptr);
      if (!fault.empty()) report(std::move(fault), choices, rot);
    };
    again(nullptr);
    if (lab_.violation_) return;
    ++lab_.counts_.salvaged;
    Crasher inside(lab_, case_, ledger_,
                   {place_.depth + 1, place_.recoveries + 1, place_.run, where(&choices, &rot),
                    place_.contents, false, true, &salvaged});
    if (may_nest()) again(&inside);
    if (!lab_.violation_) use_salvaged(level.machine, choices, rot);
  }

  void report(std::string fault, const Choices& choices, const Rot& rot) {
    lab_.report(case_, std::move(fault), where(&choices, &rot), at_.number);
  }

  // What `wanted` is not yet, if it is not `known`.
  std::string try_salvage(Machine& machine, Salvaged& wanted, bool known) const {
    Salvaged found;
    try {
      recover_file(true);
      machine.event(Event::end);
      const auto file =
          pool::PoolFile::open(kPoolName, case_.options, pool::PoolFile::Access::read_write);
      for (const int copy : {0, 1}) {
        const auto directory =
            pool::SlabDirectory::load(file->memory(), file->layout(), file->identity(), copy);
        for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
          if (directory.record(slab).type == 0) continue;
          (void)directory.load_bitmap(file->memory(), slab, copy);
        }
      }
      found.fault = read_state(*file, 0, case_.structure, found.state);
    } catch (const std::exception& e) {
      return std::string("a loss that was accepted is refused: ") + e.what();
    }
    if (!known) wanted = found;
    return wanted == found ? "" : "salvaged twice, the pool is not the same";
  }

  // After a crash in a recovery that accepts a loss.
  std::optional<Recovered> salvage_again(CrashLab::Level& level, const Choices* choices) {
    const Machine::Use use(level.machine);
    Salvaged wanted = *place_.salvaged;
    std::string fault = try_salvage(level.machine, wanted, true);
    if (!fault.empty()) lab_.report(case_, std::move(fault), where(choices), at_.number);
    return std::nullopt;
  }

  void recover_file(bool accept_loss) const {
    const auto file =
        pool::PoolFile::open(kPoolName, case_.options, pool::PoolFile::Access::read_write);
    RecoveryOptions options = recovery_options();
    options.accept_loss = accept_loss;
    recovery::recover(*file, options);
  }

  // Whoever opens a pool whose recovery was cut off may have chosen the other strategy.
  [[nodiscard]] RecoveryOptions recovery_options() const {
    RecoveryOptions options = case_.options.recovery;
    if (place_.recoveries > 0 && at_.number % 2 == 1) {
      const bool dag = options.strategy == RecoveryStrategy::dag;
      options.strategy = dag ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
    }
    return options;
  }

  void use_salvaged(Machine& machine, const Choices& choices, const Rot& rot) {
    Options options = case_.options;
    options.checkpoint.background = false;
    const Machine::Ended ended = machine.run([&] {
      Pool pool = Pool::open(kPoolName, options);
      try {
        State state;
        (void)read_pool(pool, case_.structure, state);
      } catch (const Error&) {  // a pointer may lead to what is lost
      }
      pool.close();
    });
    if (ended != Machine::Ended::normally) report("a salvaged pool cannot be used", choices, rot);
    if (!machine.uncaught().empty()) report("a salvaged pool: " + machine.uncaught(), choices, rot);
  }

  // The real recovery of what is on the level's machine, held against the ledger. `choices` null:
  // the process was killed.
  std::optional<Recovered> recover(CrashLab::Level& level, bool nested, const Choices* choices,
                                   const Rot* rot = nullptr) {
    ++lab_.counts_.checks;
    if (place_.recoveries > 0) ++lab_.counts_.nested;
    if (place_.salvaged != nullptr) return salvage_again(level, choices);
    const bool rotten = place_.rotten || rot != nullptr;
    Crasher inside(lab_, case_, ledger_,
                   {place_.depth + 1, place_.recoveries + 1, place_.run,
                    nested ? where(choices, rot) : std::string(), place_.contents, false, rotten});
    const Machine::Use use(level.machine);
    const Media& media = level.machine.files().put(kPoolName).media;
    const std::uint64_t untouched = media.version();
    if (rot != nullptr) inside.wait_for_change(untouched);  // until then it may still be refused
    level.machine.watch(nested ? &inside : nullptr);
    Recovered found;
    std::string fault;
    try {
      fault = recover_and_read(level.machine, nested || rot != nullptr, rotten, found);
      if (fault.empty()) fault = ledger_.find_fault(found.state);
      level.machine.watch(nullptr);
      found.was_opened = is_to_open();
      if (fault.empty() && found.was_opened) fault = open_and_read(level.machine, found.state);
    } catch (const Error& e) {
      fault = std::string("recovery refuses: ") + e.what();
      if (media.version() != untouched) fault += ", after it has written";
      if (rot != nullptr && !rot->curable && media.version() == untouched) {
        ++lab_.counts_.refused;
        level.machine.watch(nullptr);
        return std::nullopt;
      }
    } catch (const std::exception& e) {
      fault = std::string("recovery refuses: ") + e.what();
    }
    level.machine.watch(nullptr);
    if (fault.empty()) return found;
    lab_.report(case_, fault, where(choices, rot), at_.number);
    return std::nullopt;
  }

  // Every structure after the first crash, and some of those after a crash in recovery: opening
  // takes ten times as long as recovery.
  bool is_to_open() {
    if (case_.structure == StructureKind::none) return false;
    return place_.recoveries == 0 || choose_.one_in(lab_.options_.opened_nested_one_in);
  }

  // A pool that was closed is left as it is, unless it is watched: then it is opened for use, as if
  // it were recovered.
  // What has rotted of a closed pool's bitmaps is mended when they are read.
  std::string recover_and_read(Machine& machine, bool watched, bool rotten,
                               Recovered& found) const {
    auto file = pool::PoolFile::open(kPoolName, case_.options, pool::PoolFile::Access::read_write);
    int copy = file->current_copy();
    found.was_clean = file->is_clean();
    if (found.was_clean && watched) {
      recovery::start_generation(*file);
    } else if (!found.was_clean) {
      recovery::recover(*file, recovery_options());
    }
    if (!found.was_clean || watched) {
      machine.event(Event::end);  // a crash when it is done
      copy = 0;                   // both are equal now
    }
    if (rotten && found.was_clean) copy = kEitherCopy;
    std::string fault = read_state(*file, copy, case_.structure, found.state);
    if (!fault.empty() || !rotten || found.was_clean) return fault;
    return read_state(*file, 1 - copy, case_.structure, found.state);
  }

  // The structure, as a program sees it that opens what was recovered.
  std::string open_and_read(Machine& machine, State& state) const {
    ++lab_.counts_.structures;
    Options options = case_.options;
    options.checkpoint.background = false;
    State opened;
    std::string fault;
    const Machine::Ended ended = machine.run([&] {
      Pool pool = Pool::open(kPoolName, options);
      fault = read_pool(pool, case_.structure, opened);
    });
    if (ended != Machine::Ended::normally) return "the recovered pool cannot be read to the end";
    if (!machine.uncaught().empty()) return "reading the recovered pool: " + machine.uncaught();
    if (!fault.empty()) return fault;
    state.contents = std::move(opened.contents);
    if (opened.made != state.made || opened.values != state.values) {
      return "the pool opens with another state than recovery left";
    }
    return find_difference(case_.structure, state, place_.contents, ledger_);
  }

  // Another program runs on what was recovered, and crashes all along in its turn.
  void go_on(Media& media, const Choices* choices, const Rot* rot, const State& state) {
    ++lab_.counts_.continued;
    Case next = case_;
    next.seed = emu::sim::mix(case_.seed + choose_());
    next.options.recovery.threads = static_cast<std::uint32_t>(1 + next.seed % 3);
    if (next.restless) next.change_options();
    next.transactions = std::min(next.transactions, 3);
    lab_.run_program(next,
                     {&media, choices, rot, place_.rotten || rot != nullptr, state, place_.run + 1,
                      place_.depth + 1, where(choices, rot)},
                     true);
  }

  // `choices` null: the process is killed.
  [[nodiscard]] std::string where(const Choices* choices, const Rot* rot = nullptr) const {
    const pool::Layout layout = this->layout();
    std::string text = place_.history + (place_.history.empty() ? "" : ", then ");
    text += fmt::format("at event {}, before {}: ", at_.number,
                        describe_event(layout, at_.event, at_.what));
    if (choices == nullptr) return text + "the process is killed";
    text += choices->empty() ? "power is lost and nothing more is on media"
                             : "power is lost and on media is also";
    const std::uint32_t unit = case_.options.memory == MemoryKind::file ? 512 : 64;
    for (const Media::Choice& c : *choices) text += "\n    " + describe_choice(layout, unit, c);
    if (rot != nullptr) text += "\n    but it has lost " + rot->what;
    return text;
  }
  [[nodiscard]] pool::Layout layout() const {
    return pool::plan_layout(case_.pool_bytes(), case_.options.geometry);
  }

  CrashLab& lab_;
  const Case& case_;
  const Ledger& ledger_;
  const Place place_;
  const bool crash_;
  Random choose_;
  std::uint64_t version_ = 0;
  std::uint64_t demands_ = ~std::uint64_t{0};
  Moment at_;
};

CrashLab::Level& CrashLab::level(std::uint32_t depth) {
  while (levels_.size() <= depth) levels_.push_back(std::make_unique<Level>(emu::sim::Config{}));
  return *levels_[depth];
}

void CrashLab::report(const Case& c, std::string what, std::string where, std::uint64_t event) {
  if (violation_) return;
  violation_ = Violation{seed_, std::move(what), c.describe() + "; " + std::move(where), event};
}

bool CrashLab::run(const Case& c) {
  // Checks of earlier runs were for ledgers that are no more: they would only take memory.
  checked_.clear();
  seed_ = c.seed;
  const base::TinyLimits limits(c.tiny);
  run_program(c, {}, true);
  return !violation_;
}

bool CrashLab::explore(const Case& c) {
  seed_ = c.seed;
  const base::TinyLimits limits(c.tiny);
  run_program(c, {}, false);
  return !violation_;
}

void CrashLab::run_program(const Case& c, const Start& start, bool crash) {
  ++counts_.runs;
  Ledger ledger(start.run);
  Machine machine(c.machine());
  if (start.base != nullptr) {
    Media& media = machine.files().put(kPoolName).media;
    if (start.choices != nullptr) {
      media.copy(*start.base, *start.choices);
      if (start.rot != nullptr) {
        media.rot(start.rot->offset, start.rot->bytes.data(), start.rot->bytes.size());
      }
    } else {
      media.copy_killed(*start.base);
    }
  }
  // Recovery has shown what it will find, and nothing of that may be lost from here on.
  const bool after_kill = start.base != nullptr && start.choices == nullptr;
  if (start.found && start.found->made && !after_kill) ledger.start_from(start.found->values, true);
  Program program(c, ledger, start.found);
  Crasher crasher(*this, c, ledger,
                  {start.depth, 0, start.run, start.history,
                   start.found ? start.found->contents : Contents(), after_kill, start.rotten},
                  crash);
  if (crash || observer_ != nullptr) machine.watch(&crasher);
  const Machine::Ended ended = machine.run([&] { program.main(); });
  machine.watch(nullptr);
  trace_ = emu::sim::mix(trace_ ^ machine.trace_hash());
  counts_.stale_loads += machine.stale_loads();
  if (ended != Machine::Ended::normally) {
    const bool hung = ended == Machine::Ended::hung;
    report(c, hung ? "the run never ends" : "every core sleeps", start.history, 0);
  } else if (!machine.uncaught().empty()) {
    report(c, "an error nobody expected: " + machine.uncaught(), start.history, 0);
  } else if (!machine.race().empty()) {
    report(c, "a race: " + machine.race(), start.history, 0);
  } else if (!program.fault().empty()) {
    report(c, program.fault(), start.history, 0);
  } else if (const auto anomaly = ledger.history().find_anomaly()) {
    report(c, anomaly->name + ": " + anomaly->explanation, start.history, 0);
  }
  if (start.depth == 0 && observer_ != nullptr) observer_->end(ledger);
  if (!program.has_failed()) return;
  ++counts_.failed;
  // Another process opens what the one whose disk failed has left in the caches.
  File* const file = machine.files().find(kPoolName);
  const bool judged = !after_kill || ledger.has_started();
  if (crash && file != nullptr && judged) crasher.kill(file->media, 1);
}

}  // namespace sp3::sim
