// Coverage-guided forgeries: libFuzzer's bytes are choices, and what tells against a pool ends the
// process. `./dev fuzz` builds and runs it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/forged_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sp3::test::ForgedPools pools;
  const auto result = pools.try_out({data, size});
  if (result.fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", result.fault.c_str());
  std::abort();
}
