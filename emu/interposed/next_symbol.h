// The function that an interposed one stands in front of.
#pragma once

#include <dlfcn.h>

namespace sp3::emu {

// F is the function's type. Ends the program if there is none: it could not go on without.
template <class F>
F* next_symbol(const char* name) noexcept {
  void* const symbol = ::dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) __builtin_trap();
  return reinterpret_cast<F*>(symbol);
}

}  // namespace sp3::emu
