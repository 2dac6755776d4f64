// ContainerUser: how a container, or a ranged object, comes to be in a pool, and what choices do to
// it there.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <sp3/sp3.h>

#include "tests/fuzz/forger.h"

namespace sp3::test {

// Each makes a container of its own kind, of several levels, and binds it to the root "target".
struct ContainerUser {
  const char* name;
  // Step `step` of kBuildSteps; each is a transaction.
  void (*build)(Transaction& tx, std::uint64_t step);
  // Something that the container can do, a change or not; what there is not is made anew.
  // `may_disturb`: also what may end in an error where nothing is damaged.
  void (*use)(Transaction& tx, Choices& choices, bool may_disturb);
  // What check_invariants() says; nothing where there is no container.
  std::string (*violation)(Transaction& tx);
  // Where invariants hold: which of the container's answers do not go with each other. Null if that
  // is never so.
  std::string (*disagreement)(Transaction& tx);
};

inline constexpr std::uint64_t kBuildSteps = 6;

std::span<const ContainerUser> container_users();

}  // namespace sp3::test
