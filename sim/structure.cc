#include "sim/structure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "emu/sim/random.h"

namespace sp3::sim {
namespace {

constexpr std::uint64_t kKeys = kKeysOfCell * kCells;

std::uint64_t key_of(std::uint32_t cell, std::uint64_t number) { return number * kCells + cell; }

// Three keys in four; none for the values that everything starts from, so that maps grow.
bool holds(Value value, std::uint64_t number) {
  return value > kObjects && (emu::sim::mix(value) >> (2 * number) & 3) != 0;
}
Value entry_of(Value value, std::uint64_t number) { return emu::sim::mix(value + number); }

bool is_ranged(StructureKind kind) {
  return kind == StructureKind::ranged || kind == StructureKind::deep_ranged;
}

// Calls visit.operator()<Map>() for a map's kind.
template <class Visitor>
decltype(auto) with_map(StructureKind kind, Visitor&& visit) {
  if (kind == StructureKind::hash_table) return visit.template operator()<SimHashTable>();
  if (kind == StructureKind::deep_hash_table) return visit.template operator()<SimDeepHashTable>();
  if (kind == StructureKind::rb_tree) return visit.template operator()<SimRbTree>();
  return visit.template operator()<SimBpTree>();
}

template <class Container>
void make(Transaction& t, const Container& container) {
  t.set_root(kStructureRoot, container.header());
}
template <class Container>
Container open(Transaction& t) {
  return Container::open(t, t.root<typename Container::Header>(kStructureRoot));
}

void write_array(Transaction& t, std::uint32_t cell, Value value) {
  const auto array = open<SimArray>(t);
  for (std::uint64_t i = 0; i < kKeysOfCell; ++i) {
    array.set(t, key_of(cell, i), entry_of(value, i));
  }
  array.swap(t, key_of(cell, 0), key_of(cell, 1));
}

// A ranged object has a stretch of values for each cell, in which it uses the first three and two
// further ones; the third stretch reaches over the end of a chunk. Behind all stretches there is a
// count of writes with even values, which all cells' writers share, and then there are zeros, as
// many as cell 0 says.
constexpr std::uint64_t kStretch = 13;
constexpr std::uint64_t kHead = 3;
constexpr std::uint64_t kTail = 8;  // where the two others begin

std::uint64_t place_of(std::uint32_t cell, std::uint64_t number) {
  return cell * kStretch + (number < kHead ? number : kTail + number - kHead);
}
constexpr std::uint64_t kCount = kCells * kStretch;
bool is_counted(Value value) { return value % 2 == 0; }

// A deep one is now short, now so long that its table has two levels, or three; its last word is
// cell 0's.
constexpr std::uint64_t kLast = 7;  // what that word's entry is called
std::uint64_t ranged_length(StructureKind kind, Value value) {
  constexpr std::uint64_t kWords = kRangedChunk / sizeof(Value);
  constexpr std::uint64_t kNode = 128;  // chunks, or nodes, that one node of the table names
  constexpr std::uint64_t kFurther[] = {0, kNode * kWords, kNode * kNode * kWords};
  const std::uint64_t mixed = emu::sim::mix(value);
  if (kind == StructureKind::ranged) return kCount + 1 + mixed % 40;
  return kCount + 2 + mixed % 40 + kFurther[(mixed >> 32) % 3];
}

void resize_ranged(Transaction& t, StructureKind kind, const SimRanged& object, Value value) {
  const std::uint64_t length = ranged_length(kind, value);
  if (kind == StructureKind::ranged) return object.resize(t, length);
  const std::uint64_t before = object.size(t);
  if (before > kCount + 1) object.set(t, before - 1, 0);
  object.resize(t, length);
  object.set(t, length - 1, entry_of(value, kLast));
}

void write_ranged(Transaction& t, StructureKind kind, std::uint32_t cell, Value value,
                  std::optional<SimRanged>& handle) {
  if (!handle) handle = open<SimRanged>(t);
  const SimRanged& object = *handle;
  std::array<Value, kKeysOfCell> entries;
  for (std::uint64_t i = 0; i < kKeysOfCell; ++i) entries[i] = entry_of(value, i);
  const std::uint64_t first = place_of(cell, 0);
  if (is_counted(value)) object.lock(t, first, first + kStretch);
  object.write(t, first, std::span(entries).first(kHead));
  object.write(t, place_of(cell, kHead), std::span(entries).subspan(kHead));
  if (is_counted(value)) {
    object.lock(t, kCount, kCount + 1);
    object.set(t, kCount, object.get(t, kCount) + 1);
  }
  if (cell == 0) resize_ranged(t, kind, object, value);
}

// What is between the stretches' values must be zero; it is told only if it is not. Of a long
// object both ends are read.
void read_ranged(Transaction& t, const SimRanged& object, Contents& contents) {
  constexpr std::uint64_t kNear = kCount + 64;
  const std::uint64_t length = object.size(t);
  contents.emplace_back(kKeys, length);
  std::vector<Value> words(std::min(length, kNear));
  object.read(t, 0, words);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    Value& word = words[place_of(static_cast<std::uint32_t>(key % kCells), key / kCells)];
    contents.emplace_back(key, std::exchange(word, 0));
  }
  contents.emplace_back(kKeys + 1, std::exchange(words[kCount], 0));
  for (std::uint64_t i = 0; i < words.size(); ++i) {
    if (words[i] != 0) contents.emplace_back(kKeys + 2 + i, words[i]);
  }
  for (std::uint64_t i = std::max(words.size(), length - kCount); i < length; ++i) {
    if (const Value word = object.get(t, i); word != 0) contents.emplace_back(kKeys + 2 + i, word);
  }
}

template <class Map>
void write_map(Transaction& t, std::uint32_t cell, Value value) {
  const auto map = open<Map>(t);
  for (std::uint64_t i = 0; i < kKeysOfCell; ++i) {
    if (holds(value, i)) {
      map.insert_or_assign(t, key_of(cell, i), value);
    } else {
      map.erase(t, key_of(cell, i));
    }
  }
}

// Contents of containers without keys: by position.
template <class Container>
void read_sequence(Transaction& t, const Container& container, Contents& contents) {
  container.for_each(t, [&](const Value& value) { contents.emplace_back(contents.size(), value); });
}

Contents expected_queue(const State& state, const Contents& start, const Ledger& ledger) {
  std::vector<Value> values;
  for (const auto& [unused, value] : start) values.push_back(value);
  const std::vector<Value> pushed = ledger.since_start(kPushes, state.values[kPushes]);
  values.insert(values.end(), pushed.begin(), pushed.end());
  const std::size_t popped =
      std::min(values.size(), ledger.since_start(kPops, state.values[kPops]).size());
  Contents contents;
  for (std::size_t i = popped; i < values.size(); ++i) contents.emplace_back(i - popped, values[i]);
  return contents;
}

Contents expected_array(const State& state) {
  Contents contents;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const Value value = state.values[key % kCells];
    const std::uint64_t number = key / kCells;
    contents.emplace_back(key, entry_of(value, number < 2 ? 1 - number : number));
  }
  return contents;
}

