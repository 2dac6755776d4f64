// Recovery of Mnemosyne's store from what a power loss could leave: words of old content, logs of
// which any word is missing, truncation that got part of the way. And what a commit flushes.
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"
#include "workloads/rng.h"
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

// Records of one line and of two, with values that pass for anything in the middle of a record:
// short times, small numbers of stores.
Cells store_some(Engine& engine, Engine::Client& client, Cells cells, unsigned round) {
  word_tm::update(engine, client, [&](Engine::Tx& tx) {
    const word_tm::Word at = tx.load(word_tm::kRoot);
    for (unsigned i = 0; i < (round % 3 == 0 ? 2U : 5U); ++i) {
      const std::uint64_t cell = (round * 7 + i * 5) % kCells;
      tx.store(at + cell, cells[cell] = 1 + round % 2);
    }
    return true;
  });
  return cells;
}

// One that a power failure cut in a log on some pass, and what a recovery leaves of it in the end.
struct Cut {
  Cells cells;  // without the transaction that was cut
  Image crashed;
  Image recovered;
  std::vector<std::size_t> missing;  // words of the last record
};
Cut cut_after(unsigned rounds, std::uint64_t seed) {
  const TempPath path("mnemosyne");
  Cut cut{Cells(kCells, 0), {}, {}, {}};
  Image whole;
  {
    Engine engine(path.path(), 0, emulated());
    Engine::Client client(engine);
    word_tm::update(engine, client, [](Engine::Tx& tx) {
      tx.store(word_tm::kRoot, tx.allocate(kCells));  // all of them 0
      return true;
    });
    for (unsigned r = 0; r < rounds; ++r) cut.cells = store_some(engine, client, cut.cells, r);
    cut.crashed = read_image(path);
    store_some(engine, client, cut.cells, rounds);
    whole = read_image(path);
  }
  const Layout layout(whole.size() * sizeof(std::uint64_t));
  std::vector<std::size_t> record;
  for (std::size_t i = Layout::kLogStart / sizeof(std::uint64_t);
       i < layout.words_at / sizeof(std::uint64_t); ++i) {
    if (whole[i] != cut.crashed[i]) record.push_back(i);
  }
  REQUIRE_FALSE(record.empty());
  Rng rng(seed);
  const std::size_t missing = rng.below(record.size());
  for (std::size_t i = 0; i < record.size(); ++i) {
    // Its head arrived, which has its time and its length.
    if (i == missing || (i > 2 && rng.below(4) == 0)) {
      cut.missing.push_back(record[i]);
    } else {
      cut.crashed[record[i]] = whole[record[i]];
    }
  }
  write_image(path, cut.crashed);
  { const Engine engine(path.path(), emulated()); }
  cut.recovered = read_image(path);
  return cut;
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

TEST_CASE("Recovery that a crash ends at any point is done again, whichever pass the log is on") {
  const Layout layout(Layout::kLeast);
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  // 13 log words a record on average, 2048 in a log; the record that is cut has two lines.
  for (const unsigned rounds : {5U, 101U, 170U, 230U, 311U, 332U, 440U, 500U, 620U, 740U}) {
    CAPTURE(rounds);
    const Cut cut = cut_after(rounds, rounds);
    CHECK(recovered(cut.crashed) == cut.cells);
    CHECK(recovered(cut.recovered) == cut.cells);
    // Until the truncation time is on media, any of the words may be.
    Rng rng(rounds);
    Image replaying = cut.crashed;
    for (std::size_t i = layout.words_at / kWord; i < replaying.size(); ++i) {
      if (rng.below(2) == 0) replaying[i] = cut.recovered[i];
    }
    CHECK(recovered(replaying) == cut.cells);
    // From then on, any of what clears the logs.
    Image replayed = cut.recovered;
    std::vector<std::size_t> clearing;
    for (std::size_t i = Layout::kHeads / kWord; i < layout.words_at / kWord; ++i) {
      replayed[i] = cut.crashed[i];
      if (cut.recovered[i] != cut.crashed[i]) clearing.push_back(i);
    }
    CHECK(recovered(replayed) == cut.cells);
    const auto cleared = [&](auto is_there) {
      Image image = replayed;
      for (std::size_t n = 0; n < clearing.size(); ++n) {
        if (is_there(n)) image[clearing[n]] = cut.recovered[clearing[n]];
      }
      return recovered(image) == cut.cells;
    };
    for (const std::size_t part : {1U, 2U, 4U, 8U}) {
      if (!cleared([&](std::size_t n) { return n < part; })) FAIL("the first " << part);
      if (!cleared([&](std::size_t n) { return n + part >= clearing.size(); })) {
        FAIL("the last " << part);
      }
      if (!cleared([&](std::size_t) { return rng.below(2) == 0; })) FAIL("some, try " << part);
    }
    // What was missing of the record looks whole if it only has the right torn bit.
    Image completed = replayed;
    for (const std::size_t i : cut.missing) completed[i] = cut.recovered[i];
    CHECK(recovered(completed) == cut.cells);
  }
}

TEST_CASE("A recovered store goes on in its logs, and is recovered again") {
  const TempPath path("mnemosyne");
  Cells cells;
  for (unsigned life = 0; life < 12; ++life) {
    const Cut cut = cut_after(90 + 40 * life, life);
    cells = cut.cells;
    write_image(path, cut.recovered);
    Image crashed;
    {
      Engine engine(path.path(), emulated());
      Engine::Client client(engine);
      for (unsigned r = 0; r < 60 * life + 1; ++r) cells = store_some(engine, client, cells, r);
      crashed = read_image(path);
    }
    CAPTURE(life);
    // Only what the logs hold, unless they were truncated: the words are as they were.
    const auto header = static_cast<std::ptrdiff_t>(Layout::kTruncated / sizeof(std::uint64_t));
    const auto logs = static_cast<std::ptrdiff_t>(Layout::kLogStart / sizeof(std::uint64_t));
    if (std::equal(crashed.begin() + header, crashed.begin() + logs,
                   cut.recovered.begin() + header)) {
      const Layout layout(crashed.size() * sizeof(std::uint64_t));
      const auto words = static_cast<std::ptrdiff_t>(layout.words_at / sizeof(std::uint64_t));
      std::copy(cut.recovered.begin() + words, cut.recovered.end(), crashed.begin() + words);
    }
    CHECK(recovered(crashed) == cells);
  }
}

TEST_CASE("A commit flushes each line once, in whatever order its words were stored") {
  const TempPath path("mnemosyne");
  Engine engine(path.path(), 0, emulated());
  Engine::Client client(engine);
  word_tm::Word cells = 0;
  word_tm::update(engine, client, [&](Engine::Tx& tx) {
    cells = tx.allocate(kCells);
    return true;
  });
  const auto lines_of = [&](std::initializer_list<std::uint64_t> order) {
    const std::uint64_t before = client.counters().lines;
    word_tm::update(engine, client, [&](Engine::Tx& tx) {
      for (const std::uint64_t i : order) tx.store(cells + i, i);
      return true;
    });
    return client.counters().lines - before;
  };
  // Two lines of words, and two of the record.
  CHECK(lines_of({0, 1, 8, 9}) == 4);
  CHECK(lines_of({0, 8, 1, 9}) == 4);
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
