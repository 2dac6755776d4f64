// Rows follow from runs, and are kept beside them so that whoever reads the file need not know how.
#include "tools/compare/results.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/same_file.h"
#include "tools/command.h"
#include "tools/compare/members.h"
#include "tools/json_depth.h"
#include "tools/replace_file.h"

namespace sp3::tools {

namespace {

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

// The members that going on needs; the others are ours to write.
bool is_result(const nlohmann::json& found) {
  const auto holds = [&](const char* member, nlohmann::json::value_t type) {
    return found.contains(member) && found.at(member).type() == type;
  };
  using Type = nlohmann::json::value_t;
  return found.is_object() && found.contains("format") &&
         found.at("format") == CompareResults::kFormat && found.contains("finished") &&
         holds("rows", Type::array) && holds("runs", Type::object);
}

[[noreturn]] void refuse_damage(const std::filesystem::path& path, const std::string& what) {
  throw UsageError(
      fmt::format("{}: is damaged: {}; name another file, or remove it", path.string(), what));
}

void check_members(const std::filesystem::path& path, const nlohmann::json& found) {
  const nlohmann::json& finished = found.at("finished");
  if (!finished.is_null() && !finished.is_string()) {
    refuse_damage(path, "finished is neither null nor a text");
  }
  std::size_t number = 0;
  for (const nlohmann::json& row : found.at("rows")) {
    const std::string wrong = what_is_wrong_with_row(row);
    if (!wrong.empty()) refuse_damage(path, fmt::format("row {} {}", number, wrong));
    ++number;
  }
  for (const auto& [name, run] : found.at("runs").items()) {
    const std::string wrong = what_is_wrong_with_run(name, run);
    if (!wrong.empty()) refuse_damage(path, fmt::format("the run '{}' {}", name, wrong));
  }
}

nlohmann::json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  nlohmann::json found = nlohmann::json::parse(file, refuse_deep_nesting(path.string()), false);
  if (is_result(found)) return found;
  throw UsageError(fmt::format("{}: exists, and is no result of sp3 compare", path.string()));
}

// Of two values that differ, the first of their members that does, as deep as both have members.
std::string difference(const std::string& name, const nlohmann::json& ours,
                       const nlohmann::json& theirs) {
  if (ours.is_object() && theirs.is_object()) {
    for (const auto& [member, value] : ours.items()) {
      const nlohmann::json other = theirs.value(member, nlohmann::json());
      if (value != other) return difference(fmt::format("{}.{}", name, member), value, other);
    }
  }
  return fmt::format("{} is {} here and {} there", name, ours.dump(), theirs.dump());
}

// As it is read again: its bytes that are no text are replacement characters.
std::string text_of(const nlohmann::json& document) { return to_text(document, 1) + "\n"; }

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
  document_ = nlohmann::json::parse(text_of(document_));
  open_and_lock();
  if (pool::file_size(file_.get(), path_.string()) != 0) {
    nlohmann::json found = read(path_);
    refuse_others(found);
    check_members(path_, found);
    document_ = std::move(found);
    make_rows(plan);
    // What failed before is tried again.
    document_["sections"] = plan.sections;
    document_["skipped"] = plan.skipped;
    if (!has_all(plan)) document_["finished"] = nullptr;
  }
  write();
}

// The file may be replaced between its being opened and locked: then another one counts.
void CompareResults::open_and_lock() {
  for (;;) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
      throw std::runtime_error(fmt::format("{}: {}", path_.string(), std::strerror(errno)));
    }
    file_ = pool::Descriptor(fd);
    // What is renamed onto it shall replace the file, not a link that leads to it.
    if (std::filesystem::is_symlink(path_)) path_ = std::filesystem::canonical(path_);
    const std::string path = path_.string();
    struct stat ours {};
    struct stat there {};
    if (::fstat(fd, &ours) != 0 || !S_ISREG(ours.st_mode)) {
      throw UsageError(fmt::format("{}: exists, and is no result of sp3 compare", path));
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      throw std::runtime_error(errno == EWOULDBLOCK
                                   ? fmt::format("{}: another process writes it", path)
                                   : fmt::format("{}: flock: {}", path, std::strerror(errno)));
    }
    if (::stat(path.c_str(), &there) == 0 && base::is_same_file(there, ours)) return;
  }
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

// Anew, since they follow from the runs: a row whose runs were lost would stand there twice as soon
// as they are there again. Programs' rows are not made of runs, but must be as many as those say.
void CompareResults::make_rows(const ComparePlan& plan) {
  nlohmann::json found = nlohmann::json::array();
  std::swap(found, document_["rows"]);
  for (const PlannedCell& cell : plan.cells) {
    if (is_complete(cell)) add_row(cell);
  }
  std::map<std::string, std::uint64_t> wanted;  // rows of programs by section
  for (const PlannedProgram& program : plan.programs) {
    wanted.try_emplace(program.section);
    if (!has(program)) continue;
    wanted[program.section] +=
        document_.at("runs").at(program.name()).at("rows").get<std::uint64_t>();
  }
  std::map<std::string, std::uint64_t> seen;
  for (nlohmann::json& row : found) {
    const std::string section = row.at("section").get<std::string>();
    if (!wanted.contains(section)) continue;
    ++seen[section];
    document_["rows"].push_back(std::move(row));
  }
  for (const auto& [section, rows] : wanted) {
    if (seen[section] == rows) continue;
    refuse_damage(path_, fmt::format("section {} has {} rows, and its runs made {}", section,
                                     seen[section], rows));
  }
}

bool CompareResults::has(const PlannedCell& cell, unsigned repetition) const {
  return document_.at("runs").contains(key_of(cell.name(), repetition));
}

void CompareResults::add(const PlannedCell& cell, unsigned repetition, nlohmann::json run) {
  run.erase("commit");  // said once for all
  run["section"] = cell.section;
  document_["runs"][key_of(cell.name(), repetition)] = std::move(run);
  if (is_complete(cell)) add_row(cell);
  write();
}

bool CompareResults::is_complete(const PlannedCell& cell) const {
  bool complete = true;
  for (unsigned r = 0; r < repeat_; ++r) complete = complete && has(cell, r);
  return complete;
}

bool CompareResults::has_all(const ComparePlan& plan) const {
  return std::ranges::all_of(plan.cells, [&](const auto& cell) { return is_complete(cell); }) &&
         std::ranges::all_of(plan.programs, [&](const auto& program) { return has(program); });
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
    row["section"] = program.section;
    document_["rows"].push_back(row);
  }
  document_["runs"][program.name()] = {{"rows", rows.size()}};
  write();
}

void CompareResults::fail(const std::string& name, const std::string& reason) {
  document_["skipped"].push_back(fmt::format("{}: {}", name, reason));
  write();
}

void CompareResults::finish() {
  if (!document_.at("finished").is_null()) return;
  document_["finished"] = now();
  write();
}

void CompareResults::write() {
  pool::Descriptor fresh;
  replace_file(path_, text_of(document_), [&](int descriptor) {
    // The lock is of both. Nobody else knows the file yet.
    fresh = pool::Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (fresh.get() < 0 || ::flock(fresh.get(), LOCK_EX | LOCK_NB) != 0) {
      throw std::runtime_error(fmt::format("{}: flock: {}", path_.string(), std::strerror(errno)));
    }
  });
  file_ = std::move(fresh);
}

}  // namespace sp3::tools
