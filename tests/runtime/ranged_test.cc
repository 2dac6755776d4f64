// Ranged objects by one thread: what they hold, what goes to the log, what is an error, and, with
// the transactions of two sessions interleaved by hand, who is in whose way.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_object.h"

namespace sp3::test {
namespace {

// A pool with an object of one chunk that nobody has written yet, and a session more.
struct EmptyObject : OnePool {
  Session other = pool.session();
  RangedObject object =
      session.run([](Transaction& tx) { return RangedObject::create(tx, kChunk, kChunk); });

  // Eight twos.
  void write_by_other() {
    other.run([&](Transaction& tx) { object.write(tx, 0, bytes_of(8, 2)); });
  }
  // Those, and eight threes behind them.
  void check_both() {
    Bytes both = bytes_of(16, 2);
    std::fill_n(both.begin() + 8, 8, std::byte{3});
    CHECK(session.run([&](Transaction& tx) { return read(tx, object, 0, 16); }) == both);
  }
};

}  // namespace

TEST_CASE("a new ranged object is zeros and takes no space until it is written") {
  OnePool one;
  RangedObject object;
  one.session.run([&](Transaction& tx) {
    object = RangedObject::create(tx, std::uint64_t{1} << 40);
    CHECK(object.size(tx) == std::uint64_t{1} << 40);
    CHECK(read(tx, object, 123, 5000) == bytes_of(5000, 0));
    CHECK(object.view(tx, 5, 5000).parts().size() == 5);
  });
  one.session.run([&](Transaction& tx) {
    object.write(tx, (std::uint64_t{1} << 39) - 3, bytes_of(6, 7));
    tx.set_root("object", object.header());
  });
  one.reopen();
  one.session.run([&](Transaction& tx) {
    object = RangedObject::open(tx, tx.root<RangedObject::Header>("object"));
    CHECK(object.check_invariants(tx) == "");
    Bytes expected = bytes_of(10, 0);
    std::fill(expected.begin() + 2, expected.begin() + 8, std::byte{7});
    CHECK(read(tx, object, (std::uint64_t{1} << 39) - 5, 10) == expected);
  });
}

TEST_CASE("a transaction reads its own writes over what was there") {
  OneObject one;
  one.session.run([&](Transaction& tx) { one.object.write(tx, 0, bytes_of(4 * kChunk, 1)); });
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 10, bytes_of(5, 2));
    one.object.write(tx, 20, bytes_of(5, 3));
    one.object.write(tx, 13, bytes_of(4, 4));
    Bytes expected = bytes_of(30, 1);
    std::fill(expected.begin() + 10, expected.begin() + 13, std::byte{2});
    std::fill(expected.begin() + 13, expected.begin() + 17, std::byte{4});
    std::fill(expected.begin() + 20, expected.begin() + 25, std::byte{3});
    CHECK(read(tx, one.object, 0, 30) == expected);
    CHECK(read(tx, one.object, 11, 3) == Bytes{std::byte{2}, std::byte{2}, std::byte{4}});
    one.object.write(tx, kChunk - 1, bytes_of(kChunk + 2, 5));
    CHECK(read(tx, one.object, kChunk - 2, 2) == Bytes{std::byte{1}, std::byte{5}});
  });
  Bytes expected = bytes_of(4 * kChunk, 1);
  std::fill(expected.begin() + 10, expected.begin() + 13, std::byte{2});
  std::fill(expected.begin() + 13, expected.begin() + 17, std::byte{4});
  std::fill(expected.begin() + 20, expected.begin() + 25, std::byte{3});
  std::fill(expected.begin() + kChunk - 1, expected.begin() + 2 * kChunk + 1, std::byte{5});
  CHECK(one.contents() == expected);
}

TEST_CASE("the log gets the words that were written, not their chunks") {
  OneObject one(64 * kChunk);
  const auto log_bytes = [&](std::uint64_t offset, std::size_t count) {
    const std::uint64_t before = one.session.statistics().log_bytes;
    one.session.run([&](Transaction& tx) { one.object.write(tx, offset, bytes_of(count, 9)); });
    return one.session.statistics().log_bytes - before;
  };
  CHECK(log_bytes(3, 4) <= 128);
  CHECK(log_bytes(kChunk - 4, 8) <= 128);
  CHECK(log_bytes(8, 128) <= 256);
  CHECK(log_bytes(0, 8 * kChunk) <= 8 * kChunk + 8 * 24 + 128);
}

