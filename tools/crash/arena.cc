// How a round kills: half of the victims at a random moment, the others at a named step of the
// commit protocol, of a checkpoint, or of closing. A third of the recoveries are killed too, at a
// step of their own, before one is let through; the process that was let through is mostly killed
// as well, so that the next round starts from a pool that was recovered but not closed.
#include "tools/crash/arena.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sp3/pool.h>
#include <sys/wait.h>
#include <csignal>

namespace sp3::tools::crash {

namespace {

using KillStep = emu::Step;

constexpr std::array kCommitSteps = {
    KillStep::epoch_pin,       KillStep::commit_reserve,   KillStep::commit_lock,
    KillStep::commit_announce, KillStep::commit_stamp,     KillStep::commit_validate,
    KillStep::commit_publish,  KillStep::commit_seal,      KillStep::log_store,
    KillStep::log_flush,       KillStep::log_fence,        KillStep::commit_persisted,
    KillStep::commit_wait,     KillStep::commit_committed,
};
constexpr std::array kCheckpointSteps = {
    KillStep::checkpoint_floor,      KillStep::checkpoint_collect,
    KillStep::checkpoint_capture,    KillStep::checkpoint_home,
    KillStep::checkpoint_metadata_a, KillStep::checkpoint_superblock_a,
    KillStep::checkpoint_metadata_b, KillStep::checkpoint_superblock_b,
    KillStep::checkpoint_swing,      KillStep::checkpoint_recycle,
};
constexpr std::array kRecoverySteps = {
    KillStep::recovery_scanned,    KillStep::recovery_log_flushed,
    KillStep::recovery_replay,     KillStep::recovery_homes_flushed,
    KillStep::recovery_metadata_a, KillStep::recovery_superblock_a,
    KillStep::recovery_metadata_b, KillStep::recovery_superblock_b,
    KillStep::pool_open,
};

template <std::size_t N>
Arm pick(workloads::Rng& rng, const std::array<KillStep, N>& steps, std::uint64_t most) {
  return {steps[rng.below(N)], 1 + rng.below(most)};
}

std::string describe(const Arm& arm) {
  return fmt::format("{} x{}", emu::step_name(arm.step), arm.countdown);
}

// Whether a thread that runs transactions says so.
bool is_of_a_thread(MessageKind kind) {
  return kind == MessageKind::acknowledged || kind == MessageKind::observed ||
         kind == MessageKind::observed_front;
}

Outcome outcome_of(const Message& m) { return {m.sequence, m.values[0], m.values[1]}; }

// What is chosen at random for a pool's whole life.
unsigned choose_window(const ArenaOptions& options) {
  if (!options.asynchronous) return 0;
  return 1 + static_cast<unsigned>(workloads::Rng(options.seed, 77).below(kMaxWindow));
}

}  // namespace

Arena::Arena(ArenaOptions options)
    : options_(std::move(options)),
      files_{workloads::PoolRemover(options_.path), workloads::PoolRemover(crashed_copy())},
      rng_(options_.seed),
      window_(choose_window(options_)),
      oracle_(options_.plan, std::max(1U, window_)) {}

std::filesystem::path Arena::crashed_copy() const {
  return std::filesystem::path(options_.path) += ".crashed";
}

void Arena::keep_files() noexcept {
  for (workloads::PoolRemover& file : files_) file.keep();
}

VictimOptions Arena::victim(VictimMode mode, RecoveryStrategy strategy) {
  VictimOptions v;
  v.mode = mode;
  v.path = options_.path.string();
  v.plan = options_.plan;
  v.window = window_;
  v.run_seed = rng_.next();
  v.pool_size = kPoolSize;
  v.pool.memory = options_.memory;
  // A log that a few thousand transactions fill, so that checkpoints and backpressure are met.
  v.pool.geometry = {
      .log_size = 2 << 20, .segment_size = 32 << 10, .slab_size = 32 << 10, .max_sessions = 16};
  v.pool.locks = rng_.below(4) == 0 ? LockTiming::encounter : LockTiming::commit;
  const RangeLockKind either = rng_.below(2) == 0 ? RangeLockKind::skiplist : RangeLockKind::grid;
  v.pool.range_lock = options_.range_lock.value_or(either);
  v.pool.recovery.strategy = strategy;
  v.pool.recovery.threads = 1 + static_cast<std::uint32_t>(rng_.below(3));
  v.pool.async.group_records = 1 + static_cast<std::uint32_t>(rng_.below(32));
  constexpr std::array<std::uint32_t, 4> kIntervals = {0, 3, 20, 100};
  v.pool.checkpoint.interval_ms = kIntervals[rng_.below(kIntervals.size())];
  v.pool.checkpoint.threads = 1 + static_cast<std::uint32_t>(v.run_seed % 3);
  // Records that others may flush, and records that only their owners can. Every CPU has clflush.
  v.pool.flush = v.run_seed % 2 == 0 ? FlushInstruction::automatic : FlushInstruction::clflush;
  return v;
}

std::vector<std::string> Arena::create() {
  RoundResult result;
  const Life life = follow(victim(VictimMode::create, RecoveryStrategy::stamp), 0, result);
  if (life.closed) {
    try {
      empty_objects_ = Pool::check(options_.path).objects;
    } catch (const std::exception& error) {
      result.violations.push_back(fmt::format("A new pool cannot be checked: {}", error.what()));
    }
  } else if (result.violations.empty()) {
    result.violations.emplace_back("The pool could not be made.");
  }
  return std::move(result.violations);
}

void Arena::arm_running(VictimOptions& options, RoundResult& result) {
  const std::uint64_t dice = rng_.below(8);
  if (dice < 4) return;
  if (dice < 6) {
    options.at_run = pick(rng_, kCommitSteps, 2000);
    result.death = "at " + describe(options.at_run);
  } else if (dice < 7) {
    options.at_run = pick(rng_, kCheckpointSteps, 3);
    if (options.pool.checkpoint.interval_ms == 0) options.pool.checkpoint.interval_ms = 5;
    result.death = "at " + describe(options.at_run);
  } else {
    options.mode = VictimMode::close;
    options.close_after_ms = 1 + static_cast<unsigned>(rng_.below(40));
    options.at_close = rng_.below(3) == 0 ? Arm{KillStep::pool_close, 1 + rng_.below(2)}
                                          : pick(rng_, kCheckpointSteps, 2);
    result.death = "closing at " + describe(options.at_close);
  }
}

RoundResult Arena::round(RecoveryStrategy strategy) {
  RoundResult result;
  result.strategy = strategy;
  VictimOptions options = victim(VictimMode::run, strategy);
  arm_running(options, result);
  const bool armed = !result.death.empty();
  const double lifetime = armed ? 300.0 : std::clamp(rng_.exponential(35.0), 1.0, 200.0);
  const std::uint64_t before = oracle_.acknowledged_total();
  const Life life = follow(options, lifetime, result);
  result.acknowledged = oracle_.acknowledged_total() - before;
  if (life.closed) {
    result.death = "never, meant " + result.death;
  } else if (!life.killed_itself) {
    // Steps that this run does not come to (there was no checkpoint, say) end like the others.
    result.death = fmt::format("after {:.1f} ms", lifetime);
  }
  if (result.violations.empty()) recover(strategy, result);
  return result;
}

void Arena::recover(RecoveryStrategy strategy, RoundResult& result) {
  std::filesystem::copy_file(options_.path, crashed_copy(),
                             std::filesystem::copy_options::overwrite_existing);
  if (rng_.below(3) == 0) {
    VictimOptions options = victim(VictimMode::tell, strategy);
    options.at_open = pick(rng_, kRecoverySteps, 2);
    const Life life = follow(options, 0, result);
    if (life.killed_itself) result.death += ", then at " + describe(options.at_open);
    if (!result.violations.empty()) return;
  }
  if (rng_.below(4) == 0) {
    const RoundResult last = finish(strategy);
    result.records = std::max(result.records, last.records);
    result.dropped = std::max(result.dropped, last.dropped);
    result.violations = last.violations;
  } else {
    const unsigned kills = result.kills;
    follow(victim(VictimMode::tell, strategy), 0, result);
    result.kills = kills;  // it was not doing anything
  }
  result.survivors = oracle_.unacknowledged_survivors();
}

RoundResult Arena::finish(RecoveryStrategy strategy) {
  RoundResult result;
  result.strategy = strategy;
  VictimOptions options = victim(VictimMode::close, strategy);
  options.close_after_ms = 0;
  const Life life = follow(options, 0, result);
  if (result.violations.empty()) check_closed_pool(life, result);
  return result;
}

void Arena::check_closed_pool(const Life& life, RoundResult& result) {
  try {
    const CheckReport report = Pool::check(options_.path);
    if (!report.clean) result.violations.emplace_back("The pool is not clean after close.");
    for (const Damage& damage : report.damage) {
      result.violations.push_back(fmt::format("Damage at {}: {}", damage.offset, damage.what));
    }
    // Where the number of objects follows from the content, none may be left over or missing.
    const WorkloadKind kind = options_.plan.workload;
    if (kind == WorkloadKind::hashtable || kind == WorkloadKind::bptree) return;
    const std::uint64_t each = kind == WorkloadKind::rbtree ? 2 : 1;  // a node and its value
    const std::uint64_t want = empty_objects_ + each * life.items;
    if (report.objects != want) {
      result.violations.push_back(
          fmt::format("The pool holds {} objects, its content needs {}.", report.objects, want));
    }
  } catch (const std::exception& error) {
    result.violations.push_back(fmt::format("A closed pool cannot be checked: {}", error.what()));
  }
}

// What a victim tells, and what follows from it.
class Arena::Receiver {
 public:
  Receiver(Oracle& oracle, RoundResult& result) : oracle_(oracle), result_(result) {}

