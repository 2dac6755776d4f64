// What `sp3 bench` and `sp3 sim` have in common: the cells of their tables and the rows they
// become.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/bench_options.h"
#include "tools/cli_fwd.h"
#include "tools/failures.h"
#include "workloads/runner.h"
#include "workloads/system.h"
#include "workloads/workload.h"

namespace sp3::tools {

// One line of the table: a system on a workload with some threads.
struct Cell {
  std::string system;
  workloads::WorkloadSpec spec;
  workloads::RunOptions run;
  workloads::SystemOptions options;
  std::vector<workloads::RunResult> results;  // sorted by throughput when all are there
  std::exception_ptr failure = nullptr;       // then there are none
};

struct Plan {
  std::vector<Cell> cells;
  std::vector<std::string> skipped;  // why some combinations are not there
  Failures failed;                   // and what happened to others
};

// --workload of a command that knows every one of them; parse_workloads() reads it.
void add_workload_option(CLI::App& command, std::string& workloads);
void add_spec_options(CLI::App& command, workloads::WorkloadSpec& spec);
// Those that only workloads look at which run by name.
void add_named_spec_options(CLI::App& command, workloads::WorkloadSpec& spec);
// What both read back, of what means something to the spec's workload.
std::vector<std::string> spec_arguments(const workloads::WorkloadSpec& spec);
// The same as members of a result row; ranges and warehouses where the workload has them.
nlohmann::json to_json(const workloads::WorkloadSpec& spec);
// For headings: "1000 entries of 128 bytes, zipf 0.99, 50 % inserts".
std::string describe_size(const workloads::WorkloadSpec& spec);
std::string system_names();

// A list of names, of which "all" stands for those of Table I. Throws UsageError or
// std::invalid_argument.
std::vector<workloads::WorkloadKind> parse_workloads(const std::string& text);

// Adds the cell, or why it cannot be.
void add_cell(Plan& plan, Cell cell);
// Throws UsageError if there is nothing to run.
void require_cells(const Plan& plan);

// Takes the cells that failed out of the plan, to be told of. Rethrows if no other is there.
void set_failures_aside(Plan& plan);

// The mean latency of all but the slowest hundredth: what a transaction takes while it has its
// core.
double undisturbed_mean_ns(const workloads::RunResult& result);

// The members of one run.
nlohmann::json run_json(const Cell& cell, const workloads::RunResult& result,
                        const FlushCost& flush);
// The row that a cell's runs make: the run of median throughput, with all throughputs, how far they
// lie apart relative to the median, and the first seed. REQUIRES: there is one.
nlohmann::json row_of_runs(std::vector<nlohmann::json> runs);
nlohmann::json row_json(const Cell& cell, const FlushCost& flush, const nlohmann::json& machine);
// One line for each row, and whether their cores were where they had been.
void print_rows(std::FILE* out, const nlohmann::json& rows);
// With a heading that tells the settings, and why what is missing is missing.
void print_table(std::FILE* out, const Plan& plan, const FlushCost& flush);

}  // namespace sp3::tools
