#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "log/record_builder.h"
#include "log/record_reader.h"
#include "log/record_walker.h"

namespace sp3::log {
namespace {

constexpr std::uint32_t kSeed = 0xBEEF;

std::vector<std::byte> random_object(std::mt19937_64& random, std::uint32_t size8) {
  std::vector<std::byte> object(size8);
  for (std::byte& byte : object) byte = static_cast<std::byte>(random());
  return object;
}

// A record with one entry of each kind and two dependencies.
void build_mixed(RecordBuilder& builder, std::mt19937_64& random) {
  const auto before = random_object(random, 128);
  auto after = before;
  after[17] ^= std::byte{1};
  builder.reset();
  builder.add_image(0x1000, before.data(), 128);
  builder.add_update(0x2000, before.data(), after.data(), 128);
  builder.add_make(0x3000, {77, 120, 128}, after.data(), 120);
  builder.add_destroy(0x4000);
  builder.add_dependency(3, 1000);
  builder.add_dependency(9, 2000);
  builder.seal(5, 3000, 4, kSeed);
}

}  // namespace

TEST_CASE("a record reads back as it was built") {
  std::mt19937_64 random(1);
  RecordBuilder builder;
  build_mixed(builder, random);
  CHECK(builder.size() % kRecordAlignment == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(builder.data()) % kRecordAlignment == 0);
  const auto record = read_record(builder.data(), builder.size(), kSeed);
  REQUIRE(record);
  CHECK(record->lsn() == 5);
  CHECK(record->stamp() == 3000);
  CHECK(record->header().persisted_upto == 4);
  CHECK(record->length() == builder.length());
  std::vector<WriteView> writes;
  record->for_each_write([&](const WriteView& write) { writes.push_back(write); });
  REQUIRE(writes.size() == 4);
  CHECK(writes[0].kind == WriteKind::image);
  CHECK(writes[0].object().size() == 128);
  CHECK(writes[1].kind == WriteKind::delta);
  CHECK(writes[1].payload.size() == sizeof(DeltaRun) + 8);
  CHECK(writes[2].kind == WriteKind::make);
  CHECK(writes[2].make_prefix().type == 77);
  CHECK(writes[2].make_prefix().slot_size == 128);
  CHECK(writes[2].object().size() == 120);
  CHECK(writes[3].kind == WriteKind::destroy);
  CHECK(writes[3].slot == 0x4000);
  std::vector<base::Tid> dependencies;
  record->for_each_dependency([&](SessionId session, Stamp stamp) {
    dependencies.push_back({stamp, session});
  });
  CHECK(dependencies == std::vector<base::Tid>{{1000, 3}, {2000, 9}});
}

TEST_CASE("a flipped bit anywhere in a record makes it unreadable") {
  std::mt19937_64 random(2);
  RecordBuilder builder;
  build_mixed(builder, random);
  std::vector<std::byte> bytes(builder.data(), builder.data() + builder.size());
  for (std::size_t i = 0; i < builder.length(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte{1} << bit;
      CHECK_FALSE(read_record(bytes.data(), bytes.size(), kSeed));
      bytes[i] ^= std::byte{1} << bit;
    }
  }
  CHECK(read_record(bytes.data(), bytes.size(), kSeed));
  CHECK_FALSE(read_record(bytes.data(), bytes.size(), kSeed + 1));
  for (std::uint64_t cut = 0; cut < builder.length(); ++cut) {
    CHECK_FALSE(read_record(bytes.data(), cut, kSeed));
  }
}

TEST_CASE("a record whose entries do not fill it exactly is refused even with a right checksum") {
  std::mt19937_64 random(3);
  RecordBuilder builder;
  build_mixed(builder, random);
  const std::vector<std::byte> good(builder.data(), builder.data() + builder.size());
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = good;
    const std::size_t at = 4 + random() % (builder.length() - 4);
    bytes[at] = static_cast<std::byte>(random());
    RecordHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.length < sizeof header || header.length > bytes.size()) continue;
    header.crc = checksum_record(bytes.data(), header.length, kSeed);
    std::memcpy(bytes.data(), &header.crc, sizeof header.crc);
    const auto record = read_record(bytes.data(), bytes.size(), kSeed);
    if (!record) {
      ++refused;
      continue;
    }
    // What is accepted can be walked without leaving the record.
    record->for_each_write([&](const WriteView& write) {
      CHECK(write.payload.data() >= bytes.data());
      CHECK(write.payload.data() + write.payload.size() <= bytes.data() + record->length());
      if (write.kind == WriteKind::delta) (void)delta_fits(write.payload, 128);
    });
  }
  CHECK(refused > 100);
}

