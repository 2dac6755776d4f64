// ScopeExit: does something when a block is left, by whatever way.
//
//   const ScopeExit leave([&] { lock.leave(); });
#pragma once

#include <utility>

namespace sp3::base {

template <class Action>
class [[nodiscard]] ScopeExit {
 public:
  explicit ScopeExit(Action action) : action_(std::move(action)) {}
  ~ScopeExit() { action_(); }  // the action does not throw
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;

 private:
  Action action_;
};

}  // namespace sp3::base
