// Transaction::assign: an object's next version without a look at the one before.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"
#include "tests/runtime/padded.h"

namespace sp3::test {
namespace {

template <std::size_t kBytes>
struct Blob {
  std::array<unsigned char, kBytes> bytes{};

  static Blob of(unsigned seed) {
    Blob blob;
    for (std::size_t i = 0; i < kBytes; ++i) {
      blob.bytes[i] = static_cast<unsigned char>(i * 7 + seed);
    }
    return blob;
  }
  bool operator==(const Blob&) const = default;
};

template <std::size_t kBytes>
void check_that_all_bytes_are_kept(const Options& options) {
  using T = Blob<kBytes>;
  INFO(kBytes << " bytes");
  OnePool p(options);
  const auto at = p.session.run([](Transaction& tx) { return tx.make<T>(T::of(1)); });
  p.session.run([&](Transaction& tx) { tx.assign(at, T::of(2)); });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(at) == T::of(2); }));
  // From the home this time, and after a version in DRAM.
  p.pool.checkpoint();
  p.session.run([&](Transaction& tx) { tx.assign(at, T::of(3)); });
  p.session.run([&](Transaction& tx) { tx.assign(at, T::of(4)); });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(at) == T::of(4); }));
  p.reopen(options);
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(at) == T::of(4); }));
}

}  // namespace

TEST_CASE("what is assigned is there in the next transaction and after reopening") {
  for (const Mode& mode : all_modes()) {
    INFO(mode.name());
    Options options = quiet_options();
    mode.apply(options);
    check_that_all_bytes_are_kept<1>(options);
    check_that_all_bytes_are_kept<13>(options);
    check_that_all_bytes_are_kept<128>(options);
    check_that_all_bytes_are_kept<1000>(options);
  }
}

TEST_CASE("a transaction reads what it has assigned, and earlier references keep the old version") {
  OnePool p;
  const auto at = p.session.run([](Transaction& tx) { return tx.make<Cell>(5); });
  p.session.run([&](Transaction& tx) {
    const Cell& before = tx.read(at);
    tx.assign(at, {6});
    CHECK(before.value == 5);
    CHECK(tx.read(at).value == 6);
    Cell& copy = tx.write(at);
    CHECK(copy.value == 6);
    copy.value = 7;
    tx.assign(at, {8});
    CHECK(copy.value == 8);
    tx.assign(at, tx.read(at));
    CHECK(copy.value == 8);
  });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(at).value; }) == 8);
}

TEST_CASE("an object is assigned what another holds, or what it holds itself") {
  OnePool p;
  const auto made = [&](unsigned seed) {
    return p.session.run([&](Transaction& tx) { return tx.make<Blob<100>>(Blob<100>::of(seed)); });
  };
  const auto a = made(1);
  const auto b = made(2);
  p.session.run([&](Transaction& tx) {
    const Blob<100>& was_a = tx.read(a);
    tx.assign(a, tx.read(b));
    tx.assign(b, was_a);
  });
  p.session.run([&](Transaction& tx) { tx.assign(a, tx.read(a)); });
  p.session.run([&](Transaction& tx) {
    CHECK(tx.read(a) == Blob<100>::of(2));
    CHECK(tx.read(b) == Blob<100>::of(1));
  });
}

TEST_CASE("a cancelled transaction has assigned nothing") {
  OnePool p;
  const auto at = p.session.run([](Transaction& tx) { return tx.make<Cell>(5); });
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    tx.assign(at, {6});
    tx.cancel();
  }),
                  Cancelled);
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(at).value; }) == 5);
}

TEST_CASE("a new object can be assigned, and one that was can be destroyed") {
  OnePool p;
  const auto made = p.session.run([](Transaction& tx) {
    const auto at = tx.make<Cell>(1);
    tx.assign(at, {2});
    return at;
  });
  const auto gone = p.session.run([](Transaction& tx) { return tx.make<Cell>(3); });
  p.session.run([&](Transaction& tx) {
    tx.assign(gone, {4});
    tx.destroy(gone);
    CHECK(code_of([&] {
            tx.assign(gone, {5});
            return 0;
          }) == "destroyed_object");
  });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(made).value; }) == 2);
  CHECK(p.code([&](Transaction& tx) { return tx.read(gone).value; }) == "destroyed_object");
}

