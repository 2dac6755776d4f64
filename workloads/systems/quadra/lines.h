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
//   close   now := the new words;  count[n % 2] := lines changed by n, in every line alike;  flush
// and one fence after the last line is all there is. The stores to one cache line reach persistent
// memory in the order they were made (they leave the cache together, or a prefix of them does), so
// of each line a prefix of these six stores survives.
//
// Recovery needs no log. Let m be the highest number in any line. Every transaction before m was
// fenced before m stored anything. If as many lines have number m and a count as that count says, m
// is whole; else those lines take their `back` again. Two counts by parity: opening a line for n
// must not spoil the count of n - 1, which may be the highest number of any line that survives.
//
// Source: Ramalhete, Correia, Felber, "Efficient Algorithms for Persistent Transactional Memory",
// PPoPP 2021 (Quadra); written from the algorithm as published.
//
// Media is where the lines are: view(offset) (a pointer to the bytes), store(offset, bytes, count),
// order() (keeps the stores of a line in order), prefetch(offset), flush(offset), fence().
//
// Thread safety: none; one writer at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
    const std::array<std::uint64_t, kWordsPerLine> now = found.now;
    store(line, offsetof(PersistentLine, back), now);
    store(line, count_of(n), std::uint32_t{0});
    store(line, offsetof(PersistentLine, number), n);
    return true;
  }

  // REQUIRES: transaction n opened the line. `lines` is the number of lines it opened, > 0.
  void close(std::uint64_t line, std::uint64_t n, const std::uint64_t* words, std::uint32_t lines) {
    SP3_ASSERT(at(line).number == n && lines > 0);
    std::array<std::uint64_t, kWordsPerLine> now;
    std::memcpy(now.data(), words, sizeof now);
    store(line, offsetof(PersistentLine, now), now);
    store(line, count_of(n), lines);
    media_.flush(offset(line));
  }

  // Makes everything closed durable.
  void fence() { media_.fence(); }

  // Undoes the last transaction if a crash kept it from being whole; durable on return. Returns the
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
    if (whole != 0 && whole == wanted) return highest;
    for (std::uint64_t line = 0; line < count_; ++line) {
      if (at(line).number != highest) continue;
      const std::array<std::uint64_t, kWordsPerLine> back = at(line).back;
      store(line, count_of(highest), std::uint32_t{0});
      store(line, offsetof(PersistentLine, now), back);
      media_.flush(offset(line));
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
  template <class T>
  void store(std::uint64_t line, std::uint64_t within, const T& value) {
    media_.store(offset(line) + within, &value, sizeof value);
    media_.order();
  }

  Media& media_;
  std::uint64_t base_;
  std::uint64_t count_;
};

}  // namespace sp3::workloads::quadra
