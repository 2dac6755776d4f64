// ForgedContainers: opens pools whose containers were forged, and uses them. Both the test and the
// fuzzer do, with bytes of their own.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/container_users.h"
#include "tests/fuzz/forger.h"
#include "tests/support/temp_path.h"

namespace sp3::test {

class ForgedContainers {
 public:
  ForgedContainers();
  ~ForgedContainers();

  struct Result {
    std::uint64_t returned = 0;
    std::uint64_t refused = 0;  // transactions that ended by an error
    bool is_sound = false;      // as far as invariants go
    std::string fault;          // what must not be; empty if nothing
  };
  // The pool that `bytes` stand for, and what they do there.
  [[nodiscard]] Result try_out(std::span<const std::uint8_t> bytes) const;

 private:
  struct Opened;
  struct Source {
    const ContainerUser* user;
    Forger closed;
    Forger killed;                   // checkpointed, then changed, then killed
    std::unique_ptr<Opened> opened;  // `closed`, opened once, to be forged and healed
  };
  void reopen(const Source& source, Choices& choices, Result& result) const;
  static void change_opened(const Source& source, Choices& choices, Result& result);
  static void use(Session& session, const ContainerUser& user, bool may_commit, Choices& choices,
                  Result& result);

  std::vector<Source> sources_;
  TempPath path_;
};

}  // namespace sp3::test
