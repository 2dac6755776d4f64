// Crashes of programs that write ranges: a child is killed at a step of commit, checkpoint or
// recovery; the parent finds every acknowledged write, every other one whole or not at all, and the
// object in order.
//
// Thread t owns words t, t + 3, t + 6, ... of one object, so that all threads write into all
// chunks; a transaction writes its number into all of them. Every eighth resizes a second object to
// a length that follows from the number.
#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/step.h"
#include "tests/support/pools.h"
#include "tests/support/reporting_child.h"

namespace sp3::test {
namespace {

using emu::Step;
using Words = Ranged<std::uint64_t>;

constexpr std::uint64_t kThreads = 3;
constexpr std::uint64_t kWords = 120;  // about four chunks
constexpr std::uint32_t kChunk = 256;
constexpr int kKilled = 128 + SIGKILL;

struct Report {
  std::uint64_t thread;
  std::uint64_t number;
};
struct Directory {
  Ptr<Words::Header> words;
  std::array<Ptr<Words::Header>, kThreads> lengths;
};

std::uint64_t length_after(std::uint64_t number) { return number / 8 * 37 % 200; }

class Victim {
 public:
  explicit Victim(const Mode& mode) {
    options_ = tiny_options();
    mode.apply(options_);
    options_.checkpoint.interval_ms = 1;
    options_.checkpoint.log_percent = 30;
    Pool pool = Pool::create(path_.path(), kTinyPool, options_);
    Session session = pool.session();
    session.run([&](Transaction& tx) {
      Directory directory;
      const Words words = Words::create(tx, kWords, kChunk);
      words.fill(tx, 0, kWords);
      directory.words = words.header();
      for (auto& each : directory.lengths) each = Words::create(tx, 0, kChunk).header();
      tx.set_root("directory", tx.make<Directory>(directory));
    });
    session.close();
    pool.close();
  }

  int run(Step step, std::uint64_t countdown, bool before_open, std::uint64_t transactions) {
    return run_reporting_child<Report>(
        [&](int pipe) { return work(step, countdown, before_open, transactions, pipe); },
        [&](const Report& report) {
          acknowledged_[report.thread] = std::max(acknowledged_[report.thread], report.number);
        });
  }

