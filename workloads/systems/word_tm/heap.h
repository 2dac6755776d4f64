// Heap: a simple persistent allocator whose whole state lies in the words it hands out.
//
// Every change is made by the transaction that allocates or releases, so it commits or vanishes
// with it and needs no recovery of its own. Arenas keep concurrent clients apart: each takes chunks
// from the common top and cuts objects off them, and has a free list for every size. A released
// object goes to the arena of whoever released it.
//
//   word 0      never used      1  kRoot      2  top: the first word no arena has
//   kArenas     arenas of kArenaWords each:   +0 cursor   +1 end of the chunk   +2+g free list of
//               objects of g grains (linked through their first words)
//   kFirst ..   objects
//
// Sizes are rounded up to grains and objects start at a multiple of one, so that none shares a unit
// of persistence with another. Objects of kClasses grains or more come from the top and are not
// reused: they are the arrays that live as long as the store.
//
// Thread safety and durability: those of the transaction. Complexity: O(1) words.
#pragma once

#include <cstddef>
#include <string>

#include <sp3/error.h>

#include "workloads/systems/word_tm/words.h"

namespace sp3::workloads::word_tm {

class Heap {
 public:
  static constexpr unsigned kArenaCount = 64;
  static constexpr std::size_t kClasses = 256;
  static constexpr Word kTop = 2;
  static constexpr Word kArenas = 24;
  static constexpr std::size_t kArenaWords = 264;
  static constexpr Word kFirst = kArenas + kArenaCount * kArenaWords;
  static constexpr std::size_t kChunkWords = std::size_t{24} * 512;
  static_assert(2 + kClasses <= kArenaWords);

  // A heap of the words below `end`. REQUIRES: `grain` divides 24.
  Heap(Word end, unsigned grain) noexcept : end_(end), grain_(grain) {}

  // Once, in words that are all zero.
  template <class Tx>
  void format(Tx& tx) const {
    tx.store(kTop, kFirst);
  }

  // Errors: pool_full.
  template <class Tx>
  Word allocate(Tx& tx, unsigned arena, std::size_t words) const {
    const std::size_t grains = (words + grain_ - 1) / grain_;
    if (grains >= kClasses) return take(tx, grains * grain_);
    const Word own = arena_at(arena);
    if (const Word head = tx.load(own + 2 + grains); head != 0) {
      tx.store(own + 2 + grains, tx.load(head));
      return head;
    }
    const std::size_t size = grains * grain_;
    Word cursor = tx.load(own);
    if (cursor == 0 || tx.load(own + 1) - cursor < size) {
      cursor = take(tx, kChunkWords);
      tx.store(own + 1, cursor + kChunkWords);
    }
    tx.store(own, cursor + size);
    return cursor;
  }

  template <class Tx>
  void release(Tx& tx, unsigned arena, Word at, std::size_t words) const {
    const std::size_t grains = (words + grain_ - 1) / grain_;
    if (grains >= kClasses) return;
    const Word head = arena_at(arena) + 2 + grains;
    tx.store(at, tx.load(head));
    tx.store(head, at);
  }

 private:
  static constexpr Word arena_at(unsigned arena) {
    return kArenas + Word{arena % kArenaCount} * kArenaWords;
  }

  template <class Tx>
  Word take(Tx& tx, std::size_t words) const {
    const Word top = tx.load(kTop);
    if (words > end_ - top) {
      ErrorFacts facts;
      facts.wanted = std::to_string(words) + " words";
      facts.found = std::to_string(end_ - top) + " of " + std::to_string(end_) + " left";
      throw Error(ErrorCode::pool_full, "the heap is full", facts);
    }
    tx.store(kTop, top + words);
    return top;
  }

  Word end_;
  unsigned grain_;
};

}  // namespace sp3::workloads::word_tm
