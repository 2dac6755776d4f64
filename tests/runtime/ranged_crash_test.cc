// Crashes of programs that write ranges: a child is killed at a step of commit, checkpoint or
// recovery; the parent finds every acknowledged write, every other one whole or not at all, and the
// object in order, with as many slots as it needs.
//
// Thread t owns words t, t + 3, t + 6, ... of one object, so that all threads write into all
// chunks; a transaction writes its number into all of them. Every eighth resizes a second object to
// a length that follows from the number, and gives all of it its chunks.
#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/step.h"
#include "tests/runtime/crash_steps.h"
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
    without_lengths_ = Pool::check(path_.path()).objects;
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
      if (fault.empty() && report.objects != objects()) {
        fault = std::to_string(report.objects) + " slots allocated for " +
                std::to_string(objects()) + " objects";
      }
      return fault;
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  // As many as there have to be: a range in place has its chunks, and a table if they are several.
  [[nodiscard]] std::uint64_t objects() const {
    std::uint64_t count = without_lengths_;
    for (const std::uint64_t number : acknowledged_) {
      const std::uint64_t bytes = length_after(number) * sizeof(std::uint64_t);
      const std::uint64_t chunks = (bytes + kChunk - 1) / kChunk;
      count += chunks + (chunks > 1 ? 1 : 0);
    }
    return count;
  }

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
          const Words lengths = Words::open(tx, directory.lengths[t]);
          const std::uint64_t length = length_after(next);
          lengths.resize(tx, length);
          if (length != 0) lengths.fill(tx, 0, length);
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
  std::uint64_t without_lengths_ = 0;  // objects, while all lengths are 0
};

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
  }
  CHECK(kills >= 14 * countdowns.size());  // the rest ended before it came to the step
  // And crashes of the recovery from a crash.
  for (const Step step : recovery_steps()) {
    for (const std::uint64_t countdown : {1U, 2U, 9U}) {
      REQUIRE(victim.run(Step::commit_seal, 20 + countdown, false, 40) == kKilled);
      const int ended = victim.run(step, countdown, true, 2);
      // A checkpoint may have left nothing to replay.
      if (countdown == 1 && step != Step::recovery_replay) CHECK(ended == kKilled);
      if (!check(step, countdown, ended)) return;
    }
  }
}

}  // namespace

// Some steps need luck, as in crash_test.cc.
TEST_CASE("every named step is reached by writers of ranges") {
  for (const Step step : running_steps()) {
    INFO(emu::step_name(step));
    bool reached = false;
    for (int attempt = 0; attempt < 50 && !reached; ++attempt) {
      Victim victim({});
      reached = victim.run(step, 1, false, 1000) == kKilled;
      REQUIRE(victim.find_fault(RecoveryStrategy::stamp) == "");
    }
    CHECK(reached);
  }
}

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