TEST_CASE("elements have types, and bytes of padding do not reach the pool") {
  struct Padded {
    std::uint8_t small = 0;
    std::uint64_t large = 0;
  };
  OnePool one;
  Ranged<Padded> padded;
  Ranged<float> floats;
  one.session.run([&](Transaction& tx) {
    padded = Ranged<Padded>::create(tx, 100, kChunk);
    floats = Ranged<float>::create(tx, 1000);
    static_assert(!detail::has_clearable_padding<float>);
#ifndef __clang__  // which looks the sources over, and cannot clear padding
    static_assert(detail::has_clearable_padding<Padded>);
#endif
    Padded dirty;
    std::memset(static_cast<void*>(&dirty), 0x55, sizeof dirty);
    dirty.small = 1;
    padded.set(tx, 99, dirty);
    padded.write(tx, 97, std::array<Padded, 2>{dirty, dirty});
    for (std::uint64_t i = 0; i < 1000; ++i) floats.set(tx, i, static_cast<float>(i) / 2);
  });
  one.session.run([&](Transaction& tx) {
    CHECK(padded.size(tx) == 100);
    CHECK(padded.get(tx, 99).large == 0x5555555555555555);
    const auto view = padded.view(tx, 99, 100);
    CHECK(view.bytes().parts()[0][0] == std::byte{1});
    CHECK(view.bytes().parts()[0][1] == std::byte{0});
    CHECK(view.bytes().parts()[0][8] == std::byte{0x55});
    CHECK(padded.view(tx, 98, 99).bytes().parts()[0][1] == std::byte{0});
    const auto some = floats.view(tx, 200, 600);
    CHECK(some.size() == 400);
    CHECK(some[0] == 100.0F);
    CHECK(some[399] == 299.5F);
    std::array<float, 3> three{};
    floats.read(tx, 255, three);
    CHECK(three == std::array<float, 3>{127.5F, 128.0F, 128.5F});
  });
  const auto wrong = one.error([&](Transaction& tx) { Ranged<double>::open(tx, floats.header()); });
  REQUIRE(wrong);
  CHECK(wrong->code() == ErrorCode::wrong_type);
  CHECK(wrong->facts().offset == floats.header().offset());
  CHECK(wrong->facts().wanted.starts_with("double, 0x"));
  CHECK(wrong->facts().found.starts_with("0x"));
  CHECK(one.code([&](Transaction& tx) {
    return RangedObject::open(tx, floats.header()).size(tx);
  }) == "wrong_type");
  CHECK(one.code([&](Transaction& tx) { return padded.get(tx, 100).small; }) == "beyond_end");
}

TEST_CASE("what resize cuts off is zero when the object grows again") {
  OneObject one(0);
  const std::vector<std::uint64_t> lengths{1,    300,  256, 257,    1000, 40'000, 39'999, 255,
                                           8192, 8191, 0,   12'345, 1,    0,      70'000, 20};
  Bytes model;
  unsigned value = 0;
  for (const std::uint64_t length : lengths) {
    ++value;
    one.session.run([&](Transaction& tx) {
      one.object.resize(tx, length);
      if (length > 10) one.object.write(tx, length - 10, bytes_of(10, value));
    });
    model.resize(length);
    if (length > 10) std::fill(model.end() - 10, model.end(), std::byte(value));
    CHECK(one.contents() == model);
  }
  one.reopen();
  CHECK(one.contents() == model);
}

TEST_CASE("a write may be followed by resize and destroy in the same transaction") {
  OneObject one;
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 0, bytes_of(4 * kChunk, 3));
    one.object.resize(tx, kChunk + 10);
    CHECK(read(tx, one.object, 0, kChunk + 10) == bytes_of(kChunk + 10, 3));
    one.object.resize(tx, 3 * kChunk);
    one.object.write(tx, 3 * kChunk - 1, bytes_of(1, 4));
  });
  Bytes expected = bytes_of(3 * kChunk, 0);
  std::fill(expected.begin(), expected.begin() + kChunk + 10, std::byte{3});
  expected.back() = std::byte{4};
  CHECK(one.contents() == expected);
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 1, bytes_of(9, 3));
    tx.set_root("object", Ptr<RangedObject::Header>());
    one.object.destroy(tx);
  });
  CHECK(one.code([&](Transaction& tx) { return one.object.size(tx); }) == "destroyed_object");
  one.session.close();
  one.pool.close();
  const CheckReport report = Pool::check(one.path.path());
  CHECK(report.sound());
  CHECK(report.objects == 1);  // the root directory
}

