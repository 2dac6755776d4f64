// What ranged objects refuse: ranges that are none, and chunk tables that no transaction has
// written.
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_object.h"

namespace sp3::test {

TEST_CASE("bad ranges, lengths and chunk sizes are errors that name the facts") {
  OneObject one;
  const RangedObject object = one.object;
  Bytes eight(8);
  const auto code = [&](const auto& body) {
    return one.code([&](Transaction& tx) {
      body(tx);
      return 0;
    });
  };
  CHECK(code([&](Transaction& tx) { object.read(tx, 0, {}); }) == "invalid_range");
  CHECK(code([&](Transaction& tx) { object.write(tx, 0, {}); }) == "invalid_range");
  CHECK(code([&](Transaction& tx) { object.lock(tx, 9, 8); }) == "invalid_range");
  CHECK(code([&](Transaction& tx) { static_cast<void>(object.view(tx, 8, 8)); }) ==
        "invalid_range");
  CHECK(code([&](Transaction& tx) { object.fill(tx, 8, 7); }) == "invalid_range");
  CHECK(code([&](Transaction& tx) { object.read(tx, 4 * kChunk - 7, eight); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.write(tx, 4 * kChunk, eight); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.write(tx, ~std::uint64_t{0}, eight); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { static_cast<void>(object.view(tx, 0, 4 * kChunk + 1)); }) ==
        "beyond_end");
  CHECK(code([&](Transaction& tx) { object.lock(tx, 0, ~std::uint64_t{0}); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.resize(tx, std::uint64_t{1} << 44); }) ==
        "invalid_argument");
  CHECK(code([&](Transaction& tx) { RangedObject::create(tx, std::uint64_t{1} << 44); }) ==
        "invalid_argument");
  CHECK(code([&](Transaction& tx) { RangedObject::create(tx, 8, 300); }) == "invalid_argument");
  CHECK(code([&](Transaction& tx) { RangedObject::create(tx, 8, 128); }) == "invalid_argument");
  CHECK(code([&](Transaction& tx) { RangedObject::create(tx, 8, 4096).fill(tx, 0, 8); }) ==
        "object_too_large");
  CHECK(code([&](Transaction& tx) { static_cast<void>(RangedObject().size(tx)); }) ==
        "invalid_pointer");
  const auto error = one.error([&](Transaction& tx) {
    object.read(tx, 4 * kChunk - 7, eight);
    return 0;
  });
  REQUIRE(error);
  CHECK(error->facts().wanted == "at most 1024 bytes");
  CHECK(error->facts().found == "[1017, 1025)");
  CHECK(error->facts().offset == object.header().offset());
}

TEST_CASE("positions of elements are checked in elements, however large") {
  OnePool one;
  const auto object = one.session.run([](Transaction& tx) {
    const auto made = Ranged<double>::create(tx, 100, kChunk);
    made.fill(tx, 0, 100);
    return made;
  });
  const auto code = [&](const auto& body) {
    return one.code([&](Transaction& tx) {
      body(tx);
      return 0;
    });
  };
  constexpr std::uint64_t kWraps = std::uint64_t{1} << 61;  // as many bytes as fit into no word
  CHECK(code([&](Transaction& tx) { static_cast<void>(object.get(tx, kWraps)); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.set(tx, kWraps + 1, 1.0); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.resize(tx, kWraps); }) == "invalid_argument");
  CHECK(code([&](Transaction& tx) { object.lock(tx, 99, 100); }) == "no error");
  CHECK(code([&](Transaction& tx) { object.lock(tx, 99, 101); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { object.fill(tx, 99, 101); }) == "beyond_end");
  CHECK(code([&](Transaction& tx) { static_cast<void>(object.view(tx, 99, 101)); }) ==
        "beyond_end");
}

TEST_CASE("a header that contradicts itself is an error") {
  OneObject one;
  const auto code_after = [&](const auto& damage) {
    return one.code([&](Transaction& tx) {
      damage(tx.write(one.object.header()));
      return one.object.size(tx);
    });
  };
  using Header = detail::RangedHeader;
  CHECK(code_after([](Header&) {}) == "no error");
  CHECK(code_after([](Header& header) { ++header.levels; }) == "damaged_metadata");
  CHECK(code_after([](Header& header) { header.length = 1000 * kChunk; }) == "damaged_metadata");
  CHECK(code_after([](Header& header) { header.chunk_bytes = 300; }) == "damaged_metadata");
  CHECK(code_after([](Header& header) {
          header.length = (std::uint64_t{1} << 44) + 1;
          header.levels = 6;  // as many as that length needs
        }) == "damaged_metadata");
}

TEST_CASE("what is wrong in a chunk table is reported") {
  OneObject one;
  const auto reported_after = [&](const auto& damage) {
    std::string report;
    CHECK_THROWS_AS(one.session.run([&](Transaction& tx) {
      REQUIRE(one.object.check_invariants(tx) == "");
      const auto top = Ptr<detail::RangedNode>::from_offset(tx.read(one.object.header()).top);
      damage(tx, top);
      report = one.object.check_invariants(tx);
      tx.cancel();
    }),
                    Cancelled);
    return report;
  };
  using Node = Ptr<detail::RangedNode>;
  CHECK_THAT(reported_after([](Transaction& tx, Node top) {
               auto& cells = tx.write(top).cells;
               cells[1] = cells[0];
             }),
             Catch::Contains("occurs twice in the chunk table"));
  CHECK_THAT(reported_after([](Transaction& tx, Node top) {
               auto& cells = tx.write(top).cells;
               std::swap(cells[3], cells[4]);
             }),
             Catch::Contains("There is a chunk 4 in an object of 4 chunks"));
  one.session.run([&](Transaction& tx) { one.object.resize(tx, 4 * kChunk - 1); });
  CHECK_THAT(reported_after([](Transaction& tx, Node top) {
               const auto last =
                   Ptr<detail::RangedChunk<kChunk>>::from_offset(tx.read(top).cells[3]);
               reinterpret_cast<std::byte*>(&tx.write(last))[kChunk - 1] = std::byte{1};
             }),
             Catch::Contains("The byte 1023 behind the object's end is not zero"));
}

TEST_CASE("a table that leads astray is an error where the transaction writes there itself too") {
  constexpr std::uint32_t kLarge = 4096;
  Options options = quiet_options();
  options.geometry.slab_size = 16384;
  OnePool one(options, 4 * kTinyPool);
  const auto make = [&](std::uint64_t length) {
    return one.session.run([&](Transaction& tx) {
      const auto object = RangedObject::create(tx, length, kLarge);
      object.write(tx, 0, bytes_of(length, 1));
      return object;
    });
  };
  const auto code = [&](const auto& body) {
    return one.code([&](Transaction& tx) {
      body(tx);
      return 0;
    });
  };
  {
    INFO("the header as its own chunk");
    const RangedObject object = make(kLarge);
    one.session.run(
        [&](Transaction& tx) { tx.write(object.header()).top = object.header().offset(); });
    CHECK(code([&](Transaction& tx) {
            object.resize(tx, kLarge - 1);
            object.write(tx, 0, bytes_of(kLarge - 1, 2));
          }) == "wrong_type");
    CHECK(code([&](Transaction& tx) {
            static_cast<void>(tx.write(object.header()));
            static_cast<void>(object.view(tx, 0, kLarge));
          }) == "wrong_type");
    CHECK(code([&](Transaction& tx) {
            CHECK_THROWS_AS(object.view(tx, 0, kLarge), Error);
            object.resize(tx, 2 * kLarge);  // there is no view
          }) == "no error");
  }
  {
    INFO("a chunk twice");
    const RangedObject object = make(2 * kLarge);
    one.session.run([&](Transaction& tx) {
      const auto top = Ptr<detail::RangedNode>::from_offset(tx.read(object.header()).top);
      auto& cells = tx.write(top).cells;
      cells[1] = cells[0];
    });
    Bytes bytes(kLarge);
    CHECK(code([&](Transaction& tx) {
            object.resize(tx, kLarge);
            object.read(tx, 0, bytes);
          }) == "destroyed_object");
    CHECK(code([&](Transaction& tx) {
            object.resize(tx, kLarge);
            object.write(tx, 0, bytes);
          }) == "destroyed_object");
    // Where none of them is let go there is nothing to be said against it but by a check.
    CHECK(code([&](Transaction& tx) { object.write(tx, 0, bytes); }) == "no error");
  }
  {
    INFO("a chunk that was destroyed");
    const RangedObject object = make(kLarge);
    one.session.run([&](Transaction& tx) {
      tx.destroy(Ptr<detail::RangedChunk<kLarge>>::from_offset(tx.read(object.header()).top));
    });
    for (const bool at_home : {false, true}) {
      if (at_home) one.pool.checkpoint();
      CHECK(code([&](Transaction& tx) { object.write(tx, 0, bytes_of(8, 2)); }) ==
            "destroyed_object");
    }
  }
}

}  // namespace sp3::test
