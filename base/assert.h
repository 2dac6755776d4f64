// Assertions on the library's own invariants. Never for bytes read from a pool: those are checked
// and reported as Error.
//
// SP3_ASSERT states an invariant; it is compiled in where SP3_ASSERTIONS is defined (the debug and
// sanitizer presets). SP3_CHECK is always compiled in: for cold paths where going on would lose
// data.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sp3::base {
[[noreturn]] inline void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "sp3: invariant violated: %s (%s:%d)\n", what, file, line);
  std::abort();
}
}  // namespace sp3::base

#define SP3_CHECK(condition) \
  ((condition) ? (void)0 : ::sp3::base::assertion_failed(#condition, __FILE__, __LINE__))

#ifdef SP3_ASSERTIONS
#define SP3_ASSERT(condition) SP3_CHECK(condition)
#else
#define SP3_ASSERT(condition) ((void)0)
#endif
