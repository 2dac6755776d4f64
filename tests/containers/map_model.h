// The subject that the three maps share, and the tests that are the same for all of them.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/containers/model.h"

namespace sp3::test {

// Five words: a value whose words must belong together.
struct Payload {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 4> rest{};

  Payload() = default;
  explicit Payload(std::uint64_t n) : number(n) {
    for (std::uint64_t i = 0; i < rest.size(); ++i) rest[i] = n * (i + 3);
  }
  [[nodiscard]] bool is_whole() const { return rest == Payload(number).rest; }
};

// A new map of the keys below `keys`, with their own number for a value.
template <class Map>
Map filled_map(World& world, std::uint64_t keys) {
  return world.run([&](Transaction& tx) {
    Map created = Map::create(tx);
    for (std::uint64_t k = 0; k < keys; ++k) created.insert_or_assign(tx, k, Payload(k));
    return created;
  });
}

enum class Order : std::uint8_t { random, ascending, descending, crowded };

template <class Map>
class MapSubject {
 public:
  using Model = std::map<std::uint64_t, std::uint64_t>;
  enum Kind : unsigned { insert, erase, find, scan, insert_absent, change };

  // `cached`: by a handle that keeps what never changes, if the map has such.
  MapSubject(Order order, std::uint64_t keys, bool cached = false)
      : order_(order), keys_(keys), cached_(cached) {}

  static void create(Transaction& tx) { tx.set_root("subject", Map::create(tx).header()); }
  void open(Transaction& tx) {
    map_ = Map::open(tx, tx.root<typename Map::Header>("subject"));
    if constexpr (requires { map_.cached(tx); }) {
      if (cached_) map_ = map_.cached(tx);
    }
  }
  void reset(Model& model) { model.clear(); }

  // First mostly inserts, then everything, then mostly erases.
  Operation draw(Random& random, unsigned step, unsigned steps) {
    const unsigned phase = step * 10 / steps;
    const unsigned inserts = phase < 4 ? 75 : phase < 6 ? 45 : 5;
    const unsigned erases = phase < 4 ? 10 : phase < 6 ? 35 : 80;
    const std::uint64_t dice = random.below(100);
    Operation operation;
    operation.kind = dice < inserts            ? insert
                     : dice < inserts + erases ? erase
                     : dice % 2 == 0           ? find
                                               : scan;
    operation.key = key(random, operation.kind);
    operation.value = random() >> 8;
    if (operation.value % 3 == 0) {
      if (operation.kind == insert) operation.kind = insert_absent;
      if (operation.kind == find) operation.kind = change;
    }
    return operation;
  }

  Observation apply(Transaction& tx, const Operation& operation) {
    const std::uint64_t k = operation.key;
    switch (operation.kind) {
      case insert:
        return map_.insert_or_assign(tx, k, Payload(operation.value)) ? 1 : 0;
      case erase:
        return map_.erase(tx, k) ? 1 : 0;
      case find:
        if (const auto found = map_.find(tx, k)) return found->number;
        return std::nullopt;
      case insert_absent:
        return map_.insert(tx, k, Payload(operation.value)) ? 1 : 0;
      case change:
        if (Payload* const found = map_.write(tx, k)) {
          *found = Payload(operation.value);
          return 1;
        }
        return 0;
      default:
        return scan_from(tx, k);
    }
  }

  Observation apply(Model& model, const Operation& operation) {
    const std::uint64_t k = operation.key;
    switch (operation.kind) {
      case insert:
        return model.insert_or_assign(k, operation.value).second ? 1 : 0;
      case erase:
        return model.erase(k);
      case find:
        if (const auto found = model.find(k); found != model.end()) return found->second;
        return std::nullopt;
      case insert_absent:
        return model.emplace(k, operation.value).second ? 1 : 0;
      case change:
        if (const auto found = model.find(k); found != model.end()) {
          found->second = operation.value;
          return 1;
        }
        return 0;
      default:
        break;
    }
    if constexpr (ordered) {
      std::uint64_t sum = 0;
      for (auto it = model.lower_bound(k); it != model.end() && it->first < k + scan_width; ++it) {
        sum = sum * 31 + it->first + it->second;
      }
      const auto least = model.lower_bound(k);
      if (least != model.end()) sum += least->first * 7 + least->second;
      const auto above = model.upper_bound(k);
      if (above != model.end()) sum += above->first * 19 + above->second;
      for (auto it = above; it != model.begin() && std::prev(it)->first + scan_width > k; --it) {
        sum = sum * 31 + std::prev(it)->first + std::prev(it)->second;
      }
      if (above != model.begin()) {
        sum += std::prev(above)->first * 11 + std::prev(above)->second;
      }
      if (!model.empty()) sum += model.begin()->first * 13 + model.rbegin()->first * 17;
      return sum;
    } else {
      return model.contains(k) ? 1 : 0;
    }
  }

