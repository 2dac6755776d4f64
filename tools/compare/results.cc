// Rows follow from runs, and are kept beside them so that whoever reads the file need not know how.
#include "tools/compare/results.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "tools/command.h"

namespace sp3::tools {

namespace {

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

nlohmann::json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  nlohmann::json found = nlohmann::json::parse(file, nullptr, false);
  if (found.is_object() && found.value("format", "") == CompareResults::kFormat) return found;
  throw UsageError(fmt::format("{}: exists, and is no result of sp3 compare", path.string()));
}

// Of two values that differ, the first of their members that does, as deep as they have the same shape.
std::string difference(const std::string& name, const nlohmann::json& ours,
                       const nlohmann::json& theirs) {
  if (ours.is_object() && theirs.is_object()) {
    for (const auto& [member, value] : ours.items()) {
      const nlohmann::json other = theirs.value(member, nlohmann::json());
      if (value != other) return difference(name + "." + member, value, other);
    }
  }
  return fmt::format("{} is {} here and {} there", name, ours.dump(), theirs.dump());
}

std::string key_of(const std::string& cell, unsigned repetition) {
  return fmt::format("{}#{}", cell, repetition);
}

}  // namespace

CompareResults::CompareResults(std::filesystem::path path, const ComparePlan& plan,
                               const nlohmann::json& machine, const std::string& commit)
    : path_(std::move(path)), repeat_(plan.description.at("repeat").get<unsigned>()) {
  document_ = {{"format", kFormat},
               {"version", kVersion},
               {"started", now()},
               {"finished", nullptr},
               {"commit", commit},
               {"machine", machine},
               {"plan", plan.description},
               {"sections", plan.sections},
               {"skipped", plan.skipped},
               {"rows", nlohmann::json::array()},
               {"runs", nlohmann::json::object()}};
  if (!std::filesystem::exists(path_)) return;
  nlohmann::json found = read(path_);
  refuse_others(found);
  document_ = std::move(found);
}

void CompareResults::refuse_others(const nlohmann::json& found) const {
  for (const char* member : {"version", "commit", "machine", "plan"}) {
    const nlohmann::json& ours = document_.at(member);
    const nlohmann::json theirs = found.value(member, nlohmann::json());
    if (ours == theirs) continue;
    const std::string what = difference(member, ours, theirs);
    throw UsageError(fmt::format(
        "{}: holds results that must not be mixed with these: {}; name another file, or remove it",
        path_.string(), what));
  }
}

bool CompareResults::has(const PlannedCell& cell, unsigned repetition) const {
  return document_.at("runs").contains(key_of(cell.name(), repetition));
}

void CompareResults::add(const PlannedCell& cell, unsigned repetition, nlohmann::json run) {
  run.erase("commit");  // said once for all
  run["section"] = cell.section;
  document_["runs"][key_of(cell.name(), repetition)] = std::move(run);
  bool complete = true;
  for (unsigned r = 0; r < repeat_; ++r) complete = complete && has(cell, r);
  if (complete) add_row(cell);
  write();
}

void CompareResults::add_row(const PlannedCell& cell) {
  std::vector<nlohmann::json> runs;
  for (unsigned r = 0; r < repeat_; ++r) {
    runs.push_back(document_.at("runs").at(key_of(cell.name(), r)));
  }
  nlohmann::json row = row_of_runs(std::move(runs));
  row.update({{"commit", document_.at("commit")}, {"machine", document_.at("machine")}});
  document_["rows"].push_back(std::move(row));
}

bool CompareResults::has(const PlannedProgram& program) const {
  return document_.at("runs").contains(program.name());
}

void CompareResults::add(const PlannedProgram& program, nlohmann::json rows) {
  for (nlohmann::json& row : rows) {
    const std::string commit = row.value("commit", "");
    if (commit != document_.at("commit")) {
      throw UsageError(fmt::format("{}: is built from {}, and this program from {}: build both",
                                   program.name(), commit,
                                   document_.at("commit").get<std::string>()));
    }
    row["section"] = program.section;
    document_["rows"].push_back(row);
  }
  document_["runs"][program.name()] = {{"rows", rows.size()}};
  write();
}

void CompareResults::finish() {
  if (!document_.at("finished").is_null()) return;
  document_["finished"] = now();
  write();
}

void CompareResults::write() const {
  const std::filesystem::path fresh = std::filesystem::path(path_) += ".new";
  write_output(fresh.string(), document_.dump(1) + "\n");
  std::filesystem::rename(fresh, path_);
}

}  // namespace sp3::tools
