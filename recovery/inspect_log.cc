#include "recovery/inspect_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "emu/executor.h"
#include "recovery/assessment.h"

namespace sp3::recovery {
namespace {

void no_progress(const char*, std::uint64_t, std::uint64_t) {}

LoggedRecord describe(const log::RecordView& record, base::SessionId session) {
  LoggedRecord logged;
  logged.session = session;
  logged.lsn = record.lsn();
  logged.stamp = record.stamp();
  logged.watermark = record.kind() == log::RecordKind::watermark;
  logged.length = record.length();
  logged.persisted_upto = record.header().persisted_upto;
  record.for_each_write([&](const log::WriteView& write) {
    logged.images += write.kind == log::WriteKind::image ? 1 : 0;
    logged.deltas += write.kind == log::WriteKind::delta ? 1 : 0;
    logged.makes += write.kind == log::WriteKind::make ? 1 : 0;
    logged.destroys += write.kind == log::WriteKind::destroy ? 1 : 0;
  });
  record.for_each_dependency([&](base::SessionId on, base::Stamp stamp) {
    logged.dependencies.push_back({stamp, on});
  });
  return logged;
}

void visit_prefix(const Assessment& assessment, std::size_t index,
                  const std::function<void(const LoggedRecord&)>& visit) {
  const log::LogPrefix& prefix = assessment.prefixes()[index];
  const std::byte* file = assessment.selection().file;
  for (std::uint64_t i = 0; i < prefix.records.size(); ++i) {
    LoggedRecord record =
        describe(log::trusted_record(file + prefix.records[i].offset), prefix.session);
    record.offset = prefix.records[i].offset;
    record.state =
        i < assessment.chosen().kept[index] ? RecordState::replayable : RecordState::dropped;
    visit(record);
  }
  for (const log::Beyond::Record& beyond : prefix.beyond) {
    LoggedRecord record;
    record.session = prefix.session;
    record.lsn = beyond.lsn;
    record.stamp = beyond.stamp;
    record.state = RecordState::unreachable;
    visit(record);
  }
}

std::string node_of(base::SessionId session, base::Lsn lsn) {
  return fmt::format("\"{}:{}\"", session, lsn);
}

}  // namespace

const char* to_string(RecordState state) noexcept {
  switch (state) {
    case RecordState::replayable:
      return "replayable";
    case RecordState::dropped:
      return "dropped";
    case RecordState::unreachable:
      return "unreachable";
  }
  return "";
}

LogSummary list_log(pool::PoolFile& file, const std::function<void(const LoggedRecord&)>& visit) {
  LogSummary summary;
  summary.clean = file.is_clean();
  if (summary.clean) return summary;
  const auto directory =
      pool::SlabDirectory::load(file.memory(), file.layout(), file.identity(), file.current_copy());
  emu::Executor executor(0);
  Assessment assessment(file, directory, 1, executor);
  assessment.scan(no_progress);
  assessment.cut();
  summary.damage = assessment.damage();
  for (std::size_t i = 0; i < assessment.prefixes().size(); ++i) {
    visit_prefix(assessment, i, [&](const LoggedRecord& record) {
      ++summary.records;
      visit(record);
    });
  }
  return summary;
}

LogSummary write_dot(pool::PoolFile& file, std::ostream& out) {
  std::vector<LoggedRecord> records;
  LogSummary summary = list_log(file, [&](const LoggedRecord& record) {
    if (!record.watermark) records.push_back(record);
  });
  // By session, then stamp: the order of the list. Finds the record that a dependency means.
  const auto find = [&](const base::Tid& tid) -> const LoggedRecord* {
    const auto at = std::lower_bound(records.begin(), records.end(), tid,
                                     [](const LoggedRecord& record, const base::Tid& wanted) {
                                       return record.session != wanted.session
                                                  ? record.session < wanted.session
                                                  : record.stamp < wanted.stamp;
                                     });
    const bool found = at != records.end() && at->session == tid.session && at->stamp == tid.stamp;
    return found ? &*at : nullptr;
  };
  out << "digraph sp3_log {\n  rankdir=LR;\n  node [shape=box, fontname=monospace];\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const LoggedRecord& record = records[i];
    const std::string node = node_of(record.session, record.lsn);
    out << fmt::format("  {} [label=\"session {} record {}\\nstamp {}\"{}];\n", node,
                       record.session, record.lsn, record.stamp,
                       record.state == RecordState::replayable ? "" : ", color=red");
    if (i != 0 && records[i - 1].session == record.session) {
      out << fmt::format("  {} -> {} [style=bold];\n", node_of(record.session, records[i - 1].lsn),
                         node);
    }
    for (const base::Tid& tid : record.dependencies) {
      const LoggedRecord* on = find(tid);
      if (on != nullptr) {
        out << fmt::format("  {} -> {};\n", node_of(on->session, on->lsn), node);
      } else if (tid.stamp > file.superblock().fixed.floor) {
        const std::string missing = fmt::format("\"missing {}:{}\"", tid.session, tid.stamp);
        out << fmt::format("  {} [color=red, style=dashed];\n  {} -> {};\n", missing, missing,
                           node);
      }
    }
  }
  out << "}\n";
  return summary;
}

void check_log(pool::PoolFile& file, CheckReport& report) {
  if (file.is_clean()) return;
  std::vector<Damage> in_directory;
  const auto directory = pool::SlabDirectory::load_sound(
      file.memory(), file.layout(), file.identity(), file.current_copy(), in_directory);
  emu::Executor executor(0);
  Assessment assessment(file, directory, 1, executor);
  assessment.scan(no_progress);
  // Writes can only be judged by a directory that is whole; its own damage is reported elsewhere.
  if (in_directory.empty()) assessment.cut();
  for (const log::LogPrefix& prefix : assessment.prefixes()) {
    report.records += prefix.records.size() - prefix.watermark_records;
  }
  report.damage.insert(report.damage.end(), assessment.damage().begin(), assessment.damage().end());
}

}  // namespace sp3::recovery
