#include <catch2/catch.hpp>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

using namespace sp3;

namespace {

// A key and a value, of any version.
template <std::uint32_t version>
struct Key {
  std::uint64_t number;
  friend bool operator==(const Key&, const Key&) = default;
  friend bool operator<(const Key& a, const Key& b) { return a.number < b.number; }
};
template <std::uint32_t version>
struct Value {
  std::uint64_t number;
};

// Not a list of the library's.
struct Own {
  using Holds = Value<2>;
  std::uint64_t number;
};

// Of the type alone, whatever it holds: what every pool has that holds first versions.
template <Storable T>
constexpr std::uint64_t own_fingerprint() {
  std::uint64_t hash = detail::fnv1a(0xcbf29ce484222325ULL, TypeTag<T>::name);
  hash = detail::fnv1a(hash, TypeTag<T>::version);
  hash = detail::fnv1a(hash, sizeof(T));
  return detail::fnv1a(hash, alignof(T));
}

template <Storable... Ts>
constexpr bool all_alone() {
  return ((detail::fingerprint_of<Ts>() == own_fingerprint<Ts>()) && ...);
}
template <Storable... Ts>
constexpr bool none_alone() {
  return ((detail::fingerprint_of<Ts>() != own_fingerprint<Ts>()) && ...);
}

}  // namespace

template <std::uint32_t number>
struct sp3::TypeTag<Key<number>> {
  static constexpr std::string_view name = "versions_test.Key";
  static constexpr std::uint32_t version = number;
};
template <std::uint32_t number>
struct sp3::TypeTag<Value<number>> {
  static constexpr std::string_view name = "versions_test.Value";
  static constexpr std::uint32_t version = number;
};

TEST_CASE("A node of first versions has the fingerprint that it would have alone") {
  using Rb = RbTree<Key<1>, Value<1>>;
  using Bp = BpTree<Key<1>, Value<1>>;
  using Hash = HashTable<Key<1>, Value<1>>;
  STATIC_REQUIRE(all_alone<Queue<Value<1>>::Node, Hash::Node, Rb::Node, Bp::Leaf, Bp::Inner>());
}

TEST_CASE("A node is of another type when what it holds has a new version") {
  using NewKeys = HashTable<Key<2>, Value<1>>;
  using NewValues = HashTable<Key<1>, Value<2>>;
  using Rb = RbTree<Key<2>, Value<1>>;
  using Bp = BpTree<Key<2>, Value<1>>;
  STATIC_REQUIRE(none_alone<Queue<Value<2>>::Node, NewKeys::Node, NewValues::Node, Rb::Node,
                            Bp::Leaf, Bp::Inner>());
  // Which of them has it counts.
  STATIC_REQUIRE(detail::mix_versions(0, detail::Holds<Key<2>, Value<1>>()) !=
                 detail::mix_versions(0, detail::Holds<Key<1>, Value<2>>()));
}

TEST_CASE("A new version leaves alone what does not hold the type's bytes") {
  using Rb = RbTree<Key<1>, Value<2>>;
  using Bp = BpTree<Key<1>, Value<2>>;
  using Hash = HashTable<Key<2>, Value<2>>;
  STATIC_REQUIRE(all_alone<Rb::Node, Bp::Leaf, Bp::Inner, Array<Value<2>>::Chunk>());
  STATIC_REQUIRE(all_alone<Hash::Header, Hash::Directory, Hash::Bucket, Queue<Value<2>>::Header>());
  STATIC_REQUIRE(all_alone<Own>());
}
