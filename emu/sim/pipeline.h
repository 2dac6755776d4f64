// Pipeline: what a core does not wait for, and until when it must.
//
//   checks   A read looks at an entry only to see that it may go on. The branch is foreseen, so what
//            comes next begins meanwhile, and the core goes on from there when both have come.
//   stores   go to a buffer. They are all in the cache before a locked instruction or a fence is done.
//
// Both are simplified: a core runs ahead of a check as far as the next load whose value it needs, and
// its store buffer is never full. Times are picoseconds of the core's clock. Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sp3::emu::sim {

class Pipeline {
 public:
  void check_done_at(std::uint64_t at) noexcept {
    pointer_at_ = at;
    checks_done_ = std::max(checks_done_, at);
  }
  // A prefetch of what holds a pointer: nobody waits for it but who follows the pointer.
  void pointer_known_at(std::uint64_t at) noexcept { pointer_at_ = at; }
  void store_done_at(std::uint64_t at) noexcept { stores_done_ = std::max(stores_done_, at); }

  // When what was last checked or asked for says where to go on.
  [[nodiscard]] std::uint64_t pointer_at() const noexcept { return pointer_at_; }
  [[nodiscard]] std::uint64_t checks_done() const noexcept { return checks_done_; }
  // When a locked instruction or a fence finds nothing under way.
  [[nodiscard]] std::uint64_t all_done() const noexcept {
    return std::max(checks_done_, stores_done_);
  }

 private:
  std::uint64_t pointer_at_ = 0;
  std::uint64_t checks_done_ = 0;
  std::uint64_t stores_done_ = 0;
};

}  // namespace sp3::emu::sim
