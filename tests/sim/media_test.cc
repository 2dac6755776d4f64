// What may be left of stores after a power loss, by every kind of flush.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/memory.h"
#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "emu/sim/media.h"
#include "pool/pool_file.h"
#include "pool/slab_directory.h"
#include "pool/superblock.h"
#include "sim/images.h"

namespace sp3::test {
namespace {

using emu::sim::Media;
using emu::sim::Medium;
using emu::sim::Random;

constexpr std::uint64_t kBytes = 4096;

struct Lines : Media {
  explicit Lines(Medium medium = Medium::lines) {
    resize(kBytes);
    use_as(medium);
  }
  void set(std::uint64_t word, std::uint64_t value, Core core = 0, bool non_temporal = false) {
    store(core, word * 8, &value, 8, non_temporal);
  }
};

// The only unit's first content is what it has for certain, its last what loads find.
template <std::size_t Bytes>
void check_ends(Lines& media) {
  const std::vector<Media::Pending> pending = media.pending();
  REQUIRE(pending.size() == 1);
  std::array<std::byte, Bytes> unit{};
  media.content_of(0, 0, unit.data());
  CHECK(std::equal(unit.begin(), unit.end(), media.certain()));
  media.content_of(0, pending[0].contents - 1, unit.data());
  CHECK(std::equal(unit.begin(), unit.end(), media.now()));
}

std::uint64_t word_of(const std::byte* bytes, std::uint64_t word) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes + word * 8, 8);
  return value;
}

// All images of `media`, as the values of the given words.
std::set<std::vector<std::uint64_t>> images(Media& media, const std::vector<std::uint64_t>& words) {
  std::set<std::vector<std::uint64_t>> result;
  Random choose(1);
  Media image;
  sim::for_each_image(media, 1 << 16, 0, choose, [&](const auto& choices, const auto& hash) {
    image.follow(media, choices);
    CHECK(image.hash() == hash);
    CHECK(std::equal(image.now(), image.now() + kBytes, image.certain()));
    std::vector<std::uint64_t> values;
    for (const std::uint64_t word : words) values.push_back(word_of(image.now(), word));
    result.insert(values);
  });
  return result;
}

using Set = std::set<std::vector<std::uint64_t>>;

}  // namespace

TEST_CASE("stores of one group survive in any subset of their words") {
  Lines media;
  media.set(0, 1);
  media.set(1, 2);
  CHECK(word_of(media.now(), 0) == 1);
  CHECK(word_of(media.certain(), 0) == 0);
  CHECK(images(media, {0, 1}) == Set{{0, 0}, {1, 0}, {0, 2}, {1, 2}});
}

TEST_CASE("a word is never torn, nor are the bytes beside a small store lost") {
  Lines media;
  media.set(0, 0x1111111111111111);
  media.flush(0, 0, 8, false);
  media.fence(0);
  const std::array<unsigned char, 2> two = {0xAA, 0xBB};
  media.store(0, 3, two.data(), two.size(), false);
  CHECK(images(media, {0}) == Set{{0x1111111111111111}, {0x111111BBAA111111}});
}

TEST_CASE("a store across two words is two stores") {
  Lines media;
  const std::array<unsigned char, 2> two = {0xAA, 0xBB};
  media.store(0, 7, two.data(), two.size(), false);
  CHECK(images(media, {0, 1}).size() == 4);
}

TEST_CASE("clwb and clflushopt need the fence of the core that flushed") {
  Lines media;
  media.set(0, 1);
  media.flush(0, 0, 8, false);
  CHECK(images(media, {0}) == Set{{0}, {1}});
  media.fence(1);
  CHECK(images(media, {0}) == Set{{0}, {1}});
  media.fence(0);
  CHECK(images(media, {0}) == Set{{1}});
  CHECK(media.pending().empty());
}

TEST_CASE("a flush covers what was stored before it, and a fence nothing that was not flushed") {
  Lines media;
  media.set(0, 1);
  media.flush(0, 0, 8, false);
  media.set(1, 2);
  media.set(64, 3);  // another line
  media.fence(0);
  CHECK(images(media, {0, 1, 64}) == Set{{1, 0, 0}, {1, 2, 0}, {1, 0, 3}, {1, 2, 3}});
}

