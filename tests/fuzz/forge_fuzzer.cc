// Coverage-guided forgeries: libFuzzer's bytes are choices, and what tells against a pool ends the
// process. `./dev fuzz` builds and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/forged_pool.h"
#include "tests/fuzz/recovered_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sp3::test::ForgedPools pools;
  static const sp3::test::RecoveredPools recovered;
  // The one or the other, since recovering a pool in every way takes ten times as long.
  const bool is_even = size % 2 == 0;
  const std::string fault =
      is_even ? pools.try_out({data, size}).fault : recovered.try_out({data, size}).fault;
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
