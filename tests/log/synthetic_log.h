// A pool file in DRAM whose log the test writes itself, record by record, torn or damaged as it
// likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "log/log_scanner.h"
#include "log/record_builder.h"
#include "pool/pool_file.h"
#include "tests/pool/support.h"
#include "tests/support/temp_path.h"

namespace sp3::test {

using log::Lsn;
using log::RecordBuilder;
using log::SessionId;
using log::Stamp;

inline Options synthetic_options(std::uint64_t log_size, std::uint32_t slab_size) {
  Options options;
  options.memory = MemoryKind::emulated;
  options.geometry = {log_size, 4096, slab_size, 7};  // and the library's own session
  return options;
}

class SyntheticPool {
 public:
  // One session's log, as its owner would write it.
  struct Writer {
    SessionId session = 0;
    Lsn next_lsn = 1;
    std::uint64_t position = 0;  // file offset of the next record
    std::uint64_t end = 0;       // of the run
  };
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // padded
  };

  explicit SyntheticPool(std::uint64_t size = 256 * 1024, std::uint64_t log_size = 64 * 1024,
                         std::uint32_t slab_size = 4096)
      : options_(synthetic_options(log_size, slab_size)) {
    auto file = pool::PoolFile::create(path_.path(), size, options_);
    layout = file->layout();
    superblock = file->superblock();
    file.reset();
    bytes = read_file(path_.path());
    superblock.fixed.state = static_cast<std::uint32_t>(pool::State::open);
    superblock.fixed.generation = 7;
    superblock.fixed.checkpoint_number = 3;
    superblock.fixed.number = 20;
  }

  [[nodiscard]] std::uint32_t seed(SessionId session) const {
    return log::seed(superblock.fixed.uuid, session, superblock.fixed.generation);
  }

  // Puts a header at `segment`; the session's next record follows it.
  void start_run(SessionId session, std::uint32_t segment, std::uint32_t segments = 1) {
    Writer& writer = this->writer(session);
    log::SegmentHeader header;
    header.generation = superblock.fixed.generation;
    header.first_lsn = writer.next_lsn;
    header.checkpoint_number = superblock.fixed.checkpoint_number;
    header.segments = segments;
    header.session = session;
    put_header(header, segment);
    writer.position = layout.segment_offset(segment) + sizeof header;
    writer.end = layout.segment_offset(segment) + std::uint64_t{segments} * layout.segment_size;
  }
  void put_header(log::SegmentHeader header, std::uint32_t segment) {
    header.crc = log::checksum(
        header, log::seed(superblock.fixed.uuid, header.session, header.generation), segment);
    std::memcpy(bytes.data() + layout.segment_offset(segment), &header, sizeof header);
  }

  // Seals the builder's record as the session's next and stores it. Starts a run in the next unused
  // segments if it does not fit.
  Place append(SessionId session, RecordBuilder& builder, Stamp stamp, Lsn persisted_upto = 0,
               log::RecordKind kind = log::RecordKind::transaction) {
    Writer& writer = this->writer(session);
    builder.seal(writer.next_lsn, stamp, persisted_upto, seed(session), kind);
    if (writer.position + builder.size() > writer.end) {
      const std::uint64_t wanted = sizeof(log::SegmentHeader) + builder.size();
      const auto segments =
          static_cast<std::uint32_t>((wanted + layout.segment_size - 1) / layout.segment_size);
      start_run(session, next_segment, segments);
      next_segment += segments;
      REQUIRE(next_segment <= layout.segments);
    }
    std::memcpy(bytes.data() + writer.position, builder.data(), builder.size());
    const Place place{writer.position, builder.size()};
    writer.position += builder.size();
    ++writer.next_lsn;
    return place;
  }
  // A record with one image of `size8` bytes, for tests that do not care.
  Place append_simple(SessionId session, Stamp stamp, Lsn persisted_upto = 0,
                      std::uint32_t size8 = 24) {
    const std::vector<std::byte> object(size8, std::byte{0x5A});
    builder_.reset();
    builder_.add_image(layout.slabs_offset + 128, object.data(), size8);
    return append(session, builder_, stamp, persisted_upto);
  }
  Place append_watermark(SessionId in, Stamp stamp, SessionId of, Lsn upto) {
    builder_.reset();
    builder_.add_dependency(of, upto);
    return append(in, builder_, stamp, 0, log::RecordKind::watermark);
  }
  void skip_to_block(SessionId session) {
    writer(session).position = base::round_up(writer(session).position, log::kFileBlock);
  }

  Writer& writer(SessionId session) {
    Writer& writer = writers_[session];
    writer.session = session;
    return writer;
  }

  [[nodiscard]] log::ScanResult scan(std::uint32_t threads = 1) const {
    emu::Executor executor(threads);
    return log::scan_logs(source(), superblock.fixed.floor, superblock.heads, executor);
  }
  [[nodiscard]] log::LogSource source() const {
    return {bytes.data(), layout, superblock.fixed.uuid, superblock.fixed.generation,
            superblock.fixed.checkpoint_number};
  }

  // Writes bytes and superblock to the file and opens it.
  [[nodiscard]] std::unique_ptr<pool::PoolFile> open() {
    save();
    return reopen();
  }
  [[nodiscard]] std::unique_ptr<pool::PoolFile> reopen() const {
    return pool::PoolFile::open(path_.path(), options_, pool::PoolFile::Access::read_write);
  }
  void save() {
    seal();
    write_file(path_.path(), bytes);
  }
  // Both superblock copies as `superblock` says.
  void seal() {
    for (const int copy : {0, 1}) {
      std::byte* at = bytes.data() + layout.superblock_offset(copy);
      std::memcpy(at, &superblock.fixed, sizeof superblock.fixed);
      std::memcpy(at + sizeof superblock.fixed, superblock.heads.data(),
                  superblock.heads.size() * sizeof(Lsn));
      seal_superblock(at);
    }
  }

  [[nodiscard]] const TempPath& path() const { return path_; }
  [[nodiscard]] const Options& options() const { return options_; }

  std::vector<std::byte> bytes;  // the file
  pool::Layout layout;
  pool::SuperblockImage superblock;
  std::uint32_t next_segment = 0;

 private:
  TempPath path_{"synthetic"};
  Options options_;
  std::map<SessionId, Writer> writers_;
  RecordBuilder builder_;
};

}  // namespace sp3::test