  std::string difference(Transaction& tx, const Model& model) {
    std::string violation = map_.check_invariants(tx);
    if (!violation.empty()) return violation;
    Model found;
    std::string wrong;
    std::vector<std::uint64_t> sequence;
    map_.for_each(tx, [&](const std::uint64_t& key, const Payload& value) {
      if (!value.is_whole()) wrong = "the value of key " + std::to_string(key) + " is torn";
      found[key] = value.number;
      sequence.push_back(key);
    });
    if (!wrong.empty()) return wrong;
    if (sequence.size() != found.size()) return "for_each shows a key twice";
    if (ordered && !std::is_sorted(sequence.begin(), sequence.end())) return "for_each is unsorted";
    if (map_.size(tx) != model.size()) {
      return "size is " + std::to_string(map_.size(tx)) + ", not " + std::to_string(model.size());
    }
    if (found != model) return "the contents differ";
    if constexpr (ordered) {
      std::vector<std::uint64_t> down;
      map_.for_each_down(tx, [&](const std::uint64_t& key, const Payload& value) {
        if (found[key] != value.number) wrong = "for_each_down shows another value";
        down.push_back(key);
      });
      if (!wrong.empty()) return wrong;
      std::reverse(down.begin(), down.end());
      if (down != sequence) return "for_each_down is not for_each turned round";
    }
    return {};
  }

  Map& map() { return map_; }

 private:
  static constexpr std::uint64_t scan_width = 64;
  static constexpr bool ordered = requires(Map map, Transaction& tx, std::uint64_t key) {
    map.lower_bound(tx, key);
  };

  Observation scan_from(Transaction& tx, std::uint64_t from) {
    if constexpr (ordered) {
      std::uint64_t sum = 0;
      map_.range(tx, from, from + scan_width, [&](const std::uint64_t& key, const Payload& value) {
        sum = sum * 31 + key + value.number;
      });
      const auto least = map_.lower_bound(tx, from);
      if (least) sum += least->first * 7 + least->second.number;
      const auto above = map_.upper_bound(tx, from);
      if (above) sum += above->first * 19 + above->second.number;
      const auto add = [&](const std::uint64_t& key, const Payload& value) {
        sum = sum * 31 + key + value.number;
      };
      if (from >= scan_width) {
        map_.range_down(tx, from, from - scan_width, add);
      } else {
        map_.range_down(tx, from, add);
      }
      if (const auto below = map_.floor(tx, from)) sum += below->first * 11 + below->second.number;
      const auto first = map_.first(tx);
      const auto last = map_.last(tx);
      return first && last ? sum + first->first * 13 + last->first * 17 : sum;
    } else {
      return map_.contains(tx, from) ? 1 : 0;
    }
  }

  std::uint64_t key(Random& random, unsigned kind) {
    switch (order_) {
      case Order::ascending:
        return kind == insert ? inserted_++ : kind == erase ? erased_++ : random.below(keys_);
      case Order::descending:
        return keys_ - (kind == insert  ? inserted_++
                        : kind == erase ? erased_++
                                        : random.below(keys_));
      case Order::crowded:
        return random.below(keys_ / 8);
      case Order::random:
        break;
    }
    return random.below(keys_);
  }

  Map map_;
  Order order_;
  std::uint64_t keys_;
  bool cached_;
  std::uint64_t inserted_ = 0;
  std::uint64_t erased_ = 0;
};

inline const std::array<Order, 4> all_orders{Order::random, Order::ascending, Order::descending,
                                             Order::crowded};

template <class Map>
void fill_then_erase_all(const Shape& shape, std::uint64_t keys) {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  World world(shape);
  MapSubject<Map> subject(Order::random, keys);
  typename MapSubject<Map>::Model model;
  world.run([&](Transaction& tx) { subject.create(tx); });
  world.run([&](Transaction& tx) { subject.open(tx); });
  for (unsigned pass = 0; pass < 3; ++pass) {
    Random random(used_seed + pass);
    // Pass 0 erases upwards, pass 1 downwards, pass 2 in the scattered order of insertion.
    for (std::uint64_t i = 0; i < keys; ++i) {
      const Operation insert{MapSubject<Map>::insert, i * 7919 % keys, random() >> 8};
      world.run([&](Transaction& tx) { subject.apply(tx, insert); });
      subject.apply(model, insert);
    }
    REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, model); }) == "");
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::uint64_t key = pass == 0 ? i : pass == 1 ? keys - 1 - i : i * 7919 % keys;
      REQUIRE(world.run([&](Transaction& tx) { return subject.map().erase(tx, key); }));
      model.erase(key);
      if (i % (keys / 16) == 0) {
        REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, model); }) == "");
      }
    }
    REQUIRE(model.empty());
    REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, model); }) == "");
  }
}

