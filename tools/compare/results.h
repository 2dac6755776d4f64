// The file of a comparison (docs/RESULTS.md): all that was asked, where it ran, and every run so far.
// It is replaced whole after each run, so a comparison that ends early goes on where it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/compare/plan.h"

namespace sp3::tools {

class CompareResults {
 public:
  static constexpr const char* kFormat = "sp3-compare";
  static constexpr int kVersion = 1;

  // Takes up what the file holds, if there is one. Throws UsageError that names the difference if it
  // is no such file, or comes from another machine, commit or plan: those are never mixed.
  CompareResults(std::filesystem::path path, const ComparePlan& plan, const nlohmann::json& machine,
                 const std::string& commit);

  [[nodiscard]] bool has(const PlannedCell& cell, unsigned repetition) const;
  // Adds a run and writes the file.
  void add(const PlannedCell& cell, unsigned repetition, nlohmann::json run);
  [[nodiscard]] bool has(const PlannedProgram& program) const;
  // Adds the rows that a program made and writes the file. Throws UsageError if they are of another
  // commit: a program beside this one may have been built at another time.
  void add(const PlannedProgram& program, nlohmann::json rows);
  // All runs are there: writes the file with the time of the end, unless it is there already.
  void finish();

  // One row for each cell of which all runs are there, and the rows of programs, in the order in which
  // they were run.
  [[nodiscard]] const nlohmann::json& rows() const { return document_.at("rows"); }

 private:
  void refuse_others(const nlohmann::json& found) const;
  void add_row(const PlannedCell& cell);
  void write() const;

  std::filesystem::path path_;
  unsigned repeat_;
  nlohmann::json document_;
};

}  // namespace sp3::tools