Contents expected_ranged(StructureKind kind, const State& state, const Contents& start,
                         const Ledger& ledger) {
  Contents contents;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    contents.emplace_back(key, entry_of(state.values[key % kCells], key / kCells));
  }
  const std::uint64_t length = ranged_length(kind, state.values[0]);
  contents.emplace_back(kKeys, length);
  // The set-up writes each cell once, and what it leaves is not among the contents at the start.
  Value count = 0;
  for (const auto& [key, value] : start) count += key == kKeys + 1 ? value : 0;
  for (std::uint32_t cell = 0; cell < kCells; ++cell) {
    if (start.empty() && is_counted(ledger.at_start(cell))) ++count;
    const std::vector<Value> written = ledger.since_start(cell, state.values[cell]);
    count += static_cast<Value>(std::count_if(written.begin(), written.end(), is_counted));
  }
  contents.emplace_back(kKeys + 1, count);
  if (kind == StructureKind::deep_ranged) {
    contents.emplace_back(kKeys + 1 + length, entry_of(state.values[0], kLast));
  }
  return contents;
}

Contents expected_map(const State& state) {
  Contents contents;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const Value value = state.values[key % kCells];
    if (holds(value, key / kCells)) contents.emplace_back(key, value);
  }
  return contents;
}

}  // namespace

const char* to_string(StructureKind kind) noexcept {
  switch (kind) {
    case StructureKind::none:
      return "no structure";
    case StructureKind::queue:
      return "queue";
    case StructureKind::hash_table:
      return "hash table";
    case StructureKind::rb_tree:
      return "red-black tree";
    case StructureKind::bp_tree:
      return "B+ tree";
    case StructureKind::array:
      return "array";
    case StructureKind::ranged:
      return "ranged object";
    case StructureKind::deep_ranged:
      return "deep ranged object";
    case StructureKind::deep_hash_table:
      return "deep hash table";
  }
  return "?";
}

