// The phases, in the order in which they must happen:
//
//   scan -> cut and check -> log durable (P6) -> order and replay -> homes durable (P7)
//        -> metadata and superblock of the stale copy (P8, P9) -> of the other (P10, P11)
//
// Up to P6 nothing is written. From P6 to P9 the superblock still says what it said, so a crash
// starts recovery over from the same floor with the same log, by either strategy; replaying over
// any mixture of old and new homes gives the same image, since each word that a record above the
// floor wrote gets what shows of it at the end, and no other word is stored to. From P9 on the new
// generation is in force, the old log is history, and the rest only makes the second copy equal.
#include "recovery/recover.h"

#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include <sp3/error.h>

#include "base/damage_list.h"
#include "base/mutant.h"
#include "emu/clock.h"
#include "emu/executor.h"
#include "emu/step.h"
#include "recovery/assessment.h"
#include "recovery/durable.h"
#include "recovery/finish.h"
#include "recovery/replay.h"
#include "recovery/roots.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

double seconds(std::uint64_t ticks) { return emu::nanoseconds_from_ticks(ticks) * 1e-9; }

class Recovery {
 public:
  Recovery(pool::PoolFile& file, const RecoveryOptions& options)
      : file_(file),
        options_(options),
        executor_(options.threads),
        directory_(file.directory()),
        assessment_(file, directory_, executor_.threads(), executor_) {}

  Result run() {
    RecoveryReport& report = result_.report;
    const std::uint64_t start = emu::ticks();
    report.was_clean = false;
    report.strategy = options_.strategy;
    report.threads = executor_.threads();
    assess();
    make_log_durable();
    replay();
    finish();
    report.total_seconds = seconds(emu::ticks() - start);
    return std::move(result_);
  }

 private:
  void assess();
  void make_log_durable();
  void replay();
  void finish();
  void progress(const char* phase, std::uint64_t done, std::uint64_t total) const {
    if (options_.progress) options_.progress({phase, done, total});
  }

  pool::PoolFile& file_;
  const RecoveryOptions& options_;
  emu::Executor executor_;
  pool::SlabDirectory directory_;
  Assessment assessment_;
  Result result_;
};

void Recovery::assess() {
  RecoveryReport& report = result_.report;
  const std::uint64_t start = emu::ticks();
  require_roots(file_, directory_);
  assessment_.scan([this](const char* phase, std::uint64_t done, std::uint64_t total) {
    progress(phase, done, total);
  });
  const std::uint64_t scanned = emu::ticks();
  assessment_.cut();
  std::vector<Damage> unreadable;
  assessment_.plan().load_bitmaps(file_, options_.accept_loss, unreadable);
  assessment_.describe(report);
  for (Damage& damage : unreadable) base::add_damage(report, std::move(damage));
  progress("cut", report.records, report.records);
  report.scan_seconds = seconds(scanned - start);
  report.cut_seconds = seconds(emu::ticks() - scanned - assessment_.preparation_ticks());
  report.order_seconds = seconds(assessment_.preparation_ticks());
  if (!report.damage.empty() && !options_.accept_loss) {
    ErrorFacts facts;
    facts.path = file_.path();
    facts.offset = report.damage.front().offset;
    throw Error(ErrorCode::damaged_log, report.damage.front().what, std::move(facts));
  }
  if (options_.assessed) options_.assessed(report);
  emu::step(emu::Step::recovery_scanned);
}

// (P6) A process that was killed may have left records in caches only; a power cut after the first
// home store must not find homes without their records. So may one whose disk failed.
void Recovery::make_log_durable() {
  if (mutant(Mutant::recovery_applies_unflushed_log)) return;
  const std::uint64_t start = emu::ticks();
  const auto& prefixes = assessment_.prefixes();
  const emu::IoStatus status = parallel_status(executor_, prefixes.size(), [&](std::size_t i) {
    emu::FlushCounts counts;
    for (const log::FileRange& range : prefixes[i].ranges) {
      if (mutant(Mutant::no_flush_found_log)) break;
      file_.memory().flush_found(range.offset, range.length, counts);
    }
    return mutant(Mutant::no_fence_found_log) ? emu::IoStatus{} : file_.memory().fence(counts);
  });
  require_durable(file_, status, "the log could not be made durable");
  result_.report.flush_seconds += seconds(emu::ticks() - start);
  emu::step(emu::Step::recovery_log_flushed);
}

// (P7) is at the end of each replay: homes before anything that makes the log history.
void Recovery::replay() {
  const std::uint64_t total = assessment_.preparation().writes;
  const Selection selection = assessment_.selection();
  std::function<void(std::uint64_t)> tell;
  if (options_.progress) {
    tell = [this, total](std::uint64_t done) { progress("replay", done, total); };
  }
  const ReplayContext context{file_.memory(), assessment_.plan(),
                              selection,      assessment_.preparation(),
                              executor_,      std::move(tell)};
  ReplayTimes times;
  // Nodes of the DAG, which are all records, watermarks too, and edges are numbered by 32 bits; so
  // many would take a log of 100 GiB or more.
  const std::uint64_t nodes =
      std::accumulate(selection.kept.begin(), selection.kept.end(), std::uint64_t{0});
  const bool dag =
      options_.strategy == RecoveryStrategy::dag &&
      nodes + total + result_.report.dependencies < std::numeric_limits<std::uint32_t>::max();
  if (!dag) result_.report.strategy = RecoveryStrategy::stamp;
  const emu::IoStatus status =
      dag ? replay_by_dag(context, times) : replay_by_stamp(context, times);
  require_durable(file_, status, "the recovered objects could not be made durable");
  result_.report.order_seconds += seconds(times.order);
  result_.report.replay_seconds = seconds(times.replay);
  result_.report.flush_seconds += seconds(times.flush);
  emu::step(emu::Step::recovery_homes_flushed);
}

void Recovery::finish() {
  const std::uint64_t start = emu::ticks();
  progress("flush", 0, 1);
  result_.superblock = finish_recovery(file_, directory_, assessment_.plan(),
                                       assessment_.largest_stamp(), assessment_.newest());
  progress("flush", 1, 1);
  result_.report.flush_seconds += seconds(emu::ticks() - start);
}

}  // namespace

Result recover(pool::PoolFile& file, const RecoveryOptions& options) {
  if (file.is_clean()) {
    Result result;
    result.superblock = file.superblock();
    return result;
  }
  require_numbers_left(file);
  return Recovery(file, options).run();
}

}  // namespace sp3::recovery
