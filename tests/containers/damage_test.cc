// Objects at home carry no checksum: whatever stands in a container's objects, its operations return
// or throw sp3::Error.
#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

#include "tests/containers/damage.h"

using namespace sp3;
using namespace sp3::test;

namespace {

using Number = std::uint64_t;
constexpr Number kKeys = 90;

template <class Container>
Container open_target(Transaction& tx) {
  return Container::open(tx, tx.root<typename Container::Header>("target"));
}

struct QueueTarget {
  using Container = Queue<Number>;

  static void build(Transaction& tx) {
    const Container queue = Container::create(tx);
    for (Number i = 0; i < 12; ++i) queue.push(tx, i);
    tx.set_root("target", queue.header());
  }
  static std::vector<Piece> pieces(Transaction& tx) {
    const auto header = tx.root<Container::Header>("target");
    const auto [first, last] = tx.read(header);
    std::vector<Piece> result{piece(header), piece(first), piece(last)};
    for (auto at = tx.read(first).node; at; at = tx.read(at).next) result.push_back(piece(at));
    return result;
  }
  static void operate(Transaction& tx, Random& random) {
    const auto queue = open_target<Container>(tx);
    const Number n = random.below(20);
    switch (random.below(8)) {
      case 0:
        for (Number i = 0; i < n; ++i) queue.push(tx, i);
        return;
      case 1:
        for (Number i = 0; i < n; ++i) queue.pop(tx);
        return;
      case 2:
        return static_cast<void>(queue.front(tx));
      case 3:
        return static_cast<void>(queue.size(tx));
      case 4:
        return queue.for_each(tx, [](Number) {});
      case 5:
        return static_cast<void>(queue.drain(tx, random.chance(50) ? n : ~Number{0}));
      case 6:
        return static_cast<void>(queue.check_invariants(tx));
      default:
        return queue.destroy(tx);
    }
  }
};

struct ArrayTarget {
  using Container = Array<Number>;

  static void build(Transaction& tx) {
    const Container array = Container::create(tx, 300, 7);
    tx.set_root("target", array.header());
  }
  static std::vector<Piece> pieces(Transaction& tx) {
    const auto header = tx.root<Container::Header>("target");
    const auto root = tx.read(header).root;
    std::vector<Piece> result{piece(header), piece(header), piece(root)};
    for (const Number cell : tx.read(root).offsets) {
      if (cell != 0) result.push_back(piece(Ptr<Container::Chunk>::from_offset(cell)));
    }
    return result;
  }
  static void operate(Transaction& tx, Random& random) {
    const auto array = open_target<Container>(tx);
    const Number length = array.size(tx);
    // What is not filled yet is the caller's mistake, not damage.
    const Number filled = std::min(tx.read(array.header()).filled, length);
    const Number n = random.below(40);
    const Number index = filled == 0 ? 0 : random.below(filled);
    switch (random.below(9)) {
      case 0:
        return static_cast<void>(filled == 0 ? 0 : array.get(tx, index));
      case 1:
        if (filled != 0) array.set(tx, index, n);
        return;
      case 2:
        if (filled != 0) array.swap(tx, index, random.below(filled));
        return;
      case 3:
        return array.for_each(tx, [](Number) {});
      case 4:
        return static_cast<void>(array.fill(tx, n));
      case 5:
        return static_cast<void>(array.drain(tx, random.chance(70) ? n : ~Number{0}));
      case 6:
        return static_cast<void>(array.check_invariants(tx));
      case 7:
        if (filled != length) return;
        return static_cast<void>(filled == 0 ? 0 : array.cached(tx).get(tx, index));
      default:
        return array.destroy(tx);
    }
  }
};

template <class Map>
void build_map(Transaction& tx) {
  const Map map = Map::create(tx);
  for (Number key = 0; key < kKeys; ++key) map.insert_or_assign(tx, key * 3, key);
  tx.set_root("target", map.header());
}

template <class Map>
void operate_on_map(Transaction& tx, Random& random, const Map& map) {
  const Number n = random.below(12);
  // Any key, now and then one of those that are nearly the greatest.
  const auto key = [&] { return random.chance(90) ? random.below(kKeys * 3) : random(); };
  switch (random.below(9)) {
    case 0:
      for (Number i = 0; i < n; ++i) map.insert_or_assign(tx, key(), i);
      return;
    case 1:
      for (Number i = 0; i < n; ++i) map.erase(tx, key());
      return;
    case 2:
      return static_cast<void>(map.find(tx, key()));
    case 3:
      return static_cast<void>(map.contains(tx, key()));
    case 4:
      return static_cast<void>(map.size(tx) + Number{map.empty(tx)});
    case 5:
      return map.for_each(tx, [](Number, Number) {});
    case 6:
      return static_cast<void>(map.drain(tx, random.chance(50) ? n : ~Number{0}));
    case 7:
      return static_cast<void>(map.check_invariants(tx));
    default:
      return map.destroy(tx);
  }
}

template <class Map>
void operate_on_ordered(Transaction& tx, Random& random) {
  const auto map = open_target<Map>(tx);
  if (random.chance(50)) return operate_on_map(tx, random, map);
  const Number key = random.below(kKeys * 3);
  switch (random.below(7)) {
    case 0:
      return static_cast<void>(map.lower_bound(tx, key));
    case 1:
      return static_cast<void>(map.floor(tx, key));
    case 2:
      return static_cast<void>(map.first(tx).has_value() && map.last(tx).has_value());
    case 3:
      return map.range(tx, key, [](Number, Number) {});
    case 4:
      return map.range_down(tx, key, [](Number, Number) {});
    case 5:
      return static_cast<void>(map.upper_bound(tx, key));
    default:
      return map.for_each_down(tx, [](Number, Number) {});
  }
}

struct RbTarget {
  using Container = RbTree<Number, Number>;

