// Reading one log record in place, from bytes that may be anything.
//
// read_record() accepts a record only if everything about it fits: length, checksum, every write
// entry, every payload and the dependencies, to the byte. What a RecordView then hands out needs no
// further check against the record's own bounds; whether a slot and its size fit the pool is for
// the caller.
//
// Thread safety: values over memory that the caller keeps mapped and unchanged. Nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "log/format.h"

namespace sp3::log {

// One write entry.
struct WriteView {
  std::uint64_t slot = 0;
  WriteKind kind = WriteKind::image;
  std::span<const std::byte> payload;

  // REQUIRES: kind is make.
  [[nodiscard]] MakePrefix make_prefix() const {
    MakePrefix prefix;
    std::memcpy(&prefix, payload.data(), sizeof prefix);
    return prefix;
  }
  // The object. REQUIRES: kind is image or make.
  [[nodiscard]] std::span<const std::byte> object() const {
    return kind == WriteKind::make ? payload.subspan(sizeof(MakePrefix)) : payload;
  }
};

// A record that passed read_record().
class RecordView {
 public:
  // REQUIRES: a record that read_record() accepted, and its header.
  RecordView(const std::byte* record, const RecordHeader& header)
      : record_(record), header_(header) {}

  [[nodiscard]] const RecordHeader& header() const { return header_; }
  [[nodiscard]] Lsn lsn() const { return header_.lsn; }
  [[nodiscard]] Stamp stamp() const { return header_.stamp; }
  [[nodiscard]] RecordKind kind() const { return static_cast<RecordKind>(header_.kind); }
  [[nodiscard]] std::uint32_t length() const { return header_.length; }
  // Where the next record starts unless the log skipped to a block boundary.
  [[nodiscard]] std::uint64_t padded_length() const {
    return base::round_up(header_.length, kRecordAlignment);
  }
  [[nodiscard]] const std::byte* data() const { return record_; }

  // Calls visit(const WriteView&) for each write entry in order.
  template <class Visitor>
  void for_each_write(Visitor&& visit) const {
    const std::byte* at = record_ + sizeof(RecordHeader);
    for (std::uint32_t i = 0; i < header_.writes; ++i) {
      WriteView write;
      at = read_write(at, write);
      visit(static_cast<const WriteView&>(write));
    }
  }

  // Calls visit(SessionId, Stamp) for each dependency entry. A watermark's mean something else.
  template <class Visitor>
  void for_each_dependency(Visitor&& visit) const {
    const std::byte* at =
        record_ + header_.length - std::size_t{header_.dependencies} * sizeof(Dependency);
    for (std::uint32_t i = 0; i < header_.dependencies; ++i, at += sizeof(Dependency)) {
      Dependency dependency;
      std::memcpy(&dependency, at, sizeof dependency);
      visit(SessionId{dependency.session}, Stamp{dependency.stamp});
    }
  }

  // The write entry at `at`; returns the end of it. REQUIRES: an entry of an accepted record.
  static const std::byte* read_write(const std::byte* at, WriteView& write) {
    WriteHeader header;
    std::memcpy(&header, at, sizeof header);
    at += sizeof header;
    write.slot = header.slot;
    write.kind = static_cast<WriteKind>(header.kind);
    write.payload = {at, header.bytes};
    return at + header.bytes;
  }

 private:
  const std::byte* record_;
  RecordHeader header_;
};

enum class Verify : std::uint8_t {
  everything,  // what a pool file holds
  shape,       // everything but the checksum: bytes that this process wrote
};

// The record that starts at `begin`, if there is one within `available` bytes.
std::optional<RecordView> read_record(const std::byte* begin, std::uint64_t available,
                                      std::uint32_t seed, Verify verify = Verify::everything);

// The header at `begin`, if its own numbers are possible within `available` bytes: a cheap test
// before the checksum. Says nothing about the rest.
std::optional<RecordHeader> peek_header(const std::byte* begin, std::uint64_t available);

// The record at `begin`, whose header is already known to be accepted (read_record() said so
// before).
RecordView trusted_record(const std::byte* begin);

// Whether all runs of a delta's payload lie within an object of `size8` bytes.
bool delta_fits(std::span<const std::byte> payload, std::uint64_t size8);

// Calls visit(byte offset in the object, words) for each run. REQUIRES: an accepted record's delta.
template <class Visitor>
void for_each_run(std::span<const std::byte> payload, Visitor&& visit) {
  while (!payload.empty()) {
    DeltaRun run;
    std::memcpy(&run, payload.data(), sizeof run);
    const std::size_t bytes = std::size_t{run.count} * 8;
    visit(std::uint64_t{run.first} * 8, payload.subspan(sizeof run, bytes));
    payload = payload.subspan(sizeof run + bytes);
  }
}

}  // namespace sp3::log
