// Keys are numbers in a row but for a factor, so that a byte chooses one that is there, or one
// beside. Some are floating-point numbers, of which damage makes such as no order knows. Whoever
// uses a container opens it by its root: the handle holds what damage says.
#include "tests/fuzz/container_users.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <type_traits>
#include <vector>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>
#include <sp3/ranged.h>

namespace sp3::test {
namespace {

using Number = std::uint64_t;
using Value = std::array<Number, 2>;  // no type that is also a key
constexpr Number kKeys = 120;
constexpr Number kAll = ~Number{0};

constexpr Value value_of(Number number) { return {number, number + 1}; }

// One of those that are there, one beside, or any.
Number key_of(Choices& choices) {
  const Number key = choices.below(kKeys + 8) * 2;
  return choices.below(16) == 0 ? choices.take(8) : key + choices.below(2);
}

// The container of the root, or a new one.
template <class Container>
Container open_or_make(Transaction& tx) {
  if (const auto header = tx.root<typename Container::Header>("target")) {
    return Container::open(tx, header);
  }
  const auto make = [&] {
    if constexpr (requires { Container::create(tx, 200, Value{}); }) {
      return Container::create(tx, 200, Value{});
    } else {
      return Container::create(tx);
    }
  };
  Container made = make();
  tx.set_root("target", made.header());
  return made;
}

template <class Container>
void destroy(Transaction& tx, const Container& container) {
  tx.set_root("target", Ptr<typename Container::Header>());
  container.destroy(tx);
}

template <class Container>
std::string violation(Transaction& tx) {
  const auto header = tx.root<typename Container::Header>("target");
  return header ? Container::open(tx, header).check_invariants(tx) : "";
}

// Some visitors see everything, some leave early.
auto visitor(Choices& choices) {
  return [left = choices.below(4) == 0 ? choices.take(1) : kAll](const auto&...) mutable {
    return left-- != 0;
  };
}

void use_queue(Transaction& tx, Choices& choices, bool /*may_disturb*/) {
  const auto queue = open_or_make<Queue<Value>>(tx);
  const Number count = choices.below(32);
  switch (choices.below(9)) {
    case 0:
      for (Number i = 0; i < count; ++i) queue.push(tx, value_of(i));
      return;
    case 1:
      for (Number i = 0; i < count; ++i) static_cast<void>(queue.pop(tx));
      return;
    case 2:
      for (Number i = 0; i < count; ++i) {
        queue.push(tx, value_of(i));
        static_cast<void>(queue.pop(tx));
      }
      return;
    case 3:
      return static_cast<void>(queue.front(tx));
    case 4:
      return static_cast<void>(queue.size(tx));
    case 5:
      return queue.for_each(tx, visitor(choices));
    case 6:
      return static_cast<void>(queue.drain(tx, choices.below(2) == 0 ? count : kAll));
    case 7:
      return static_cast<void>(queue.check_invariants(tx));
    default:
      return destroy(tx, queue);
  }
}

std::string queue_disagreement(Transaction& tx) {
  const auto queue = open_or_make<Queue<Value>>(tx);
  std::vector<Value> values;
  queue.for_each(tx, [&](const Value& value) { values.push_back(value); });
  if (queue.size(tx) != values.size()) return "size and for_each differ";
  if (queue.empty(tx) != values.empty()) return "empty and for_each differ";
  if (queue.front(tx).has_value() != !values.empty()) return "front and for_each differ";
  return !values.empty() && *queue.front(tx) != values.front() ? "front is another" : "";
}

void use_array(Transaction& tx, Choices& choices, bool /*may_disturb*/) {
  auto array = open_or_make<Array<Value>>(tx);
  // What is not filled yet is the caller's mistake, and std::out_of_range.
  const Number length = std::min(array.size(tx), tx.read(array.header()).filled);
  const Number index = length == 0 ? 0 : choices.take(2) % length;
  const Number count = choices.below(64);
  const Number kind = choices.below(10);
  if (length == 0 && kind < 3) return;
  if (choices.below(4) == 0 && length == array.size(tx)) array = array.cached(tx);
  switch (kind) {
    case 0:
      return static_cast<void>(array.get(tx, index));
    case 1:
      return array.set(tx, index, value_of(count));
    case 2:
      return array.swap(tx, index, choices.take(1) % length);
    case 3:
      return array.for_each(tx, visitor(choices));
    case 4:
      return static_cast<void>(array.fill(tx, choices.below(4) == 0 ? kAll : count));
    case 5:
      return static_cast<void>(array.drain(tx, choices.below(4) == 0 ? kAll : count));
    case 6:
      return static_cast<void>(array.check_invariants(tx));
    case 7: {  // by steps, as those of arrays too large for one transaction
      const auto made = Array<Value>::reserve(tx, choices.take(2));
      tx.set_root("target", made.header());
      made.fill(tx, count);
      return array.destroy(tx);
    }
    case 8:
      for (Number i = 0; i < std::min(count, length); ++i) array.set(tx, i, value_of(i));
      return;
    default:
      return destroy(tx, array);
  }
}

std::string array_disagreement(Transaction& tx) {
  const auto array = open_or_make<Array<Value>>(tx);
  const Number filled = tx.read(array.header()).filled;
  std::vector<Value> values;
  array.for_each(tx, [&](const Value& value) { values.push_back(value); });
  if (values.size() != filled) return "for_each shows another number than are filled";
  const auto handle = filled == array.size(tx) ? array.cached(tx) : array;
  for (Number i = 0; i < filled; ++i) {
    if (array.get(tx, i) != values[i] || handle.get(tx, i) != values[i]) return "get is another";
  }
  return {};
}

template <class Map>
constexpr bool is_ordered = requires(Map map, Transaction& tx) {
  map.first(tx);
};

template <class Key, class Map>
void use_order(Transaction& tx, Choices& choices, const Map& map) {
  const Number number = key_of(choices);
  const auto key = static_cast<Key>(number);
  switch (choices.below(7)) {
    case 0:
      return static_cast<void>(map.lower_bound(tx, key).has_value() ||
                               map.floor(tx, key).has_value());
    case 1:
      return static_cast<void>(map.first(tx).has_value() && map.last(tx).has_value());
    case 2:
      return map.range(tx, key, static_cast<Key>(number + choices.take(1)), visitor(choices));
    case 3:
      return map.range_down(tx, key, static_cast<Key>(number - std::min(number, choices.take(1))),
                            visitor(choices));
    case 4:
      return map.range_down(tx, key, visitor(choices));
    case 5:
      return static_cast<void>(map.upper_bound(tx, key));
    default:
      return map.for_each_down(tx, visitor(choices));
  }
}

template <class Map, class Key>
void use_map(Transaction& tx, Choices& choices, bool may_disturb) {
  auto map = open_or_make<Map>(tx);
  const Number kind = choices.below(14);
  if constexpr (is_ordered<Map>) {
    if (kind >= 10) return use_order<Key>(tx, choices, map);
  } else {
    if (kind >= 10) map = map.cached(tx);
  }
  const Number number = key_of(choices);
  const auto key = static_cast<Key>(number);
  const auto other = [&](Number more) { return static_cast<Key>(number + more); };
  const Number count = choices.below(48);
  switch (kind % 10) {
    case 0:
      for (Number i = 0; i < count; ++i) map.insert_or_assign(tx, other(i), value_of(i));
      return;
    case 1:
      for (Number i = 0; i < count; ++i) map.erase(tx, other(i));
      return;
    case 2:  // downwards, and what is there stays
      for (Number i = 0; i < count; ++i) map.insert(tx, other(0 - i * 2), value_of(i));
      return;
    case 3:
      return static_cast<void>(map.find(tx, key).has_value() && map.contains(tx, key));
    case 4:
      if (Value* const value = map.write(tx, key)) (*value)[1] = count;
      return;
    case 5:
      return static_cast<void>(map.empty(tx) || map.size(tx) != 0);
    case 6:
      if (!may_disturb || choices.below(4) != 0) return map.for_each(tx, visitor(choices));
      // The walk may miss what it was to show, and end in an error.
      return map.for_each(tx, [&, shown = Number{0}](const Key& at, const Value&) mutable {
        if (++shown % 3 == 0) map.erase(tx, shown % 2 == 0 ? at : other(shown * 2));
        if (shown % 4 == 0 && shown < count) map.insert(tx, other(shown), value_of(shown));
      });
    case 7:
      return static_cast<void>(map.drain(tx, choices.below(2) == 0 ? count : kAll));
    case 8:
      return static_cast<void>(map.check_invariants(tx));
    default:
      return destroy(tx, map);
  }
}

template <class Map>
std::string order_disagreement(Transaction& tx, const Map& map,
                               const std::map<Number, Value>& contents) {
  std::vector<Number> down;
  map.for_each_down(tx, [&](Number key, const Value&) { down.push_back(key); });
  const auto is_same = [](Number key, const auto& entry) { return key == entry.first; };
  if (!std::ranges::equal(down.rbegin(), down.rend(), contents.begin(), contents.end(), is_same)) {
    return "for_each_down shows other keys";
  }
  if (contents.empty()) return map.first(tx) || map.last(tx) ? "an empty map has a first" : "";
  if (!map.first(tx) || map.first(tx)->first != contents.begin()->first) return "first is another";
  if (!map.last(tx) || map.last(tx)->first != contents.rbegin()->first) return "last is another";
  for (Number key = 0; key < kKeys * 2; key += 5) {
    const auto above = contents.lower_bound(key);
    const auto found = map.lower_bound(tx, key);
    if (found.has_value() != (above != contents.end()) || (found && found->first != above->first)) {
      return "lower_bound is another";
    }
    const auto after = contents.upper_bound(key);
    const auto next = map.upper_bound(tx, key);
    if (next.has_value() != (after != contents.end()) || (next && next->first != after->first)) {
      return "upper_bound is another";
    }
    const auto below = map.floor(tx, key);
    if (below.has_value() != (after != contents.begin()) ||
        (below && below->first != std::prev(after)->first)) {
      return "floor is another";
    }
  }
  return {};
}

template <class Map>
std::string map_disagreement(Transaction& tx) {
  const auto map = open_or_make<Map>(tx);
  std::map<Number, Value> contents;
  Number shown = 0;
  map.for_each(tx, [&](Number key, const Value& value) {
    contents.emplace(key, value);
    ++shown;
  });
  if (shown != contents.size()) return "for_each shows a key twice";
  if (map.size(tx) != shown) return "size and for_each differ";
  if (map.empty(tx) != contents.empty()) return "empty and for_each differ";
  for (const auto& [key, value] : contents) {
    if (map.find(tx, key) != value) return "find and for_each differ";
  }
  if constexpr (is_ordered<Map>) return order_disagreement(tx, map, contents);
  return {};
}

// Two levels of nodes, a few chunks, the others holes.
constexpr std::uint32_t kChunk = 256;
constexpr Number kBytes = 200 * kChunk - 100;

RangedObject ranged_object(Transaction& tx) {
  if (const auto header = tx.root<RangedObject::Header>("target")) {
    return RangedObject::open(tx, header);
  }
  const auto made = RangedObject::create(tx, kBytes, kChunk);
  tx.set_root("target", made.header());
  return made;
}

void use_ranged(Transaction& tx, Choices& choices, bool /*may_disturb*/) {
  const RangedObject object = ranged_object(tx);
  // No more than there are: what is beyond is the caller's mistake.
  const Number size = object.size(tx);
  const Number begin = size == 0 ? 0 : choices.take(2) % size;
  std::vector<std::byte> bytes(std::min(size - begin, choices.take(2) % (4 * kChunk) + 1));
  const Number end = begin + bytes.size();
  const Number kind = choices.below(9);
  if (bytes.empty() && kind < 5) return;
  switch (kind) {
    case 0:
      return object.read(tx, begin, bytes);
    case 1:
      return object.write(tx, begin, bytes);
    case 2:
      return object.view(tx, begin, end).copy(0, bytes);
    case 3:
      return object.lock(tx, begin, end);
    case 4:
      return object.fill(tx, begin, end);
    case 5:  // at times from one level to another
      return object.resize(tx, choices.below(4) == 0 ? choices.take(2) : choices.take(3));
    case 6:
      return static_cast<void>(object.check_invariants(tx));
    case 7:
      object.resize(tx, begin);
      return object.resize(tx, size);
    default:
      tx.set_root("target", Ptr<RangedObject::Header>());
      return object.destroy(tx);
  }
}

std::string ranged_disagreement(Transaction& tx) {
  const RangedObject object = ranged_object(tx);
  const Number size = std::min(object.size(tx), 2 * kBytes);
  if (size == 0) return {};
  std::vector<std::byte> whole(size);
  object.read(tx, 0, whole);
  std::vector<std::byte> piecewise(size);
  for (Number at = 0; at < size; at += kChunk - 1) {
    const Number count = std::min<Number>(kChunk - 1, size - at);
    object.read(tx, at, std::span(piecewise).subspan(at, count));
  }
  if (piecewise != whole) return "read is another in pieces";
  object.view(tx, 0, size).copy(0, piecewise);
  return piecewise != whole ? "a view is another" : "";
}

void build_ranged(Transaction& tx, Number step) {
  const RangedObject object = ranged_object(tx);
  const std::vector<std::byte> bytes(kChunk + 40, static_cast<std::byte>(step + 1));
  object.write(tx, step * 31 % 128 * kChunk + 7, bytes);
  object.write(tx, (step * 31 % 60 + 128) * kChunk + 7, bytes);
}

void build_queue(Transaction& tx, Number step) {
  const auto queue = open_or_make<Queue<Value>>(tx);
  for (Number i = 0; i < 5; ++i) queue.push(tx, value_of(step * 5 + i));
  if (step % 2 == 1) static_cast<void>(queue.pop(tx));
}

void build_array(Transaction& tx, Number step) {
  if (step == 0) tx.set_root("target", Array<Value>::reserve(tx, 300).header());
  // The last one completes it.
  open_or_make<Array<Value>>(tx).fill(tx, 50, value_of(step));
}

template <class Map, class Key>
void build_map(Transaction& tx, Number step) {
  const auto map = open_or_make<Map>(tx);
  // In no order, and some of them go again.
  for (Number i = step; i < kKeys; i += kBuildSteps) {
    map.insert_or_assign(tx, static_cast<Key>(i * 37 % kKeys * 2), value_of(i));
  }
  for (Number key = step; key < kKeys; key += 29) map.erase(tx, static_cast<Key>(key));
}

template <class Map>
constexpr ContainerUser map_user(const char* name) {
  return {name, build_map<Map, Number>, use_map<Map, Number>, violation<Map>,
          map_disagreement<Map>};
}

// Its invariants say nothing: a tree of one key that is not equal to itself keeps them.
template <class Map>
constexpr ContainerUser unordered_user(const char* name) {
  return {name, build_map<Map, double>, use_map<Map, double>,
          [](Transaction&) -> std::string { return "not known"; }, nullptr};
}

// Few values, equal in most bits: chains at the end of the trie.
struct PoorHash {
  Number operator()(Number key) const { return key % 6 / 2; }
};
// A trie of several levels, small directories and such as have grown.
struct DeepHash {
  Number operator()(Number key) const { return mix_hash(key) >> (key % 8 == 0 ? 12 : 16); }
};

struct DoubleHash {
  Number operator()(double key) const { return mix_hash(std::bit_cast<Number>(key)); }
};

constexpr std::array kUsers = {
    ContainerUser{"ranged object", build_ranged, use_ranged, violation<RangedObject>,
                  ranged_disagreement},
    ContainerUser{"queue", build_queue, use_queue, violation<Queue<Value>>, queue_disagreement},
    ContainerUser{"array", build_array, use_array, violation<Array<Value>>, array_disagreement},
    map_user<RbTree<Number, Value>>("red-black tree"),
    map_user<BpTree<Number, Value, 4>>("B+ tree of small nodes"),
    map_user<BpTree<Number, Value>>("B+ tree"),
    unordered_user<RbTree<double, Value>>("red-black tree of doubles"),
    unordered_user<BpTree<double, Value, 5>>("B+ tree of doubles"),
    unordered_user<HashTable<double, Value, DoubleHash>>("hash table of doubles"),
    map_user<HashTable<Number, Value>>("hash table"),
    map_user<HashTable<Number, Value, DeepHash>>("deep hash table"),
    map_user<HashTable<Number, Value, PoorHash>>("hash table of chains"),
};

}  // namespace

std::span<const ContainerUser> container_users() { return kUsers; }

}  // namespace sp3::test
