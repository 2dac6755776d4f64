#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include "sim/crasher.h"
int main(int argc, char** argv) {
  using namespace sp3::sim;
  const std::uint64_t from = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::uint64_t to = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : from;
  CrashOptions o;
  if (argc > 3) o.most_enumerated = static_cast<std::uint32_t>(std::atoi(argv[3]));
  if (argc > 4) o.samples = static_cast<std::uint32_t>(std::atoi(argv[4]));
  Bench bench(o);
  const auto start = std::chrono::steady_clock::now();
  int failed = 0;
  for (std::uint64_t s = from; s <= to; ++s) {
    if (std::getenv("SHOW") != nullptr) { fmt::print("{}\n", case_of(s).describe()); std::fflush(stdout); }
    if (!bench.run(case_of(s))) {
      fmt::print("seed {}: {}\n  {}\n", s, bench.violation()->what, bench.violation()->where);
      if (++failed == 1) break;
    }
  }
  const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto& c = bench.counts();
  fmt::print("{} runs {} points {} images {} checks {} nested {} killed {} continued; {:.1f} s, {:.0f} checks/s\n", c.runs, c.points, c.images, c.checks, c.nested, c.killed, c.continued, t, static_cast<double>(c.checks)/t);
  return failed;
}
