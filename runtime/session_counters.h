// SessionCounters: a session's statistics as it counts them, readable by any thread.
#pragma once

#include <array>

#include <sp3/statistics.h>

#include "base/align.h"
#include "base/counter.h"

namespace sp3::runtime {

struct alignas(base::kCacheLine) SessionCounters {
  base::Counter commits;
  base::Counter writing_commits;
  base::Counter aborts;
  base::Counter aborts_locked;
  base::Counter aborts_validation;
  base::Counter aborts_log_full;
  base::Counter aborts_pool_full;
  base::Counter serial_transactions;
  base::Counter log_bytes;
  base::Counter lines;
  base::Counter fences;
  base::Counter helped_lines;
  base::Counter helped_fences;
  base::Counter waits;

  [[nodiscard]] SessionStatistics read() const noexcept;
};

// Each number of the statistics, and the counter it is read from.
struct Counted {
  std::uint64_t SessionStatistics::*number;
  base::Counter SessionCounters::*counter;
};
inline constexpr std::array kCounted{
    Counted{&SessionStatistics::commits, &SessionCounters::commits},
    Counted{&SessionStatistics::writing_commits, &SessionCounters::writing_commits},
    Counted{&SessionStatistics::aborts, &SessionCounters::aborts},
    Counted{&SessionStatistics::aborts_locked, &SessionCounters::aborts_locked},
    Counted{&SessionStatistics::aborts_validation, &SessionCounters::aborts_validation},
    Counted{&SessionStatistics::aborts_log_full, &SessionCounters::aborts_log_full},
    Counted{&SessionStatistics::aborts_pool_full, &SessionCounters::aborts_pool_full},
    Counted{&SessionStatistics::serial_transactions, &SessionCounters::serial_transactions},
    Counted{&SessionStatistics::log_bytes, &SessionCounters::log_bytes},
    Counted{&SessionStatistics::lines, &SessionCounters::lines},
    Counted{&SessionStatistics::fences, &SessionCounters::fences},
    Counted{&SessionStatistics::helped_lines, &SessionCounters::helped_lines},
    Counted{&SessionStatistics::helped_fences, &SessionCounters::helped_fences},
    Counted{&SessionStatistics::waits, &SessionCounters::waits},
};
static_assert(kCounted.size() * sizeof(std::uint64_t) == sizeof(SessionStatistics));

inline SessionStatistics SessionCounters::read() const noexcept {
  SessionStatistics now;
  for (const Counted& c : kCounted) now.*c.number = (this->*c.counter).get();
  return now;
}

inline SessionStatistics& operator+=(SessionStatistics& a, const SessionStatistics& b) noexcept {
  for (const Counted& c : kCounted) a.*c.number += b.*c.number;
  return a;
}

}  // namespace sp3::runtime
