// Counters that explain a run: machine-independent where they can be.
//
// A session counts for itself without sharing a cache line; Pool::statistics() adds the sessions up
// (open and closed) and may be called from any thread at any time: each number is exact at some
// instant, their combination is not.
#pragma once

#include <cstdint>

#include <sp3/detail/export.h>

namespace sp3 {

struct SessionStatistics {
  std::uint64_t commits = 0;          // transactions that committed, read-only ones included
  std::uint64_t writing_commits = 0;  // those that changed something
  std::uint64_t aborts = 0;           // attempts that were thrown away and retried
  std::uint64_t aborts_locked = 0;    // ... met a lock held by another
  // ... something read had changed, or a session that had been the only one got company
  std::uint64_t aborts_validation = 0;
  std::uint64_t aborts_log_full = 0;      // ... waited for a checkpoint to free log space
  std::uint64_t aborts_pool_full = 0;     // ... waited for a checkpoint to free slabs
  std::uint64_t serial_transactions = 0;  // took the serial gate
  // bytes of sealed records, padded to lines, and of headers of the log's runs
  std::uint64_t log_bytes = 0;
  // cache lines (file: 64-byte units) flushed by commits of this session
  std::uint64_t lines = 0;
  // fences (file: writes through to the disk, or fdatasyncs, waited for) by commits of this session
  std::uint64_t fences = 0;
  std::uint64_t helped_lines = 0;   // lines flushed for other sessions
  std::uint64_t helped_fences = 0;  // fences for other sessions
  std::uint64_t waits = 0;  // times a writing commit had to wait for a predecessor in step 5
};

struct PoolStatistics {
  // All sessions added up, the library's own and the lines and fences of Ticket::wait (as helped)
  // among them. Of watermarks, which are no transactions, log_bytes; their lines and fences are
  // flusher_lines and flusher_fences.
  SessionStatistics sessions;
  // Attempts at transactions that stayed open longer than Options::long_transaction_ms: they hold
  // back checkpoints and memory. Counted once each, while they run.
  std::uint64_t long_transactions = 0;
  std::uint16_t long_transaction_session = 0;  // whose the latest was
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoint_objects = 0;
  std::uint64_t checkpoint_bytes = 0;
  std::uint64_t checkpoint_lines = 0;
  std::uint64_t checkpoint_fences = 0;
  std::uint64_t checkpoint_longest_ns = 0;  // the longest checkpoint from start to end
  std::uint64_t flusher_lines = 0;          // by the background flusher
  std::uint64_t flusher_fences = 0;
  std::uint64_t log_bytes_used = 0;  // in segments that cannot be recycled yet
  std::uint64_t log_bytes_total = 0;
  // Those that belong to a type, empty ones included: until the next checkpoint, and longer where
  // open sessions keep slots of them for their next objects. They give these back before pool_full.
  std::uint64_t slabs_used = 0;
  std::uint64_t slabs_total = 0;
  // DRAM held for versions that are not home yet, or free for the next ones. What versions of up to
  // 4 KiB have taken serves later ones of their size (in steps of 64 bytes) until the pool is
  // closed: it grows to the sum of what each size needed at its peak.
  std::uint64_t version_bytes = 0;
  std::uint64_t index_bytes = 0;  // DRAM held by index entries
};

}  // namespace sp3
