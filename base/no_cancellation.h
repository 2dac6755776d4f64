// NoCancellation: while one lives its thread is not cancelled (pthread_cancel), but afterwards.
//
// Cancellation unwinds the stack, which in what is noexcept ends the process, and elsewhere leaves
// half done what is to be done whole. So one stands around whatever the library calls that is a
// cancellation point: system calls that may block, waits at condition variables, joins. It costs
// two atomic instructions; transactions that make no such call are without.
#pragma once

#ifndef SP3_SIMULATED
#include <pthread.h>
#endif

namespace sp3::base {

#ifdef SP3_SIMULATED

class [[maybe_unused]] NoCancellation {};  // nobody cancels simulated cores

#else

class [[nodiscard]] NoCancellation {
 public:
  NoCancellation() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { ::pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

#endif

}  // namespace sp3::base
