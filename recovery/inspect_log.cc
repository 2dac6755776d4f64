#include "recovery/inspect_log.h"

#include "base/damage_list.h"
#include "emu/executor.h"
#include "recovery/assessment.h"
#include "recovery/finish.h"

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
  const auto visit_whole = [&](const log::RecordRef& found, RecordState state) {
    LoggedRecord record = describe(log::trusted_record(file + found.offset), prefix.session);
    record.offset = found.offset;
    record.state = state;
    visit(record);
  };
  for (std::uint64_t i = 0; i < prefix.records.size(); ++i) {
    const bool kept = i < assessment.chosen().kept[index];
    visit_whole(prefix.records[i], kept ? RecordState::replayable : RecordState::dropped);
  }
  for (const log::RecordRef& found : assessment.disowned()[index]) {
    visit_whole(found, RecordState::dropped);
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
  const pool::SlabDirectory directory = file.directory();
  emu::Executor executor(0);
  Assessment assessment(file, directory, 1, executor);
  assessment.scan(no_progress);
  assessment.cut();
  base::add_all_damage(assessment.found(), summary);
  for (std::size_t i = 0; i < assessment.prefixes().size(); ++i) {
    visit_prefix(assessment, i, [&](const LoggedRecord& record) {
      ++(record.watermark ? summary.watermarks : summary.records);
      visit(record);
    });
  }
  return summary;
}

void check_log(pool::PoolFile& file, CheckReport& report) {
  if (const auto exhausted = find_exhausted_number(file)) {
    base::add_damage(report, {file.layout().superblock_offset(file.current_copy()), *exhausted});
  }
  if (file.is_clean()) {
    if (auto later = find_later_log(file).damage) base::add_damage(report, std::move(*later));
    return;
  }
  bool is_whole = true;
  const auto directory = pool::SlabDirectory::load_sound(
      file.memory(), file.layout(), file.identity(), file.current_copy(),
      [&](std::uint32_t /*slab*/, const Damage& /*damage*/) { is_whole = false; });
  emu::Executor executor(0);
  Assessment assessment(file, directory, 1, executor);
  assessment.scan(no_progress);
  // Writes can only be judged by a directory that is whole; its own damage is reported elsewhere.
  if (is_whole) assessment.cut();
  report.records += assessment.transactions();
  base::add_all_damage(assessment.found(), report);
}

}  // namespace sp3::recovery
