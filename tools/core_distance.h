// How far apart the cores are that the threads of a run have: what a cache line takes from one to
// another.
//
// A virtual machine's cores are the host's threads, which it moves: two of them may share a cache
// now and not in ten seconds, and a line takes eight times as long then (docs/adr/0038). So runs of
// several threads tell the distance, can be asked for at one, and compare only if they had the
// same. It is that of the two cores that two threads are given: of many cores, some two.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

namespace sp3::tools {

// As of now, in nanoseconds; takes some milliseconds. None where there is no second core or thread.
std::optional<double> core_distance_ns();

// No two cores are farther apart. What is more was measured where two threads had not a core each:
// in the fastest burst, too, one of them waited for a time slice, a millisecond at least, which in
// its hundred ways makes ten microseconds of each.
inline constexpr double kFarthestNs = 10'000;

// The distances that runs are wanted at, in nanoseconds.
struct DistanceLimits {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool exclude_any() const noexcept {
    return least > 0 || most < std::numeric_limits<double>::infinity();
  }
  // Who wants cores that are far apart does not mean threads that had one between them.
  [[nodiscard]] bool allow(double ns) const noexcept {
    return least <= ns && ns <= most && (least <= 0 || ns <= kFarthestNs);
  }
};

// What measures it: core_distance_ns(), but for tests.
using DistanceMeter = std::function<std::optional<double>()>;

// The distance once it is within the limits. Throws std::runtime_error if it is not for so long, or
// is wanted and cannot be measured.
std::optional<double> wait_for_distance(
    const DistanceLimits& limits, const DistanceMeter& measure = core_distance_ns,
    std::chrono::steady_clock::duration patience = std::chrono::minutes(1));
// What to throw if it changed in each of so many runs.
[[noreturn]] void throw_cores_move(const DistanceLimits& limits, unsigned runs);

// Calls run() at such a distance, again if it was another afterwards. Of several threads the result
// tells the greater of the two distances; none, where neither was one.
template <class Run>
auto run_at_distance(const DistanceLimits& limits, unsigned threads, const Run& run,
                     const DistanceMeter& measure = core_distance_ns) {
  constexpr unsigned kMostRuns = 20;
  const auto told = [](const std::optional<double>& ns) {
    return ns && *ns <= kFarthestNs ? *ns : 0;
  };
  if (threads < 2) return run();
  for (unsigned runs = 1;; ++runs) {
    const std::optional<double> before = wait_for_distance(limits, measure);
    auto result = run();
    const std::optional<double> after = measure();
    result.line_transfer_ns = std::max(told(before), told(after));
    if (!after || limits.allow(*after)) return result;
    if (runs == kMostRuns) throw_cores_move(limits, runs);
  }
}

}  // namespace sp3::tools
