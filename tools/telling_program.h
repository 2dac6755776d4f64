// Starts programs that tell what they do through a pipe. Not for sp3-sim: there the pool's
// descriptors are those of the simulated machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "pool/file_system.h"
#include "tools/start_program.h"

namespace sp3::tools {

// A program that was started, and the reading end of a pipe that it writes to.
struct TellingProgram {
  pid_t pid = -1;
  pool::Descriptor pipe;
};

// As start_program(), and what the program writes to its descriptor `theirs` can be read here.
TellingProgram start_telling(const std::string& program, const std::vector<std::string>& arguments,
                             int theirs, std::vector<std::pair<int, int>> descriptors = {},
                             ProcessGroup group = ProcessGroup::ours);

// /dev/null, to be handed to a program.
pool::Descriptor open_null_device();

}  // namespace sp3::tools