TEST_CASE("a helper's flush and fence cover another core's stores") {
  Lines media;
  media.set(0, 1, 0);
  media.flush(1, 0, 8, false);
  media.fence(1);
  CHECK(images(media, {0}) == Set{{1}});
}

TEST_CASE("clflush needs no fence") {
  Lines media;
  media.set(0, 1);
  media.flush(0, 0, 8, true);
  CHECK(images(media, {0}) == Set{{1}});
}

TEST_CASE("non-temporal stores need their own core's fence and no flush") {
  Lines media;
  media.set(0, 1, 0, true);
  media.flush(1, 0, 8, false);
  media.fence(1);
  CHECK(images(media, {0}) == Set{{0}, {1}});
  media.flush(1, 0, 8, true);
  CHECK(images(media, {0}) == Set{{0}, {1}});
  media.fence(0);
  CHECK(images(media, {0}) == Set{{1}});
}

TEST_CASE("what a core has streamed and not fenced may be missing from under another's store") {
  for (const bool at_once : {false, true}) {
    Lines media;
    media.set(0, 1, 0, true);
    media.set(1, 2, 1);
    CHECK(images(media, {0, 1}) == Set{{0, 0}, {1, 0}, {0, 2}, {1, 2}});
    media.flush(1, 0, 16, at_once);
    media.fence(1);
    CHECK(images(media, {0, 1}) == Set{{0, 2}, {1, 2}});  // the other's word is durable
    media.fence(0);
    CHECK(images(media, {0, 1}) == Set{{1, 2}});
  }
}

TEST_CASE("what a core streams lies on top of what the line held, whoever stores next") {
  Lines media;
  media.set(0, 1, 1);
  media.set(1, 2, 0, true);
  media.set(2, 3, 1);
  media.set(3, 4, 2, true);
  CHECK(images(media, {0, 1, 2, 3}) == Set{{0, 0, 0, 0},
                                           {1, 0, 0, 0},
                                           {1, 2, 0, 0},
                                           {1, 0, 3, 0},
                                           {1, 2, 3, 0},
                                           {1, 0, 3, 4},
                                           {1, 2, 3, 4}});
  media.fence(0);
  CHECK(images(media, {0, 1, 2, 3}) == Set{{1, 2, 0, 0}, {1, 2, 3, 0}, {1, 2, 3, 4}});
  media.fence(2);
  CHECK(images(media, {0, 1, 2, 3}) == Set{{1, 2, 3, 4}});
}

TEST_CASE("a store over a streamed one, of the same value or another, is durable by itself") {
  for (const std::uint64_t value : {std::uint64_t{1}, std::uint64_t{2}}) {
    Lines media;
    media.set(0, 1, 0, true);
    media.set(0, value, 1);
    media.flush(1, 0, 8, false);
    media.fence(1);
    CHECK(images(media, {0}) == Set{{value}});
    media.fence(0);
    CHECK(images(media, {0}) == Set{{value}});
    CHECK(media.pending().empty());
  }
}

TEST_CASE("of many streamed pieces the contents include nothing and everything") {
  Lines media;
  for (std::uint64_t i = 0; i < 40; ++i) {
    media.set(i % 8, i + 1, static_cast<Media::Core>(i % 3), i % 3 != 0);
  }
  check_ends<64>(media);
}

TEST_CASE("a non-temporal store of what the cache holds makes it durable") {
  Lines media;
  media.set(0, 1, 0);
  media.set(0, 1, 1, true);
  CHECK(images(media, {0}) == Set{{0}, {1}});
  media.fence(1);
  CHECK(images(media, {0}) == Set{{1}});
}

TEST_CASE("between two flushes or fences a line's stores reach the media in their order") {
  for (const bool by_flush : {true, false}) {
    Lines media;
    media.set(0, 1);
    if (by_flush) {
      media.flush(0, 0, 8, false);
    } else {
      media.fence(0);
    }
    media.set(1, 2);
    CHECK(images(media, {0, 1}) == Set{{0, 0}, {1, 0}, {1, 2}});
  }
}

