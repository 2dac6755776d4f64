// RecoveredPools: recovers forged pools in every way there is, as they are and with accept_loss, and
// holds what comes out against what docs/RECOVERY.md promises: each way refuses alike or yields the
// same objects; who is refused finds the file as it was; with accept_loss nothing else comes of a
// whole pool, and of another what is lost is told, before and afterwards; what has been opened is
// sound once it is closed, opens again without accept_loss, also after a kill, and holds the same.
// Both the test and the fuzzer do, with bytes of their own.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/forger.h"
#include "tests/support/pools.h"

namespace sp3::test {

class RecoveredPools {
 public:
  RecoveredPools();

  struct Result {
    bool opened = false;    // as it was
    bool salvaged = false;  // only with accept_loss
    bool replayed = false;  // something of a log was
    std::string fault;      // what must not be; empty if nothing
  };
  // The pool that `bytes` stand for, whatever they are.
  [[nodiscard]] Result try_out(std::span<const std::uint8_t> bytes) const;
  // The pool with these bytes.
  [[nodiscard]] Result recover(const std::vector<char>& image) const;
  [[nodiscard]] const std::vector<char>& image(std::size_t source) const;
  [[nodiscard]] std::size_t sources() const { return sources_.size(); }

 private:
  // What one way to open a pool comes to.
  struct Outcome;
  // What the slabs hold, as far as it can be read.
  struct Contents;

  [[nodiscard]] Outcome open(const std::vector<char>& image, RecoveryStrategy strategy,
                             std::uint32_t threads, bool accept_loss) const;
  [[nodiscard]] Outcome open_all_ways(const std::vector<char>& image, bool accept_loss,
                                      std::string& fault) const;
  [[nodiscard]] std::string fault_of(const Outcome& outcome) const;

  std::vector<Forger> sources_;
  TempPath path_;
};

}  // namespace sp3::test