TEST_CASE("only an object of the type can be assigned") {
  OnePool p;
  const auto assigned = [&](Ptr<Cell> at) {
    return p.code([&](Transaction& tx) {
      tx.assign(at, {1});
      return 0;
    });
  };
  const auto other = p.session.run([](Transaction& tx) { return tx.make<Blob<8>>(); });
  const auto gone = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  p.session.run([&](Transaction& tx) { tx.destroy(gone); });
  CHECK(assigned({}) == "invalid_pointer");
  CHECK(assigned(Ptr<Cell>::from_offset(7)) == "invalid_pointer");
  CHECK(assigned(Ptr<Cell>::from_offset(other.offset())) == "wrong_type");
  CHECK(assigned(gone) == "destroyed_object");
  p.pool.checkpoint();  // now it is the home that says so
  CHECK(assigned(gone) == "destroyed_object");
}

TEST_CASE("who assigns what another changes meanwhile starts over") {
  for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
    Options options = quiet_options();
    options.locks = locks;
    Cells world(options);
    Session other = world.pool.session();
    int attempts = 0;
    world.session.run([&](Transaction& tx) {
      const std::int64_t seen = world.read(tx, 1);
      if (++attempts == 1) world.add(other, {0, 1}, 5);
      tx.assign(world.cells[0], {seen + 100});
    });
    CHECK(attempts == 2);
    world.session.run([&](Transaction& tx) {
      CHECK(world.read(tx, 0) == 105);
      CHECK(world.read(tx, 1) == 5);
    });
  }
  // And with nothing read: the version that is replaced must still be the one it was made for.
  Cells world(quiet_options());
  Session other = world.pool.session();
  int attempts = 0;
  world.session.run([&](Transaction& tx) {
    tx.assign(world.cells[0], {100});
    if (++attempts == 1) world.add(other, {0}, 5);
  });
  CHECK(attempts == 2);
  CHECK(world.session.run([&](Transaction& tx) { return world.read(tx, 0); }) == 100);
}

TEST_CASE("the record of what is assigned holds all of it, of what is written the words changed") {
  OnePool p;
  const auto at = p.session.run([](Transaction& tx) { return tx.make<Blob<1000>>(); });
  const auto logged = [&](auto&& body) {
    const std::uint64_t before = p.session.statistics().log_bytes;
    p.session.run(body);
    return p.session.statistics().log_bytes - before;
  };
  CHECK(logged([&](Transaction& tx) { tx.write(at).bytes[500] = 1; }) < 200);
  CHECK(logged([&](Transaction& tx) {
          Blob<1000> blob = tx.read(at);
          blob.bytes[500] = 2;
          tx.assign(at, blob);
        }) > 1000);
  // What was written first is compared with what was there.
  CHECK(logged([&](Transaction& tx) {
          Blob<1000> blob = tx.write(at);
          blob.bytes[500] = 3;
          tx.assign(at, blob);
        }) < 200);
}

TEST_CASE("neither padding nor the rest of the last word brings bytes of the heap to the file") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OnePool p(quiet_options(memory));
    const Padded dirty = Padded::dirty();
    const auto padded = p.session.run([](Transaction& tx) { return tx.make<Padded>(); });
    const auto odd = p.session.run([](Transaction& tx) { return tx.make<Blob<21>>(); });
    const auto full = p.session.run([](Transaction& tx) { return tx.make<Blob<24>>(); });
    // Copies of that size have been used, and the odd one is given one of them.
    for (int i = 0; i < 50; ++i) {
      p.session.run([&](Transaction& tx) { tx.write(full).bytes.fill(0xEE); });
    }
    p.session.run([&](Transaction& tx) { tx.destroy(full); });
    for (unsigned i = 0; i < 50; ++i) {
      p.session.run([&](Transaction& tx) {
        tx.assign(padded, dirty);
        tx.assign(odd, Blob<21>::of(i));
      });
    }
    p.session.close();
    p.pool.close();
    const std::vector<char> bytes = read_bytes(p.path.path());
    check_that_padding_is_zero(bytes.data() + padded.offset());
    CHECK(std::string(bytes.data() + odd.offset() + 21, 3) == std::string(3, '\0'));
  }
}

}  // namespace sp3::test
