// Checkpointer: brings committed versions home, so that the log they came from can be reused.
//
// It runs beside transactions and never stops them. A checkpoint chooses a floor, waits until no
// stamp up to it is in flight, writes home whatever those transactions touched, makes that durable
// with the metadata and a superblock, and only then lets go of versions and log segments. The
// objects are carried by one thread, or by several at once; all else is done by one.
//
// Thread safety: run() and request() by any thread; one checkpoint at a time. Durable when run()
// returns: everything committed before it was called, in its home.
// Source: paper section III-D; docs/RECOVERY.md has the numbered flushes and what relies on each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "base/counter.h"
#include "emu/threads.h"
#include "index/slab_table.h"
#include "runtime/home_carrier.h"
#include "runtime/version_pool.h"

namespace sp3::runtime {

class PoolCore;

class Checkpointer {
 public:
  explicit Checkpointer(PoolCore& pool);
  ~Checkpointer();  // stops the background thread

  void start();  // the background thread, if the options want one
  void stop() noexcept;

  // Makes a checkpoint now. `last`: marks the pool clean, and who waits for a turn has nothing left
  // to do (REQUIRES: no session is open). Errors: outcome_unknown; damaged_log and whatever else
  // leaves it, which poison the pool; std::bad_alloc, after which the next checkpoint goes on.
  void run(bool last = false);
  // Makes one unless count() is no longer `since`: for those who wait for log space together.
  void run_unless_done(std::uint64_t since);
  // Asks the background thread for one soon.
  void request() noexcept;
  // What a closed session leaves: freed when nobody can hold it.
  void inherit(VersionPool& versions);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_.get(); }
  [[nodiscard]] std::uint64_t objects() const noexcept { return objects_.get(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t slabs_freed() const noexcept { return slabs_freed_.get(); }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_.get(); }
  [[nodiscard]] std::uint64_t fences() const noexcept { return fences_.get(); }
  [[nodiscard]] std::uint64_t longest_ns() const noexcept { return longest_ns_.get(); }

 private:
  std::unique_lock<emu::Mutex> take_turn();
  void run_in_background();
  void run_locked(bool last);
  void run_steps(bool last);
  void finish();
  void count_work() noexcept;
  enum class NamesFrom : std::uint8_t { log, index };
  struct Choice {
    base::Stamp floor;
    NamesFrom names;
  };
  Choice choose_floor();
  base::Stamp raise_floor();
  void await_stamps_up_to(base::Stamp floor, SessionShared& session);
  void collect_names(const Choice& choice);
  [[nodiscard]] bool heads_are_known() const;
  [[nodiscard]] bool index_is_shorter_than_log() const;
  void collect_from_index();
  void collect_from_log(base::Stamp floor);
  void collect_session(SessionShared& session, base::Stamp floor);
  [[noreturn]] void throw_damaged(base::SessionId session, base::Lsn wanted, base::Lsn found) const;
  void name(std::uint64_t offset);
  pool::Bitmap& names_of(const index::Slab& slab);
  void bring_home();
  void write_metadata(int copy);
  void decide_superblock(base::Stamp floor, bool last) noexcept;
  void write_superblock(int copy);
  void note_written() noexcept;
  void let_go();
  void swing();
  void recycle();
  void for_carriers_at_work(const std::function<void(HomeCarrier&)>& body);
  void work();
  [[nodiscard]] bool at_leisure();
  void note_dirty(index::Slab* slab) noexcept;

  // The carrier that is this thread's own when it does not carry.
  HomeCarrier& own() noexcept { return *carriers_.front(); }
  void breathe() noexcept { own().breathe(); }

  PoolCore& pool_;
  std::vector<std::unique_ptr<HomeCarrier>> carriers_;  // at least one
  emu::Mutex running_;                                  // held by run()
  base::Atomic<unsigned> waiting_{0};                   // for running_
  bool is_done_ = false;  // the pool is marked clean; guarded by running_

  // What a checkpoint does next, once everything is home and the superblock decided; if there is no
  // memory for it, the next one does it first. Each may be done again from its beginning.
  enum class Stage : std::uint8_t { bringing_home, copy_a, copy_b, letting_go, recycling };
  Stage stage_ = Stage::bringing_home;  // guarded by running_
  base::Stamp floor_ = 0;               // of the superblock decided; guarded by running_

  // Of the checkpoint in progress; guarded by running_. What one that had no memory has named and
  // has found dirty stays for the next. The lists have room for all slabs.
  bool in_background_ = false;
  std::size_t carrying_ = 1;                // so many of carriers_ have something to carry
  std::vector<pool::Bitmap> named_;         // by slab: slots that may have to go home
  std::vector<std::uint32_t> named_slabs_;  // slabs with a bitmap in named_
  std::vector<index::Slab*> dirty_slabs_;   // metadata to write, each once
  std::vector<bool> slab_is_dirty_;
  std::vector<std::uint32_t> freed_slabs_;  // freed at the end of the last checkpoint
  std::vector<base::Lsn> heads_;            // as the superblocks have them
  std::vector<base::Lsn> next_heads_;       // as they will
  // by session: the LSN of its last record up to the floor, kUnknown if its ring cannot tell
  std::vector<base::Lsn> last_settled_;

  emu::Mutex orphans_mutex_;
  VersionPool orphans_;  // of closed sessions; guarded by orphans_mutex_

  base::Counter count_, objects_, slabs_freed_, lines_, fences_, longest_ns_;

  emu::Mutex mutex_;
  emu::ConditionVariable changed_;
  bool stopping_ = false;   // guarded by mutex_
  bool requested_ = false;  // guarded by mutex_
  emu::Thread thread_;
};

}  // namespace sp3::runtime
