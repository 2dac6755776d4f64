// Recovery of Quadra's lines, from everything that a crash could leave of one transaction: of each
// line any prefix of its stores, whatever is left of the others.
#include "workloads/systems/quadra/lines.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

using namespace sp3::workloads::quadra;

namespace {

// An image of a few lines that keeps the stores made to it, word by word.
class Recorder {
 public:
  struct Store {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };

  explicit Recorder(std::uint64_t lines) : image_(lines * sizeof(PersistentLine)) {}

  [[nodiscard]] const std::byte* view(std::uint64_t offset) const { return &image_[offset]; }
  void store(std::uint64_t offset, const void* from, std::size_t bytes) {
    const auto* source = static_cast<const std::byte*>(from);
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t part = std::min<std::size_t>(8, bytes - done);
      stores.push_back({offset + done, {source + done, source + done + part}});
      apply(stores.back());
      done += part;
    }
  }
  static void order() {}
  void prefetch(std::uint64_t) const {}
  void flush(std::uint64_t, std::uint64_t bytes) { flushes += bytes / sizeof(PersistentLine); }
  void fence() { ++fences; }

  void apply(const Store& store) {
    std::copy(store.bytes.begin(), store.bytes.end(), &image_[store.offset]);
  }

  std::vector<Store> stores;
  std::uint64_t flushes = 0;  // lines
  unsigned fences = 0;

 private:
  alignas(64) std::vector<std::byte> image_;
};

// What the caches hold, and what of it power loss would leave.
class Cached {
 public:
  explicit Cached(std::uint64_t lines) : cache_(lines * 64), durable_(cache_) {}

  [[nodiscard]] const std::byte* view(std::uint64_t offset) const { return &cache_[offset]; }
  void store(std::uint64_t offset, const void* from, std::size_t bytes) {
    std::memcpy(&cache_[offset], from, bytes);
  }
  static void order() {}
  void prefetch(std::uint64_t) const {}
  void flush(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t line = offset / 64; line < (offset + bytes) / 64; ++line) {
      flushed_.insert(line);
    }
  }
  void fence() {
    for (const std::uint64_t line : flushed_) evict(line);
    flushed_.clear();
  }

  void evict(std::uint64_t line) { std::copy_n(&cache_[line * 64], 64, &durable_[line * 64]); }
  // The process is gone; the caches are not.
  void kill() { flushed_.clear(); }
  void power_loss() {
    cache_ = durable_;
    flushed_.clear();
  }

 private:
  alignas(64) std::vector<std::byte> cache_;
  std::vector<std::byte> durable_;
  std::set<std::uint64_t> flushed_;
};

constexpr std::uint64_t kLines = 5;
using Words = std::vector<std::uint64_t>;

struct Change {
  std::vector<std::uint64_t> lines;
  std::uint64_t value;  // of the first word stored; the others follow
};

template <class Media>
Words contents(Media& media) {
  const Lines<Media> lines(media, 0, kLines);
  Words words;
  for (std::uint64_t i = 0; i < kLines; ++i) {
    words.insert(words.end(), lines.at(i).now.begin(), lines.at(i).now.end());
  }
  return words;
}

// All of a transaction but its fence.
template <class Media>
void run_unfenced(Media& media, std::uint64_t number, const Change& change) {
  Lines<Media> lines(media, 0, kLines);
  for (const std::uint64_t line : change.lines) lines.open(line, number);
  std::uint64_t value = change.value;
  for (const std::uint64_t line : change.lines) {
    const Words words{value, value + 1, value + 2};
    lines.close(line, 1, number, words.data(), static_cast<std::uint32_t>(change.lines.size()));
    value += 3;
  }
}

template <class Media>
void run(Media& media, std::uint64_t number, const Change& change) {
  run_unfenced(media, number, change);
  Lines<Media>(media, 0, kLines).fence();
}

// Opened only, as by a transaction that is rolled back.
void open_only(Recorder& media, std::uint64_t number, const Change& change) {
  Lines<Recorder> lines(media, 0, kLines);
  for (const std::uint64_t line : change.lines) lines.open(line, number);
}

// Calls use(image, whole) for every image that a crash during `number` could leave of `before`:
// any prefix of each line's stores. `whole`: nothing is missing.
template <class F>
void for_each_crash(const Recorder& before, std::uint64_t number, const Change& change, F use) {
  Recorder after = before;
  after.stores.clear();
  run(after, number, change);
  std::map<std::uint64_t, std::vector<Recorder::Store>> by_line;
  for (const Recorder::Store& store : after.stores) by_line[store.offset / 64].push_back(store);
  std::map<std::uint64_t, std::size_t> kept;
  for (;;) {
    Recorder image = before;
    bool whole = true;
    for (const auto& [line, stores] : by_line) {
      for (std::size_t i = 0; i < kept[line]; ++i) image.apply(stores[i]);
      whole = whole && kept[line] == stores.size();
    }
    use(image, whole);
    auto next = by_line.begin();
    for (; next != by_line.end(); ++next) {
      if (++kept[next->first] <= next->second.size()) break;
      kept[next->first] = 0;
    }
    if (next == by_line.end()) return;
  }
}

// A store in which transactions 1 to 4 are whole. Returns it with the last number.
Recorder settled() {
  Recorder media(kLines);
  run(media, 1, {{0, 1, 2, 3}, 100});
  run(media, 2, {{1, 2}, 200});
  run(media, 3, {{2, 3, 4}, 300});
  run(media, 4, {{2}, 400});
  return media;
}

}  // namespace