TEST_CASE("a view shows what was there when it was opened") {
  OneObject one;
  one.session.run([&](Transaction& tx) { one.object.write(tx, 0, bytes_of(4 * kChunk, 1)); });
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 5, bytes_of(1, 2));
    const RangedView view = one.object.view(tx, 4, 3 * kChunk);
    CHECK(view.size() == 3 * kChunk - 4);
    CHECK(view.parts().size() == 3);
    one.object.write(tx, 4, bytes_of(3 * kChunk, 3));
    Bytes expected = bytes_of(view.size(), 1);
    expected[1] = std::byte{2};
    Bytes found(view.size());
    view.copy(0, found);
    CHECK(found == expected);
    Bytes middle(kChunk);
    view.copy(kChunk / 2, middle);
    CHECK(middle == bytes_of(kChunk, 1));
    view.copy(view.size(), {});
    for (const std::uint64_t offset : {view.size() - kChunk + 1, view.size() + 1, ~0UL}) {
      const auto error = error_of([&] {
        view.copy(offset, middle);
        return 0;
      });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::beyond_end);
      CHECK(error->facts().wanted == "at most 764 bytes");
    }
  });
}

TEST_CASE("a view ends with its transaction, and says so") {
  OneObject one;
  RangedView kept;
  CHECK(code_of([&] { return kept.size(); }) == "view_expired");
  one.session.run([&](Transaction& tx) {
    kept = one.object.view(tx, 0, 10);
    CHECK(kept.size() == 10);
    RangedView moved = std::move(kept);
    CHECK(code_of([&] { return kept.parts().size(); }) == "view_expired");
    kept = std::move(moved);
  });
  CHECK_FALSE(kept.is_open());
  CHECK(code_of([&] { return kept.size(); }) == "view_expired");
  one.session.run([&](Transaction& tx) {
    CHECK(code_of([&] { return kept.parts().size(); }) == "view_expired");
    kept = one.object.view(tx, 0, 10);
    kept.close();
    CHECK(code_of([&] { return kept.size(); }) == "view_expired");
    kept = one.object.view(tx, 0, 10);
  });
  one.session.close();
  one.pool.close();
  CHECK(code_of([&] { return kept.size(); }) == "view_expired");
}

TEST_CASE("an object does not change its size under a view of the same transaction") {
  OneObject one;
  CHECK(one.code([&](Transaction& tx) {
    const RangedView view = one.object.view(tx, 0, 10);
    one.object.resize(tx, 5);
    return 0;
  }) == "view_open");
  CHECK(one.code([&](Transaction& tx) {
    const RangedView view = one.object.view(tx, 0, 10);
    one.object.destroy(tx);
    return 0;
  }) == "view_open");
  CHECK(one.code([&](Transaction& tx) {
    RangedView view = one.object.view(tx, 0, 10);
    view = one.object.view(tx, 100, 110);  // the first one lets go
    view.close();
    one.object.resize(tx, 5);
    return 0;
  }) == "no error");
}

TEST_CASE("writers of disjoint ranges of one chunk both commit, and neither starts again") {
  for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
    for (const auto kind : {RangeLockKind::skiplist, RangeLockKind::grid}) {
      Options options = quiet_options();
      options.locks = locks;
      options.range_lock = kind;
      OneObject one(4 * kChunk, options);
      Session other = one.pool.session();
      one.session.run([&](Transaction& tx) {
        one.object.write(tx, 3, bytes_of(5, 1));
        other.run([&](Transaction& second) { one.object.write(second, 8, bytes_of(3, 2)); });
        other.run([&](Transaction& third) { one.object.write(third, 0, bytes_of(3, 3)); });
      });
      CHECK(one.aborts() == 0);
      CHECK(other.statistics().aborts == 0);
      Bytes expected = bytes_of(4 * kChunk, 0);
      std::fill_n(expected.begin(), 3, std::byte{3});
      std::fill_n(expected.begin() + 3, 5, std::byte{1});
      std::fill_n(expected.begin() + 8, 3, std::byte{2});
      CHECK(one.contents() == expected);
      other.close();
      one.reopen(options);
      CHECK(one.contents() == expected);
    }
  }
}

