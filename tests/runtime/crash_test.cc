// Crashes at every named step of commit, checkpoint, recovery, creation, opening and closing. A
// child runs the bank, tells the parent through a pipe what was acknowledged, and is killed when it
// reaches the step for the n-th time. The parent reopens the pool and finds every acknowledged
// transaction, every other one whole or not at all, none without its predecessors, and no slot
// lost; and goes on from there.
#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/step.h"
#include "tests/runtime/bank.h"
#include "tests/runtime/crash_steps.h"
#include "tests/support/reporting_child.h"

namespace sp3::test {
namespace {

using emu::Step;

struct Report {
  std::uint64_t thread;
  std::uint64_t sequence;
};

struct Crash {
  Step step = Step::none;
  std::uint64_t countdown = 1;
  bool before_open = false;  // armed before the pool is opened: recovery's steps
  std::uint64_t transactions = 400;
  int threads = 2;
};

constexpr int kKilled = 128 + SIGKILL;

// A pool that lives through many crashes.
class Victim {
 public:
  Victim(const Mode& mode, std::uint64_t seed) : mode_(mode), random_(seed) {
    options_ = tiny_options();
    mode.apply(options_);
    options_.checkpoint.interval_ms = 1;
    options_.checkpoint.log_percent = 30;
    options_.async.group_microseconds = 50;
    Pool pool = Pool::create(path_.path(), kTinyPool, options_);
    make_bank(pool);
    pool.close();
  }

  // Runs the bank in a child until it is killed or done; how it ended.
  int run(const Crash& crash) {
    const std::uint64_t seed = random_();
    const auto told = [&](const Report& report) {
      std::uint64_t& known = progress_.acknowledged[report.thread];
      known = std::max(known, report.sequence);
    };
    return run_reporting_child<Report>([&](int pipe) { return work(crash, seed, pipe); }, told);
  }

