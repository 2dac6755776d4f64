#include "tools/log_dot.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace sp3::tools {
namespace {

std::string node_of(base::SessionId session, base::Lsn lsn) {
  return fmt::format("\"{}:{}\"", session, lsn);
}

}  // namespace

recovery::LogSummary write_dot(pool::PoolFile& file, std::ostream& out) {
  std::vector<recovery::LoggedRecord> records;
  recovery::LogSummary summary =
      recovery::list_log(file, [&](const recovery::LoggedRecord& record) {
        if (!record.watermark) records.push_back(record);
      });
  // By session, then stamp: the order of the list. Finds the record that a dependency means.
  const auto find = [&](const base::Tid& tid) -> const recovery::LoggedRecord* {
    const auto at =
        std::lower_bound(records.begin(), records.end(), tid,
                         [](const recovery::LoggedRecord& record, const base::Tid& wanted) {
                           return record.session != wanted.session ? record.session < wanted.session
                                                                   : record.stamp < wanted.stamp;
                         });
    const bool found = at != records.end() && at->session == tid.session && at->stamp == tid.stamp;
    return found ? &*at : nullptr;
  };
  out << "digraph sp3_log {\n  rankdir=LR;\n  node [shape=box, fontname=monospace];\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const recovery::LoggedRecord& record = records[i];
    const std::string node = node_of(record.session, record.lsn);
    out << fmt::format("  {} [label=\"session {} record {}\\nstamp {}\"{}];\n", node,
                       record.session, record.lsn, record.stamp,
                       record.state == recovery::RecordState::replayable ? "" : ", color=red");
    if (i != 0 && records[i - 1].session == record.session) {
      out << fmt::format("  {} -> {} [style=bold];\n", node_of(record.session, records[i - 1].lsn),
                         node);
    }
    for (const base::Tid& tid : record.dependencies) {
      const recovery::LoggedRecord* on = find(tid);
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

}  // namespace sp3::tools
