// Mnemosyne's log: what was packed comes back, and of a record that a crash cut, nothing does.
#include "workloads/systems/mnemosyne/torn_log.h"

#include <vector>

#include <catch2/catch.hpp>

#include "workloads/rng.h"

using namespace sp3::workloads;
using namespace sp3::workloads::mnemosyne;

namespace {

constexpr std::uint64_t kCapacity = 128;

std::vector<Stored> some_stores(Rng& rng, std::uint64_t count) {
  std::vector<Stored> stores;
  for (std::uint64_t i = 0; i < count; ++i) {
    // Ones and zeros in the top bits too, where the torn bit is.
    stores.push_back({rng.next(), i % 3 == 0 ? ~std::uint64_t{0} : i % 3 == 1 ? 0 : rng.next()});
  }
  return stores;
}

std::vector<std::uint64_t> pack(std::uint64_t time, const std::vector<Stored>& stores,
                                std::uint64_t position) {
  std::vector<std::uint64_t> words(log_words(kRecordHead + 2 * stores.size()));
  Packer packer(words.data(), position, kCapacity);
  packer.put(time);
  packer.put(stores.size());
  for (const Stored& stored : stores) {
    packer.put(stored.at);
    packer.put(stored.value);
  }
  packer.finish(words.data() + words.size());
  return words;
}

std::optional<Record> read(const std::vector<std::uint64_t>& log, std::uint64_t position) {
  return read_record([&](std::uint64_t index) { return log.at(index); }, kCapacity, position);
}

bool same(const std::vector<Stored>& a, const std::vector<Stored>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Stored& x, const Stored& y) {
    return x.at == y.at && x.value == y.value;
  });
}

}  // namespace

TEST_CASE("Records of every length come back from the torn-bit log, pass after pass") {
  std::vector<std::uint64_t> log(kCapacity);
  Rng rng(1);
  std::uint64_t position = 0;
  for (std::uint64_t time = 1; time < 400; ++time) {
    const std::vector<Stored> stores = some_stores(rng, 1 + time % 60);
    const std::vector<std::uint64_t> words = pack(time, stores, position);
    for (std::size_t i = 0; i < words.size(); ++i) log[(position + i) % kCapacity] = words[i];
    const std::optional<Record> record = read(log, position);
    REQUIRE(record);
    CHECK(record->time == time);
    CHECK(record->end == position + words.size());
    CHECK(same(record->stores, stores));
    position = record->end;
    CHECK_FALSE(read(log, position));  // what follows is of the pass before
  }
  CHECK(position > 20 * kCapacity);
}

TEST_CASE("A record that misses any of its words, or all from some word on, is not read") {
  Rng rng(2);
  // Before the position are words of this pass, from it on those of the pass before, or zeros.
  for (const std::uint64_t position : {0U, 64U, 120U, 128U, 248U, 256U, 376U}) {
    std::vector<std::uint64_t> log(kCapacity);
    for (std::uint64_t at = position < kCapacity ? 0 : position - kCapacity; at < position; ++at) {
      log[at % kCapacity] = (rng.next() & ~kTornBit) | torn_bit(at, kCapacity);
    }
    const std::vector<Stored> stores = some_stores(rng, 12);
    const std::vector<std::uint64_t> words = pack(9, stores, position);
    const auto with = [&](auto keep) {
      std::vector<std::uint64_t> cut = log;
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (keep(i)) cut[(position + i) % kCapacity] = words[i];
      }
      return read(cut, position);
    };
    CAPTURE(position);
    const std::optional<Record> whole = with([](std::size_t) { return true; });
    REQUIRE(whole);
    CHECK(same(whole->stores, stores));
    for (std::size_t n = 0; n < words.size(); ++n) {
      CHECK_FALSE(with([n](std::size_t i) { return i < n; }));
      CHECK_FALSE(with([n](std::size_t i) { return i > n; }));
      CHECK_FALSE(with([n](std::size_t i) { return i != n; }));
    }
    for (unsigned round = 0; round < 200; ++round) {  // streaming stores arrive in any order
      const std::uint64_t lost = rng.below(words.size());
      const std::uint64_t seed = rng.next();
      CHECK_FALSE(with([&](std::size_t i) { return i != lost && (seed >> (i % 64) & 1) != 0; }));
    }
  }
}

TEST_CASE("A cleared log holds no record on any pass") {
  const std::vector<std::uint64_t> log(kCapacity);
  for (std::uint64_t position = 0; position < 4 * kCapacity; position += kWordsPerLogLine) {
    CHECK_FALSE(read(log, position));
  }
}
