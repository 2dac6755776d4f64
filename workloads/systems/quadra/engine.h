// Quadra with flat combining and a volatile replica: one fence for each group of transactions.
//
// Word w of the store is word w % 3 of persistent line w / 3 (lines.h). All reading is done in a
// replica of the words in DRAM. A writer puts its transaction into its slot; whoever gets the lock
// runs all transactions that wait, one after another, on the replica, opening each line that
// changes, then closes those lines and fences once, for all. Readers share the replica under the
// reader side of the lock, which is held until the fence: nothing is seen that could still be lost.
//
// Thread safety: a Client belongs to one thread; clients run in parallel. Transactions are
// serializable, in the order in which they were run.
// Durable on return: update().
// Errors of a body leave update() of the thread it came from; the transaction then had no effect.
// Source: Ramalhete, Correia, Felber, PPoPP 2021 (QuadraFC with volatile replica); a
// re-implementation from the algorithm as published.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <vector>

#include <sp3/options.h>

#include "emu/memory.h"
#include "workloads/system.h"
#include "workloads/systems/quadra/lines.h"
#include "workloads/systems/quadra/rw_lock.h"
#include "workloads/systems/word_tm/body.h"
#include "workloads/systems/word_tm/heap.h"
#include "workloads/systems/word_tm/slots.h"
#include "workloads/systems/word_tm/store_file.h"
#include "workloads/systems/word_tm/words.h"

namespace sp3::workloads::quadra {

using word_tm::Word;

// Lines in mapped memory. What is flushed is counted for whoever combines.
class MappedMedia {
 public:
  explicit MappedMedia(emu::Memory& memory) noexcept : memory_(memory) {}
  void count_for(emu::FlushCounts& counts) noexcept { counts_ = &counts; }

  [[nodiscard]] const std::byte* view(std::uint64_t offset) const noexcept {
    return memory_.log_view(offset);
  }
  void store(std::uint64_t offset, const void* from, std::size_t bytes) noexcept {
    memory_.log_store(offset, from, bytes, false);
  }
  // The hardware keeps the order of stores; this keeps the compiler's hands off it.
  static void order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  void prefetch(std::uint64_t offset) const noexcept { memory_.prefetch_store(offset); }
  void flush(std::uint64_t offset, std::uint64_t bytes) noexcept {
    // Mapped memory never fails.
    static_cast<void>(memory_.log_flush(offset, bytes, false, *counts_));
  }
  void fence() noexcept { static_cast<void>(memory_.fence(*counts_)); }

 private:
  emu::Memory& memory_;
  emu::FlushCounts own_;
  emu::FlushCounts* counts_ = &own_;
};

class Engine {
 public:
  class Tx;
  class Client;
  using Body = word_tm::Body<Tx>;

  // Makes an empty store of about `size` bytes. Errors: as word_tm::StoreFile::create.
  Engine(const std::filesystem::path& path, std::uint64_t size, const Options& options);
  // Opens one and undoes what a crash left unfinished. Errors: as word_tm::StoreFile::open.
  Engine(const std::filesystem::path& path, const Options& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool update(Client& client, Body body);
  bool read(Client& client, Body body);

  [[nodiscard]] static BackgroundCounters background() { return {}; }  // there is none
  void close() {}  // every transaction is durable already

 private:
  // A transaction that waits to be run.
  struct Request {
    Body body;
    bool result = false;
    bool wrote = false;
    std::exception_ptr failure;
  };
  struct alignas(128) Slot {
    std::atomic<Request*> request{nullptr};
  };
  // Neighbouring lines.
  struct Run {
    std::uint64_t first;
    std::uint64_t count;
  };
  struct FreeWords {
    void operator()(std::uint64_t* words) const noexcept { std::free(words); }
  };

  void combine(emu::FlushCounts& counts);
  void run_all(const std::vector<Request*>& requests);
  void run(Request& request);
  void commit();
  void roll_back();
  void load_replica();

  // Opens the lines of the words [at, at + count) for the running transaction.
  void open_lines(Word at, std::size_t count) {
    const std::uint64_t first = at / kWordsPerLine;
    const std::uint64_t end = (at + count - 1) / kWordsPerLine + 1;
    const std::uint64_t number = number_;
    for (std::uint64_t line = first + 1; line < end; ++line) lines_.prefetch(line);
    for (std::uint64_t line = first; line < end; ++line) {
      if (lines_.open(line, number)) add_opened(line);
    }
  }
  void add_opened(std::uint64_t line) {
    ++opened_lines_;
    if (!opened_.empty() && opened_.back().first + opened_.back().count == line) {
      ++opened_.back().count;
    } else {
      opened_.push_back({line, 1});
    }
  }

  word_tm::StoreFile file_;
  std::unique_ptr<emu::Memory> memory_;
  MappedMedia media_;
  Lines<MappedMedia> lines_;
  word_tm::Heap heap_;
  std::unique_ptr<std::uint64_t[], FreeWords> replica_;

  WriterPreferenceLock lock_;
  // Below: guarded by lock_, but the slots' requests.
  std::uint64_t number_ = 0;        // of the running or the next transaction
  std::vector<Run> opened_;         // by the running transaction
  std::uint32_t opened_lines_ = 0;  // in all of them
  std::vector<Request*> pending_;   // and where they came from:
  std::vector<std::atomic<Request*>*> pending_slots_;

  std::array<Slot, WriterPreferenceLock::kSlots> slots_;
  word_tm::Slots<WriterPreferenceLock::kSlots> places_;  // who has which of them
};

// It counts the flushes of all that its thread combined.
class Engine::Client : public word_tm::SlotClient<WriterPreferenceLock::kSlots> {
 public:
  // Errors: too_many_sessions.
  explicit Client(Engine& engine);

 private:
  friend class Engine;
};

// The words as the running transaction sees them: in the replica, its own stores included.
class Engine::Tx {
 public:
  static constexpr Word kGrain = kWordsPerLine;

  explicit Tx(Engine& engine) noexcept : engine_(engine), words_(engine.replica_.get()) {}

  [[nodiscard]] std::uint64_t load(Word at) const noexcept { return words_[at]; }
  void load(Word at, std::uint64_t* to, std::size_t count) const noexcept {
    copy(to, words_ + at, count);
  }
  void store(Word at, std::uint64_t value) {
    wrote_ = true;
    engine_.open_lines(at, 1);
    words_[at] = value;
  }
  void store(Word at, const std::uint64_t* from, std::size_t count) {
    if (count == 0) return;
    wrote_ = true;
    engine_.open_lines(at, count);
    copy(words_ + at, from, count);
  }
  Word allocate(std::size_t count) { return engine_.heap_.allocate(*this, 0, count); }
  void release(Word at, std::size_t count) { engine_.heap_.release(*this, 0, at, count); }

  [[nodiscard]] bool wrote() const noexcept { return wrote_; }

 private:
  // Entries are short: calling memcpy would take as long as copying.
  static void copy(std::uint64_t* to, const std::uint64_t* from, std::size_t count) noexcept {
    constexpr std::size_t kStep = 4;
    for (; count >= kStep; to += kStep, from += kStep, count -= kStep) {
      std::memcpy(to, from, kStep * sizeof *to);
    }
    for (; count > 0; --count) *to++ = *from++;
  }

  Engine& engine_;
  std::uint64_t* words_;
  bool wrote_ = false;
};

}  // namespace sp3::workloads::quadra