  static void build(Transaction& tx) { build_map<Container>(tx); }
  static std::vector<Piece> pieces(Transaction& tx) {
    const auto header = tx.root<Container::Header>("target");
    std::vector<Piece> result{piece(header)};
    add(tx, tx.read(header).root, result);
    return result;
  }
  static void add(Transaction& tx, Ptr<Container::Node> at, std::vector<Piece>& result) {
    if (!at) return;
    result.push_back(piece(at));
    for (const auto child : tx.read(at).child) add(tx, child, result);
  }
  static void operate(Transaction& tx, Random& random) {
    operate_on_ordered<Container>(tx, random);
  }
};

template <unsigned... Fanout>
struct BpTarget {
  using Container = BpTree<Number, Number, Fanout...>;

  static void build(Transaction& tx) { build_map<Container>(tx); }
  static std::vector<Piece> pieces(Transaction& tx) {
    const auto header = tx.root<typename Container::Header>("target");
    const auto [height, root] = tx.read(header);
    std::vector<Piece> result{piece(header), piece(header)};
    add(tx, root, height, result);
    return result;
  }
  static void add(Transaction& tx, Number at, Number level, std::vector<Piece>& result) {
    if (level == 0) {
      result.push_back(piece(Ptr<typename Container::Leaf>::from_offset(at)));
      return;
    }
    const auto name = Ptr<typename Container::Inner>::from_offset(at);
    result.insert(result.end(), 3, piece(name));
    const auto& inner = tx.read(name);
    for (Number i = 0; i <= inner.count; ++i) add(tx, inner.children[i], level - 1, result);
  }
  static void operate(Transaction& tx, Random& random) {
    operate_on_ordered<Container>(tx, random);
  }
};

// Few values, equal in most bits: long chains at the end of the trie.
struct PoorHash {
  Number operator()(Number key) const { return key % 4; }
};
// A trie of several levels.
struct DeepHash {
  Number operator()(Number key) const { return mix_hash(key) >> 15; }
};

template <class Hash>
struct HashTarget {
  using Container = HashTable<Number, Number, Hash>;
  using Bucket = typename Container::Bucket;

