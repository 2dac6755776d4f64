// SlabTable over a real, small pool file: allocation, freeing, lazy loading, and what gets durable.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "index/slab_table.h"
#include "pool/pool_file.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

using index::Place;
using index::SlabTable;

struct A {
  std::uint64_t words[3];
};
struct B {
  std::uint64_t words[12];
};
struct Page {
  std::uint64_t words[490];
};
struct Giant {
  std::uint64_t words[512];
};

template <class T>
constexpr const detail::TypeInfo& info = detail::type_info<T>;

struct Fixture {
  TempPath path;
  base::EpochDomain epochs{1};
  std::unique_ptr<pool::PoolFile> file;
  std::unique_ptr<SlabTable> table;
  Fixture() : file(pool::PoolFile::create(path.path(), kTinyPool, quiet_options())) {
    epochs.admit(0);
    load();
  }
  void load() {
    table = std::make_unique<SlabTable>(file->memory(), file->layout(), file->identity(), epochs,
                                        [](int error) { FAIL(error); });
  }
  std::vector<Place> take(const detail::TypeInfo& type, std::size_t count) {
    std::vector<Place> places;
    table->take(type, count, places);
    return places;
  }
  // As a checkpoint would make the slot's object durable.
  void settle(const Place& place, bool holds) {
    place.slab->set_home(place.slot, holds);
    emu::FlushCounts counts;
    for (const int copy : {0, 1}) table->store_metadata(*place.slab, copy, counts);
  }
  [[nodiscard]] std::uint32_t slabs() const { return file->layout().slabs; }
};

std::uint64_t offset_of(const Place& place) { return place.slab->offset_of(place.slot); }

}  // namespace

TEST_CASE("take hands out distinct slots of the type's slabs, which find finds again") {
  Fixture f;
  std::set<std::uint64_t> offsets;
  for (int i = 0; i < 40; ++i) {
    for (const Place& place : f.take(i % 2 == 0 ? info<A> : info<B>, 17)) {
      REQUIRE(place.slab->type == (i % 2 == 0 ? info<A> : info<B>).fingerprint);
      REQUIRE(offsets.insert(offset_of(place)).second);
      const Place found = f.table->find(offset_of(place));
      REQUIRE(found.slab == place.slab);
      REQUIRE(found.slot == place.slot);
      REQUIRE(f.table->find(offset_of(place) + 8).slab == nullptr);
    }
  }
  CHECK(offsets.size() >= 600);
  CHECK(f.table->index_bytes() > 0);
}

TEST_CASE("find finds nothing outside the slabs and in free ones") {
  Fixture f;
  const auto& layout = f.file->layout();
  for (const std::uint64_t offset :
       {std::uint64_t{0}, layout.log_offset, layout.slabs_offset - 8, layout.slabs_offset,
        layout.slabs_offset + 128, layout.size, layout.size + 128, ~std::uint64_t{0}}) {
    CHECK(f.table->find(offset).slab == nullptr);
  }
}

TEST_CASE("a full pool throws, and slots that are given back are taken again") {
  Fixture f;
  std::vector<Place> places;
  REQUIRE(code_of([&] {
            while (true) f.table->take(info<Page>, 1, places);
            return 0;
          }) == "pool_full");
  CHECK(places.size() == f.slabs());
  CHECK(f.table->slabs_used() == f.slabs());
  CHECK(code_of([&] { return f.take(info<A>, 1); }) == "pool_full");
  const Place freed = places[3];
  f.table->give_back({&freed, 1});
  const auto again = f.take(info<Page>, 5);
  REQUIRE(again.size() == 1);
  CHECK(again[0].slab == freed.slab);
  CHECK(code_of([&] { return f.take(info<Giant>, 1); }) == "object_too_large");
}

TEST_CASE("every slot of a slab can be taken, and all of them given back in any order") {
  Fixture f;
  const std::uint32_t slots = f.take(info<A>, 1)[0].slab->slots;
  auto places = f.take(info<A>, slots - 1);
  while (places.size() < slots - 1) {
    for (const Place& place : f.take(info<A>, 1)) places.push_back(place);
  }
  CHECK(f.table->slabs_used() == 1);
  CHECK(f.take(info<A>, 1)[0].slab->number != places[0].slab->number);
  Random random(3);
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  f.table->give_back(places);
  CHECK(places[0].slab->claimed_count == 1);
}

