// sp3 log: the records that recovery would look at, or their dependency DAG.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <sp3/options.h>
#include <CLI/CLI.hpp>

#include "pool/pool_file.h"
#include "recovery/inspect_log.h"
#include "runtime/roots.h"
#include "tools/command.h"
#include "tools/log_dot.h"

namespace sp3::tools {

namespace {

struct LogArguments {
  std::string path;
  std::string dot;
  std::uint64_t limit = 0;
};

std::string line_of(const recovery::LoggedRecord& r) {
  std::string line =
      fmt::format("{:>7} {:>8} {:>18}  {:<11} ", r.session, r.lsn, r.stamp, to_string(r.state));
  if (r.state == recovery::RecordState::unreachable) return line;
  line +=
      fmt::format("at {:>10} {:>6} B  durable to {:>7}  ", r.offset, r.length, r.persisted_upto);
  if (r.watermark) {
    line += "watermark";
  } else {
    line += fmt::format("{} images, {} deltas, {} made, {} destroyed", r.images, r.deltas, r.makes,
                        r.destroys);
  }
  for (const base::Tid& d : r.dependencies) line += fmt::format(" <{}@{}>", d.session, d.stamp);
  return line;
}

int report_damage(const LogArguments& a, const recovery::LogSummary& summary, std::FILE* to) {
  print_damage(to, a.path + ": ", summary.damage, summary.more_damage);
  return summary.damage.empty() ? kOk : kFound;
}

int run(const LogArguments& a) {
  std::error_code ignored;
  if (a.dot != "-" && std::filesystem::equivalent(a.dot, a.path, ignored)) {
    throw UsageError(fmt::format("--dot: {} is the pool itself", a.dot));
  }
  const auto file = pool::PoolFile::open(a.path, Options{}, pool::PoolFile::Access::read_only);
  file->expect_roots(runtime::root_class());
  if (!a.dot.empty()) {
    std::ostringstream graph;
    const recovery::LogSummary summary = write_dot(*file, graph);
    write_output(a.dot, graph.str());
    return report_damage(a, summary, stderr);
  }
  std::uint64_t shown = 0;
  fmt::print("session      LSN              stamp  state\n");
  const recovery::LogSummary summary =
      recovery::list_log(*file, [&](const recovery::LoggedRecord& record) {
        if (a.limit == 0 || shown < a.limit) {
          fmt::print("{}\n", line_of(record));
          ++shown;
        }
      });
  const int code = report_damage(a, summary, stdout);
  fmt::print("{} records, {} watermarks, {} shown; the pool {}\n", summary.records,
             summary.watermarks, shown,
             summary.clean ? "was closed: none will be replayed" : "was not closed");
  return code;
}

}  // namespace

void add_log_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<LogArguments>();
  CLI::App* log = app.add_subcommand("log", "show a pool's log without changing it; 1 if damaged");
  log->add_option("path", a->path, "the pool")->required();
  CLI::Option* dot = add_output_option(
      *log, "--dot", a->dot, "write the dependency DAG for Graphviz to this file, - for stdout");
  log->add_option("--limit", a->limit, "show at most so many records, 0: all")
      ->capture_default_str()
      ->excludes(dot);
  log->callback([a, &exit_code] { exit_code = run(*a); });
}

}  // namespace sp3::tools
