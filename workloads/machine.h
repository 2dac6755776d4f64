// What a result needs to say about where it was measured.
#pragma once

#include <string>
#include <vector>

namespace sp3::workloads {

struct Machine {
  std::string cpu;                 // model name
  unsigned cores = 0;              // that this process may use
  std::vector<std::string> flags;  // the CPU flags that matter to persistence and clocks
  std::string kernel;              // release
  std::string compiler;
};

Machine describe_machine();

// The commit this was built from as git describes it, or "unknown"; cmake/Commit.cmake defines it.
const char* built_from() noexcept;

}  // namespace sp3::workloads