TEST_CASE("A transaction is one flush a line and one fence") {
  Recorder media = settled();
  media.flushes = 0;
  media.fences = 0;
  run(media, 5, {{0, 2, 4}, 500});
  CHECK(media.flushes == 3);
  CHECK(media.fences == 1);
}

TEST_CASE("Every cut of a transaction is recovered to all or nothing, and again to the same") {
  for (const Change& change : {Change{{0, 1, 2}, 500}, Change{{2, 3, 4}, 500}, Change{{4}, 500}}) {
    const Recorder before = settled();
    Recorder copy = before;
    const Words old_words = contents(copy);
    run(copy, 5, change);
    const Words new_words = contents(copy);
    std::size_t images = 0;
    std::size_t whole_images = 0;
    for_each_crash(before, 5, change, [&](Recorder& image, bool whole) {
      ++images;
      whole_images += whole ? 1 : 0;
      Lines<Recorder> lines(image, 0, kLines);
      const std::uint64_t highest = lines.recover();
      const bool right = contents(image) == (whole ? new_words : old_words) && highest >= 4 &&
                         highest <= 5 && lines.recover() == highest &&
                         contents(image) == (whole ? new_words : old_words);
      if (!right) FAIL("image " << images);
    });
    CHECK(whole_images == 1);
    CHECK(images == (change.lines.size() == 1 ? 10 : 1000));
  }
}

TEST_CASE("A crash after a recovery takes back the second transaction only") {
  const Recorder before = settled();
  Recorder copy = before;
  const Words first_words = contents(copy);
  std::size_t images = 0;
  for_each_crash(before, 5, {{1, 2}, 500}, [&](Recorder& image, bool whole) {
    Lines<Recorder> lines(image, 0, kLines);
    const std::uint64_t next = lines.recover() + 1;
    const Words between = contents(image);
    CHECK(whole == (between != first_words));
    Recorder done = image;
    run(done, next, {{2, 3}, 600});
    const Words second_words = contents(done);
    for_each_crash(image, next, {{2, 3}, 600}, [&](Recorder& later, bool second_whole) {
      ++images;
      Lines<Recorder>(later, 0, kLines).recover();
      if (contents(later) != (second_whole ? second_words : between)) FAIL("image " << images);
    });
  });
  CHECK(images == 10'000);
}

TEST_CASE("A crash during recovery changes nothing of its outcome") {
  const Recorder before = settled();
  Recorder copy = before;
  const Words old_words = contents(copy);
  for_each_crash(before, 5, {{1, 2}, 500}, [&](Recorder& image, bool whole) {
    if (whole) return;
    Recorder recovered = image;
    recovered.stores.clear();
    Lines<Recorder>(recovered, 0, kLines).recover();
    // Lines are independent of each other; of each, every prefix of what recovery stored.
    for (std::size_t cut = 0; cut <= recovered.stores.size(); ++cut) {
      for (const bool backwards : {false, true}) {
        Recorder again = image;
        std::map<std::uint64_t, std::vector<Recorder::Store>> by_line;
        for (const Recorder::Store& store : recovered.stores) {
          by_line[backwards ? ~(store.offset / 64) : store.offset / 64].push_back(store);
        }
        std::size_t left = cut;
        for (const auto& [line, stores] : by_line) {
          for (const Recorder::Store& store : stores) {
            if (left == 0) break;
            again.apply(store);
            --left;
          }
        }
        Lines<Recorder>(again, 0, kLines).recover();
        if (contents(again) != old_words) FAIL("cut at " << cut);
      }
    }
  });
}

TEST_CASE("A transaction whose process was killed before its fence is durable once recovered") {
  // Whichever of its lines had left the caches by themselves.
  for (unsigned evicted = 0; evicted < 1U << 3; ++evicted) {
    Cached media(kLines);
    run(media, 1, {{0, 1, 2, 3, 4}, 100});
    run_unfenced(media, 2, {{0, 1, 2}, 200});
    for (std::uint64_t line = 0; line < 3; ++line) {
      if ((evicted >> line) % 2 == 1) media.evict(line);
    }
    media.kill();
    const std::uint64_t next = Lines<Cached>(media, 0, kLines).recover() + 1;
    CHECK(next == 3);
    run(media, next, {{2, 3}, 300});
    const Words words = contents(media);
    CHECK(words[0] == 200);
    media.power_loss();
    CHECK(Lines<Cached>(media, 0, kLines).recover() == next);
    CAPTURE(evicted);
    CHECK(contents(media) == words);
  }
}

TEST_CASE("A transaction that was rolled back leaves the one before it whole") {
  Recorder before = settled();
  const Words old_words = contents(before);
  open_only(before, 5, {{0, 2, 3}, 0});
  Recorder done = before;
  run(done, 7, {{2, 3}, 700});
  const Words new_words = contents(done);
  for_each_crash(before, 7, {{2, 3}, 700}, [&](Recorder& image, bool whole) {
    Lines<Recorder>(image, 0, kLines).recover();
    if (contents(image) != (whole ? new_words : old_words)) FAIL("a cut of 7");
  });
  // And when nothing of the rolled back one reached the media before the next began.
  for_each_crash(settled(), 7, {{2, 3}, 700}, [&](Recorder& image, bool whole) {
    Lines<Recorder>(image, 0, kLines).recover();
    if (contents(image) != (whole ? new_words : old_words)) FAIL("a cut of 7, without 5");
  });
}

TEST_CASE("A store that was never written is empty") {
  Recorder media(kLines);
  CHECK(Lines<Recorder>(media, 0, kLines).recover() == 0);
  CHECK(media.fences == 0);
}
