#include "sim/case.h"

#include <fmt/format.h>

#include "emu/sim/random.h"

namespace sp3::sim {
namespace {

// About as many flushes and fences as a case makes.
constexpr std::uint64_t kMostFailingIo = 80;

// A few more than an opening makes.
constexpr std::uint64_t kFailingIoOfOpening = 24;

constexpr std::uint64_t kBulkyOneIn = 16;
// Of the varied ones.
constexpr std::uint64_t kCarriersOneIn = 4;
constexpr std::uint64_t kMovesOneIn = 5;
constexpr std::uint64_t kSlowOneIn = 3;           // if the clocks disagree
constexpr std::uint64_t kDeepHashTableOneIn = 2;  // of hash tables

// What earlier seeds have in campaigns of their own only, all of it together.
void vary(Case& c, emu::sim::Random& choose) {
  c.transactions += static_cast<int>(choose.below(6));
  c.churn = choose.one_in(2);
  c.boxes = choose.one_in(3);
  c.keeps = c.boxes && choose.one_in(2);
  c.blind = choose.one_in(4);
  c.dawdles = choose.one_in(6);
  c.late = choose.one_in(6);
  c.tiny = choose.one_in(2);
  c.handles = !choose.one_in(3);
  c.restless = choose.one_in(2);
  c.tight = c.structure == StructureKind::none && choose.one_in(2);
  if (c.structure == StructureKind::ranged && choose.one_in(2)) {
    c.structure = StructureKind::deep_ranged;
    c.options.geometry.log_size = kDeepLog;
  }
  c.options.recovery.threads = static_cast<std::uint32_t>(1 + choose.below(3));
  // Not drawn, these four, so that the others mean what they meant before there were such things.
  c.slow_clocks = !c.clocks_agree && c.seed % kSlowOneIn == 0;
  if (c.structure == StructureKind::hash_table && c.seed % kDeepHashTableOneIn == 0) {
    c.structure = StructureKind::deep_hash_table;
    c.options.geometry.log_size = kDeepLog;
  }
  if (c.seed % kCarriersOneIn == 0) {
    c.options.checkpoint.threads = static_cast<std::uint32_t>(2 + c.seed / kCarriersOneIn % 2);
  }
  if (c.seed % kMovesOneIn == 0) {
    c.moving_sessions = static_cast<int>(1 + c.seed / kMovesOneIn % 3);
    c.late = false;
  }
  c.stalls = c.schedule == emu::sim::Schedule::random && choose.one_in(2);
}

}  // namespace

emu::sim::Config Case::machine() const {
  emu::sim::Config config;
  config.seed = seed;
  config.schedule = schedule;
  // Few changes find what takes few, and programs are from a thousand to twenty thousand events
  // long.
  emu::sim::Random choose(seed ^ 0xc4a9e);
  config.priority_changes = std::uint32_t{4} << (2 * choose.below(3));
  config.expected_events = std::uint64_t{1000} << choose.below(5);
  config.writes_through = seed / 2 % 2 == 0;
  config.clocks_agree = clocks_agree;
  config.weak_memory = weak_memory;
  // Every atomic access is an event then.
  if (weak_memory) config.expected_events *= 8;
  if (stalls) config.draw_stalls(choose);
  config.most_events = 2'000'000;
  config.failing_io = failing_io;
  config.fails_once = fails_once;
  for (const emu::sim::NamedCost& cost : emu::sim::kNamedCosts) {
    if (slow_clocks) config.costs.*cost.value = 1;
  }
  return config;
}

void Case::change_options() {
  emu::sim::Random choose(seed ^ 0x0dd);
  options.policy = choose.one_in(3) ? CommitPolicy::conservative : CommitPolicy::speculative;
  options.locks = choose.one_in(2) ? LockTiming::encounter : LockTiming::commit;
  options.range_lock = choose.one_in(2) ? RangeLockKind::grid : RangeLockKind::skiplist;
  options.recovery.strategy = choose.one_in(2) ? RecoveryStrategy::dag : RecoveryStrategy::stamp;
  options.checkpoint.background = choose.one_in(2);
  options.async.group_records = static_cast<std::uint32_t>(1 + choose.below(4));
  options.watermark_ms = choose.one_in(2) ? 1 : 0;
  cores = static_cast<int>(1 + choose.below(3));
  async = choose.one_in(2);
  checkpoints = choose.one_in(2);
  reopens = choose.one_in(2);
  if (failing_io == 0 && choose.one_in(4)) {
    failing_io = 1 + choose.below(kFailingIoOfOpening);
    fails_once = choose.one_in(2);
  }
}

void Case::use_bulk() {
  bulky = true;
  options.geometry.slab_size = 8192;
}

Case case_of(std::uint64_t seed) {
  emu::sim::Random choose(seed ^ 0x5ca1ab1e);
  Case c;
  c.seed = seed;
  c.schedule = choose.one_in(3) ? emu::sim::Schedule::priority : emu::sim::Schedule::random;
  c.clocks_agree = !choose.one_in(4);
  c.cores = static_cast<int>(1 + choose.below(3));
  c.transactions = static_cast<int>(3 + choose.below(4));
  c.async = choose.one_in(2);
  c.checkpoints = choose.one_in(2);
  c.reopens = choose.one_in(3);

  Options& o = c.options;
  o.memory = choose.one_in(4) ? MemoryKind::file : MemoryKind::emulated;
  constexpr FlushInstruction kFlushes[] = {FlushInstruction::clwb, FlushInstruction::clflushopt,
                                           FlushInstruction::clflush,
                                           FlushInstruction::non_temporal, FlushInstruction::none};
  o.flush = o.memory == MemoryKind::file ? FlushInstruction::automatic
                                         : kFlushes[choose.one_in(2) ? 0 : choose.below(5)];
  o.policy = choose.one_in(3) ? CommitPolicy::conservative : CommitPolicy::speculative;
  o.locks = choose.one_in(3) ? LockTiming::encounter : LockTiming::commit;
  o.range_lock = seed % 2 == 0 ? RangeLockKind::grid : RangeLockKind::skiplist;
  // Four or eight segments: with three sessions and the library's own, the log fills up.
  o.geometry = {choose.one_in(2) ? 16U * 1024 : 32U * 1024, 4096, 4096, 3};
  o.recovery.threads = 1;
  o.checkpoint.threads = 1;
  o.recovery.strategy = choose.one_in(2) ? RecoveryStrategy::dag : RecoveryStrategy::stamp;
  o.checkpoint.background = choose.one_in(2);
  o.checkpoint.interval_ms = choose.one_in(2) ? 1 : 0;
  o.checkpoint.log_percent = 25;
  o.async.group_records = static_cast<std::uint32_t>(1 + choose.below(4));
  o.async.group_microseconds = choose.one_in(2) ? 20 : 1000;
  o.watermark_ms = choose.one_in(2) ? 1 : 0;
  o.serial_after_aborts = choose.one_in(2) ? 2 : 16;
  if (seed >= kFirstRichSeed) {
    if (!choose.one_in(4))
      c.structure = static_cast<StructureKind>(1 + choose.below(kStructureKinds));
    if (choose.one_in(3)) c.failing_io = 1 + choose.below(kMostFailingIo);
    c.fails_once = choose.one_in(2);
  }
  if (seed >= kFirstVariedSeed) vary(c, choose);
  // Not drawn, so that the other seeds mean what they meant before there was such a thing.
  if (seed % kBulkyOneIn == kBulkyOneIn - 1 && !c.tight) c.use_bulk();
  return c;
}

std::string Case::describe() const {
  return fmt::format(
             "seed {}: {} cores, {} transactions each{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}, {} "
             "schedule{}, "
             "clocks {}, {} memory{}, {}, {}, locks at {}, ranges in a {}, {} bytes of log, "
             "replay by {}{}{}{}",
             seed, cores, transactions, async ? ", some async" : "",
             checkpoints ? ", checkpoints" : "", blind ? ", blind writes" : "",
             boxes ? ", boxes" : "", reopens ? ", sessions reopened" : "",
             churn ? ", only replacements" : "", bulky ? ", bulky" : "", tight ? ", tight" : "",
             tiny ? ", tiny limits" : "", handles ? ", handles kept" : "",
             restless ? ", other options later" : "", keeps ? ", pointers kept" : "",
             late ? ", one core after the other" : "",
             moving_sessions == 0 ? "" : fmt::format(", {} sessions that move", moving_sessions),
             dawdles ? ", long bodies" : "", weak_memory ? ", weak memory" : "",
             schedule == emu::sim::Schedule::priority ? "priority"
             : schedule == emu::sim::Schedule::timed  ? "timed"
                                                      : "random",
             stalls ? " with stalls" : "",
             clocks_agree  ? "agree"
             : slow_clocks ? "apart and slow"
                           : "apart",
             to_string(options.memory),
             options.memory == MemoryKind::file && machine().writes_through ? " written through"
                                                                            : "",
             to_string(options.flush), to_string(options.policy), to_string(options.locks),
             to_string(options.range_lock), options.geometry.log_size,
             to_string(options.recovery.strategy),
             options.checkpoint.background ? ", background checkpoints" : "",
             options.checkpoint.threads == 1
                 ? ""
                 : fmt::format(", {} carriers", options.checkpoint.threads),
             options.watermark_ms != 0 ? ", watermarks" : "") +
         (structure == StructureKind::none ? "" : fmt::format(", a {}", to_string(structure))) +
         (failing_io == 0
              ? ""
              : fmt::format(", I/O {} fails{}", failing_io, fails_once ? "" : " and all after it"));
}

}  // namespace sp3::sim
