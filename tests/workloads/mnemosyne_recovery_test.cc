// Recovery of Mnemosyne's store from what a power loss could leave: words of old content, logs of
// which any word is missing, truncation that got part of the way.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"
#include "workloads/systems/mnemosyne/engine.h"
#include "workloads/systems/word_tm/system.h"

using namespace sp3::workloads;
using namespace sp3::workloads::mnemosyne;
using sp3::test::TempPath;

namespace {

using Image = std::vector<std::uint64_t>;  // a file, in 64-bit words
using Cells = std::vector<std::uint64_t>;
constexpr std::uint64_t kCells = 24;

sp3::Options emulated() {
  sp3::Options options;
  options.memory = sp3::MemoryKind::emulated;
  return options;
}

Image read_image(const TempPath& path) {
  Image image(std::filesystem::file_size(path.path()) / sizeof(std::uint64_t));
  std::ifstream file(path.path(), std::ios::binary);
  file.read(reinterpret_cast<char*>(image.data()),
            static_cast<std::streamsize>(image.size() * sizeof(std::uint64_t)));
  REQUIRE(file);
  return image;
}

void write_image(const TempPath& path, const Image& image) {
  std::ofstream file(path.path(), std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.size() * sizeof(std::uint64_t)));
  file.close();
  REQUIRE(file);
}

void store_all(Engine& engine, Engine::Client& client, std::uint64_t value) {
  word_tm::update(engine, client, [&](Engine::Tx& tx) {
    const word_tm::Word cells = tx.load(word_tm::kRoot);
    for (std::uint64_t i = 0; i < kCells; ++i) tx.store(cells + i, value + i);
    return true;
  });
}

Cells cells_of(Engine& engine) {
  Engine::Client client(engine);
  Cells cells(kCells);
  word_tm::read(engine, client, [&](Engine::Tx& tx) {
    tx.load(tx.load(word_tm::kRoot), cells.data(), kCells);
    return true;
  });
  return cells;
}

Cells counting_from(std::uint64_t value) {
  Cells cells(kCells);
  for (std::uint64_t i = 0; i < kCells; ++i) cells[i] = value + i;
  return cells;
}

Cells recovered(const Image& image) {
  const TempPath path("mnemosyne");
  write_image(path, image);
  Engine engine(path.path(), emulated());
  return cells_of(engine);
}

// A store whose cells count from 100, with empty logs; then what the given transactions leave of it
// in memory, its words as they were: only the logs are new.
struct Crash {
  Image before;
  Image logged;
};
template <class F>
Crash crash_after(F transactions) {
  const TempPath path("mnemosyne");
  {
    Engine engine(path.path(), 0, emulated());
    Engine::Client client(engine);
    word_tm::update(engine, client, [](Engine::Tx& tx) {
      tx.store(word_tm::kRoot, tx.allocate(kCells));
      return true;
    });
    store_all(engine, client, 100);
  }
  Engine engine(path.path(), emulated());  // clears the logs
  Crash crash{read_image(path), {}};
  transactions(engine);
  const Image after = read_image(path);
  const Layout layout(after.size() * sizeof(std::uint64_t));
  crash.logged = crash.before;
  const auto logs = static_cast<std::ptrdiff_t>(Layout::kLogStart / sizeof(std::uint64_t));
  const auto words = static_cast<std::ptrdiff_t>(layout.words_at / sizeof(std::uint64_t));
  std::copy(after.begin() + logs, after.begin() + words, crash.logged.begin() + logs);
  return crash;
}

}  // namespace

TEST_CASE("A logged transaction is replayed, and one that lost any word of its record is not") {
  const Crash crash = crash_after([](Engine& engine) {
    Engine::Client client(engine);
    store_all(engine, client, 200);
  });
  CHECK(recovered(crash.before) == counting_from(100));
  CHECK(recovered(crash.logged) == counting_from(200));
  std::size_t cuts = 0;
  Image prefix = crash.before;
  for (std::size_t i = 0; i < crash.logged.size(); ++i) {
    if (crash.logged[i] == crash.before[i]) continue;
    ++cuts;
    if (recovered(prefix) != counting_from(100)) FAIL("a record cut before word " << i);
    prefix[i] = crash.logged[i];
    Image hole = crash.logged;
    hole[i] = crash.before[i];
    if (recovered(hole) != counting_from(100)) FAIL("a record without word " << i);
  }
  CHECK(cuts == log_words(kRecordHead + 2 * kCells));
}

TEST_CASE("Records of several logs are replayed in the order of their times") {
  const Crash crash = crash_after([](Engine& engine) {
    Engine::Client first(engine);
    Engine::Client second(engine);
    for (std::uint64_t i = 2; i < 12; ++i) {
      store_all(engine, i % 3 == 0 ? first : second, 100 * i);
    }
  });
  CHECK(recovered(crash.logged) == counting_from(1100));
  // And again after a crash that left only some of the replayed words.
  Image half = crash.logged;
  const TempPath path("mnemosyne");
  write_image(path, crash.logged);
  { const Engine engine(path.path(), emulated()); }
  const Image done = read_image(path);
  const Layout layout(done.size() * sizeof(std::uint64_t));
  for (std::size_t i = layout.words_at / sizeof(std::uint64_t); i < done.size(); i += 2) {
    half[i] = done[i];
  }
  CHECK(recovered(half) == counting_from(1100));
}

TEST_CASE("Records up to the truncation time are not replayed") {
  const Crash crash = crash_after([](Engine& engine) {
    Engine::Client client(engine);
    store_all(engine, client, 200);
  });
  Image truncated = crash.logged;
  // The time of the only record is one above what the store was truncated to when it was opened.
  ++truncated[Layout::kTruncated / sizeof(std::uint64_t)];
  CHECK(recovered(truncated) == counting_from(100));
}

TEST_CASE("A store of another system is refused") {
  const TempPath path("mnemosyne");
  { const Engine engine(path.path(), 0, emulated()); }
  Image image = read_image(path);
  ++image[0];
  CHECK_THROWS_AS(recovered(image), sp3::Error);
  --image[0];
  ++image[1];
  CHECK_THROWS_AS(recovered(image), sp3::Error);
  --image[1];
  image.resize(image.size() - 512);
  CHECK_THROWS_AS(recovered(image), sp3::Error);
}
