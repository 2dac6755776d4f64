// What an object's members hold is not taken for padding, whatever compiler clears that.
#include <array>
#include <cstdint>
#include <cstring>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>
#include <sp3/ranged.h>
#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

template <std::size_t Bytes>
struct Letters {
  std::array<unsigned char, Bytes> letter;
};

// An array of structures between two words; in front of the second there may be padding.
template <std::size_t Bytes, std::size_t Count>
struct Text {
  std::uint64_t first;
  Letters<Bytes> letters[Count];
  std::uint64_t last;

  static Text filled(unsigned seed) {
    Text text{};
    text.first = text.last = seed;
    for (auto& some : text.letters) {
      for (auto& letter : some.letter) letter = static_cast<unsigned char>(1 + seed++ % 255);
    }
    return text;
  }
  [[nodiscard]] bool is_filled(unsigned seed) const {
    const Text wanted = filled(seed);
    return first == wanted.first && last == wanted.last &&
           std::memcmp(letters, wanted.letters, sizeof letters) == 0;
  }
};

template <class T>
void check_ways_into_a_pool() {
  OnePool one;
  const auto run = [&](auto&& body) { return one.session.run(body); };
  const auto made = run([](Transaction& tx) { return tx.make<T>(T::filled(1)); });
  const auto written = run([](Transaction& tx) { return tx.make<T>(); });
  const auto assigned = run([](Transaction& tx) { return tx.make<T>(); });
  run([&](Transaction& tx) { tx.write(written) = T::filled(2); });
  run([&](Transaction& tx) { tx.assign(assigned, T::filled(3)); });
  const auto array = run([](Transaction& tx) { return Array<T>::create(tx, 2); });
  const auto queue = run([](Transaction& tx) { return Queue<T>::create(tx); });
  const auto table = run([](Transaction& tx) { return HashTable<std::uint64_t, T>::create(tx); });
  const auto rb_tree = run([](Transaction& tx) { return RbTree<std::uint64_t, T>::create(tx); });
  const auto bp_tree = run([](Transaction& tx) { return BpTree<std::uint64_t, T>::create(tx); });
  const auto ranged = run([](Transaction& tx) { return Ranged<T>::create(tx, 4); });
  run([&](Transaction& tx) {
    array.set(tx, 1, T::filled(4));
    queue.push(tx, T::filled(5));
    table.insert_or_assign(tx, 1, T::filled(6));
    rb_tree.insert_or_assign(tx, 1, T::filled(7));
    bp_tree.insert_or_assign(tx, 1, T::filled(8));
    ranged.set(tx, 0, T::filled(9));
    const std::array both{T::filled(10), T::filled(11)};
    ranged.write(tx, 1, both);
  });
  run([&](Transaction& tx) {
    CHECK(tx.read(made).is_filled(1));
    CHECK(tx.read(written).is_filled(2));
    CHECK(tx.read(assigned).is_filled(3));
    CHECK(array.get(tx, 1).is_filled(4));
    CHECK(queue.front(tx)->is_filled(5));
    CHECK(table.find(tx, 1)->is_filled(6));
    CHECK(rb_tree.find(tx, 1)->is_filled(7));
    CHECK(bp_tree.find(tx, 1)->is_filled(8));
    CHECK(ranged.get(tx, 0).is_filled(9));
    CHECK(ranged.get(tx, 1).is_filled(10));
    CHECK(ranged.get(tx, 2).is_filled(11));
  });
}

}  // namespace

// GCC 12 zeroed the first letters of such an array from 66 bytes on.
TEST_CASE("an array of structures before padding keeps its first elements") {
  check_ways_into_a_pool<Text<3, 14>>();  // 64 bytes in all, the most whose padding is cleared
  check_ways_into_a_pool<Text<3, 20>>();
  check_ways_into_a_pool<Text<3, 22>>();
  check_ways_into_a_pool<Text<3, 45>>();
  check_ways_into_a_pool<Text<12, 7>>();
  check_ways_into_a_pool<Text<5, 101>>();
}

}  // namespace sp3::test
