// Pointers that name no object, no longer, or another type's: each is a typed error that says
// where.
#include <catch2/catch.hpp>

#include "pool/format.h"
#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
struct Other {
  std::uint64_t value = 0;
};

}  // namespace

TEST_CASE("use after destroy is an error that names the object") {
  OnePool p;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
  p.session.run([&](Transaction& tx) { tx.destroy(cell); });
  for (int round = 0; round < 2; ++round) {
    const auto read = p.error([&](Transaction& tx) { return tx.read(cell).value; });
    REQUIRE(read);
    CHECK(read->code() == ErrorCode::destroyed_object);
    CHECK(read->facts().offset == cell.offset());
    CHECK(read->facts().path == p.path.string());
    CHECK(p.code([&](Transaction& tx) { return tx.write(cell).value; }) == "destroyed_object");
    CHECK(p.code([&](Transaction& tx) {
      tx.destroy(cell);
      return 0;
    }) == "destroyed_object");
    p.pool.checkpoint();  // now it is the home that says so
  }
}

TEST_CASE("every offset that is not the start of an object of the type is refused") {
  OnePool p;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
  const auto other = p.session.run([](Transaction& tx) { return tx.make<Other>(2U); });
  const std::uint64_t slab = cell.offset() / 4096 * 4096;
  int allowed = 0;
  for (std::uint64_t offset = slab; offset < slab + 4096; ++offset) {
    const auto error =
        p.error([&](Transaction& tx) { return tx.read(Ptr<Cell>::from_offset(offset)).value; });
    if (!error) {
      ++allowed;
      REQUIRE(offset == cell.offset());
      continue;
    }
    INFO("offset " << offset << ", the object at " << cell.offset());
    const bool slot = offset >= cell.offset() && (offset - cell.offset()) % 8 == 0 &&
                      (offset - cell.offset()) / 8 < pool::slab_shape(4096, 8).slots;
    REQUIRE(error->code() == (slot ? ErrorCode::destroyed_object : ErrorCode::invalid_pointer));
    REQUIRE(error->facts().offset == offset);
  }
  CHECK(allowed == 1);
  std::vector<std::uint64_t> wild{0,
                                  1,
                                  7,
                                  8,
                                  4095,
                                  4096,
                                  8192,
                                  kTinyPool - 8,
                                  kTinyPool - 1,
                                  kTinyPool,
                                  kTinyPool + 8,
                                  ~std::uint64_t{0},
                                  ~std::uint64_t{7},
                                  std::uint64_t{1} << 47};
  for (std::uint64_t at = 0; at < slab; at += 520) wild.push_back(at);  // header, directory, log
  for (const std::uint64_t offset : wild) {
    if (offset / 4096 * 4096 == slab) continue;
    INFO("offset " << offset);
    const auto object = Ptr<Cell>::from_offset(offset);
    const bool root_slab = offset >= slab - 4096 && offset < slab;
    const std::string read = p.code([&](Transaction& tx) { return tx.read(object).value; });
    if (!root_slab || read != "wrong_type") CHECK(read == "invalid_pointer");
    CHECK(p.code([&](Transaction& tx) { return tx.write(object).value; }) == read);
    CHECK(p.code([&](Transaction& tx) {
      tx.destroy(object);
      return 0;
    }) == read);
  }
  const auto wrong = p.error(
      [&](Transaction& tx) { return tx.read(Ptr<Cell>::from_offset(other.offset())).value; });
  REQUIRE(wrong);
  CHECK(wrong->code() == ErrorCode::wrong_type);
  CHECK(wrong->facts().offset == other.offset());
  CHECK(wrong->facts().wanted.find("Cell, 0x") != std::string::npos);
  CHECK(wrong->facts().found.find("0x") == 0);
}

TEST_CASE("an object opened for writing is not handed out as another type") {
  OnePool p;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
  const auto as_other = Ptr<Other>::from_offset(cell.offset());
  p.session.run([&](Transaction& tx) {
    tx.write(cell).value = 3;
    CHECK(code_of([&] { return tx.read(as_other).value; }) == "wrong_type");
    CHECK(code_of([&] { return tx.write(as_other).value; }) == "wrong_type");
    CHECK(code_of([&] {
            tx.destroy(as_other);
            return 0;
          }) == "wrong_type");
  });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 3);
}

}  // namespace sp3::test