// Each of them alone, with a right checksum.
TEST_CASE("a record with a number that no writer gives is none") {
  struct Entry {
    WriteKind kind;
    std::uint32_t bytes;
  };
  const auto accepts = [](const std::vector<Entry>& entries, auto edit) {
    std::vector<std::byte> bytes(sizeof(RecordHeader));
    const auto put = [&bytes](const void* from, std::size_t size) {
      bytes.resize(bytes.size() + size);
      if (from != nullptr) std::memcpy(bytes.data() + bytes.size() - size, from, size);
    };
    for (const Entry& entry : entries) {
      WriteHeader header;
      header.bytes = entry.bytes;
      header.kind = static_cast<std::uint16_t>(entry.kind);
      put(&header, sizeof header);
      put(nullptr, entry.bytes);
    }
    RecordHeader header;
    header.length = static_cast<std::uint32_t>(bytes.size());
    header.lsn = 5;
    header.stamp = base::kMaxStamp;
    header.writes = static_cast<std::uint32_t>(entries.size());
    header.kind = static_cast<std::uint16_t>(RecordKind::transaction);
    edit(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    header.crc = checksum_record(bytes.data(), header.length, kSeed);
    std::memcpy(bytes.data(), &header.crc, sizeof header.crc);
    return read_record(bytes.data(), bytes.size(), kSeed).has_value();
  };
  const auto nothing = [](RecordHeader&) {};
  const std::vector<Entry> image{{WriteKind::image, 16}};
  CHECK(accepts(image, nothing));
  CHECK_FALSE(accepts(image, [](RecordHeader& header) { header.lsn = 0; }));
  CHECK_FALSE(accepts(image, [](RecordHeader& header) { header.stamp += 1; }));
  CHECK_FALSE(accepts(image, [](RecordHeader& header) { header.kind = 0; }));
  CHECK_FALSE(accepts(image, [](RecordHeader& header) { header.kind = 3; }));
  CHECK_FALSE(accepts({{WriteKind::image, 12}, {WriteKind::image, 12}}, nothing));
  CHECK(accepts({{WriteKind::make, sizeof(MakePrefix)}}, nothing));
  CHECK_FALSE(accepts({{WriteKind::make, sizeof(MakePrefix) - 8}}, nothing));
  CHECK(accepts({{WriteKind::destroy, 0}}, nothing));
  CHECK_FALSE(accepts({{WriteKind::destroy, 8}}, nothing));
  CHECK_FALSE(accepts({{WriteKind::range, 8}}, nothing));
}

TEST_CASE("a delta turns the old object into the new one and is never larger than it") {
  std::mt19937_64 random(4);
  RecordBuilder builder;
  for (int round = 0; round < 5000; ++round) {
    const auto words = static_cast<std::uint32_t>(1 + random() % (round % 10 == 0 ? 300 : 40));
    const std::uint32_t size8 = 8 * words;
    const auto before = random_object(random, size8);
    auto after = before;
    const std::uint64_t density = random() % 101;
    for (std::uint32_t i = 0; i < words; ++i) {
      if (random() % 100 < density) after[8 * i + random() % 8] ^= std::byte{0x10};
    }
    builder.reset();
    builder.add_update(64, before.data(), after.data(), size8);
    CHECK(builder.length() <= sizeof(RecordHeader) + RecordBuilder::update_bytes(size8));
    builder.seal(1, 1, 0, kSeed);
    CHECK(builder.size() <= RecordBuilder::max_record_bytes(RecordBuilder::update_bytes(size8), 0));
    const auto record = read_record(builder.data(), builder.size(), kSeed);
    REQUIRE(record);
    auto home = before;
    record->for_each_write([&](const WriteView& write) {
      if (write.kind == WriteKind::image) {
        std::memcpy(home.data(), write.payload.data(), write.payload.size());
        return;
      }
      REQUIRE(write.kind == WriteKind::delta);
      CHECK(write.payload.size() < size8);
      REQUIRE(delta_fits(write.payload, size8));
      for_each_run(write.payload, [&](std::uint64_t offset, std::span<const std::byte> run) {
        std::memcpy(home.data() + offset, run.data(), run.size());
      });
    });
    CHECK(home == after);
  }
}

TEST_CASE("an update that changes nothing is an empty delta") {
  const std::vector<std::byte> object(64);
  RecordBuilder builder;
  builder.add_update(64, object.data(), object.data(), 64);
  builder.seal(1, 1, 0, kSeed);
  CHECK(builder.length() == sizeof(RecordHeader) + sizeof(WriteHeader));
  CHECK(read_record(builder.data(), builder.size(), kSeed));
}

TEST_CASE("runs with one unchanged word between them are merged") {
  std::vector<std::uint64_t> before(16, 0);
  std::vector<std::uint64_t> after(16, 0);
  after[2] = after[4] = after[9] = 1;
  RecordBuilder builder;
  builder.add_update(64, before.data(), after.data(), 128);
  CHECK(builder.length() ==
        sizeof(RecordHeader) + sizeof(WriteHeader) + 2 * sizeof(DeltaRun) + 4 * 8);
}

TEST_CASE("a delta that reaches beyond its object does not fit") {
  const DeltaRun run{3, 1};
  std::vector<std::byte> payload(16);
  std::memcpy(payload.data(), &run, sizeof run);
  CHECK(delta_fits(payload, 32));
  CHECK_FALSE(delta_fits(payload, 24));
  const DeltaRun far{0xFFFFFFFF, 1};
  std::memcpy(payload.data(), &far, sizeof far);
  CHECK_FALSE(delta_fits(payload, 1 << 20));
}

// Replay along the graph had counted the lines that it changes, and ended the process.
TEST_CASE("a record with a run of no words is none") {
  std::vector<std::uint64_t> before(16, 0);
  std::vector<std::uint64_t> after(16, 0);
  after[2] = after[9] = 1;
  RecordBuilder builder;
  builder.add_update(64, before.data(), after.data(), 128);
  builder.seal(1, 1, 0, kSeed);
  std::vector<std::byte> record(builder.data(), builder.data() + builder.size());
  const auto put = [&](const DeltaRun& run) {
    std::memcpy(record.data() + sizeof(RecordHeader) + sizeof(WriteHeader), &run, sizeof run);
    RecordHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    header.crc = checksum_record(record.data(), header.length, kSeed);
    std::memcpy(record.data(), &header, sizeof header);
  };
  put({2, 1});
  CHECK(read_record(record.data(), record.size(), kSeed));
  put({2, 0});  // the word behind it looks like another such run
  CHECK_FALSE(read_record(record.data(), record.size(), kSeed));
}

TEST_CASE("a builder grows with its record and keeps what was added") {
  RecordBuilder builder;
  const std::vector<std::byte> object(1000 * 8, std::byte{7});
  for (std::uint64_t i = 1; i <= 50; ++i) builder.add_image(i * 8192, object.data(), 8000);
  builder.seal(1, 1, 0, kSeed);
  const auto record = read_record(builder.data(), builder.size(), kSeed);
  REQUIRE(record);
  std::uint64_t slot = 0;
  record->for_each_write([&](const WriteView& write) {
    CHECK(write.slot == slot + 8192);
    slot = write.slot;
  });
  CHECK(slot == 50 * 8192);
}

TEST_CASE("nothing of a longer record shows in the padding of the next one") {
  std::mt19937_64 random(8);
  const auto object = random_object(random, 256);
  RecordBuilder builder;
  builder.add_image(0x1000, object.data(), 256);
  builder.reset();
  builder.add_image(0x1000, object.data(), 16);
  builder.seal(1, 1, 0, kSeed);
  REQUIRE(builder.length() < builder.size());
  for (std::uint64_t i = builder.length(); i < builder.size(); ++i) {
    CHECK(builder.data()[i] == std::byte{0});
  }
}

TEST_CASE("runs that take as many bytes as their object are logged as its image") {
  std::mt19937_64 random(9);
  const auto object = random_object(random, 64);
  const auto kind_of = [&object](const std::vector<ByteRun>& runs) {
    RecordBuilder builder;
    builder.add_runs(0x1000, runs, object.data(), 64);
    builder.seal(1, 1, 0, kSeed);
    CHECK(builder.length() == sizeof(RecordHeader) + RecordBuilder::runs_bytes(runs, 64));
    WriteKind kind = WriteKind::destroy;
    const auto record = read_record(builder.data(), builder.size(), kSeed);
    REQUIRE(record);
    record->for_each_write([&](const WriteView& write) { kind = write.kind; });
    return kind;
  };
  CHECK(kind_of({{0, 48}}) == WriteKind::delta);
  CHECK(kind_of({{0, 56}}) == WriteKind::image);
  CHECK(kind_of({{0, 64}}) == WriteKind::image);
}

TEST_CASE("a live log is walked from one LSN to another across its runs") {
  std::vector<std::vector<std::byte>> memory(3, std::vector<std::byte>(4096));
  std::vector<LiveRun> runs;
  RecordBuilder builder;
  Lsn lsn = 1;
  for (auto& bytes : memory) {
    runs.push_back({bytes, lsn});
    std::uint64_t at = sizeof(SegmentHeader);
    for (int i = 0; i < 5; ++i, ++lsn) {
      builder.reset();
      builder.add_destroy(64);
      builder.seal(lsn, 100 + lsn, 0, kSeed);
      std::memcpy(bytes.data() + at, builder.data(), builder.size());
      at += builder.size();
    }
  }
  std::vector<Lsn> seen;
  const auto collect = [&](const RecordView& record) { seen.push_back(record.lsn()); };
  CHECK(for_each_record(runs, 4, 12, collect) == 13);
  CHECK(seen == std::vector<Lsn>{4, 5, 6, 7, 8, 9, 10, 11, 12});
  seen.clear();
  CHECK(for_each_record(runs, 11, 99, collect) == 16);
  CHECK(seen == std::vector<Lsn>{11, 12, 13, 14, 15});
  // The first record of the second run is not one any more: the third does not make up for it.
  memory[1][sizeof(SegmentHeader) + offsetof(RecordHeader, lsn)] ^= std::byte{0x40};
  seen.clear();
  CHECK(for_each_record(runs, 4, 15, collect) == 6);
  CHECK(seen == std::vector<Lsn>{4, 5});
}

}  // namespace sp3::log