void make_structure(Transaction& t, StructureKind kind) {
  switch (kind) {
    case StructureKind::none:
      return;
    case StructureKind::queue:
      return make(t, SimQueue::create(t));
    case StructureKind::array:
      make(t, SimArray::create(t, kKeys));
      break;
    case StructureKind::ranged:
    case StructureKind::deep_ranged:
      make(t, SimRanged::create(t, kCount + 1, kRangedChunk));
      break;
    default:
      with_map(kind, [&]<class Map>() { make(t, Map::create(t)); });
      break;
  }
}

bool may_write(Transaction& t, StructureKind kind, std::uint32_t cell) {
  return kind != StructureKind::queue || cell != kPops || !open<SimQueue>(t).empty(t);
}

void write_structure(Transaction& t, StructureKind kind, std::uint32_t cell, Value value,
                     std::optional<SimRanged>& handle) {
  switch (kind) {
    case StructureKind::none:
      return;
    case StructureKind::queue:
      if (cell == kPushes) open<SimQueue>(t).push(t, value);
      if (cell == kPops) open<SimQueue>(t).pop(t);
      return;
    case StructureKind::array:
      return write_array(t, cell, value);
    case StructureKind::ranged:
    case StructureKind::deep_ranged:
      return write_ranged(t, kind, cell, value, handle);
    default:
      return with_map(kind, [&]<class Map>() { write_map<Map>(t, cell, value); });
  }
}

bool agrees(Transaction& t, StructureKind kind, std::uint32_t cell, Value value,
            std::optional<SimRanged>& handle) {
  if (!is_ranged(kind)) return true;
  if (!handle) handle = open<SimRanged>(t);
  const std::uint64_t first = place_of(cell, 0);
  const SimRanged::View view = handle->view(t, first, first + kStretch);
  for (std::uint64_t i = 0; i < kKeysOfCell; ++i) {
    if (view[place_of(cell, i) - first] != entry_of(value, i)) return false;
  }
  return true;
}

std::string read_structure(Transaction& t, StructureKind kind, Contents& contents) {
  contents.clear();
  const auto read = [&](const auto& container, auto&& read_contents) {
    std::string fault = container.check_invariants(t);
    if (!fault.empty()) return fmt::format("the {} is broken: {}", to_string(kind), fault);
    read_contents(container);
    std::sort(contents.begin(), contents.end());
    return std::string();
  };
  const auto by_position = [&](const auto& container) { read_sequence(t, container, contents); };
  switch (kind) {
    case StructureKind::none:
      return {};
    case StructureKind::queue:
      return read(open<SimQueue>(t), by_position);
    case StructureKind::array:
      return read(open<SimArray>(t), by_position);
    case StructureKind::ranged:
    case StructureKind::deep_ranged:
      return read(open<SimRanged>(t),
                  [&](const SimRanged& object) { read_ranged(t, object, contents); });
    default:
      return with_map(kind, [&]<class Map>() {
        return read(open<Map>(t), [&](const Map& map) {
          map.for_each(t,
                       [&](std::uint64_t key, Value value) { contents.emplace_back(key, value); });
        });
      });
  }
}

std::string find_difference(StructureKind kind, const State& state, const Contents& start,
                            const Ledger& ledger) {
  if (kind == StructureKind::none || !state.made) return {};
  const Contents expected = kind == StructureKind::queue   ? expected_queue(state, start, ledger)
                            : kind == StructureKind::array ? expected_array(state)
                            : is_ranged(kind) ? expected_ranged(kind, state, start, ledger)
                                              : expected_map(state);
  if (state.contents == expected) return {};
  const auto [found, wanted] =
      std::mismatch(state.contents.begin(), state.contents.end(), expected.begin(), expected.end());
  const auto name = [](const Contents& contents, Contents::const_iterator at) {
    if (at == contents.end()) return std::string("its end");
    return fmt::format("{} = {:x}", at->first, at->second);
  };
  return fmt::format("the {} does not agree with the cells: it has {} where {} must be",
                     to_string(kind), name(state.contents, found), name(expected, wanted));
}

}  // namespace sp3::sim