  static void build(Transaction& tx) { build_map<Container>(tx); }
  static std::vector<Piece> pieces(Transaction& tx) {
    const auto header = tx.root<typename Container::Header>("target");
    std::vector<Piece> result{piece(header)};
    add(tx, tx.read(header).root, result);
    return result;
  }
  template <class Directory>
  static void add(Transaction& tx, Ptr<Directory> at, std::vector<Piece>& result) {
    result.insert(result.end(), 3, piece(at));
    Number previous = 0;
    for (const Number word : tx.read(at).cells) {
      if (word == previous) continue;
      previous = word;
      if ((word & 3) == 3) {
        add(tx, Ptr<typename Container::SmallDirectory>::from_offset(word & ~Number{3}), result);
      } else if ((word & 1) != 0) {
        add(tx, Ptr<typename Container::Directory>::from_offset(word & ~Number{1}), result);
      } else {
        auto bucket = Ptr<Bucket>::from_offset(word);
        for (; bucket; bucket = tx.read(bucket).next) result.push_back(piece(bucket));
      }
    }
  }
  static void operate(Transaction& tx, Random& random) {
    const auto map = open_target<Container>(tx);
    operate_on_map(tx, random, random.chance(25) ? map.cached(tx) : map);
  }
};

template <class Target>
void survive_much() {
  survive_damage<Target>(20'000, 1'000'000);
}

// What the operation throws after the damage, in one transaction that is undone.
template <class Container, class Damage, class Operate>
std::string code_after(World& world, const Container& container, Damage&& damage,
                       Operate&& operate) {
  return code_of([&] {
    world.run([&](Transaction& tx) {
      damage(tx);
      operate(tx, Container::open(tx, container.header()));
      throw Abort();
    });
  });
}

template <class Map>
Map made_map(World& world, Number keys) {
  return world.run([&](Transaction& tx) {
    Map map = Map::create(tx);
    for (Number key = 1; key <= keys; ++key) map.insert_or_assign(tx, key, key);
    return map;
  });
}

constexpr auto kDamaged = "damaged_metadata";
constexpr auto size = [](Transaction& tx, const auto& c) { static_cast<void>(c.size(tx)); };
constexpr auto drain = [](Transaction& tx, const auto& c) { c.drain(tx, ~Number{0}); };
constexpr auto destroy = [](Transaction& tx, const auto& c) { c.destroy(tx); };
constexpr auto show_down = [](Transaction& tx, const auto& c) {
  c.for_each_down(tx, [](Number, Number) {});
};

}  // namespace

TEST_CASE("A circle of a queue's nodes is no endless walk") {
  World world(tiny_shape());
  const auto queue = world.run([](Transaction& tx) {
    const auto created = Queue<Number>::create(tx);
    for (Number i = 0; i < 5; ++i) created.push(tx, i);
    return created;
  });
  const auto close = [&](Transaction& tx) {
    const auto [first, last] = tx.read(queue.header());
    tx.write(tx.read(last).node).next = tx.read(first).node;
  };
  CHECK(code_after(world, queue, close, size) == kDamaged);
  CHECK(code_after(world, queue, close, drain) == "destroyed_object");
  CHECK(code_after(world, queue, close, destroy) == "destroyed_object");
}

TEST_CASE("An array is only as long as it has chunks") {
  World world(tiny_shape());
  using Container = Array<Number>;
  const auto array = world.run([](Transaction& tx) { return Container::create(tx, 300, 7); });
  const auto show = [](Transaction& tx, const Container& c) { c.for_each(tx, [](Number) {}); };
  const auto cache = [](Transaction& tx, const Container& c) {
    static_cast<void>(c.cached(tx).size(tx));
  };
  // Two levels, of which the upper one leads to the first entries again and again.
  const auto repeat = [&](Transaction& tx) {
    auto& header = tx.write(array.header());
    header.length = header.filled = 128 * 128;
    auto& cells = tx.write(header.root).offsets;
    cells.fill(cells[0]);
  };
  CHECK(code_after(world, array, repeat, show) == kDamaged);
  CHECK(code_after(world, array, repeat, cache) == kDamaged);
  // More than there is memory for, which is not asked for before the chunks were seen.
  const auto lengthen = [&](Transaction& tx) {
    auto& header = tx.write(array.header());
    header.length = header.filled = std::uint64_t{1} << 50;
    tx.write(header.root).offsets.fill(header.root.offset());
  };
  CHECK(code_after(world, array, lengthen, cache) == kDamaged);
  const auto cut = [&](Transaction& tx) { tx.write(tx.read(array.header()).root).offsets[1] = 0; };
  CHECK(code_after(world, array, cut, show) == kDamaged);
  CHECK(code_after(world, array, cut, [](Transaction& tx, const Container& c) {
          static_cast<void>(c.get(tx, 200));
        }) == kDamaged);
}

TEST_CASE("No circle of nodes holds an operation of a red-black tree") {
  World world(tiny_shape());
  using Container = RbTree<Number, Number>;
  const auto map = made_map<Container>(world, 40);
  const unsigned side = GENERATE(0U, 1U);
  const auto close = [&](Transaction& tx) {
    const auto root = tx.read(map.header()).root;
    auto at = root;
    while (const auto below = tx.read(at).child[side]) at = below;
    tx.write(at).child[side] = root;
  };
  const auto check = [&](auto&& operate) {
    CHECK(code_after(world, map, close, operate) == kDamaged);
  };
  check([&](Transaction& tx, const Container& c) {
    static_cast<void>(c.contains(tx, side == 0 ? 0 : 1000));  // beyond all keys
  });
  check(size);
  check(show_down);
  CHECK(code_after(world, map, close, destroy) != "no error");
}

TEST_CASE("What a node of a B+ tree says of itself leads nowhere outside of it") {
  World world(tiny_shape());
  using Container = BpTree<Number, Number, 4>;
  const auto map = made_map<Container>(world, 40);
  const auto first_leaf = [&](Transaction& tx) {
    auto [height, at] = tx.read(map.header());
    for (; height > 0; --height) at = tx.read(Ptr<Container::Inner>::from_offset(at)).children[0];
    return Ptr<Container::Leaf>::from_offset(at);
  };
  const auto check = [&](auto&& damage) {
    const auto after = [&](auto&& operate) {
      CHECK(code_after(world, map, damage, operate) == kDamaged);
    };
    after([](Transaction& tx, const Container& c) { static_cast<void>(c.contains(tx, 0)); });
    after([](Transaction& tx, const Container& c) { c.insert_or_assign(tx, 0, 1); });
    after([](Transaction& tx, const Container& c) { c.erase(tx, 0); });
    after(size);
    after(show_down);
    after(drain);
    after(destroy);
  };
  const Number count = GENERATE(Number{4}, Number{200}, ~Number{0});
  check([&](Transaction& tx) { tx.write(first_leaf(tx)).count = count; });
  check([&](Transaction& tx) { tx.write(map.header()).height = std::max<Number>(count, 65); });
  const auto close = [&](Transaction& tx) {
    const auto leaf = first_leaf(tx);
    tx.write(tx.read(tx.read(leaf).next).next).next = leaf;
  };
  CHECK(code_after(world, map, close, size) == kDamaged);
  CHECK(code_after(world, map, close, [](Transaction& tx, const Container& c) {
          c.range(tx, 0, [](Number, Number) {});
        }) == kDamaged);
}

TEST_CASE("No directory leads an operation of a hash table round and round") {
  World world(tiny_shape());
  using Container = HashTable<Number, Number>;
  const auto map = made_map<Container>(world, 40);
  const auto check = [&](auto&& damage, auto&& operate) {
    CHECK(code_after(world, map, damage, operate) == kDamaged);
  };
  const auto find = [](Transaction& tx, const Container& c) {
    for (Number key = 0; key < 40; ++key) static_cast<void>(c.contains(tx, key));
  };
  const auto circle = [&](Transaction& tx) {
    const auto root = tx.read(map.header()).root;
    tx.write(root).cells.fill(root.offset() | 1);
  };
  check(circle, find);
  check(circle, size);
  check(circle, drain);
  check(circle, destroy);
  // Nine levels of directories, each named twice in turn by the one above: 64 ways at each level.
  const auto braid = [&](Transaction& tx) {
    auto above = tx.read(map.header()).root;
    const Number bucket = tx.read(above).cells[0];
    for (unsigned level = 1; level < 9; ++level) {
      const std::array<Ptr<Container::Directory>, 2> below{tx.make<Container::Directory>(),
                                                           tx.make<Container::Directory>()};
      for (unsigned i = 0; i < 128; ++i) tx.write(above).cells[i] = below[i % 2].offset() | 1;
      for (const auto directory : below) tx.write(directory).cells.fill(bucket);
      above = below[0];
    }
  };
  check(braid, size);
  // A chain of one bucket, its own successor.
  const auto chain = [&](Transaction& tx) {
    const auto bucket =
        Ptr<Container::Bucket>::from_offset(tx.read(tx.read(map.header()).root).cells[0]);
    tx.write(bucket).next = bucket;
    tx.write(bucket).slots.fill(0);
    tx.write(tx.read(map.header()).root).cells.fill(bucket.offset());
  };
  check(chain, find);
  check(chain, size);
  const auto deep = [&](Transaction& tx) {
    for (const Number cell : tx.read(tx.read(map.header()).root).cells) {
      tx.write(Ptr<Container::Bucket>::from_offset(cell)).depth = 64;
    }
  };
  check(deep, [](Transaction& tx, const Container& c) {
    for (Number key = 0; key < 500; ++key) c.insert_or_assign(tx, key, key);
  });
}

TEST_CASE("Who catches what damage makes a container throw commits no half of a change") {
  World world(tiny_shape());
  using Container = BpTree<Number, Number, 4>;
  const auto map = made_map<Container>(world, 40);
  const auto code = code_of([&] {
    world.run([&](Transaction& tx) {
      map.insert_or_assign(tx, 1000, 1);
      tx.write(map.header()).height = 65;
      try {
        map.erase(tx, 7);
      } catch (const Error&) {
        // and goes on
      }
    });
  });
  CHECK(code == kDamaged);
  CHECK(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
}

TEST_CASE("A damaged queue's operations return or throw an error") {
  survive_damage<QueueTarget>(2000);
}

TEST_CASE("A damaged array's operations return or throw an error") {
  survive_damage<ArrayTarget>(1000);
}

TEST_CASE("A damaged red-black tree's operations return or throw an error") {
  survive_damage<RbTarget>(2000);
}

TEST_CASE("A damaged B+ tree's operations return or throw an error") {
  survive_damage<BpTarget<4>>(1500);
  survive_damage<BpTarget<>>(1000);
}

TEST_CASE("A damaged hash table's operations return or throw an error") {
  survive_damage<HashTarget<DefaultHash<Number>>>(800);
  survive_damage<HashTarget<PoorHash>>(800);
  survive_damage<HashTarget<DeepHash>>(800);
}

TEST_CASE("Damaged containers' operations return or throw an error, at length", "[.full]") {
  survive_much<QueueTarget>();
  survive_much<ArrayTarget>();
  survive_much<RbTarget>();
  survive_much<BpTarget<4>>();
  survive_much<BpTarget<>>();
  survive_much<HashTarget<DefaultHash<Number>>>();
  survive_much<HashTarget<PoorHash>>();
  survive_much<HashTarget<DeepHash>>();
}
