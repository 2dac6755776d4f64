// Page faults of the calling thread.
#pragma once

#include <sys/resource.h>

namespace sp3::test {

// So far, of both kinds.
inline long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace sp3::test
