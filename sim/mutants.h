// What each mutant (base/mutant.h) undoes, and which rule or step that breaks.
#pragma once

#include <span>
#include <string_view>

#include "base/mutant.h"

namespace sp3::sim {

struct MutantInfo {
  base::Mutant mutant;
  std::string_view name;
  std::string_view undone;
  std::string_view breaks;  // a flush or fence point (docs/RECOVERY.md), or a step of the protocol
};

// All of them, in the order of their numbers.
std::span<const MutantInfo> all_mutants() noexcept;
const MutantInfo& info_of(base::Mutant mutant) noexcept;

}  // namespace sp3::sim