TEST_CASE("an object that another transaction began to fill is not taken for empty") {
  EmptyObject one;
  bool again = false;
  one.session.run([&](Transaction& tx) {
    // Under the range of a write that is refused, the empty header is seen.
    CHECK_THROWS_AS(one.object.write(tx, kChunk, bytes_of(8, 1)), Error);
    if (!std::exchange(again, true)) {
      one.write_by_other();
    }
    CHECK(read(tx, one.object, 0, 8) == bytes_of(8, 2));
    one.object.write(tx, 8, bytes_of(8, 3));
  });
  one.check_both();
}

TEST_CASE("a write after one that was refused finds what others have written") {
  EmptyObject one;
  one.session.run([&](Transaction& tx) {
    CHECK_THROWS_AS(one.object.write(tx, kChunk, bytes_of(8, 1)), Error);
    one.write_by_other();
    one.object.write(tx, 8, bytes_of(8, 3));
  });
  one.check_both();
}

TEST_CASE("a range that another transaction writes cannot be written, locked or viewed") {
  OneObject one;
  Session other = one.pool.session();
  const auto meets = [&](const auto& body) {
    int attempts = 0;
    try {
      other.run([&](Transaction& tx) {
        if (++attempts == 2) tx.cancel();
        body(tx);
      });
    } catch (const Cancelled&) {
      return true;
    }
    return false;
  };
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 100, bytes_of(50, 1));
    CHECK(meets([&](Transaction& t) { one.object.write(t, 149, bytes_of(1, 2)); }));
    CHECK(meets([&](Transaction& t) { one.object.lock(t, 0, 101); }));
    CHECK(meets([&](Transaction& t) { static_cast<void>(one.object.view(t, 120, 121)); }));
    CHECK(meets([&](Transaction& t) { one.object.resize(t, 0); }));
    CHECK_FALSE(meets([&](Transaction& t) { one.object.write(t, 150, bytes_of(1, 2)); }));
    CHECK_FALSE(meets([&](Transaction& t) { static_cast<void>(one.object.view(t, 0, 100)); }));
    // Readers do not wait: they see what was there before.
    CHECK_FALSE(
        meets([&](Transaction& t) { CHECK(read(t, one.object, 100, 50) == bytes_of(50, 0)); }));
  });
  CHECK(one.aborts() == 0);
  one.session.run([&](Transaction& tx) {
    RangedView view = one.object.view(tx, 100, 150);
    CHECK(meets([&](Transaction& t) { one.object.write(t, 149, bytes_of(1, 2)); }));
    CHECK_FALSE(meets([&](Transaction& t) { static_cast<void>(one.object.view(t, 0, 1000)); }));
    view.close();
    CHECK_FALSE(meets([&](Transaction& t) { static_cast<void>(one.object.view(t, 100, 150)); }));
  });
}

TEST_CASE("write skew is excluded, within one chunk and across chunks") {
  for (const std::uint64_t distance : {std::uint64_t{8}, std::uint64_t{2 * kChunk}}) {
    OneObject one;
    Session other = one.pool.session();
    int attempts = 0;
    one.session.run([&](Transaction& tx) {
      const bool is_free = read(tx, one.object, distance, 1)[0] == std::byte{0};
      if (++attempts == 1) {
        other.run([&](Transaction& second) {
          if (read(second, one.object, 0, 1)[0] == std::byte{0}) {
            one.object.write(second, distance, bytes_of(1, 1));
          }
        });
      }
      if (is_free) one.object.write(tx, 0, bytes_of(1, 1));
    });
    CHECK(attempts == 2);
    const Bytes found = one.contents();
    CHECK(found[0] == std::byte{0});
    CHECK(found[distance] == std::byte{1});
  }
}

