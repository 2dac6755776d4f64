// Prints the trace hashes of some runs: explored, timed, and with crashes.
#include <cstdint>

#include <fmt/format.h>

#include "sim/crasher.h"

int main() {
  using sp3::sim::case_of;
  using sp3::sim::CrashLab;
  bool good = true;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CrashLab lab({});
    good = lab.explore(case_of(seed)) && good;
    fmt::print("{} {:016x}\n", seed, lab.trace_hash());
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sp3::sim::Case c = case_of(seed);
    c.schedule = sp3::emu::sim::Schedule::timed;
    c.transactions = 25;
    CrashLab lab({});
    good = lab.explore(c) && good;
    fmt::print("{} timed {:016x}\n", seed, lab.trace_hash());
  }
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    sp3::sim::CrashOptions options;
    options.most_enumerated = 8;
    options.samples = 4;
    CrashLab lab(options);
    good = lab.run(case_of(seed)) && good;
    fmt::print("{} with crashes {:016x} {} images\n", seed, lab.trace_hash(), lab.counts().images);
  }
  return good ? 0 : 1;
}