  // Opens (recovering), checks everything, closes, and audits what the closed file holds.
  std::string find_fault(RecoveryStrategy strategy) {
    try {
      Options options = options_;
      options.recovery.strategy = strategy;
      Pool pool = Pool::open(path_.path(), options);
      std::string fault = find_bank_fault(pool, progress_, most_in_flight(mode_.async));
      if (!fault.empty()) return fault;
      const std::uint64_t objects = count_bank_objects(pool);
      pool.close();
      const CheckReport report = Pool::check(path_.path());
      if (!report.sound()) return "damaged after closing: " + report.damage.front().what;
      if (report.objects != objects) {
        return std::to_string(objects) + " objects reachable, " + std::to_string(report.objects) +
               " slots allocated";
      }
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  // In the child.
  int work(const Crash& crash, std::uint64_t seed, int pipe) {
    // Not the test framework's handlers: it is the parent that reports.
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) ::signal(number, SIG_DFL);
    try {
      if (crash.before_open) emu::arm_kill(crash.step, crash.countdown);
      Pool pool = Pool::open(path_.path(), options_);
      if (!crash.before_open) emu::arm_kill(crash.step, crash.countdown);
      run_bank(pool, crash.threads, crash.transactions, mode_.async, seed,
               [&](std::size_t thread, std::uint64_t sequence) {
                 const Report report{thread, sequence};
                 (void)!::write(pipe, &report, sizeof report);
               });
      pool.close();
      return 0;
    } catch (const Error& error) {
      (void)!::write(2, error.what(), std::string_view(error.what()).size());
      return 98;
    }
  }

  TempPath path_;
  Mode mode_;
  Options options_;
  Random random_;
  BankProgress progress_;
};

RecoveryStrategy strategy_of(std::uint64_t n) {
  return n % 2 == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
}

// Kills the mode's pool at each running step, with countdowns that grow, one crash after the other.
void crash_everywhere(const Mode& mode, std::uint64_t seed,
                      const std::vector<std::uint64_t>& countdowns) {
  Victim victim(mode, seed);
  std::uint64_t n = seed;
  for (const std::uint64_t countdown : countdowns) {
    for (const Step step : running_steps()) {
      const Crash crash{step, countdown + n % 3, false, 60 + countdown,
                        1 + static_cast<int>(n % 3)};
      INFO(mode.name() << ", seed " << seed << ", killed at " << emu::step_name(step) << " number "
                       << crash.countdown << ", " << crash.threads << " threads");
      const int ended = victim.run(crash);
      CHECK((ended == 0 || ended == kKilled));
      const std::string fault = victim.find_fault(strategy_of(++n));
      CHECK(fault == "");
      if (!fault.empty() || (ended != 0 && ended != kKilled))
        return;  // what follows would follow from it
    }
  }
}

// Kills the process while it runs, and the one that recovers from that, and the one after.
void crash_recoveries(const Mode& mode, std::uint64_t seed) {
  Victim victim(mode, seed);
  std::uint64_t n = seed;
  for (const Step step : recovery_steps()) {
    for (const std::uint64_t countdown : {1U, 2U, 9U}) {
      INFO(mode.name() << ", seed " << seed << ", recovery killed at " << emu::step_name(step)
                       << " number " << countdown);
      const int first = victim.run({Step::commit_seal, 20 + 7 * countdown, false, 400, 3});
      REQUIRE(first == kKilled);
      const int second = victim.run({step, countdown, true, 5, 2});
      REQUIRE((second == 0 || second == kKilled));
      // An asynchronous crash may have left nothing to replay.
      if (countdown == 1 && step != Step::recovery_replay) CHECK(second == kKilled);
      const Step again = recovery_steps()[++n % recovery_steps().size()];
      const int third = victim.run({again, 1, true, 5, 2});
      REQUIRE((third == 0 || third == kKilled));
      const std::string fault = victim.find_fault(strategy_of(n));
      REQUIRE(fault == "");
    }
  }
}

}  // namespace

// Some steps need luck: that a flush is left to a helper, say.
TEST_CASE("every named step of a running pool is reached") {
  for (const Step step : running_steps()) {
    INFO(emu::step_name(step));
    bool reached = false;
    for (std::uint64_t attempt = 0; attempt < 50 && !reached; ++attempt) {
      Victim victim({MemoryKind::emulated, CommitPolicy::speculative, LockTiming::commit, false},
                    attempt);
      reached = victim.run({step, 1, false, 3000, 3}) == kKilled;
      REQUIRE(victim.find_fault(RecoveryStrategy::stamp).empty());
    }
    CHECK(reached);
  }
}

TEST_CASE("a kill at any step of commit or checkpoint loses nothing and leaves nothing half done") {
  std::uint64_t seed = 0;
  for (const Mode& mode : all_modes()) crash_everywhere(mode, ++seed, {1, 17});
}

TEST_CASE("a kill at any step of commit or checkpoint, with many countdowns", "[.full]") {
  for (std::uint64_t seed = 100; seed < 104; ++seed) {
    for (const Mode& mode : all_modes()) crash_everywhere(mode, seed, {1, 5, 40, 120, 333});
  }
}

TEST_CASE("a kill at any step of recovery is recovered from") {
  std::uint64_t seed = 0;
  for (const Mode& mode : all_modes()) {
    ++seed;
    if (seed % 2 == 0) crash_recoveries(mode, seed);
  }
}

TEST_CASE("a kill at any step of recovery, in every mode", "[.full]") {
  for (std::uint64_t seed = 200; seed < 203; ++seed) {
    for (const Mode& mode : all_modes()) crash_recoveries(mode, seed);
  }
}

TEST_CASE("a kill while a pool is created leaves no file or a whole pool") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (const Step step :
         {Step::pool_create, Step::recovery_superblock_a, Step::recovery_superblock_b,
          Step::commit_seal, Step::log_flush, Step::commit_committed}) {
      for (std::uint64_t countdown = 1; countdown <= 4; ++countdown) {
        INFO(emu::step_name(step) << " number " << countdown);
        TempPath path;
        const Options options = quiet_options(memory);
        const int ended = in_child([&] {
          emu::arm_kill(step, countdown);
          Pool::create(path.path(), kTinyPool, options).close();
          return 0;
        });
        REQUIRE((ended == 0 || ended == kKilled));
        if (!std::filesystem::exists(path.path())) {
          CHECK(step == Step::pool_create);
          CHECK(ended == kKilled);
          continue;
        }
        Pool pool = Pool::open(path.path(), options);
        make_bank(pool);
        CHECK(count_bank_objects(pool) == kAccounts + kBankThreads + 3);
        pool.close();
        CHECK(Pool::check(path.path()).objects == kAccounts + kBankThreads + 3);
      }
    }
  }
}

TEST_CASE("a kill while a clean pool is opened or closed loses nothing") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Victim victim({memory, CommitPolicy::speculative, LockTiming::commit, false}, 5);
    for (const Step step :
         {Step::pool_open, Step::pool_close, Step::recovery_superblock_a,
          Step::recovery_superblock_b, Step::checkpoint_superblock_a, Step::checkpoint_superblock_b,
          Step::checkpoint_metadata_b, Step::checkpoint_swing, Step::checkpoint_recycle}) {
      INFO(emu::step_name(step));
      CHECK(victim.run({step, 1, true, 20, 1}) == kKilled);
      const std::string fault = victim.find_fault(RecoveryStrategy::stamp);
      REQUIRE(fault == "");
    }
  }
}

}  // namespace sp3::test
