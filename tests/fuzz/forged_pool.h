// ForgedPools: opens forged pools, uses them, and closes them again. Both the test and the fuzzer
// do, with bytes of their own.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/forger.h"
#include "tests/fuzz/fuzzed_pool.h"

namespace sp3::test {

class ForgedPools {
 public:
  ForgedPools();

  struct Result {
    bool opened = false;
    std::string refusal;  // what was said by whatever threw
    std::string fault;    // what must not be; empty if nothing
  };
  // The pool that `bytes` stand for, whatever they are.
  [[nodiscard]] Result try_out(std::span<const std::uint8_t> bytes) const;

 private:
  struct Source {
    Source(FuzzedPool::State state, std::uint64_t seed);

    FuzzedPool pool;
    Forger forger;
  };
  std::vector<std::unique_ptr<Source>> sources_;
  TempPath path_;
};

}  // namespace sp3::test
