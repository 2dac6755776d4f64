// As forge_fuzzer.cc, of pools whose containers are forged. `./dev fuzz containers` builds and runs
// it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/forged_containers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sp3::test::ForgedContainers containers;
  const auto result = containers.try_out({data, size});
  if (result.fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", result.fault.c_str());
  std::abort();
}