// Fills pools that would overflow if anything were left behind.
template <class Map>
void destroy_repeatedly(std::uint64_t keys, unsigned times) {
  World world(tiny_shape());
  for (unsigned i = 0; i < times; ++i) {
    INFO("time " << i);
    MapSubject<Map> subject(Order::random, keys);
    world.run([&](Transaction& tx) { subject.create(tx); });
    world.run([&](Transaction& tx) { subject.open(tx); });
    for (std::uint64_t k = 0; k < keys; ++k) {
      world.run([&](Transaction& tx) { subject.map().insert_or_assign(tx, k, Payload(k)); });
    }
    std::uint64_t calls = 0;
    while (!world.run([&](Transaction& tx) { return subject.map().drain(tx, 50); })) ++calls;
    REQUIRE(calls >= keys / 100);
    REQUIRE(world.run([&](Transaction& tx) { return subject.map().size(tx); }) == 0);
    REQUIRE(world.run([&](Transaction& tx) { return subject.map().check_invariants(tx); }) == "");
    const Operation one{MapSubject<Map>::insert, 1, 1};
    world.run([&](Transaction& tx) { subject.apply(tx, one); });
    world.run([&](Transaction& tx) {
      subject.map().destroy(tx);
      tx.set_root("subject", Ptr<typename Map::Header>());
    });
  }
}

// Keys go one by one, from a map that shrinks and grows, and the rest with the map.
template <class Map>
void count_what_is_left() {
  World world(tiny_shape());
  MapSubject<Map> subject(Order::random, 1);
  world.run([&](Transaction& tx) { subject.create(tx); });
  world.run([&](Transaction& tx) { subject.open(tx); });
  constexpr std::uint64_t keys = 400;
  const auto for_keys = [&](std::uint64_t first, std::uint64_t step, auto&& act) {
    for (std::uint64_t k = first; k < keys; k += step) {
      world.run([&](Transaction& tx) { act(tx, k * 7919 % keys); });
    }
  };
  const auto insert = [&](Transaction& tx, std::uint64_t key) {
    subject.map().insert_or_assign(tx, key, Payload(key));
  };
  const auto erase = [&](Transaction& tx, std::uint64_t key) {
    static_cast<void>(subject.map().erase(tx, key));
  };
  for_keys(0, 1, insert);
  for_keys(0, 1, insert);  // in the place of what is there
  for_keys(0, 3, erase);
  for_keys(0, 2, insert);
  for_keys(0, 1, erase);
  for_keys(0, 2, insert);
  while (!world.run([&](Transaction& tx) { return subject.map().drain(tx, 20); })) {
  }
  for_keys(0, 1, insert);
  world.run([&](Transaction& tx) {
    subject.map().destroy(tx);
    tx.set_root("subject", Ptr<typename Map::Header>());
  });
  CHECK(objects_left(world) == 0);
}

// A visitor that returns false sees no more.
template <class Map>
void end_a_walk_early() {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  world.run([&](Transaction& tx) {
    for (std::uint64_t k = 0; k < 50; ++k) map.insert_or_assign(tx, k * 2, Payload(k));
    std::vector<std::uint64_t> keys;
    map.range(tx, 11, 99, [&](std::uint64_t key, const Payload&) {
      keys.push_back(key);
      return keys.size() < 3;
    });
    REQUIRE(keys == std::vector<std::uint64_t>{12, 14, 16});
    REQUIRE(map.lower_bound(tx, 98)->first == 98);
    REQUIRE_FALSE(map.lower_bound(tx, 99));
    REQUIRE(map.upper_bound(tx, 96)->first == 98);
    REQUIRE(map.upper_bound(tx, 97)->first == 98);
    REQUIRE_FALSE(map.upper_bound(tx, 98));
    keys.clear();
    map.range_down(tx, 11, 0, [&](std::uint64_t key, const Payload&) {
      keys.push_back(key);
      return keys.size() < 3;
    });
    REQUIRE(keys == std::vector<std::uint64_t>{10, 8, 6});
    keys.clear();
    map.range_down(tx, 6, 2, [&](std::uint64_t key, const Payload&) { keys.push_back(key); });
    REQUIRE(keys == std::vector<std::uint64_t>{6, 4});
  });
}

