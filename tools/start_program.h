// Starts another program, or this one again, or becomes one.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace sp3::tools {

// The program that is running, under a name that survives its being replaced on disk.
inline constexpr const char* kThisProgram = "/proc/self/exe";

// The one that `sp3 sim` hands over to.
inline constexpr const char* kSimulator = "sp3-sim";

// Where a program of this name is, if it was built or installed with the one that is running.
std::filesystem::path program_beside(const std::string& name);

// Whom a signal from the terminal reaches: the program too, or us alone. In a group of its own it
// can be signalled with all that it starts.
enum class ProcessGroup { ours, its_own };

// This process becomes `program`, which is looked for in PATH if it has no slash.
// Errors: std::runtime_error if it cannot; `wanted` says what would help.
[[noreturn]] void hand_over(const std::filesystem::path& program,
                            const std::vector<std::string>& arguments, const std::string& wanted);

// Starts `program`; `descriptors` are pairs of one of ours and what it is there. No signal is
// blocked there, and when this thread ends, however it does, the program is sent SIGTERM.
// Errors: std::system_error if it cannot be started.
pid_t start_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::vector<std::pair<int, int>>& descriptors,
                    ProcessGroup group = ProcessGroup::ours);

// Waits until a child has ended; its status as of waitpid(2).
int wait_for(pid_t child) noexcept;
// What such a status says: "ended with 3".
std::string how_it_ended(int status);

}  // namespace sp3::tools
