// Trials: kinds of campaigns in which mutants are looked for, each a way of choosing cases and
// crashes that some mutants need. With its seed a trial is one run, the same whenever it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/crasher.h"

namespace sp3::test {

enum class Kind : std::uint8_t {
  any,         // power loss in a case as the seed has it
  ordered,     // mapped memory, clflush: flushes need no fence, their absence shows
  streams,     // mapped memory, streaming stores, asynchronous commits
  files,       // file memory
  nested,      // crashes in recovery
  continued,   // crash, recover, run on, crash
  contended,   // three cores on boxes and blind writes, checkpoints, few images
  recycled,    // long programs with checkpoints in a small log, few images
  explored,    // long programs without crashes
  mixed,       // long programs on boxes, blind writes and checkpoints without crashes
  containers,  // a container, long, without crashes
  failing,     // a flush, fence, write or sync fails
  blind,       // three cores, blind writes, asynchronous commits, few images
  boxes,       // three cores on boxes, asynchronous commits, few images
  churned,     // objects are replaced all the time, sessions reopened, checkpoints, few images
  skewed,      // mixed, with clocks that are apart
  drifting,    // contended, with clocks that are apart
  late,        // sessions opened one after the other, checkpoints, clocks apart
  crowded,     // streaming stores by priority, so that owners are overtaken, few images
  blocks,      // file memory, three cores, asynchronous commits
  helped,      // mapped memory, commits of both kinds, groups of one, few images
  grouped,     // file memory, replacements in groups, many images
  kept,        // long programs on boxes, by pointers kept from before, without crashes
  dawdling,    // long bodies while checkpoints run, without crashes
  ranged,      // three cores on a ranged object, checkpoints, few images
  bulky,       // runs of several segments in a small log, asynchronous commits, few images
  rotten,      // the media has lost something of one copy of the metadata, crashes in recovery
  carried,     // long programs, checkpoints whose objects two threads carry, few images
  visited,     // mixed, with two cores whose sessions come and go, some with clocks that are apart
};
inline constexpr std::uint32_t kTrialKinds = 29;
std::string_view to_string(Kind kind) noexcept;

struct Trial {
  Kind kind = Kind::any;
  std::uint64_t seed = 1;

  friend bool operator==(const Trial&, const Trial&) = default;
};

// What the trial violates, if anything.
std::optional<sim::Violation> run(const Trial& trial);

}  // namespace sp3::test