// In a map without keys, and around the least and the greatest of others.
template <class Map>
void look_beyond_the_ends() {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  world.run([&](Transaction& tx) {
    const auto unexpected = [](std::uint64_t, const Payload&) { FAIL("an empty map has a key"); };
    REQUIRE_FALSE(map.first(tx));
    REQUIRE_FALSE(map.last(tx));
    REQUIRE_FALSE(map.floor(tx, 7));
    REQUIRE_FALSE(map.upper_bound(tx, 7));
    map.for_each_down(tx, unexpected);
    map.range_down(tx, 7, unexpected);
    for (std::uint64_t k = 1; k <= 200; ++k) map.insert_or_assign(tx, 10 * k, Payload(k));
    REQUIRE(map.first(tx)->first == 10);
    REQUIRE(map.last(tx)->second.number == 200);
    REQUIRE_FALSE(map.floor(tx, 9));
    for (std::uint64_t k = 1; k <= 200; ++k) {
      REQUIRE(map.floor(tx, 10 * k)->first == 10 * k);
      REQUIRE(map.floor(tx, 10 * k + 9)->first == 10 * k);
      REQUIRE(map.upper_bound(tx, 10 * k - 1)->first == 10 * k);
      if (k < 200) REQUIRE(map.upper_bound(tx, 10 * k)->second.number == k + 1);
    }
    map.range_down(tx, 9, unexpected);
  });
}

// What no [from, to) can show.
template <class Map>
void walk_to_the_greatest_key() {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  world.run([&](Transaction& tx) {
    constexpr std::uint64_t greatest = ~std::uint64_t{0};
    std::vector<std::uint64_t> keys;
    const auto note = [&](std::uint64_t key, const Payload&) { keys.push_back(key); };
    map.range(tx, 0, note);
    REQUIRE(keys.empty());
    for (std::uint64_t k = 0; k < 50; ++k) map.insert_or_assign(tx, greatest - k, Payload(k));
    map.range(tx, greatest - 2, note);
    REQUIRE(keys == std::vector<std::uint64_t>{greatest - 2, greatest - 1, greatest});
    keys.clear();
    map.range(tx, 0, [&](std::uint64_t key, const Payload&) {
      keys.push_back(key);
      return keys.size() < 2;
    });
    REQUIRE(keys == std::vector<std::uint64_t>{greatest - 49, greatest - 48});
  });
}

// Two threads insert and erase. A key's final value is that of the last operation of one of them.
template <class Map>
void run_two_writers(const Shape& shape, std::uint64_t keys, bool overlapping, unsigned steps) {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  World world(shape);
  MapSubject<Map> subject(Order::random, keys);
  world.run([&](Transaction& tx) { subject.create(tx); });
  world.run([&](Transaction& tx) { subject.open(tx); });

  std::array<std::map<std::uint64_t, std::optional<std::uint64_t>>, 2> last;
  const auto writer = [&](unsigned self) {
    return [&, self](Session& session) {
      Random random(used_seed + self);
      MapSubject<Map> mine(subject);
      for (unsigned step = 0; step < steps; ++step) {
        Operation operation = mine.draw(random, step, steps);
        if (!overlapping) operation.key = operation.key * 2 + self;
        const Observation seen =
            session.run([&](Transaction& tx) { return mine.apply(tx, operation); });
        const bool gave_value = operation.kind == MapSubject<Map>::insert ||
                                ((operation.kind == MapSubject<Map>::insert_absent ||
                                  operation.kind == MapSubject<Map>::change) &&
                                 seen == 1);
        if (gave_value) last[self][operation.key] = operation.value;
        if (operation.kind == MapSubject<Map>::erase) last[self][operation.key] = std::nullopt;
      }
    };
  };
  run_two_threads(world, writer(0), writer(1));

  typename MapSubject<Map>::Model found;
  world.run([&](Transaction& tx) {
    found.clear();
    subject.map().for_each(
        tx, [&](const std::uint64_t& key, const Payload& value) { found[key] = value.number; });
  });
  REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, found); }) == "");
  for (const auto& mine : last) {
    for (const auto& [key, unused] : mine) {
      const auto it = found.find(key);
      const auto is_last = [&, k = key](const auto& history) {
        const auto entry = history.find(k);
        if (entry == history.end()) return false;
        if (!entry->second.has_value()) return it == found.end();
        return it != found.end() && it->second == *entry->second;
      };
      INFO("key " << key);
      REQUIRE((is_last(last[0]) || is_last(last[1])));
    }
  }
  for (const auto& [key, unused] : found) {
    REQUIRE((last[0].contains(key) || last[1].contains(key)));
  }
  world.reopen();
  world.run([&](Transaction& tx) { subject.open(tx); });
  REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, found); }) == "");
}

}  // namespace sp3::test