TEST_CASE("the stores of two cores to one line reach the media in their order") {
  Lines media;
  media.set(0, 1, 0);
  media.set(1, 2, 1);
  CHECK(images(media, {0, 1}) == Set{{0, 0}, {1, 0}, {1, 2}});
}

TEST_CASE("lines know no order between them") {
  Lines media;
  media.set(0, 1);
  media.fence(0);
  media.set(8, 2);
  CHECK(images(media, {0, 8}) == Set{{0, 0}, {1, 0}, {0, 2}, {1, 2}});
}

TEST_CASE("a word stored twice may have any of its values") {
  Lines media;
  media.set(0, 1);
  media.set(0, 2);
  CHECK(images(media, {0}) == Set{{0}, {1}, {2}});
}

TEST_CASE("of what is stored to a file any words may be written, until a sync that began later") {
  Lines media(Medium::sectors);
  media.set(0, 1);
  const std::uint64_t begun = media.begin_sync();
  media.set(0, 3, 1);
  media.set(8, 2);   // another line of the sector
  media.set(64, 4);  // the next sector
  Set all;
  for (const std::uint64_t first : {0U, 1U, 3U}) {
    for (const std::uint64_t second : {0U, 2U}) {
      for (const std::uint64_t next : {0U, 4U}) all.insert({first, second, next});
    }
  }
  CHECK(images(media, {0, 8, 64}) == all);
  media.flush(0, 0, 512, false);
  media.fence(0);
  CHECK(images(media, {0, 8, 64}) == all);
  media.end_sync(begun);
  std::erase_if(all, [](const auto& image) { return image[0] == 0; });
  CHECK(images(media, {0, 8, 64}) == all);
}

TEST_CASE(
    "what is written past the page cache is kept or lost by sectors, one call after another") {
  Lines media(Medium::sectors);
  std::array<std::uint64_t, 128> two{};  // sectors
  two[0] = 1;
  two[1] = 2;
  two[64] = 4;
  media.write_sectors(0, 0, two.data(), sizeof two);
  two[0] = 3;
  media.write_sectors(0, 0, two.data(), 512);
  CHECK(images(media, {0, 1, 64}) ==
        Set{{0, 0, 0}, {1, 2, 0}, {3, 2, 0}, {0, 0, 4}, {1, 2, 4}, {3, 2, 4}});
  media.end_sync(media.begin_sync());
  CHECK(media.pending().empty());
}

TEST_CASE("of many stores to a sector each line may have those up to some point") {
  Lines media(Medium::sectors);
  for (std::uint64_t word = 0; word < 64; ++word) media.set(word, 1);
  for (std::uint64_t word = 0; word < 16; ++word) media.set(word / 8, word + 2);  // line 0
  check_ends<512>(media);
  const std::vector<Media::Pending> pending = media.pending();
  std::array<std::byte, 512> sector{};
  Random choose(9);
  std::array<std::set<std::uint64_t>, 8> lengths;
  std::set<std::pair<bool, bool>> order;  // whether the second line is there, and the last
  for (int round = 0; round < 1000; ++round) {
    media.content_of(0, choose.below(pending[0].contents), sector.data());
    for (std::uint64_t line = 1; line < 8; ++line) {
      std::uint64_t length = 0;
      while (length < 8 && word_of(sector.data(), line * 8 + length) == 1) ++length;
      for (std::uint64_t word = length; word < 8; ++word) {
        REQUIRE(word_of(sector.data(), line * 8 + word) == 0);
      }
      lengths[line].insert(length);
    }
    order.emplace(word_of(sector.data(), 8) != 0, word_of(sector.data(), 63) != 0);
  }
  for (std::uint64_t line = 1; line < 8; ++line) CHECK(lengths[line].size() == 9);
  CHECK(order.size() == 4);
}

TEST_CASE("a killed process leaves its stores visible and as uncertain as they were") {
  Lines media;
  media.set(0, 1, 0, true);
  media.set(8, 2);
  media.flush(0, 64, 8, false);
  Media left;
  left.follow_killed(media);
  CHECK(word_of(left.now(), 0) == 1);
  CHECK(word_of(left.now(), 8) == 2);
  CHECK(images(left, {0, 8}) == Set{{0, 0}, {1, 0}, {0, 2}, {1, 2}});
  left.fence(0);  // the flush was the dead process's
  CHECK(images(left, {0, 8}).size() == 4);
  left.flush(0, 0, 512, false);
  left.fence(0);
  CHECK(images(left, {0, 8}) == Set{{1, 2}});
}

