// What a record says of itself is believed only as far as it has the bytes: behind each of these
// there is memory that cannot be read.
#include <cstring>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "base/align.h"
#include "log/record_builder.h"
#include "log/record_reader.h"

namespace sp3::log {
namespace {

constexpr std::uint32_t kSeed = 0xBEEF;

class Edge {
 public:
  Edge()
      : pages_(static_cast<std::byte*>(::mmap(nullptr, 2 * base::kPage, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(pages_ != MAP_FAILED);
    REQUIRE(::mprotect(pages_ + base::kPage, base::kPage, PROT_NONE) == 0);
  }
  ~Edge() { ::munmap(pages_, 2 * base::kPage); }
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;

  // Whether that is a record where there are no bytes behind it.
  bool accepts(const std::vector<std::byte>& bytes) {
    std::byte* const at = pages_ + base::kPage - bytes.size();
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    return read_record(at, bytes.size(), kSeed).has_value();
  }

 private:
  std::byte* pages_;
};

RecordHeader header_of(std::uint32_t length) {
  RecordHeader header;
  header.length = length;
  header.lsn = 5;
  header.stamp = 7;
  header.kind = static_cast<std::uint16_t>(RecordKind::transaction);
  return header;
}

// The header and what follows, with a right checksum if it says how long it is.
std::vector<std::byte> seal(RecordHeader header, const std::vector<std::byte>& rest = {}) {
  std::vector<std::byte> bytes(sizeof header + rest.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof header, rest.data(), rest.size());
  if (header.length == bytes.size()) {
    header.crc = checksum_record(bytes.data(), header.length, kSeed);
    std::memcpy(bytes.data(), &header.crc, sizeof header.crc);
  }
  return bytes;
}

std::vector<std::byte> write_entry(WriteKind kind, std::uint32_t says, std::size_t has) {
  WriteHeader write;
  write.slot = 0x1000;
  write.kind = static_cast<std::uint16_t>(kind);
  write.bytes = says;
  std::vector<std::byte> bytes(sizeof write + has);
  std::memcpy(bytes.data(), &write, sizeof write);
  return bytes;
}

TEST_CASE("less than a record's header is none, and nothing behind it is read") {
  Edge edge;
  const auto whole = seal(header_of(sizeof(RecordHeader)));
  CHECK(edge.accepts(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(edge.accepts({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
  }
}

TEST_CASE("a record that is shorter than its header, or longer than what is there, is none") {
  Edge edge;
  for (const std::uint32_t length : {0U, 8U, 32U, 48U, 4096U, ~7U, ~0U}) {
    CHECK_FALSE(edge.accepts(seal(header_of(length))));
  }
}

TEST_CASE("a record has no room for more entries than it has") {
  Edge edge;
  const auto accepts = [&](std::uint32_t writes, std::uint16_t dependencies,
                           const std::vector<std::byte>& rest) {
    RecordHeader header = header_of(static_cast<std::uint32_t>(sizeof header + rest.size()));
    header.writes = writes;
    header.dependencies = dependencies;
    return edge.accepts(seal(header, rest));
  };
  const std::vector<std::byte> dependency(sizeof(Dependency));
  CHECK(accepts(0, 1, dependency));
  CHECK_FALSE(accepts(0, 2, dependency));
  CHECK_FALSE(accepts(1, 1, dependency));
  CHECK_FALSE(accepts(1, 2, dependency));
  CHECK_FALSE(accepts(1, 65535, dependency));
  CHECK_FALSE(accepts(1, 1, {}));
  const auto image = write_entry(WriteKind::image, 16, 16);
  CHECK(accepts(1, 0, image));
  CHECK_FALSE(accepts(2, 0, image));
  CHECK_FALSE(accepts(~0U, 0, image));
  CHECK_FALSE(accepts(1, 0, std::vector<std::byte>(8)));  // half of a write's header
  CHECK_FALSE(accepts(1, 0, write_entry(WriteKind::image, 24, 16)));
  CHECK_FALSE(accepts(1, 0, write_entry(WriteKind::delta, ~7U, 16)));
}

TEST_CASE("a record with bytes that belong to no entry is none") {
  Edge edge;
  auto image = write_entry(WriteKind::image, 16, 16);
  RecordHeader header = header_of(static_cast<std::uint32_t>(sizeof header + image.size() + 8));
  header.writes = 1;
  image.resize(image.size() + 8);
  CHECK_FALSE(edge.accepts(seal(header, image)));
  CHECK_FALSE(edge.accepts(seal(header_of(sizeof(RecordHeader) + 8), std::vector<std::byte>(8))));
}

// Of the bytes that a view of a ranged object may change, the log has whole words.
TEST_CASE("runs of bytes are logged as the words that hold them") {
  std::vector<std::byte> object(128);
  for (std::size_t i = 0; i < object.size(); ++i) object[i] = static_cast<std::byte>(i);
  const auto logged = [&](const std::vector<ByteRun>& runs) {
    RecordBuilder builder;
    builder.add_runs(0x1000, runs, object.data(), static_cast<std::uint32_t>(object.size()));
    builder.seal(1, 1, 0, kSeed);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    const auto record = read_record(builder.data(), builder.size(), kSeed);
    REQUIRE(record);
    record->for_each_write([&](const WriteView& write) {
      REQUIRE(write.kind == WriteKind::delta);
      for_each_run(write.payload, [&](std::uint64_t offset, std::span<const std::byte> words) {
        CHECK(std::memcmp(words.data(), object.data() + offset, words.size()) == 0);
        found.emplace_back(offset, offset + words.size());
      });
    });
    return found;
  };
  using Words = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  CHECK(logged({{16, 24}}) == Words{{16, 24}});
  CHECK(logged({{17, 18}}) == Words{{16, 24}});
  CHECK(logged({{23, 25}}) == Words{{16, 32}});
  CHECK(logged({{16, 25}}) == Words{{16, 32}});
  CHECK(logged({{3, 8}, {57, 64}, {127, 128}}) == Words{{0, 8}, {56, 64}, {120, 128}});
}

}  // namespace
}  // namespace sp3::log
