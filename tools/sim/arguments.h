// The command line of `sp3 sim`, and what each way of using it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench_rows.h"
#include "tools/sim/costs_file.h"

namespace sp3::tools {

struct SimArguments {
  // Timed runs.
  StoreArguments store;
  std::string workloads = "all";
  std::string systems = "sp3,nvm-tx";
  std::string cores = "1,2,4,8,16,24";
  workloads::WorkloadSpec spec;
  workloads::RunOptions run;
  unsigned repeat = 1;
  bool check = false;
  std::string costs_file;
  std::vector<std::string> factors;

  // Campaigns.
  bool explore = false;
  bool crash = false;
  bool rot = false;
  bool weak_memory = false;
  std::string seeds;         // empty: as many as it takes
  std::uint64_t images = 0;  // 0: all seeds
  double seconds = 0;        // 0: all seeds
  std::string mutant;        // by name; empty: none
  std::string weaken;        // FILE:LINE=ORDER; empty: nothing
  bool orders = false;

  std::optional<std::uint64_t> replay;
  bool trace = false;
  std::string history;
  std::uint32_t case_cores = 0;         // 0: as the seed says
  std::uint32_t case_transactions = 0;  // of each core

  std::string calibrate;  // a file of measurements
  bool validate = false;
  bool sensitivity = false;

  std::string json;
};

// Each returns an exit code, and throws UsageError or std::runtime_error.
int run_timed_command(const SimArguments& arguments);
int run_campaign(const SimArguments& arguments);
int run_replay(const SimArguments& arguments);
int run_calibration(const SimArguments& arguments);
int run_validation(const SimArguments& arguments);
int run_sensitivity(const SimArguments& arguments);

}  // namespace sp3::tools
