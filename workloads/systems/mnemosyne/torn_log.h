// The raw word log of Mnemosyne: a circular array of 64-bit log words, each with a torn bit.
//
//   bit 63 (torn bit)          bits 62..0
//   +--------+----------------------------------------------------+
//   | parity |  63 bits of the record, which is packed across words |
//   +--------+----------------------------------------------------+
//
// The torn bit of a word is 1 on the first pass over the array, 0 on the second, and so on, so a
// word that a crash kept from being written has the wrong one: it is still of the pass before, or
// zero in an array never written. A record is whole if all its words have the right bit; no
// checksum, no commit mark and no second fence are needed, whatever order words reach the media in.
//
// A record is  time, number of stores, (word, value)...  as 64-bit values, packed 63 bits to a log
// word and filled up to a whole cache line, which is what a streaming store writes at once.
// Positions count log words from the beginning of time; position p is at index p % capacity.
//
// Source: Volos, Tack, Swift, "Mnemosyne: Lightweight Persistent Memory", ASPLOS 2011 (tornbit
// RAWL); written from the paper. There records are not filled up to lines.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/align.h"

namespace sp3::workloads::mnemosyne {

inline constexpr std::uint64_t kTornBit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kWordsPerLogLine = 8;
inline constexpr std::uint64_t kRecordHead = 2;  // time, number of stores

// The torn bit of the words at `position`. REQUIRES: capacity is a multiple of kWordsPerLogLine.
constexpr std::uint64_t torn_bit(std::uint64_t position, std::uint64_t capacity) {
  return position / capacity % 2 == 0 ? kTornBit : 0;
}

// Log words of a record of so many 64-bit values, filling included.
constexpr std::uint64_t log_words(std::uint64_t values) {
  return base::round_up((values * 64 + 62) / 63, kWordsPerLogLine);
}

// Makes the log words of one record, from a position on.
class Packer {
 public:
  // REQUIRES: `words` has room for log_words() of the values that are put.
  Packer(std::uint64_t* words, std::uint64_t position, std::uint64_t capacity)
      : next_(words),
        torn_(torn_bit(position, capacity)),
        until_wrap_(capacity - position % capacity) {}

  void put(std::uint64_t value) {
    // `held_` bits of earlier values, fewer than 63, wait in the low end of rest_.
    emit(rest_ | value << held_);
    rest_ = value >> (63 - held_);
    if (++held_ == 63) {
      emit(rest_);
      rest_ = 0;
      held_ = 0;
    }
  }
  // What is left, and zeros up to `end`.
  void finish(const std::uint64_t* end) {
    if (held_ != 0) emit(rest_);
    while (next_ < end) emit(0);
  }

 private:
  void emit(std::uint64_t bits) {
    *next_++ = (bits & ~kTornBit) | torn_;
    if (--until_wrap_ == 0) torn_ ^= kTornBit;  // a record wraps once at most
  }

  std::uint64_t* next_;
  std::uint64_t torn_;
  std::uint64_t until_wrap_;
  std::uint64_t rest_ = 0;
  unsigned held_ = 0;
};

// Reads a log from anywhere a record begins. `Load` gives the log word at an index.
template <class Load>
class Unpacker {
 public:
  Unpacker(Load load, std::uint64_t capacity, std::uint64_t position)
      : load_(load), capacity_(capacity), position_(position) {}

  // The next 64-bit value; nothing if a log word it needs has the wrong torn bit.
  std::optional<std::uint64_t> take() {
    // `held_` bits that no value has taken yet, fewer than 63, are in the low end of rest_.
    const std::optional<std::uint64_t> bits = next_bits();
    if (!bits) return std::nullopt;
    std::uint64_t value = rest_ | *bits << held_;
    if (held_ > 0) {
      rest_ = *bits >> (64 - held_);
      --held_;
      return value;
    }
    const std::optional<std::uint64_t> more = next_bits();
    if (!more) return std::nullopt;
    value |= *more << 63;
    rest_ = *more >> 1;
    held_ = 62;
    return value;
  }
  // Whether the words up to `end` have the right torn bit.
  bool skip_to(std::uint64_t end) {
    while (position_ < end) {
      if (!next_bits()) return false;
    }
    return true;
  }

 private:
  std::optional<std::uint64_t> next_bits() {
    const std::uint64_t word = load_(position_ % capacity_);
    if ((word & kTornBit) != torn_bit(position_, capacity_)) return std::nullopt;
    ++position_;
    return word & ~kTornBit;
  }

  Load load_;
  std::uint64_t capacity_;
  std::uint64_t position_;
  std::uint64_t rest_ = 0;
  unsigned held_ = 0;
};

struct Stored {
  std::uint64_t at;
  std::uint64_t value;
};

struct Record {
  std::uint64_t time = 0;
  std::uint64_t end = 0;  // the position after it
  std::vector<Stored> stores;
};

// The time and the end of the record at `position`; nothing if there is no whole head of one.
struct RecordHead {
  std::uint64_t time;
  std::uint64_t stores;
  std::uint64_t end;
};
template <class Load>
std::optional<RecordHead> read_head(Unpacker<Load>& from, std::uint64_t capacity,
                                    std::uint64_t position) {
  const std::optional<std::uint64_t> time = from.take();
  const std::optional<std::uint64_t> stores = time ? from.take() : std::nullopt;
  // Zeros, whose torn bit is right on every second pass, are no record.
  if (!stores || *time == 0 || *stores == 0 || *stores > capacity) return std::nullopt;
  const std::uint64_t words = log_words(kRecordHead + 2 * *stores);
  if (words > capacity) return std::nullopt;
  return RecordHead{*time, *stores, position + words};
}

// The record at `position`; nothing if it is not whole.
template <class Load>
std::optional<Record> read_record(Load load, std::uint64_t capacity, std::uint64_t position) {
  Unpacker<Load> from(load, capacity, position);
  const std::optional<RecordHead> head = read_head(from, capacity, position);
  if (!head) return std::nullopt;
  Record record{head->time, head->end, {}};
  record.stores.reserve(head->stores);
  for (std::uint64_t i = 0; i < head->stores; ++i) {
    const std::optional<std::uint64_t> at = from.take();
    const std::optional<std::uint64_t> value = at ? from.take() : std::nullopt;
    if (!value) return std::nullopt;
    record.stores.push_back({*at, *value});
  }
  if (!from.skip_to(record.end)) return std::nullopt;
  return record;
}

}  // namespace sp3::workloads::mnemosyne
