// The file of a comparison (docs/RESULTS.md): all that was asked, where it ran, and every run so
// far. It is replaced whole after each run, so a comparison that ends early goes on where it was.
// Who writes it has it locked (flock): the file that is there now, and the next one before it takes
// the name.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "pool/file_system.h"
#include "tools/compare/plan.h"

namespace sp3::tools {

class CompareResults {
 public:
  static constexpr const char* kFormat = "sp3-compare";
  static constexpr int kVersion = 1;

  // Takes up what the file holds, if there is one, and writes it, so that what stands in the way of
  // writing is known before anything is run. Throws UsageError that names what is wrong if it is no
  // such file or a damaged one, and the difference if it comes from another machine, commit or
  // plan: those are never mixed; std::runtime_error if another process writes it, or it cannot be
  // written.
  CompareResults(std::filesystem::path path, const ComparePlan& plan, const nlohmann::json& machine,
                 const std::string& commit);

  [[nodiscard]] bool has(const PlannedCell& cell, unsigned repetition) const;
  // Adds a run and writes the file.
  void add(const PlannedCell& cell, unsigned repetition, nlohmann::json run);
  [[nodiscard]] bool has(const PlannedProgram& program) const;
  // Adds the rows that a program made and writes the file.
  void add(const PlannedProgram& program, nlohmann::json rows);
  // Adds to what is skipped why a cell or a program failed, and writes the file. Whoever goes on
  // tries it again.
  void fail(const std::string& name, const std::string& reason);
  // All runs are there: writes the file with the time of the end, unless it is there already.
  void finish();

  // One row for each cell of which all runs are there, and the rows of programs, in the order in
  // which they were run.
  [[nodiscard]] const nlohmann::json& rows() const { return document_.at("rows"); }
  // Sentences: what the plan left out, and what failed.
  [[nodiscard]] const nlohmann::json& skipped() const { return document_.at("skipped"); }
  // Of all runs.
  [[nodiscard]] std::string commit() const { return document_.at("commit"); }

 private:
  void refuse_others(const nlohmann::json& found) const;
  void make_rows(const ComparePlan& plan);
  [[nodiscard]] bool is_complete(const PlannedCell& cell) const;
  [[nodiscard]] bool has_all(const ComparePlan& plan) const;
  void add_row(const PlannedCell& cell);
  void open_and_lock();
  void write();

  std::filesystem::path path_;
  pool::Descriptor file_;  // locked
  unsigned repeat_;
  nlohmann::json document_;
};

}  // namespace sp3::tools