  // Returns whether the victim has just said that it runs transactions.
  bool receive(const Message& m);
  [[nodiscard]] Life& life() noexcept { return life_; }

 private:
  void add_violation(const Message& m);
  void verify_dump();

  Oracle& oracle_;
  RoundResult& result_;
  Life life_;
  Dump dump_;
  TextReader text_;
};

bool Arena::Receiver::receive(const Message& m) {
  switch (m.kind) {
    case MessageKind::recovered:
      result_.records = std::max(result_.records, m.values[0]);
      result_.dropped = std::max(result_.dropped, m.values[2]);
      break;
    case MessageKind::journal:
      dump_.journals.push_back({m.sequence, {}});
      break;
    case MessageKind::outcome:
      dump_.journals.at(m.thread).outcomes.push_back(outcome_of(m));
      break;
    case MessageKind::cell:
      dump_.cells.push_back({m.values[0], m.values[1], m.values[2]});
      break;
    case MessageKind::item:
      dump_.items.push_back({m.sequence, m.values[0]});
      break;
    case MessageKind::value:
      dump_.queue.push_back(m.sequence);
      break;
    case MessageKind::refused:
      if (text_.add(m)) throw std::runtime_error(text_.take());
      break;
    case MessageKind::violation:
      add_violation(m);
      break;
    case MessageKind::dumped:
      verify_dump();
      break;
    case MessageKind::ready:
      return true;
    case MessageKind::acknowledged:
      oracle_.acknowledged(m.thread, outcome_of(m));
      break;
    case MessageKind::observed:
      oracle_.observed(m.sequence, m.values[0]);
      break;
    case MessageKind::observed_front:
      oracle_.observed_front(m.values[0]);
      break;
    case MessageKind::closed:
      life_.closed = true;
      break;
    case MessageKind::none:
      break;
  }
  return false;
}

void Arena::Receiver::add_violation(const Message& m) {
  if (!text_.add(m)) return;
  result_.violations.push_back(text_.take());
  if (!life_.told) dump_.violations.push_back(result_.violations.back());
}

void Arena::Receiver::verify_dump() {
  life_.items = dump_.items.size() + dump_.queue.size();
  life_.told = true;
  for (std::string& text : oracle_.verify(dump_)) {
    if (std::ranges::find(result_.violations, text) == result_.violations.end()) {
      result_.violations.push_back(std::move(text));
    }
  }
}

Arena::Life Arena::follow(const VictimOptions& options, double lifetime_ms, RoundResult& result) {
  using Clock = VictimProcess::Clock;
  VictimProcess process(options);
  Receiver receiver(oracle_, result);
  Life& life = receiver.life();
  bool killed = false;
  Watch watch(options_.deadline, Clock::now());
  for (Message message;;) {
    const VictimProcess::Event event = process.next(message, watch.until());
    const Clock::time_point now = Clock::now();
    if (event == VictimProcess::Event::end) break;
    if (event == VictimProcess::Event::timeout) {
      const Watch::Verdict verdict = watch.judge(now);
      // A thread that has told of a violation says nothing more.
      if (verdict == Watch::Verdict::wait && result.violations.empty()) continue;
      if (verdict == Watch::Verdict::hangs) {
        result.violations.push_back(describe_hang(options, life, watch, process.pid()));
      }
      process.kill();
      killed = true;
      watch.killed(now);
      continue;
    }
    watch.heard(now);
    const bool was_told = life.told;
    if (receiver.receive(message) && options.mode == VictimMode::run) {
      watch.runs(options.plan.threads,
                 std::chrono::microseconds(static_cast<long>(lifetime_ms * 1000)), now);
    }
    if (is_of_a_thread(message.kind)) watch.heard_of(message.thread, now);
    if (!was_told && life.told && options.mode == VictimMode::tell) watch.is_done(now);
  }
  // It has closed the pipe, and has only to end.
  std::optional<int> status = process.wait_until(Clock::now() + options_.deadline);
  if (!status) {
    result.violations.push_back(describe_hang(options, life, watch, process.pid()));
    process.kill();
    killed = true;
    status = process.wait();
  }
  judge_end(options, killed, *status, life, result);
  return life;
}

std::string Arena::describe_hang(const VictimOptions& options, const Life& life, const Watch& watch,
                                 pid_t pid) const {
  std::string where = "before it told what is in the pool";
  const std::vector<unsigned> silent = watch.silent_threads();
  if (options.mode == VictimMode::create) where = "making the pool";
  if (life.told) where = "running or closing";
  if (!silent.empty()) where = fmt::format("running, its threads {}", fmt::join(silent, ", "));
  if (life.closed) where = "after it closed the pool";
  return fmt::format("The victim hangs {}: nothing for {} s; seed {}, process {} with {}.", where,
                     options_.deadline.count(), options.run_seed, pid, process_state(pid));
}

// Whether the victim's end is one of those that were arranged.
void Arena::judge_end(const VictimOptions& options, bool killed, int status, Life& life,
                      RoundResult& result) {
  const bool armed = options.at_open.step != KillStep::none ||
                     options.at_run.step != KillStep::none ||
                     options.at_close.step != KillStep::none;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    ++result.kills;
    if (killed) return;
    life.killed_itself = true;
    if (!armed) result.violations.emplace_back("The victim was killed by someone else.");
  } else if (WIFSIGNALED(status)) {
    result.violations.push_back(fmt::format("The victim died of signal {} ({}).", WTERMSIG(status),
                                            ::strsignal(WTERMSIG(status))));
  } else if (!life.closed && result.violations.empty()) {
    result.violations.push_back(
        fmt::format("The victim ended by itself with exit code {}.", WEXITSTATUS(status)));
  }
}

}  // namespace sp3::tools::crash
