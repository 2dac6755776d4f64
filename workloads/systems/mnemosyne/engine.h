// Mnemosyne: durable transactions from a software transactional memory with a redo log.
//
// Concurrency control is that of TinySTM, on which the original builds: a table of versioned locks,
// one for four words; a global clock; a word is locked when it is first stored to, and the value is
// kept aside until commit; a read that finds a newer version extends the snapshot by validating
// what was read before; whoever meets a foreign lock starts again when it is free.
//
// Commit of a transaction that stored, its locks held:
//   1. announce, take the next time from the clock, validate what was read
//   2. the record goes to the thread's log by streaming stores
//   3. fence (P1): the transaction is durable
//   4. store the values to their words; release the locks with the time as their version
//   5. flush the lines stored to; fence (P2): the record is not needed any more
// The log manager, a thread of its own, truncates logs when they fill: it finds the time below
// which every transaction has finished step 5, makes that time durable (P3), then the heads (P4).
//
// Thread safety: a Client belongs to one thread; clients run in parallel. Transactions are
// serializable and opaque. A body may run several times.
// Durable on return: update().
// Source: Volos, Tack, Swift, ASPLOS 2011; Felber, Fetzer, Riegel, "Dynamic Performance Tuning of
// Word-Based Software Transactional Memory", PPoPP 2008. A re-implementation from the papers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sp3/options.h>

#include "emu/memory.h"
#include "emu/threads.h"
#include "workloads/system.h"
#include "workloads/systems/mnemosyne/layout.h"
#include "workloads/systems/mnemosyne/torn_log.h"
#include "workloads/systems/mnemosyne/write_set.h"
#include "workloads/systems/word_tm/body.h"
#include "workloads/systems/word_tm/heap.h"
#include "workloads/systems/word_tm/slots.h"
#include "workloads/systems/word_tm/store_file.h"
#include "workloads/systems/word_tm/words.h"

namespace sp3::workloads::mnemosyne {

using word_tm::Word;

class Engine {
 public:
  class Tx;
  class Client;
  using Body = word_tm::Body<Tx>;

  // Makes an empty store of about `size` bytes. Errors: as word_tm::StoreFile::create.
  Engine(const std::filesystem::path& path, std::uint64_t size, const Options& options);
  // Opens one and replays what its logs hold. Errors: as word_tm::StoreFile::open; damaged_log.
  Engine(const std::filesystem::path& path, const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool update(Client& client, Body body);
  bool read(Client& client, Body body) { return update(client, body); }

  [[nodiscard]] BackgroundCounters background() const;
  // Stops the log manager with all logs empty. REQUIRES: no client is left.
  void close();

 private:
  static constexpr std::uint64_t kIdle = ~std::uint64_t{0};

  // Lock words:   version << 1      free, last written at that time
  //               owner << 1 | 1    held by the client in that slot
  using Lock = std::atomic<std::uint64_t>;
  static constexpr unsigned kWordsPerLockBits = 2;
  static constexpr std::size_t kLocks = std::size_t{1} << 20;

  // What the log manager sees of a client.
  struct alignas(128) Slot {
    std::atomic<std::uint64_t> active{kIdle};  // no time of a commit under way is below this
    std::atomic<std::uint64_t> tail{0};        // records before this position are finished
    std::atomic<std::uint64_t> head{0};        // log words before this position may be used again
  };

  struct Restart {
    std::size_t lock;  // wait for this one first
  };
  static constexpr std::size_t kNoLock = ~std::size_t{0};

  static std::size_t lock_of(Word at) { return (at >> kWordsPerLockBits) & (kLocks - 1); }
  [[nodiscard]] const std::uint64_t* home(Word at) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(words_->log_view(layout_.word_at(at)));
  }

  void start_manager();
  void manage_logs();
  void want_truncation();
  void truncate_logs();
  void recover(const std::string& path);
  void clear_log(std::uint64_t log, emu::FlushCounts& counts);
  [[nodiscard]] std::vector<Record> read_logs() const;
  void wait_until_free(std::size_t lock) const;

  word_tm::StoreFile file_;
  std::unique_ptr<emu::Memory> words_;  // flushed with the chosen instruction
  std::unique_ptr<emu::Memory> logs_;   // the same file, written by streaming stores
  Layout layout_;
  word_tm::Heap heap_;

  alignas(128) std::atomic<std::uint64_t> clock_{0};
  alignas(128) std::unique_ptr<Lock[]> locks_;
  std::array<Slot, Layout::kLogs> slots_;
  word_tm::Slots<Layout::kLogs> places_;  // who has which of them

  // The log manager.
  mutable emu::Mutex mutex_;  // guards all below
  emu::ConditionVariable wanted_;
  std::atomic<bool> truncation_wanted_{false};  // relaxed everywhere: the mutex orders it
  bool stop_ = false;
  emu::FlushCounts manager_flushes_;
  std::uint64_t truncations_ = 0;
  std::uint64_t truncated_ = 0;  // the time on media; only the manager's
  emu::Thread manager_;
};

class Engine::Client : public word_tm::SlotClient<Layout::kLogs> {
 public:
  // Errors: too_many_sessions.
  explicit Client(Engine& engine);

 private:
  friend class Engine;
  struct Read {
    std::size_t lock;
    std::uint64_t version;
  };
  struct Held {
    std::size_t lock;
    std::uint64_t version;  // before
  };

  Engine& engine_;
  std::uint64_t snapshot_ = 0;
  std::vector<Read> reads_;
  std::vector<Held> held_;
  WriteSet writes_;
  std::vector<std::uint64_t> log_;    // the record being made
  std::vector<std::uint64_t> lines_;  // that it changes
  std::uint64_t tail_ = 0;            // of the slot's log
};

class Engine::Tx {
 public:
  static constexpr Word kGrain = 8;  // a cache line

  explicit Tx(Client& client) : engine_(client.engine_), client_(client) {}

  [[nodiscard]] std::uint64_t load(Word at) {
    std::uint64_t value = 0;
    load(at, &value, 1);
    return value;
  }
  void load(Word at, std::uint64_t* to, std::size_t count);
  void store(Word at, std::uint64_t value) { store(at, &value, 1); }
  void store(Word at, const std::uint64_t* from, std::size_t count);
  Word allocate(std::size_t count) { return engine_.heap_.allocate(*this, arena(), count); }
  void release(Word at, std::size_t count) { engine_.heap_.release(*this, arena(), at, count); }

 private:
  friend class Engine;

  [[nodiscard]] unsigned arena() const { return static_cast<unsigned>(client_.slot_); }
  [[nodiscard]] std::uint64_t own_lock() const { return client_.slot_ << 1 | 1; }
  void begin();
  void commit();
  void give_up();
  void load_stripe(Word at, std::uint64_t* to, std::size_t count);
  void acquire(std::size_t lock);
  void extend();
  [[nodiscard]] bool reads_are_valid() const;
  void reserve_log(std::uint64_t words);
  void write_log(std::uint64_t time);
  void write_back(std::uint64_t time);

  Engine& engine_;
  Client& client_;
};

}  // namespace sp3::workloads::mnemosyne