TEST_CASE("a follower equals its base's image whatever was done to either") {
  Lines base;
  Media follower;
  Media second;
  Random choose(7);
  for (int round = 0; round < 2000; ++round) {
    for (std::uint64_t i = choose.below(6); i-- > 0;) {
      const std::uint64_t word = choose.below(kBytes / 8);
      base.set(word, choose(), static_cast<Media::Core>(choose.below(2)), choose.one_in(8));
      if (choose.one_in(2)) base.flush(0, word * 8, 8, choose.one_in(4));
      if (choose.one_in(3)) base.fence(static_cast<Media::Core>(choose.below(2)));
    }
    std::vector<Media::Choice> choices;
    std::vector<std::byte> wanted(base.certain(), base.certain() + kBytes);
    for (const Media::Pending& p : base.pending()) {
      if (choose.one_in(2)) continue;
      choices.push_back({p.unit, choose.below(p.contents)});
      base.content_of(p.unit, choices.back().content, wanted.data() + p.unit * 64);
    }
    follower.follow(base, choices);
    REQUIRE(std::equal(wanted.begin(), wanted.end(), follower.now()));
    REQUIRE(std::equal(wanted.begin(), wanted.end(), follower.certain()));
    const std::uint64_t value = choose();
    follower.store(0, choose.below(kBytes / 8) * 8, &value, 8, false);
    if (choose.one_in(2)) follower.flush(0, 0, kBytes, false);
    follower.fence(0);
    second.follow(follower, {});
    REQUIRE(std::equal(follower.certain(), follower.certain() + kBytes, second.now()));
    Media copy;
    copy.copy(base, choices);
    REQUIRE(std::equal(wanted.begin(), wanted.end(), copy.now()));
    REQUIRE(copy.hash() == [&] {
      Media fresh;
      fresh.copy(copy, {});
      return fresh.hash();
    }());
  }
}

TEST_CASE("a failed sync writes a sector, keeps it to be written, or loses it in the cache") {
  constexpr std::uint64_t kSectors = kBytes / 512;
  constexpr std::uint64_t kWords = 64;  // in a sector
  Random choose(5);
  std::set<std::string> fates;
  for (int round = 0; round < 50; ++round) {
    Lines file(Medium::sectors);
    for (std::uint64_t sector = 0; sector < kSectors; ++sector) file.set(sector * kWords, 1);
    const std::uint64_t begun = file.begin_sync();
    file.set(kWords + 1, 2);  // too late for the sync
    file.fail_sync(begun, choose);
    std::set<std::uint32_t> pending;
    for (const Media::Pending& p : file.pending()) pending.insert(p.unit);
    std::vector<std::uint64_t> lost;
    for (std::uint64_t sector = 0; sector < kSectors; ++sector) {
      CHECK(word_of(file.now(), sector * kWords) == 1);  // loads find it in any case
      const bool written = word_of(file.certain(), sector * kWords) == 1;
      const bool waits = pending.count(static_cast<std::uint32_t>(sector)) != 0;
      if (sector == 1) {
        CHECK(waits);
        continue;
      }
      CHECK_FALSE((written && waits));
      fates.insert(written ? "written" : waits ? "waits" : "lost");
      if (!written && !waits) lost.push_back(sector);
    }
    // The next sync writes what waits, and not what was lost, unless that is stored to again.
    if (!lost.empty()) file.set(lost[0] * kWords + 2, 3);
    file.end_sync(file.begin_sync());
    CHECK(file.pending().empty());
    CHECK(word_of(file.certain(), kWords + 1) == 2);
    for (std::uint64_t sector = 0; sector < kSectors; ++sector) {
      const auto place = std::find(lost.begin(), lost.end(), sector);
      const bool still_lost = place != lost.end() && place != lost.begin();
      CHECK(word_of(file.certain(), sector * kWords) == (still_lost ? 0 : 1));
    }
  }
  CHECK(fates == std::set<std::string>{"lost", "waits", "written"});
}