TEST_CASE("slots that are given back are had again, wherever they lie") {
  Fixture f;
  std::vector<Place> places = f.take(info<A>, 1);
  index::Slab& slab = *places[0].slab;
  while (places.size() < slab.slots) {
    for (const Place& place : f.take(info<A>, slab.slots - places.size())) places.push_back(place);
  }
  for (const std::size_t back : {std::size_t{slab.slots} - 1, std::size_t{0}, places.size() / 2}) {
    f.table->give_back({&places[back], 1});
    const auto again = f.take(info<A>, 1);
    REQUIRE(again.size() == 1);
    CHECK(again[0].slab == &slab);
    CHECK(again[0].slot == places[back].slot);
  }
  const std::array<Place, 2> two{places.back(), places.front()};
  f.table->give_back(two);
  CHECK(f.take(info<A>, 2)[1].slot == places.back().slot);
}

TEST_CASE("slabs of several types are freed at once, and the others keep their slots") {
  Fixture f;
  std::vector<Place> kept = f.take(info<A>, 1);  // of slab 0
  std::vector<Place> given;
  std::vector<std::uint32_t> numbers;
  for (int round = 0; round < 3; ++round) {
    for (const auto* type : {&info<Page>, &info<B>}) {
      auto places = f.take(*type, 1);
      while (places.size() < places[0].slab->slots) {
        for (const Place& place : f.take(*type, places[0].slab->slots - places.size())) {
          places.push_back(place);
        }
      }
      if (round == 1) {
        kept.push_back(places.back());
        places.pop_back();
      } else {
        numbers.push_back(places[0].slab->number);
      }
      given.insert(given.end(), places.begin(), places.end());
    }
  }
  f.table->give_back(given);
  const std::uint64_t index_bytes = f.table->index_bytes();
  CHECK(f.table->free_empty_slabs(100) == numbers);
  CHECK(f.table->index_bytes() < index_bytes);
  for (const index::Slab* slab : f.table->take_newly_carved()) {
    CHECK(std::ranges::find(numbers, slab->number) == numbers.end());
  }
  CHECK(f.table->slabs_used() == 3);
  // What is left of the two types, before a slab is carved again.
  CHECK(f.take(info<B>, 1)[0].slab == kept[2].slab);
  CHECK(f.take(info<Page>, 1)[0].slab->number != 0);
}

TEST_CASE("an empty slab is freed only when no record above the floor names a slot of it") {
  Fixture f;
  (void)f.take(info<A>, 1);  // slab 0 is never freed
  const auto places = f.take(info<B>, 4);
  const std::uint32_t number = places[0].slab->number;
  REQUIRE(number != 0);
  CHECK(f.table->free_empty_slabs(100).empty());  // claimed
  std::uint64_t found = 0;
  REQUIRE(places[1].entry().try_lock(0, &found));
  f.table->give_back(places);
  CHECK(f.table->free_empty_slabs(100).empty());  // locked
  places[1].entry().publish(index::pack_word0(101), index::pack_word1(2, index::kTombstone));
  CHECK(f.table->free_empty_slabs(100).empty());  // named by a record above the floor
  f.settle(places[2], true);
  CHECK(f.table->free_empty_slabs(101).empty());  // holds an object at home
  f.settle(places[2], false);
  const std::uint64_t offset = offset_of(places[0]);
  CHECK(f.table->free_empty_slabs(101) == std::vector<std::uint32_t>{number});
  CHECK(f.table->find(offset).slab == nullptr);
  CHECK(f.table->free_empty_slabs(101).empty());
  for (int i = 0; i < 3; ++i) f.epochs.try_advance();
  f.table->reclaim();
  // Carved again, to another class.
  CHECK(f.take(info<Page>, 1)[0].slab->number == number);
}

TEST_CASE("a slab is loaded lazily, as its metadata says") {
  Fixture f;
  const auto places = f.take(info<A>, 10);
  for (const std::size_t i : {1U, 4U, 7U}) f.settle(places[i], true);
  std::vector<std::uint64_t> offsets;
  for (const Place& place : places) offsets.push_back(offset_of(place));
  f.load();
  CHECK(f.table->index_bytes() == 0);
  CHECK(f.table->slabs_used() == 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Place place = f.table->find(offsets[i]);
    REQUIRE(place.slab != nullptr);
    CHECK(place.slab->home_holds_object(place.slot) == (i == 1 || i == 4 || i == 7));
  }
  CHECK(f.table->index_bytes() > 0);
  std::set<std::uint64_t> taken;
  for (const Place& place : f.take(info<A>, 20)) taken.insert(offset_of(place));
  for (const std::size_t i : {1U, 4U, 7U}) CHECK_FALSE(taken.contains(offsets[i]));
  CHECK(taken.contains(offsets[0]));
}

