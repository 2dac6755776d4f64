// RecordBuilder: assembles one log record in DRAM, byte for byte as log/format.h says.
//
// A commit does: reset(), one add_*() per write entry, add_dependency() for each predecessor,
// seal(); then data() and size() are what goes to the log.
//
// Thread safety: none; a session owns one. Ownership: the buffer grows to the largest record ever
// built and is kept, so a warm builder does not allocate. Complexity: one pass over each object,
// plus one over the record for its checksum.
//
// Objects are given as `size8` bytes: the type's size rounded up to 8, the rounding zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/align.h"
#include "base/assert.h"
#include "log/format.h"

namespace sp3::log {

// Bytes [begin, end) of an object.
struct ByteRun {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class RecordBuilder {
 public:
  RecordBuilder() { grow(kFirstCapacity); }
  ~RecordBuilder();
  RecordBuilder(const RecordBuilder&) = delete;
  RecordBuilder& operator=(const RecordBuilder&) = delete;

  // Starts a new record; the last one is forgotten.
  void reset() noexcept {
    length_ = sizeof(RecordHeader);
    writes_ = 0;
    dependencies_ = 0;
  }

  // Makes room for a record of `bytes`, so that building it cannot run out of memory.
  void reserve(std::uint64_t bytes) {
    if (capacity_ < bytes) [[unlikely]]
      grow(bytes);
  }

  // The whole object. REQUIRES (all add_*): no dependency was added yet.
  void add_image(std::uint64_t slot, const void* object, std::uint32_t size8) {
    std::byte* payload = begin_write(slot, WriteKind::image, size8, size8);
    std::memcpy(payload, object, size8);
    length_ += size8;
  }

  // The words in which `after` differs from `before`, or the whole object if that takes no more
  // bytes. Nothing changed: a delta without runs, so that the record still names each object it
  // wrote.
  void add_update(std::uint64_t slot, const void* before, const void* after, std::uint32_t size8);

  // The words of `after` that hold `runs`, or the whole object if that takes no more bytes.
  // REQUIRES: the runs ascend and do not touch.
  void add_runs(std::uint64_t slot, std::span<const ByteRun> runs, const void* after,
                std::uint32_t size8);

  void add_make(std::uint64_t slot, const MakePrefix& prefix, const void* object,
                std::uint32_t size8) {
    const std::uint32_t bytes = static_cast<std::uint32_t>(sizeof prefix) + size8;
    std::byte* payload = begin_write(slot, WriteKind::make, bytes, bytes);
    std::memcpy(payload, &prefix, sizeof prefix);
    std::memcpy(payload + sizeof prefix, object, size8);
    length_ += bytes;
  }

  void add_destroy(std::uint64_t slot) { begin_write(slot, WriteKind::destroy, 0, 0); }

  void add_dependency(SessionId session, Stamp stamp) {
    ensure(sizeof(Dependency));
    static_assert(offsetof(Dependency, reserved) == offsetof(Dependency, session) + sizeof session);
    put_word(length_ + offsetof(Dependency, stamp), stamp);
    put_word(length_ + offsetof(Dependency, session), session);
    length_ += sizeof(Dependency);
    ++dependencies_;
  }

  // Writes the header with its checksum and pads with zeros to kRecordAlignment. May be repeated
  // with other numbers. `seed` is log::seed() of the session.
  // REQUIRES: the record is at most 4 GiB long (max_record_bytes() tells before any work is done).
  void seal(Lsn lsn, Stamp stamp, Lsn persisted_upto, std::uint32_t seed,
            RecordKind kind = RecordKind::transaction) noexcept;

  // REQUIRES: sealed. The bytes are aligned to kRecordAlignment and valid until the next reset().
  [[nodiscard]] const std::byte* data() const noexcept { return buffer_; }
  // Bytes to append to the log: length() rounded up to kRecordAlignment.
  [[nodiscard]] std::uint64_t size() const noexcept {
    return base::round_up(length_, kRecordAlignment);
  }
  // Bytes of the record itself, header included.
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

  // Upper bounds, for reserving log space from a write set's sizes alone. A delta is never larger
  // than its image.
  static constexpr std::uint64_t update_bytes(std::uint64_t size8) {
    return sizeof(WriteHeader) + size8;
  }
  static constexpr std::uint64_t runs_bytes(std::span<const ByteRun> runs, std::uint64_t size8) {
    std::uint64_t bytes = 0;
    for (const ByteRun& run : runs) {
      bytes += sizeof(DeltaRun) + base::round_up(run.end, 8) - base::round_down(run.begin, 8);
    }
    return sizeof(WriteHeader) + std::min(bytes, size8);
  }
  static constexpr std::uint64_t make_bytes(std::uint64_t size8) {
    return sizeof(WriteHeader) + sizeof(MakePrefix) + size8;
  }
  static constexpr std::uint64_t destroy_bytes() { return sizeof(WriteHeader); }
  // size() of a record whose write entries take `write_bytes` together (the sum of the above).
  static constexpr std::uint64_t max_record_bytes(std::uint64_t write_bytes,
                                                  std::uint64_t dependencies) {
    return base::round_up(sizeof(RecordHeader) + write_bytes + dependencies * sizeof(Dependency),
                          kRecordAlignment);
  }

 private:
  static constexpr std::uint64_t kFirstCapacity = 4096;

  void ensure(std::uint64_t bytes) {
    if (capacity_ - length_ < bytes) [[unlikely]]
      grow(length_ + bytes);
  }
  void grow(std::uint64_t wanted);

  // What is small is stored in whole words: the checksum reads them the next moment, and what is
  // stored in parts cannot be read as a whole before it has left the store buffer.
  void put_word(std::uint64_t at, std::uint64_t word) noexcept {
    std::memcpy(buffer_ + at, &word, sizeof word);
  }

  // Writes the entry's header and makes room for `room` bytes; returns where the payload goes.
  std::byte* begin_write(std::uint64_t slot, WriteKind kind, std::uint32_t bytes,
                         std::uint64_t room) {
    SP3_ASSERT(dependencies_ == 0);
    SP3_ASSERT(bytes % 8 == 0);
    ensure(sizeof(WriteHeader) + room);
    WriteHeader header;
    header.slot = slot;
    header.bytes = bytes;
    header.kind = static_cast<std::uint16_t>(kind);
    std::memcpy(buffer_ + length_, &header, sizeof header);
    length_ += sizeof header;
    ++writes_;
    return buffer_ + length_;
  }

  // Invariant: a multiple of kRecordAlignment, so that the padding always fits.
  std::uint64_t capacity_ = 0;
  std::uint64_t length_ = sizeof(RecordHeader);
  std::byte* buffer_ = nullptr;
  std::uint32_t writes_ = 0;
  std::uint32_t dependencies_ = 0;
};

}  // namespace sp3::log
