#include "workloads/process_usage.h"

#include <cstddef>
#include <cstring>
#include <memory>

#include <catch2/catch.hpp>

namespace sp3::workloads {
namespace {

TEST_CASE("The peak of memory outlives what caused it, and what was there before does not count") {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto filled = [] {
    std::unique_ptr<std::byte[]> memory(new std::byte[kBytes]);
    std::memset(memory.get(), 1, kBytes);
    return memory;
  };
  const auto before = filled();
  MemoryPeak peak;
  CHECK(peak.bytes() < kBytes / 2);
  auto during = filled();
  const std::uint64_t held = peak.bytes();
  CHECK(held > kBytes / 2);
#ifndef __SANITIZE_THREAD__  // it keeps four bytes and more for each
  CHECK(held < 2 * kBytes);
#endif
  during.reset();
  CHECK(peak.bytes() >= held);
}

}  // namespace
}  // namespace sp3::workloads