TEST_CASE("a slot of a slab that was full when it was loaded is had again") {
  Fixture f;
  std::vector<Place> places = f.take(info<A>, 1);
  while (places.size() < places[0].slab->slots) {
    for (const Place& place : f.take(info<A>, places[0].slab->slots - places.size())) {
      places.push_back(place);
    }
  }
  for (const Place& place : places) f.settle(place, true);
  const std::uint64_t offset = offset_of(places[5]);
  f.load();
  const Place freed = f.table->find(offset);
  REQUIRE(freed.slab != nullptr);
  f.table->give_back({&freed, 1});
  CHECK(offset_of(f.take(info<A>, 1)[0]) == offset);
}

TEST_CASE("a damaged bitmap is found when its slab is first touched, and says where") {
  Fixture f;
  const auto places = f.take(info<A>, 3);
  f.settle(places[0], true);
  const std::uint64_t offset = offset_of(places[0]);
  const index::Slab& slab = *places[0].slab;
  const std::uint32_t number = slab.number;
  const pool::Layout& layout = f.file->layout();
  const pool::SlabShape shape = pool::slab_shape(layout.slab_size, slab.slot_size);
  const std::uint64_t wrong = 0xFF;
  const auto damage = [&, begin = layout.slab_offset(slab.number)](int copy) {
    f.file->memory().store(begin + shape.bitmap(copy), &wrong, sizeof wrong);
  };
  for (const int copy : {0, 1}) {  // each is mended from the other
    damage(copy);
    f.load();
    CHECK(f.table->find(offset).slab != nullptr);
  }
  damage(0);
  damage(1);
  f.load();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto error = error_of([&] { return f.table->find(offset); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::damaged_metadata);
    CHECK(error->facts().path == f.path.string());
    CHECK(error->facts().offset.has_value());
    // It has no slots to hand out; others have.
    const auto others = f.take(info<A>, 1);
    REQUIRE(others.size() == 1);
    CHECK(others[0].slab->number != number);
  }
}

TEST_CASE("a slab of a type's fingerprint but another size is not taken for one of the type") {
  Fixture f;
  const Place place = f.take(info<B>, 1)[0];
  f.settle(place, true);
  const std::uint64_t offset = offset_of(place);
  const std::uint32_t number = place.slab->number;
  detail::TypeInfo larger = info<B>;
  larger.size += 8;
  CHECK(place.slab->holds(info<B>));
  CHECK_FALSE(place.slab->holds(larger));
  f.load();
  const auto error = error_of([&] { return f.take(larger, 1); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_metadata);
  CHECK(error->facts().offset == f.file->layout().slab_offset(number));
  CHECK(error->facts().wanted == "104 bytes");
  CHECK(error->facts().found == "96 bytes");
  CHECK(f.table->find(offset).slab != nullptr);
}

TEST_CASE("threads that take and give back never hold the same slot") {
  Fixture f;
  std::vector<std::vector<std::uint64_t>> held(4);
  on_threads(4, [&](int thread) {
    Random random(static_cast<std::uint64_t>(thread) + 5);
    std::vector<Place> places;
    for (int i = 0; i < 3000; ++i) {
      if (places.size() > 40 || (random.below(2) == 0 && !places.empty())) {
        const std::size_t some = 1 + random.below(places.size());
        f.table->give_back({places.data(), some});
        places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(some));
      } else {
        f.table->take(random.below(2) == 0 ? info<A> : info<B>, 1 + random.below(8), places);
      }
    }
    for (const Place& place : places)
      held[static_cast<std::size_t>(thread)].push_back(offset_of(place));
  });
  std::set<std::uint64_t> all;
  std::size_t count = 0;
  for (const auto& part : held) {
    all.insert(part.begin(), part.end());
    count += part.size();
  }
  CHECK(all.size() == count);
}

}  // namespace sp3::test