TEST_CASE("what is sampled includes the extremes") {
  Lines media;
  for (std::uint64_t word = 0; word < 32; ++word) media.set(word, word + 1);
  Random choose(3);
  Media image;
  bool nothing = false;
  bool everything = false;
  std::size_t alone = 0;
  std::size_t visits = 0;
  sim::for_each_image(media, 100, 50, choose, [&](const auto& choices, const auto&) {
    ++visits;
    image.follow(media, choices);
    nothing = nothing || choices.empty();
    everything = everything || std::equal(media.now(), media.now() + kBytes, image.now());
    const bool whole = choices.size() == 1 && std::equal(media.now() + choices[0].unit * 64,
                                                         media.now() + choices[0].unit * 64 + 64,
                                                         image.now() + choices[0].unit * 64);
    alone += whole ? 1 : 0;
  });
  CHECK(nothing);
  CHECK(everything);
  CHECK(alone >= 4);
  CHECK(visits == 50);
}

TEST_CASE("of a block whose writing failed any sectors may have arrived, all and none among them") {
  constexpr std::uint64_t kBlocks = 200;
  constexpr std::uint64_t kSectors = emu::kFileBlock / 512;
  emu::sim::Machine machine({});
  const emu::sim::Machine::Use use(machine);
  const int fd = machine.files().create_unnamed();
  machine.files().resize(fd, kBlocks * emu::kFileBlock);
  emu::MemoryOptions options;
  options.kind = MemoryKind::file;
  options.log_length = kBlocks * emu::kFileBlock;
  const auto memory = emu::Memory::map(fd, "log", options.log_length, options);
  const std::vector<std::byte> ones(emu::kFileBlock, std::byte{1});
  std::set<std::string> arrived;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    const std::uint64_t begin = block * emu::kFileBlock;
    memory->log_store(begin, ones.data(), ones.size(), false);
    emu::inject_io_error(EIO, 1);
    emu::FlushCounts counts;
    REQUIRE_FALSE(memory->log_flush(begin, ones.size(), false, counts).ok());
    std::string which;
    for (std::uint64_t sector = 0; sector < kSectors; ++sector) {
      which += memory->view()[begin + sector * 512] == std::byte{1} ? '1' : '0';
    }
    arrived.insert(which);
  }
  CHECK(arrived.count(std::string(kSectors, '1')) == 1);
  CHECK(arrived.count(std::string(kSectors, '0')) == 1);
  CHECK(arrived.size() > 50);
}

// The pools of campaigns are small: their bitmaps and heads are no longer than a line.
TEST_CASE("metadata of many lines is durable after its fence") {
  emu::sim::Machine machine({});
  const emu::sim::Machine::Use use(machine);
  Options options;
  options.memory = MemoryKind::emulated;
  options.geometry = {
      .log_size = 1 << 20, .segment_size = 4096, .slab_size = 64 * 1024, .max_sessions = 200};
  const auto file = pool::PoolFile::create("pool", 2 << 20, options);
  Media& media = machine.files().find("pool")->media;
  REQUIRE(media.pending().empty());
  auto directory = pool::SlabDirectory::load(file->memory(), file->layout(), file->identity(), 0);
  const pool::ObjectClass objects{.type = 7, .type_size = 16, .slot_size = 16};
  pool::Bitmap bitmap(pool::slab_shape(options.geometry.slab_size, 16).bitmap_bytes / 8);
  REQUIRE(bitmap.size() > 32);
  for (std::size_t i = 0; i < bitmap.size() - 8; ++i) bitmap[i] = 0x5555'5555'5555'5555;
  pool::SuperblockImage image = file->superblock();
  std::iota(image.heads.begin(), image.heads.end(), base::Lsn{10});
  for (const int copy : {0, 1}) {
    emu::FlushCounts counts;
    directory.store(file->memory(), copy, 1, pool::record_of(objects), bitmap, counts);
    pool::write_superblock(file->memory(), file->layout(), copy, image, counts);
    CHECK(media.pending().size() > 30);
    REQUIRE(file->memory().fence(counts).ok());
    CHECK(media.pending().empty());
  }
}

}  // namespace sp3::test