TEST_CASE("write skew is excluded where one of the chunks is yet to be made") {
  OneObject one(0);
  one.session.run([&](Transaction& tx) {
    one.object.resize(tx, 4 * kChunk);
    one.object.fill(tx, 0, kChunk);
  });
  Session other = one.pool.session();
  int attempts = 0;
  one.session.run([&](Transaction& tx) {
    one.object.write(tx, 8, bytes_of(1, 7));  // finds its chunk without having read the table
    const bool is_free = read(tx, one.object, 2 * kChunk, 1)[0] == std::byte{0};
    if (++attempts == 1) {
      other.run([&](Transaction& second) {
        if (read(second, one.object, 0, 1)[0] == std::byte{0}) {
          one.object.write(second, 2 * kChunk, bytes_of(1, 1));
        }
      });
    }
    if (is_free) one.object.write(tx, 0, bytes_of(1, 1));
  });
  CHECK(attempts == 2);
  const Bytes found = one.contents();
  CHECK(found[0] == std::byte{0});
  CHECK(found[2 * kChunk] == std::byte{1});
}

TEST_CASE("what is read under a locked range is not disturbed by neighbours in the chunk") {
  const auto copied = [](Transaction& tx, const RangedObject& object) {
    return read(tx, object, 16, 8);
  };
  const auto viewed = [](Transaction& tx, const RangedObject& object) {
    const RangedView view = object.view(tx, 16, 24);
    Bytes bytes(8);
    view.copy(0, bytes);
    return bytes;
  };
  const bool locked = GENERATE(true, false);
  const bool by_view = GENERATE(true, false);
  OneObject one;
  Session other = one.pool.session();
  int attempts = 0;
  one.session.run([&](Transaction& tx) {
    if (locked) one.object.lock(tx, 16, 24);
    Bytes value = by_view ? viewed(tx, one.object) : copied(tx, one.object);
    if (++attempts == 1) {
      other.run([&](Transaction& second) { one.object.write(second, 24, bytes_of(8, 7)); });
    }
    value[0] = std::byte(static_cast<unsigned>(value[0]) + 1);
    one.object.write(tx, 16, value);
    CHECK(read(tx, one.object, 16, 8)[0] == std::byte{1});
  });
  CHECK(attempts == (locked ? 1 : 2));
  const Bytes found = one.contents();
  CHECK(found[16] == std::byte{1});
  CHECK(found[24] == std::byte{7});
}

TEST_CASE("a view that becomes a write, and ranges in any order, are no deadlock") {
  OneObject one;
  one.session.run([&](Transaction& tx) {
    const RangedView first = one.object.view(tx, 100, 200);
    const RangedView second = one.object.view(tx, 150, 300);
    one.object.lock(tx, 500, 600);
    one.object.write(tx, 180, bytes_of(400, 1));
    one.object.write(tx, 0, bytes_of(1000, 2));
    CHECK(first.parts()[0][0] == std::byte{0});
    const RangedView third = one.object.view(tx, 0, 1024);
    CHECK(third.parts()[0][0] == std::byte{2});
  });
  CHECK(one.aborts() == 0);
  CHECK(one.contents()[999] == std::byte{2});
}

TEST_CASE("a transaction that does not commit leaves no range held and no byte changed") {
  OneObject one;
  Session other = one.pool.session();
  for (int round = 0; round < 3; ++round) {
    CHECK_THROWS_AS(one.session.run([&](Transaction& tx) {
      one.object.write(tx, 0, bytes_of(4 * kChunk, 1));
      const RangedView view = one.object.view(tx, 0, 1);
      if (round == 1) one.object.resize(tx, 10'000'000);  // view_open
      tx.cancel();
    }),
                    std::runtime_error);
    other.run([&](Transaction& tx) {
      CHECK(read(tx, one.object, 0, 4 * kChunk) == bytes_of(4 * kChunk, 0));
      one.object.lock(tx, 0, 4 * kChunk);
    });
    CHECK(other.statistics().aborts == 0);
  }
}

