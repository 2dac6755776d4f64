#include "recovery/assessment.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/damage_list.h"
#include "emu/clock.h"
#include "recovery/log_source.h"

namespace sp3::recovery {
namespace {

constexpr std::size_t kMostDropped = 1000;

// Of cut(), besides one for each session. What one round takes away may have vouched for a record
// before it, and so on: one of the next round's. A log could be made so that each round finds one.
constexpr std::uint64_t kMostRounds = 16;

void list(std::vector<DroppedRecord>& to, base::SessionId session, base::Lsn lsn, base::Stamp stamp,
          std::string reason) {
  if (to.size() < kMostDropped) to.push_back({session, lsn, stamp, std::move(reason)});
}

}  // namespace

Assessment::Assessment(pool::PoolFile& file, const pool::SlabDirectory& directory,
                       std::uint32_t shards, emu::Executor& executor)
    : file_(file),
      shards_(shards),
      executor_(executor),
      plan_(file.layout(), directory, file.roots()) {}

log::LogSource Assessment::source() const { return log_source_of(file_); }

void Assessment::scan(const PhaseProgress& progress) {
  const pool::SuperblockImage& superblock = file_.superblock();
  scan_ = log::scan_logs(
      source(), superblock.fixed.floor, superblock.heads, executor_,
      [&](std::uint64_t done, std::uint64_t total) { progress("scan", done, total); });
  disowned_.resize(scan_.sessions.size());
}

void Assessment::cut() {
  const std::uint64_t most = kMostRounds + scan_.sessions.size();
  for (std::uint64_t round = 1;; ++round) {
    cut_ = compute_cut(scan_.sessions);
    const std::uint64_t start = emu::ticks();
    preparation_ = prepare(selection(), plan_, shards_, executor_);
    preparation_ticks_ += emu::ticks() - start;
    if (preparation_.bad.empty()) return;
    // In the rounds beyond, a session loses all, and has nothing that a further one could find.
    for (const BadRecord& bad : preparation_.bad) end_at(bad, round <= most ? bad.record : 0);
  }
}

void Assessment::end_at(const BadRecord& bad, std::uint64_t kept) {
  log::LogPrefix& prefix = scan_.sessions[bad.prefix];
  base::add_damage(scan_, {bad.offset, bad.what});
  const base::Lsn contradicts = prefix.first_lsn + bad.record;
  for (std::uint64_t i = kept; i < prefix.records.size(); ++i) {
    const auto record = log::trusted_record(source().file + prefix.records[i].offset);
    if (record.kind() != log::RecordKind::transaction) {
      --prefix.watermark_records;
      continue;
    }
    ++disowned_transactions_;
    list(disowned_records_, prefix.session, prefix.first_lsn + i, prefix.records[i].stamp,
         i == bad.record ? "it contradicts the slab it writes to"
         : i > bad.record
             ? fmt::format("it follows record {}, which contradicts its slab", contradicts)
             : fmt::format("record {} contradicts its slab, like too many before", contradicts));
  }
  const auto first = prefix.records.begin() + static_cast<std::ptrdiff_t>(kept);
  std::vector<log::RecordRef>& disowned = disowned_[bad.prefix];
  disowned.insert(disowned.begin(), first, prefix.records.end());
  prefix.records.erase(first, prefix.records.end());
  prefix.next_lsn = prefix.first_lsn + kept;
  prefix.end = log::PrefixEnd::damaged;
  std::erase_if(prefix.dependencies,
                [&](const log::DependencyRef& dependency) { return dependency.record() >= kept; });
}

base::Stamp Assessment::largest_stamp() const {
  const pool::Superblock& superblock = file_.superblock().fixed;
  return std::max<base::Stamp>({superblock.floor, superblock.largest_stamp, scan_.largest_stamp});
}

std::uint64_t Assessment::transactions() const {
  std::uint64_t transactions = disowned_transactions_;
  for (const log::LogPrefix& prefix : scan_.sessions) {
    transactions += prefix.records.size() - prefix.watermark_records;
  }
  return transactions;
}

void Assessment::describe(RecoveryReport& report) const {
  report.checkpoint_floor = file_.superblock().fixed.floor;
  report.largest_stamp = largest_stamp();
  report.bytes_scanned = scan_.bytes_scanned;
  report.bytes_replayed = preparation_.bytes;
  report.replayed = preparation_.transactions;
  report.records = transactions();
  base::add_all_damage(scan_, report);
  report.dropped_records = disowned_records_;
  for (std::size_t i = 0; i < scan_.sessions.size(); ++i) {
    const log::LogPrefix& prefix = scan_.sessions[i];
    if (prefix.records.size() > prefix.watermark_records || !disowned_[i].empty()) {
      ++report.sessions;
    }
    if (prefix.end == log::PrefixEnd::torn) ++report.torn;
    report.records += prefix.beyond_records;
    report.dependencies += prefix.dependencies.size();
    const std::uint64_t kept = cut_.kept[i];
    for (std::uint64_t j = kept; j < prefix.records.size(); ++j) {
      if (report.dropped_records.size() == kMostDropped) break;
      const auto record = log::trusted_record(source().file + prefix.records[j].offset);
      if (record.kind() != log::RecordKind::transaction) continue;
      std::string reason =
          fmt::format("it follows record {}, which is dropped", prefix.first_lsn + kept);
      if (j == kept && cut_.missing[i]) {
        reason = fmt::format("its predecessor, session {} stamp {}, is missing or dropped",
                             cut_.missing[i]->session, cut_.missing[i]->stamp);
      }
      list(report.dropped_records, prefix.session, record.lsn(), record.stamp(), std::move(reason));
    }
    for (const log::Beyond::Record& record : prefix.beyond) {
      list(report.dropped_records, prefix.session, record.lsn, record.stamp,
           fmt::format("it follows record {}, which is {}", prefix.next_lsn,
                       prefix.end == log::PrefixEnd::damaged ? "damaged" : "torn"));
    }
  }
  report.dropped = report.records - report.replayed;
}

}  // namespace sp3::recovery
