// Pool: a file of persistent objects.
//
// Thread safety: create, open, close, moves and the destructor by one thread; all else by any, also
//   while another closes the pool, which then is pool_closed. Nobody else may use a Pool that is
//   moved from or destroyed meanwhile.
// Ownership: a Pool owns the file's lock, its mapping and its background threads; sessions hold on
//   to it until they are closed.
// Invariants:
//   1. One Pool at a time, in one process, has a file open.
//   2. Whatever the moment of a crash, the next open() finds every acknowledged transaction, every
//      other one whole or not at all, and no transaction without its predecessors.
//   3. Opening a pool that was closed costs no work per object.
// Durable on return: create (the empty pool), close (everything), checkpoint (everything committed
//   before it, in its home).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <shared_mutex>

#include <sp3/detail/core.h>
#include <sp3/detail/export.h>
#include <sp3/options.h>
#include <sp3/report.h>
#include <sp3/session.h>
#include <sp3/statistics.h>

namespace sp3 {

class SP3_API Pool {
 public:
  // Makes a new pool file of `size` bytes, mode 0600, all its space reserved on disk, and opens it.
  // Errors: already_exists, is_a_directory, not_found (the directory), permission_denied, no_space,
  // invalid_argument (path, sizes, options), unsupported, io_error, outcome_unknown;
  // std::bad_alloc. Nothing is left behind on error.
  static Pool create(const std::filesystem::path& path, std::uint64_t size,
                     const Options& options = {});

  // Opens a pool, recovering first if it was not closed.
  // Errors: not_found, is_a_directory, permission_denied, pool_in_use, not_a_pool, wrong_version,
  // wrong_size, wrong_uuid, damaged_superblock, damaged_metadata, damaged_log, unsupported,
  // invalid_argument (path, options), no_space (for the holes of a sparse copy, for blocks that
  // a copy shares, or by the process's limit on files), io_error, outcome_unknown (while its first
  // transaction is made durable); std::bad_alloc.
  static Pool open(const std::filesystem::path& path, const Options& options = {});

  // Describes a pool that nobody has open, without recovering it or changing a byte. Of one that is
  // open: info(). Errors: as open.
  static PoolInfo inspect(const std::filesystem::path& path);

  // Reads everything that can be verified, without changing a byte. Damage is reported, not thrown;
  // errors as open for what cannot be read at all. What power that failed during a write explains
  // is no damage: one of the two superblock copies may be half written.
  static CheckReport check(const std::filesystem::path& path);

  Pool(Pool&&) noexcept;
  Pool& operator=(Pool&&) noexcept;
  // Closes the pool if it is open; errors are lost here, so call close(). With sessions open it
  // stays in use until they are closed, and is not marked clean: the next open recovers.
  ~Pool();

  // A new session. While a pool has exactly one its transactions are faster by a tenth or more, so
  // close what is not needed. If the only one is in a transaction when a second one is opened, that
  // transaction is run once more; a commit under way is waited for here until it has taken its
  // locks. Errors: too_many_sessions, pool_closed, forked, outcome_unknown.
  Session session();

  // Brings everything committed so far home, so that it need not be replayed. Does not stop
  // transactions, but waits for each body that then runs, however long, and for ever for one that
  // waits for it. Errors: pool_closed, forked, nested_transaction (inside a body); std::bad_alloc,
  // after which the next checkpoint goes on; and final until the pool is reopened, outcome_unknown
  // and damaged_log (what was written of the log is not there any more). Whoever comes later hears
  // outcome_unknown, with what failed first.
  void checkpoint();

  // Commits everything, checkpoints, marks the pool clean and releases the file.
  // Errors: sessions_open, forked (nothing is done), outcome_unknown, damaged_log or std::bad_alloc
  // (the next open recovers). Closing twice is harmless.
  void close();

  [[nodiscard]] bool is_open() const noexcept {
    return !is_closed_.load(std::memory_order_acquire);
  }
  // Errors of both: pool_closed, forked.
  [[nodiscard]] PoolInfo info() const;
  [[nodiscard]] PoolStatistics statistics() const;
  // What open() had to do, for as long as the pool is open. All zero and clean after create().
  // Errors: pool_closed.
  [[nodiscard]] const RecoveryReport& recovery_report() const;

 private:
  explicit Pool(std::shared_ptr<runtime::PoolCore> core) noexcept;

  class InUse;
  void let_go() noexcept;

  std::shared_ptr<runtime::PoolCore> core_;
  std::atomic<bool> is_closed_{true};  // nobody begins to use core_ any more
  mutable std::shared_mutex in_use_;   // core_ is: held shared
};

}  // namespace sp3
