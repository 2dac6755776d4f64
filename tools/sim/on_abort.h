// What is said when an assertion of the library ends the process, beside what the assertion says.
#pragma once

#include <cstdint>
#include <string>

namespace sp3::tools {

// While it lives: which seed it was.
class NameSeedOnAbort {
 public:
  explicit NameSeedOnAbort(std::uint64_t seed);
  ~NameSeedOnAbort();
  NameSeedOnAbort(const NameSeedOnAbort&) = delete;
  NameSeedOnAbort& operator=(const NameSeedOnAbort&) = delete;
};

// While it lives: `text` on standard output, as it is by then. REQUIRES: text outlives this.
class PrintOnAbort {
 public:
  explicit PrintOnAbort(const std::string& text);
  ~PrintOnAbort();
  PrintOnAbort(const PrintOnAbort&) = delete;
  PrintOnAbort& operator=(const PrintOnAbort&) = delete;
};

}  // namespace sp3::tools
