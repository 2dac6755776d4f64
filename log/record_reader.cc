// Every number is compared in 64 bits, where no sum of the 32-bit fields of a record can overflow.
#include "log/record_reader.h"

#include "base/mutant.h"

namespace sp3::log {
namespace {

// Whether the payload is runs that end exactly where it does.
bool well_formed_delta(const std::byte* at, std::uint64_t bytes) {
  while (bytes != 0) {
    if (bytes < sizeof(DeltaRun)) return false;
    DeltaRun run;
    std::memcpy(&run, at, sizeof run);
    if (run.count == 0) return false;  // no writer makes such
    const std::uint64_t used = sizeof run + std::uint64_t{run.count} * 8;
    if (used > bytes) return false;
    at += used;
    bytes -= used;
  }
  return true;
}

bool well_formed_payload(const WriteHeader& header, const std::byte* payload) {
  switch (static_cast<WriteKind>(header.kind)) {
    case WriteKind::image:
      return true;
    case WriteKind::delta:
      return well_formed_delta(payload, header.bytes);
    case WriteKind::make:
      return header.bytes >= sizeof(MakePrefix);
    case WriteKind::destroy:
      return header.bytes == 0;
    case WriteKind::range:  // no writer makes these in format 1
      break;
  }
  return false;
}

// Whether writes and dependencies fill the record exactly.
bool well_formed(const std::byte* record, const RecordHeader& header) {
  const std::uint64_t dependencies = std::uint64_t{header.dependencies} * sizeof(Dependency);
  std::uint64_t left = header.length - sizeof(RecordHeader);
  if (left < dependencies) return false;
  left -= dependencies;
  const std::byte* at = record + sizeof(RecordHeader);
  for (std::uint32_t i = 0; i < header.writes; ++i) {
    if (left < sizeof(WriteHeader)) return false;
    WriteHeader write;
    std::memcpy(&write, at, sizeof write);
    at += sizeof write;
    left -= sizeof write;
    if (write.bytes > left || write.bytes % 8 != 0 || !well_formed_payload(write, at)) return false;
    at += write.bytes;
    left -= write.bytes;
  }
  return left == 0;
}

}  // namespace

std::optional<RecordHeader> peek_header(const std::byte* begin, std::uint64_t available) {
  if (available < sizeof(RecordHeader)) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, begin, sizeof header);
  if (header.length < sizeof header || header.length > available || header.length % 8 != 0) {
    return std::nullopt;
  }
  if (header.kind != static_cast<std::uint16_t>(RecordKind::transaction) &&
      header.kind != static_cast<std::uint16_t>(RecordKind::watermark)) {
    return std::nullopt;
  }
  if (header.lsn == 0 || header.stamp > base::kMaxStamp) return std::nullopt;
  return header;
}

std::optional<RecordView> read_record(const std::byte* begin, std::uint64_t available,
                                      std::uint32_t seed, Verify verify) {
  const auto header = peek_header(begin, available);
  if (!header) return std::nullopt;
  const bool verified =
      verify == Verify::everything && !base::mutant(base::Mutant::recovery_ignores_checksum);
  if (verified && checksum_record(begin, header->length, seed) != header->crc) {
    return std::nullopt;
  }
  if (!well_formed(begin, *header)) return std::nullopt;
  return RecordView(begin, *header);
}

RecordView trusted_record(const std::byte* begin) {
  RecordHeader header;
  std::memcpy(&header, begin, sizeof header);
  return RecordView(begin, header);
}

bool delta_fits(std::span<const std::byte> payload, std::uint64_t size8) {
  bool fits = true;
  for_each_run(payload, [&](std::uint64_t offset, std::span<const std::byte> words) {
    fits = fits && offset + words.size() <= size8;
  });
  return fits;
}

}  // namespace sp3::log
