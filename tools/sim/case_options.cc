#include "tools/sim/case_options.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "sim/mutants.h"
#include "tools/command.h"

namespace sp3::tools {

SeedRange parse_seeds(const std::string& text) {
  SeedRange range;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  if (error == std::errc() && at != end && *at == '-') {
    range.last = std::numeric_limits<std::uint64_t>::max();
    if (++at != end) {
      const auto last = std::from_chars(at, end, range.last);
      at = last.ptr;
      error = last.ec;
    }
  }
  if (error != std::errc() || at != end || range.last < range.first) {
    throw UsageError(fmt::format("--seeds: wanted FIRST-LAST, FIRST- or one, found '{}'", text));
  }
  return range;
}

void switch_on_mutant(const std::string& name) {
  if (name.empty()) return;
  std::string names;
  for (const sim::MutantInfo& info : sim::all_mutants()) {
    if (name == info.name) return base::switch_on(info.mutant);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  throw UsageError(fmt::format("--mutant: wanted one of {}, found '{}'", names, name));
}

sim::Case case_for(std::uint64_t seed, const SimArguments& a) {
  constexpr std::uint32_t kMostSessions = 3;  // of the pools of these cases
  if (a.case_cores > kMostSessions) {
    throw UsageError(fmt::format("--case-cores: wanted 1 to 3, found {}", a.case_cores));
  }
  constexpr std::uint32_t kMostTransactions = 10'000;
  if (a.case_transactions > kMostTransactions) {
    throw UsageError(fmt::format("--case-transactions: wanted 1 to {}, found {}", kMostTransactions,
                                 a.case_transactions));
  }
  sim::Case c = sim::case_of(seed);
  if (a.case_cores != 0) c.cores = static_cast<int>(a.case_cores);
  if (a.case_transactions != 0) c.transactions = static_cast<int>(a.case_transactions);
  c.weak_memory = a.weak_memory;
  return c;
}

}  // namespace sp3::tools
