// What `sp3 compare` runs: sections, each of which answers one question, and their cells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/bench_rows.h"
#include "tools/core_distance.h"

namespace sp3::tools {

struct CompareArguments {
  bool full = false;
  std::string sections = "all";
  std::string workloads = "all";
  std::string systems = "all";  // of those that a section has
  std::string threads;          // empty: as the section says
  workloads::WorkloadSpec spec;
  std::optional<double> seconds;  // of a run; none: as the mode says
  std::uint64_t operations = 0;   // of a run, instead of a time
  unsigned repeat = 3;
  std::string distance;             // --core-distance
  std::filesystem::path directory;  // of pools in file memory; empty: the current one
  std::string results = "compare.json";
};

struct PlannedCell {
  std::string section;
  Cell cell;

  // Tells it from every other of the plan.
  [[nodiscard]] std::string name() const;
  // Systems of one group are run in turn.
  [[nodiscard]] std::string group() const;
};

// What another command measures: a part of a section, whose rows are taken over as they are.
struct PlannedProgram {
  std::string section;
  std::string part;
  workloads::WorkloadKind workload;    // that it runs
  std::vector<std::string> arguments;  // of sp3, without --json
  // Of the file that sp3 hands over to, which may be built anew meanwhile; empty if there is none.
  std::string checksum = {};

  [[nodiscard]] std::string name() const { return section + "/" + part; }
};

struct ComparePlan {
  std::vector<PlannedCell> cells;  // groups are contiguous
  std::vector<PlannedProgram> programs;
  std::vector<std::string> skipped;
  DistanceLimits distance;     // of the cells' runs
  nlohmann::json description;  // all that follows from the arguments and the build
  nlohmann::json sections;     // name and title of each that has cells
};

// Throws UsageError or std::invalid_argument for what cannot be run.
ComparePlan make_compare_plan(const CompareArguments& arguments);

}  // namespace sp3::tools