TEST_CASE("a transaction that met an object being resized starts again") {
  OneObject one;
  Session other = one.pool.session();
  int attempts = 0;
  one.session.run([&](Transaction& tx) {
    const std::uint64_t length = one.object.size(tx);
    if (++attempts == 1) {
      other.run([&](Transaction& second) { one.object.resize(second, 2 * kChunk); });
    }
    one.object.write(tx, length - 1, bytes_of(1, 1));
  });
  CHECK(attempts == 2);
  CHECK(one.contents().size() == 2 * kChunk);
  CHECK(one.contents().back() == std::byte{1});
}

// Both keep their handle, so that they go from the header down under their ranges alone.
TEST_CASE("two sessions fill an object whose chunk table has several levels") {
  for (const std::uint64_t chunks : {std::uint64_t{130}, std::uint64_t{128 * 128 + 2}}) {
    Options options = quiet_options();
    options.geometry.log_size = std::uint64_t{1} << 20;
    OnePool p(options, std::uint64_t{4} << 20);
    Session other = p.pool.session();
    const auto object = p.session.run(
        [&](Transaction& tx) { return Ranged<int>::create(tx, chunks * 64, kChunk); });
    const auto place = [&](std::uint64_t i) { return (i * 37 + i / 7 * 129) % chunks * 64; };
    constexpr std::uint64_t kPlaces = 100;
    for (std::uint64_t i = 0; i + 1 < kPlaces; i += 2) {
      bool first = true;
      p.session.run([&](Transaction& tx) {
        object.set(tx, place(i), static_cast<int>(i));
        if (!std::exchange(first, false)) return;
        other.run(
            [&](Transaction& o) { object.set(o, place(i + 1) + 1, static_cast<int>(i + 1)); });
      });
      if (i % 10 == 0) p.pool.checkpoint();
    }
    p.session.run([&](Transaction& tx) {
      CHECK(object.check_invariants(tx) == "");
      for (std::uint64_t i = 0; i < kPlaces; ++i) {
        CHECK(object.get(tx, place(i) + i % 2) == static_cast<int>(i));
      }
      object.resize(tx, 64 * 3);
      CHECK(object.check_invariants(tx) == "");
    });
  }
}

TEST_CASE("a write to a chunk that was cut off meanwhile goes to nobody's chunk") {
  const bool heir_goes_too = GENERATE(false, true);
  for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
    Options options = quiet_options();
    options.locks = locks;
    OneObject p(4 * kChunk, options);
    Session other = p.pool.session();
    RangedObject heir;
    int attempts = 0;
    CHECK(p.code([&](Transaction& tx) {
      ++attempts;
      Bytes seen = read(tx, p.object, 3 * kChunk, 8);
      other.run([&](Transaction& o) {
        if (attempts != 1) return;
        p.object.resize(o, kChunk);
        heir = RangedObject::create(o, 4 * kChunk, kChunk);
      });
      // Into the slots of those that were cut off.
      if (attempts == 1) other.run([&](Transaction& o) { heir.fill(o, 0, 4 * kChunk); });
      p.object.write(tx, 3 * kChunk, bytes_of(8, 9));
      // The slot is free again, with nothing that the bytes could be put into.
      if (attempts == 1 && heir_goes_too) other.run([&](Transaction& o) { heir.destroy(o); });
      return seen;
    }) == "beyond_end");
    CHECK(attempts == 2);
    CHECK(p.contents() == bytes_of(kChunk, 0));
    if (heir_goes_too) continue;
    other.run([&](Transaction& o) {
      CHECK(read(o, heir, 0, 4 * kChunk) == bytes_of(4 * kChunk, 0));
      CHECK(heir.check_invariants(o) == "");
    });
  }
}

TEST_CASE("ranges work without concurrency control and without a log too") {
  OneObject one;
  for (const auto policy : {CommitPolicy::ideal, CommitPolicy::volatile_only,
                            CommitPolicy::conservative, CommitPolicy::speculative}) {
    Options options = quiet_options();
    options.policy = policy;
    one.reopen(options);
    for (unsigned value = 1; value < 4; ++value) {
      one.session.run([&](Transaction& tx) {
        one.object.write(tx, 200, bytes_of(100, value));
        CHECK(read(tx, one.object, 199, 2) == Bytes{std::byte{0}, std::byte(value)});
      });
      CHECK(one.contents()[299] == std::byte(value));
      CHECK(one.contents()[300] == std::byte{0});
    }
  }
}

}  // namespace sp3::test