  // What is wrong after a crash; empty if nothing.
  std::string find_fault(RecoveryStrategy strategy) {
    try {
      Options options = options_;
      options.recovery.strategy = strategy;
      Pool pool = Pool::open(path_.path(), options);
      Session session = pool.session();
      std::string fault = session.run([&](Transaction& tx) { return look(tx); });
      session.close();
      pool.close();
      const CheckReport report = Pool::check(path_.path());
      if (fault.empty() && !report.sound()) fault = report.damage.front().what;
      return fault;
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  std::string look(Transaction& tx) {
    const Directory directory = tx.read(tx.root<Directory>("directory"));
    const Words words = Words::open(tx, directory.words);
    std::string fault = words.check_invariants(tx);
    for (std::uint64_t t = 0; t < kThreads && fault.empty(); ++t) {
      const std::uint64_t number = words.get(tx, t);
      for (std::uint64_t w = t; w < kWords; w += kThreads) {
        if (words.get(tx, w) == number) continue;
        return "word " + std::to_string(w) + " is " + std::to_string(words.get(tx, w)) +
               " where word " + std::to_string(t) + " is " + std::to_string(number);
      }
      if (number < acknowledged_[t] || number > acknowledged_[t] + 1) {
        return "thread " + std::to_string(t) + " is at " + std::to_string(number) + ", but " +
               std::to_string(acknowledged_[t]) + " was acknowledged";
      }
      acknowledged_[t] = number;
      const Words lengths = Words::open(tx, directory.lengths[t]);
      fault = lengths.check_invariants(tx);
      if (lengths.size(tx) != length_after(number)) {
        return "a length of " + std::to_string(lengths.size(tx)) + " after transaction " +
               std::to_string(number);
      }
    }
    return fault;
  }

  // In the child.
  int work(Step step, std::uint64_t countdown, bool before_open, std::uint64_t transactions,
           int pipe) {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) ::signal(number, SIG_DFL);
    try {
      if (before_open) emu::arm_kill(step, countdown);
      Pool pool = Pool::open(path_.path(), options_);
      if (!before_open) emu::arm_kill(step, countdown);
      on_threads(kThreads, [&](int t) {
        Session session = pool.session();
        write_words(session, static_cast<std::uint64_t>(t), transactions, pipe);
        session.close();
      });
      pool.close();
      return 0;
    } catch (const Error& error) {
      (void)!::write(2, error.what(), std::string_view(error.what()).size());
      return 98;
    }
  }

  static void write_words(Session& session, std::uint64_t t, std::uint64_t transactions, int pipe) {
    for (std::uint64_t i = 0; i < transactions; ++i) {
      const std::uint64_t number = session.run([&](Transaction& tx) {
        const Directory& directory = tx.read(tx.root<Directory>("directory"));
        const Words words = Words::open(tx, directory.words);
        words.lock(tx, t, t + 1);
        const std::uint64_t next = words.get(tx, t) + 1;
        for (std::uint64_t w = t; w < kWords; w += kThreads) words.set(tx, w, next);
        if (next % 8 == 0) {
          Words::open(tx, directory.lengths[t]).resize(tx, length_after(next));
        }
        return next;
      });
      const Report report{t, number};
      (void)!::write(pipe, &report, sizeof report);
    }
  }

  TempPath path_;
  Options options_;
  std::array<std::uint64_t, kThreads> acknowledged_{};
};

const std::vector<Step>& running_steps() {
  static const std::vector<Step> steps{Step::commit_lock,      Step::commit_validate,
                                       Step::commit_publish,   Step::commit_seal,
                                       Step::log_store,        Step::log_flush,
                                       Step::log_fence,        Step::commit_persisted,
                                       Step::commit_wait,      Step::checkpoint_capture,
                                       Step::checkpoint_home,  Step::checkpoint_superblock_a,
                                       Step::checkpoint_swing, Step::checkpoint_superblock_b};
  return steps;
}

void crash(const Mode& mode, std::uint64_t seed, const std::vector<std::uint64_t>& countdowns) {
  Victim victim(mode);
  std::uint64_t n = seed;
  std::uint64_t kills = 0;
  const auto check = [&](Step step, std::uint64_t countdown, int ended) {
    INFO(mode.name() << ", seed " << seed << ", killed at " << emu::step_name(step) << " number "
                     << countdown);
    CHECK((ended == 0 || ended == kKilled));
    kills += ended == kKilled;
    const std::string fault =
        victim.find_fault(++n % 2 == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag);
    CHECK(fault == "");
    return fault.empty();
  };
  for (const std::uint64_t countdown : countdowns) {
    for (const Step step : running_steps()) {
      if (!check(step, countdown, victim.run(step, countdown, false, 40))) return;
    }
    // And a crash of the recovery from a crash.
    victim.run(Step::commit_seal, 20 + countdown, false, 40);
    const int ended = victim.run(Step::recovery_replay, countdown, true, 2);
    if (!check(Step::recovery_replay, countdown, ended)) return;
  }
  CHECK(kills >= 8 * countdowns.size());  // the rest ended before it came to the step
}

}  // namespace

TEST_CASE("ranges survive a crash at each step") {
  crash({}, 1, {1, 30});
  crash({MemoryKind::emulated, CommitPolicy::conservative, LockTiming::encounter, false}, 2, {5});
}

TEST_CASE("ranges survive a crash at each step, at length", "[.full]") {
  std::uint64_t seed = 10;
  for (const Mode& mode : all_modes()) {
    if (!mode.async) crash(mode, ++seed, {1, 2, 3, 7, 20, 60, 150});
  }
}

}  // namespace sp3::test
