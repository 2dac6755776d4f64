// Assessment: what a pool's log says, found out without changing a byte. Recovery acts on it; check
// and the log tool print it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <sp3/report.h>

#include "emu/executor.h"
#include "log/log_scanner.h"
#include "pool/pool_file.h"
#include "recovery/cut.h"
#include "recovery/preparation.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Progress of one phase.
using PhaseProgress =
    std::function<void(const char* phase, std::uint64_t done, std::uint64_t total)>;

class Assessment {
 public:
  // REQUIRES: all arguments outlive this.
  Assessment(pool::PoolFile& file, const pool::SlabDirectory& directory, std::uint32_t shards,
             emu::Executor& executor);
  Assessment(const Assessment&) = delete;
  Assessment& operator=(const Assessment&) = delete;

  // Each step needs the one before it.
  void scan(const PhaseProgress& progress);
  // The cut, and the check of every write in it against its slab. What contradicts its slab is
  // damage, ends its session's prefix there, and the rest is assessed again.
  void cut();
  // The part of cut() that checked the writes and sorted them into shards, in ticks.
  [[nodiscard]] std::uint64_t preparation_ticks() const { return preparation_ticks_; }

  [[nodiscard]] const std::vector<log::LogPrefix>& prefixes() const { return scan_.sessions; }
  // The scan, with the damage that cut() found added to its own.
  [[nodiscard]] const log::ScanResult& found() const { return scan_; }
  [[nodiscard]] const Cut& chosen() const { return cut_; }
  // By prefix: its records from one on that contradicts its slab. They follow those of prefixes().
  [[nodiscard]] const std::vector<std::vector<log::RecordRef>>& disowned() const {
    return disowned_;
  }
  // Complete transactions above the floor, those behind the end of a prefix not counted.
  [[nodiscard]] std::uint64_t transactions() const;
  [[nodiscard]] const Preparation& preparation() const { return preparation_; }
  [[nodiscard]] SlabPlan& plan() { return plan_; }
  [[nodiscard]] Selection selection() const {
    return {file_.memory().view(), scan_.sessions, cut_.kept};
  }
  [[nodiscard]] log::LogSource source() const;

  // The largest stamp known on media.
  [[nodiscard]] base::Stamp largest_stamp() const;
  // The largest generation and checkpoint number in any segment's header.
  [[nodiscard]] const log::Newest& newest() const { return scan_.newest; }
  // Fills in what was found: everything in the report but times, strategy and threads.
  void describe(RecoveryReport& report) const;

 private:
  void end_at(const BadRecord& bad, std::uint64_t kept);

  pool::PoolFile& file_;
  const std::uint32_t shards_;
  emu::Executor& executor_;
  SlabPlan plan_;
  log::ScanResult scan_;
  Cut cut_;
  Preparation preparation_;
  std::uint64_t preparation_ticks_ = 0;
  std::vector<std::vector<log::RecordRef>> disowned_;
  std::uint64_t disowned_transactions_ = 0;
  std::vector<DroppedRecord> disowned_records_;
};

}  // namespace sp3::recovery
