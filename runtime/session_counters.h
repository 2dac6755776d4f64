// SessionCounters: a session's statistics as it counts them, readable by any thread.
#pragma once

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

  [[nodiscard]] SessionStatistics read() const noexcept {
    SessionStatistics s;
    s.commits = commits.get();
    s.writing_commits = writing_commits.get();
    s.aborts = aborts.get();
    s.aborts_locked = aborts_locked.get();
    s.aborts_validation = aborts_validation.get();
    s.aborts_log_full = aborts_log_full.get();
    s.aborts_pool_full = aborts_pool_full.get();
    s.serial_transactions = serial_transactions.get();
    s.log_bytes = log_bytes.get();
    s.lines = lines.get();
    s.fences = fences.get();
    s.helped_lines = helped_lines.get();
    s.helped_fences = helped_fences.get();
    s.waits = waits.get();
    return s;
  }
};

inline SessionStatistics& operator+=(SessionStatistics& a, const SessionStatistics& b) noexcept {
  a.commits += b.commits;
  a.writing_commits += b.writing_commits;
  a.aborts += b.aborts;
  a.aborts_locked += b.aborts_locked;
  a.aborts_validation += b.aborts_validation;
  a.aborts_log_full += b.aborts_log_full;
  a.aborts_pool_full += b.aborts_pool_full;
  a.serial_transactions += b.serial_transactions;
  a.log_bytes += b.log_bytes;
  a.lines += b.lines;
  a.fences += b.fences;
  a.helped_lines += b.helped_lines;
  a.helped_fences += b.helped_fences;
  a.waits += b.waits;
  return a;
}

}  // namespace sp3::runtime
