// Company: whether a session has the pool to itself.
//
// Much of what a transaction does to objects is on account of other sessions: it notes what it
// reads, so as to find it unchanged, and it locks what it writes by instructions that wait for all
// stores before them, those behind the last commit's fence included. The only open session does
// neither, as long as it finds at each read, and when it commits, that nobody has come:
//
//   the lone session                                who comes
//   (1) announced: idle -> pending                  (2) is counted here
//       light fence                                     heavy fence
//   (3) is anybody counted?                         (4) waits while announced is pending
//
// Either (3) sees the other, and the transaction starts over, now with notes and locks; or (4) sees
// the announcement, and whoever comes touches no object before the commit has its stamp, when all
// that it writes is locked and nothing that it has read has changed. A read looks here after it has
// seen the object, and what the other writes it writes after it was counted: so what was read is as
// it was when nobody else was there.
//
// Carriers of a checkpoint lock objects too, but change nothing that anybody reads. They are
// counted apart: while there are any, the lone session locks as others do, and starts nothing over.
//
// Thread safety: any thread.
// Progress: who comes waits while a commit reserves space in the log and takes its locks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.h"
#include "base/tid.h"

namespace sp3::runtime {

class Company {
 public:
  // Equal words: no session has come in between.
  using Word = std::uint64_t;
  static constexpr Word kOthers = ~Word{0};  // none that look() returns

  // acquire: what who has gone did to objects is done; and of what one does who comes, nothing is
  // seen without seeing it here.
  [[nodiscard]] Word look() const noexcept { return word_.load(std::memory_order_acquire); }
  [[nodiscard]] static bool is_one(Word word) noexcept { return (word & kPresent) == 1; }

  // (2) A session, before it touches any object: then it waits (4). The returned says whether there
  // is anybody to wait for. REQUIRES, both: one thread at a time.
  bool arrive() noexcept {
    const Word word = word_.load(std::memory_order_relaxed) + kArrival + 1;
    word_.store(word, std::memory_order_seq_cst);
    return !is_one(word);
  }
  // A session that has committed all, with stamps up to `last`.
  void leave(base::Stamp last) noexcept {
    // relaxed, both: one thread at a time; the word's release is what others acquire.
    left_behind_.store(std::max(last, left_behind_.load(std::memory_order_relaxed)),
                       std::memory_order_relaxed);
    word_.store(word_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  // No session that has gone has left a larger stamp. Stamps of the lone session exceed it, since
  // with nothing of its own in flight it collects no predecessors.
  [[nodiscard]] base::Stamp left_behind() const noexcept {
    return left_behind_.load(std::memory_order_relaxed);
  }

  // (2) Carriers, before they lock any object; and when they are done.
  void carriers_come() noexcept { carriers_.fetch_add(1, std::memory_order_seq_cst); }
  void carriers_go() noexcept { carriers_.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool has_carriers() const noexcept {
    return carriers_.load(std::memory_order_acquire) != 0;
  }

 private:
  static constexpr Word kArrival = Word{1} << 16;
  static constexpr Word kPresent = kArrival - 1;

  base::Atomic<Word> word_{0};  // sessions that have come, and how many of them are here
  base::Atomic<base::Stamp> left_behind_{0};
  base::Atomic<std::uint32_t> carriers_{0};
};

}  // namespace sp3::runtime
