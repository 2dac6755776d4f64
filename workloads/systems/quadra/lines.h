// Quadra's persistent lines: every cache line holds three words, what they were before the line's
// last transaction, the number of that transaction and how many lines it changed in all.
//
//   byte  0        24        48      56       60
//         +---------+---------+-------+--------+--------+
//         | now[3]  | back[3] | number| count0 | count1 |     64 bytes, one cache line
//         +---------+---------+-------+--------+--------+
//
// Transaction n writes a line in two parts, each in this order:
//   open    back := now;  count[n % 2] := 0;  number := n
//   close   now := the new words;  count[n % 2] := lines changed by n, in every line alike
// Flushing the lines and one fence after the last is all there is. The stores to one cache line
// reach persistent memory in the order they were made (they leave the cache together, or a prefix
// of them does), so of each line a prefix of these six stores survives.
//
// Recovery needs no log. Let m be the highest number in any line. Every transaction before m was
// fenced before m stored anything. If as many lines have number m and a count as that count says, m
// is whole; else those lines take their `back` again. A process that is killed leaves m whole in
// the caches, its fence never made: recovery makes that fence up, so that it holds of m too that it
// was fenced before m + 1 stores anything. Two counts by parity: opening a line for n
// must not spoil the count of n - 1, which may be the highest number of any line that survives.
//
// Source: Ramalhete, Correia, Felber, "Efficient Algorithms for Persistent Transactional Memory",
// PPoPP 2021 (Quadra); written from the algorithm as published.
//
// Media is where the lines are: view(offset) (a pointer to the bytes), store(offset, bytes, count),
// order() (keeps the stores of a line in order), prefetch(offset), flush(offset, bytes), fence().
//
// Thread safety: none; one writer at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/align.h"
#include "base/assert.h"

namespace sp3::workloads::quadra {

inline constexpr std::uint64_t kWordsPerLine = 3;

struct PersistentLine {
  std::array<std::uint64_t, kWordsPerLine> now;
  std::array<std::uint64_t, kWordsPerLine> back;
  std::uint64_t number;
  std::array<std::uint32_t, 2> count;
};
static_assert(sizeof(PersistentLine) == base::kCacheLine);
static_assert(offsetof(PersistentLine, back) == 24 && offsetof(PersistentLine, number) == 48);

template <class Media>
class Lines {
 public:
  // The lines [base, base + 64 * count) of the media.
  Lines(Media& media, std::uint64_t base, std::uint64_t count) noexcept
      : media_(media), base_(base), count_(count) {}

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] const PersistentLine& at(std::uint64_t line) const noexcept {
    SP3_ASSERT(line < count_);
    return *reinterpret_cast<const PersistentLine*>(media_.view(offset(line)));
  }
  void prefetch(std::uint64_t line) const noexcept { media_.prefetch(offset(line)); }

  // Returns whether transaction n had not opened the line yet.
  bool open(std::uint64_t line, std::uint64_t n) {
    const PersistentLine& found = at(line);
    if (found.number == n) return false;
    const std::uint64_t start = offset(line);
    store(start + offsetof(PersistentLine, back), found.now.data(), sizeof found.now);
    constexpr std::uint32_t kNone = 0;
    store(start + count_of(n), &kNone, sizeof kNone);
    store(start + offsetof(PersistentLine, number), &n, sizeof n);
    return true;
  }

  // Closes the lines [first, first + run) with the words from `words` on, and flushes them.
  // REQUIRES: transaction n opened them. `lines` is the number of lines it opened in all.
  void close(std::uint64_t first, std::uint64_t run, std::uint64_t n, const std::uint64_t* words,
             std::uint32_t lines) {
    SP3_ASSERT(lines >= run);
    for (std::uint64_t line = first; line < first + run; ++line, words += kWordsPerLine) {
      SP3_ASSERT(at(line).number == n);
      store(offset(line) + offsetof(PersistentLine, now), words, sizeof(PersistentLine::now));
      store(offset(line) + count_of(n), &lines, sizeof lines);
    }
    media_.flush(offset(first), run * sizeof(PersistentLine));
  }

  // Makes everything closed durable.
  void fence() { media_.fence(); }

  // Undoes the last transaction if a crash kept it from being whole. Whatever became of it is
  // durable on return: from the next transaction on nobody looks at its counts again. Returns the
  // highest number in use: transactions go on from the next one.
  std::uint64_t recover() {
    std::uint64_t highest = 0;
    for (std::uint64_t line = 0; line < count_; ++line) {
      if (at(line).number > highest) highest = at(line).number;
    }
    if (highest == 0) return 0;
    std::uint64_t wanted = 0;
    std::uint64_t whole = 0;
    for (std::uint64_t line = 0; line < count_; ++line) {
      const PersistentLine& found = at(line);
      if (found.number != highest || found.count[highest % 2] == 0) continue;
      wanted = found.count[highest % 2];
      ++whole;
    }
    const bool undo = whole == 0 || whole != wanted;
    for (std::uint64_t line = 0; line < count_; ++line) {
      if (at(line).number != highest) continue;
      if (undo) {
        constexpr std::uint32_t kNone = 0;
        store(offset(line) + count_of(highest), &kNone, sizeof kNone);
        store(offset(line) + offsetof(PersistentLine, now), at(line).back.data(),
              sizeof(PersistentLine::back));
      }
      media_.flush(offset(line), sizeof(PersistentLine));
    }
    media_.fence();
    return highest;
  }

 private:
  static constexpr std::uint64_t count_of(std::uint64_t n) noexcept {
    return offsetof(PersistentLine, count) + sizeof(std::uint32_t) * (n % 2);
  }
  [[nodiscard]] std::uint64_t offset(std::uint64_t line) const noexcept {
    return base_ + line * sizeof(PersistentLine);
  }
  void store(std::uint64_t to, const void* from, std::size_t bytes) {
    media_.store(to, from, bytes);
    media_.order();
  }

  Media& media_;
  std::uint64_t base_;
  std::uint64_t count_;
};

}  // namespace sp3::workloads::quadra
