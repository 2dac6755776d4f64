// HashTable<K, V>: a growing hash map in a pool.
//
// Thread safety: a HashTable is a small value; its const members may be called by several threads,
//   each with its own transaction. Operations on present keys conflict only on that key; a new or
//   erased key conflicts with others of its bucket (14 slots); a split, once in about ten new
//   keys, with those that read the same directory. Nothing is shared by all.
// Ownership and lifetime: the pool owns the table until destroy(). A handle made by create() is
//   good once that transaction has committed; no handle may be used after destroy().
// Invariants:
//   1. The directory is a trie over the key's hash, most significant bits first. A cell names a
//      bucket or, as its lowest bits say, a directory one level down: of 128 cells, for 7 bits
//      more, or below the second level also a small one of 8, for 3. No cell is null.
//   2. A bucket of depth d holds exactly the keys that agree with it in the first d bits, and is
//      named by all the cells that those bits select in its directory: in one whose cells stand
//      for e bits, its own and those above, 2^(e - d) neighbours.
//   3. A slot is 0 or the offset of a node in its low 48 bits and the key's low 16 hash bits above,
//      so that a search reads a node only if its tag matches.
//   4. No key occurs twice. Overflow buckets, chained by `next`, exist only where more than 14 keys
//      had the same 63 bits; none of them is empty.
//   5. The hash function is part of the type: opening a table with another one is a wrong_type
//      error, as far as the types' names differ (sp3/type.h). It is made anew for each use, so that
//      it has no state.
// Durable: with the transaction, as everything done through it.
// Complexity: with n keys, a search reads about log128(n / 10) directories, one bucket and, if the
//   key is there, one node. A new key makes a node and writes one word of its bucket; when that is
//   full it is split in two, at most a bucket and 128 cells at a time. The directory does not
//   shrink before drain() or destroy(), but its buckets are used again. A handle returned by
//   cached() reads one directory less. size() walks: a counter would be written by all.
// Source: the hash table of the paper's Table I; growth after extendible hashing (Fagin et al.,
//   TODS 1979), with the trie in place of a directory that doubles at once.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <sp3/containers/detail/damaged.h>
#include <sp3/containers/detail/put.h>
#include <sp3/containers/detail/read_whole.h>
#include <sp3/containers/detail/violation.h>
#include <sp3/containers/detail/visit.h>
#include <sp3/containers/hash.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

template <Storable K, Storable V, class Hash = DefaultHash<K>>
requires std::equality_comparable<K>
class HashTable {
  static_assert(!detail::is_nameless(detail::spelled_name<Hash>()) &&
                    !detail::is_unnamed(detail::spelled_name<Hash>()) &&
                    !detail::is_cut_short(detail::spelled_name<Hash>()),
                "lambdas, what is declared inside them, and structures without a name are spelled "
                "alike: a table would open with another hash");

 public:
  static constexpr unsigned cell_bits = 7;
  static constexpr unsigned small_cell_bits = 3;
  static constexpr unsigned slots_per_bucket = 14;
  static constexpr unsigned max_depth = 63;  // nine levels of seven bits

  struct Node {
    using Holds = detail::Holds<K, V>;
    K key;
    V value;
  };
  // Two cache lines.
  struct Bucket {
    std::uint64_t depth;
    Ptr<Bucket> next;
    std::array<std::uint64_t, slots_per_bucket> slots;
  };
  static_assert(sizeof(Bucket) == 128);
  struct Directory {
    std::array<std::uint64_t, 1U << cell_bits> cells;
  };
  // Where there are buckets for a few cells only. One cache line.
  struct SmallDirectory {
    std::array<std::uint64_t, 1U << small_cell_bits> cells;
  };

  // What names the table in the pool. Never changes.
  struct Header {
    Ptr<Directory> root;
  };

  HashTable() noexcept = default;

  // A new, empty table.
  static HashTable create(Transaction& tx) {
    const Ptr<Bucket> bucket = tx.make<Bucket>();
    const Ptr<Directory> root = tx.make<Directory>();
    tx.write(root).cells.fill(bucket.offset());
    return HashTable(tx.make<Header>(root), root);
  }

  // The table that `header` names.
  static HashTable open(Transaction& tx, Ptr<Header> header) {
    return HashTable(header, tx.read(header).root);
  }

  // A handle that holds the first directory in DRAM (1 KiB, shared by its copies): its cells that
  // name a directory never change again, so those are not read from the pool any more.
  // REQUIRES: `tx` has neither made the table nor put keys into it: if it were aborted, the cache
  // would name directories that never came to be. After drain() or destroy() the handle is void.
  [[nodiscard]] HashTable cached(Transaction& tx) const {
    HashTable result = *this;
    result.top_ = std::make_shared<const Directory>(tx.read(root_));
    return result;
  }

  // The value of `key`, valid to the end of the transaction; null if there is none. It stays as it
  // is now, unless the transaction has changed something near it before: then it may show later
  // writes.
  [[nodiscard]] const V* lookup(Transaction& tx, const K& key) const {
    const std::uint64_t hash = Hash{}(key);
    const Match found = search(tx, locate(tx, hash).bucket, hash, key);
    return found.contents == nullptr ? nullptr : &found.contents->value;
  }

  // A copy of the value of `key`.
  [[nodiscard]] std::optional<V> find(Transaction& tx, const K& key) const {
    const V* value = lookup(tx, key);
    return value == nullptr ? std::nullopt : std::optional<V>(*value);
  }

  [[nodiscard]] bool contains(Transaction& tx, const K& key) const {
    return lookup(tx, key) != nullptr;
  }

  // The value of `key`, to be changed in place until the transaction ends; null if there is none.
  // As Transaction::write: of a value that changes little, little is logged.
  [[nodiscard]] V* write(Transaction& tx, const K& key) const {
    const std::uint64_t hash = Hash{}(key);
    const Match found = search<true>(tx, locate(tx, hash).bucket, hash, key);
    return found.contents == nullptr ? nullptr : &tx.write(found.node).value;
  }

  // Makes `value` the value of `key`, if that has none yet. Returns whether the key is new.
  bool insert(Transaction& tx, const K& key, const V& value) const {
    return put<detail::Present::stays>(tx, key, value);
  }

  // Makes `value` the value of `key`. Returns whether the key is new.
  bool insert_or_assign(Transaction& tx, const K& key, const V& value) const {
    return put<detail::Present::is_replaced>(tx, key, value);
  }

  // Removes `key`. Returns whether it was there.
  bool erase(Transaction& tx, const K& key) const {
    const std::uint64_t hash = Hash{}(key);
    const Ptr<Bucket> first = locate(tx, hash).bucket;
    const Match found = search(tx, first, hash, key);
    if (found.contents == nullptr) return false;
    Bucket& bucket = tx.write(found.bucket);
    *std::ranges::find(bucket.slots, pack(found.node, hash)) = 0;
    tx.destroy(found.node);
    if (found.bucket != first && is_vacant(bucket)) {
      Ptr<Bucket> previous = first;
      while (tx.read(previous).next != found.bucket) previous = tx.read(previous).next;
      tx.write(previous).next = bucket.next;
      tx.destroy(found.bucket);
    }
    return true;
  }

  // The number of keys, by walking.
  [[nodiscard]] std::uint64_t size(Transaction& tx) const {
    std::uint64_t count = 0;
    for_each_slot(tx, [&](Ptr<Bucket>, unsigned, std::uint64_t) { ++count; });
    return count;
  }

  // Whether there is no key, by walking to the first.
  [[nodiscard]] bool empty(Transaction& tx) const {
    bool found = false;
    for_each_slot(tx, [&](Ptr<Bucket>, unsigned, std::uint64_t) {
      found = true;
      return false;
    });
    return !found;
  }

  // Calls visit(key, value) for every key in no useful order; a visitor that returns false ends the
  // walk. It must not change the table.
  template <class F>
  void for_each(Transaction& tx, F&& visit) const {
    for_each_slot(tx, [&](Ptr<Bucket>, unsigned, std::uint64_t slot) {
      const Node& node = tx.read(unpack(slot));
      return detail::visit_goes_on(visit, node.key, node.value);
    });
  }

  // Frees about `limit` keys and buckets, the directories that they leave empty included:
  // destroying a large table in several transactions. Returns whether only the root directory is
  // left, with up to 128 empty buckets, one for a cell. The table stays valid throughout. Makes
  // nothing, so it works in a full pool.
  bool drain(Transaction& tx, std::uint64_t limit) const {
    return drain_directory(tx, root_level(), limit);
  }

  // Frees everything, the header included.
  void destroy(Transaction& tx) const {
    destroy_directory(tx, root_level());
    tx.destroy(header_);
  }

  // Empty if invariants 1 to 4 hold; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const;

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  struct Check;

  // A directory, as a cell names it, and the bits of a hash that choose one of its cells.
  struct Level {
    std::uint64_t word;
    unsigned begin;

    [[nodiscard]] std::uint64_t offset() const noexcept {
      return word & ~(directory_flag | small_flag);
    }
    [[nodiscard]] bool is_small() const noexcept { return (word & small_flag) != 0; }
    [[nodiscard]] unsigned bits() const noexcept {
      return is_small() ? small_cell_bits : cell_bits;
    }
    [[nodiscard]] unsigned end() const noexcept { return begin + bits(); }
    [[nodiscard]] unsigned cell_of(std::uint64_t hash) const noexcept {
      return static_cast<unsigned>(hash << begin >> (64 - bits()));
    }
  };
  // Where the trie ends for a hash.
  struct Place {
    Level level;
    unsigned cell;
    Ptr<Bucket> bucket;
  };
  // What a search finds: the key's node and whose it is, else (contents == nullptr) the first
  // bucket with a free slot, else, in a full chain, nothing.
  struct Match {
    Ptr<Bucket> bucket;
    Ptr<Node> node;
    const Node* contents = nullptr;
  };
  // A slot's content with the whole hash of its key.
  struct Resident {
    std::uint64_t slot;
    std::uint64_t hash;
  };

  static constexpr unsigned tag_shift = 48;  // no address space of today is larger
  static constexpr std::uint64_t offset_mask = (std::uint64_t{1} << tag_shift) - 1;
  // What a cell says besides an offset, which is a multiple of 8.
  static constexpr std::uint64_t directory_flag = 1;
  static constexpr std::uint64_t small_flag = 2;  // besides the other

  HashTable(Ptr<Header> header, Ptr<Directory> root) noexcept : header_(header), root_(root) {}

  static std::uint64_t pack(Ptr<Node> node, std::uint64_t hash) noexcept {
    assert((node.offset() & ~offset_mask) == 0);
    return hash << tag_shift | node.offset();
  }
  static Ptr<Node> unpack(std::uint64_t slot) noexcept {
    return Ptr<Node>::from_offset(slot & offset_mask);
  }
  static bool is_vacant(const Bucket& bucket) noexcept {
    return std::ranges::all_of(bucket.slots, [](std::uint64_t slot) { return slot == 0; });
  }

  // The key stays what it was: it may differ in what its operator== does not look at.
  static void replace_value(Transaction& tx, const Match& found, const V& value) {
    if constexpr (detail::put_whole<Node>) {
      tx.assign(found.node, Node{found.contents->key, value});
    } else {
      tx.write(found.node).value = value;
    }
  }

  [[nodiscard]] Level root_level() const noexcept { return {root_.offset() | directory_flag, 0}; }

  // The directory that `word`, a cell of `level`, names.
  static Level level_below(Transaction& tx, Level level, std::uint64_t word) {
    const Level below = {word, level.end()};
    if (below.end() > max_depth) [[unlikely]] {
      detail::exceeded(tx, Ptr<Directory>::from_offset(below.offset()),
                       "a hash table's trie is deeper than the hash", max_depth, below.end());
    }
    return below;
  }

  // Calls use(name) with the directory's name, of the type that it has.
  template <class F>
  static decltype(auto) with_directory(Level level, F&& use) {
    return level.is_small() ? use(Ptr<SmallDirectory>::from_offset(level.offset()))
                            : use(Ptr<Directory>::from_offset(level.offset()));
  }
  static std::span<const std::uint64_t> read_cells(Transaction& tx, Level level) {
    return with_directory(
        level, [&](auto name) { return std::span<const std::uint64_t>(tx.read(name).cells); });
  }
  static std::span<std::uint64_t> write_cells(Transaction& tx, Level level) {
    return with_directory(
        level, [&](auto name) { return std::span<std::uint64_t>(tx.write(name).cells); });
  }
  static void destroy_cells(Transaction& tx, Level level) {
    with_directory(level, [&](auto name) { tx.destroy(name); });
  }

  // The first that is read is of the first two levels, so it is not a small one. Inline, or what it
  // finds would go through memory.
  [[gnu::always_inline]] Place locate(Transaction& tx, std::uint64_t hash) const {
    Level level = root_level();
    if (top_ != nullptr) {
      const std::uint64_t word = top_->cells[level.cell_of(hash)];
      if ((word & directory_flag) != 0) level = {word, cell_bits};
    }
    auto cell = static_cast<unsigned>(hash << level.begin >> (64 - cell_bits));
    std::uint64_t word = tx.read(Ptr<Directory>::from_offset(level.offset())).cells[cell];
    while ((word & directory_flag) != 0) {
      level = level_below(tx, level, word);
      cell = level.cell_of(hash);
      word = read_cells(tx, level)[cell];
    }
    return {level, cell, Ptr<Bucket>::from_offset(word)};
  }

  template <bool to_write = false>
  Match search(Transaction& tx, Ptr<Bucket> bucket, std::uint64_t hash, const K& key) const {
    Match match;
    const Ptr<Bucket> next = look_into<to_write>(tx, bucket, hash, key, match);
    if (next) [[unlikely]]
      search_overflow<to_write>(tx, next, hash, key, match);
    return match;
  }

  // Apart, for hardly any bucket has a chain.
  template <bool to_write>
  [[gnu::noinline]] static void search_overflow(Transaction& tx, Ptr<Bucket> bucket,
                                                std::uint64_t hash, const K& key, Match& match) {
    detail::CircleCheck circle;
    while (bucket) {
      const Ptr<Bucket> next = look_into<to_write>(tx, bucket, hash, key, match);
      bucket = detail::next_in_list(tx, circle, next);
    }
  }

  // Puts into `match` the key's node, else, if there is none there yet and it is asked for, the
  // bucket with a free slot. Returns where to look on; null if the key is found, too.
  template <bool to_write>
  [[gnu::always_inline]] static Ptr<Bucket> look_into(Transaction& tx, Ptr<Bucket> bucket,
                                                      std::uint64_t hash, const K& key,
                                                      Match& match) {
    const std::uint64_t tag = hash << tag_shift;
    const Bucket& contents = detail::read_whole(tx, bucket);
    for (const std::uint64_t slot : contents.slots) {
      if ((slot ^ tag) <= offset_mask && slot != 0) {
        const Ptr<Node> name = unpack(slot);
        if constexpr (to_write) tx.prefetch_for_write(name);  // all its lines too
        const Node& node = to_write ? tx.read(name) : detail::read_whole(tx, name);
        if (node.key == key) {
          match = {bucket, name, &node};
          return {};
        }
      }
    }
    if constexpr (to_write) {
      if (!match.bucket &&
          std::ranges::find(contents.slots, std::uint64_t{0}) != contents.slots.end()) {
        match.bucket = bucket;
      }
    }
    return contents.next;
  }

  // Returns whether the key is new.
  template <detail::Present present>
  bool put(Transaction& tx, const K& key, const V& value) const {
    const std::uint64_t hash = Hash{}(key);
    for (;;) {
      const Match found = search<true>(tx, locate(tx, hash).bucket, hash, key);
      if (found.contents != nullptr) {
        if constexpr (present == detail::Present::is_replaced) replace_value(tx, found, value);
        return false;
      }
      if (found.bucket) {
        const Ptr<Node> node = tx.make<Node>(key, value);
        auto& slots = tx.write(found.bucket).slots;
        *std::ranges::find(slots, std::uint64_t{0}) = pack(node, hash);
        return true;
      }
      make_room(tx, hash);
    }
  }

  void make_room(Transaction& tx, std::uint64_t hash) const;
  void split(Transaction& tx, Place place, const std::vector<Resident>& residents,
             std::uint64_t hash) const;
  Level make_directory(Transaction& tx, const Place& place) const;
  Level make_large(Transaction& tx, Level small, std::uint64_t hash) const;
  void refill(Transaction& tx, Ptr<Bucket> first, std::uint64_t depth,
              const std::vector<std::uint64_t>& slots) const;
  bool drain_directory(Transaction& tx, Level level, std::uint64_t& budget) const;
  bool drain_chain(Transaction& tx, Ptr<Bucket> bucket, std::uint64_t& budget) const;
  std::uint64_t destroy_directory(Transaction& tx, Level level, Ptr<Bucket> kept = nullptr) const;
  std::uint64_t destroy_nodes(Transaction& tx, const Bucket& bucket) const;

  // Calls visit(bucket, index, slot) for every slot in use until it returns false.
  template <class F>
  void for_each_slot(Transaction& tx, F&& visit) const {
    std::unordered_set<std::uint64_t> seen;
    walk(tx, root_level(), seen, visit);
  }
  // `seen`: the directories entered, below the first. None is entered twice, or damage might lead
  // through a few of them in more ways than can be gone.
  template <class F>
  static bool walk(Transaction& tx, Level level, std::unordered_set<std::uint64_t>& seen,
                   F& visit) {
    std::uint64_t previous = 0;
    for (const std::uint64_t word : read_cells(tx, level)) {
      if (word == previous) continue;  // the cells of one bucket are neighbours
      previous = word;
      if ((word & directory_flag) != 0) {
        const Level below = level_below(tx, level, word);
        if (!seen.insert(below.offset()).second) [[unlikely]] {
          detail::damaged(tx, Ptr<Directory>::from_offset(below.offset()),
                          "a directory of a hash table is named twice", "one name", word);
        }
        if (!walk(tx, below, seen, visit)) return false;
        continue;
      }
      detail::CircleCheck circle;
      for (Ptr<Bucket> at = Ptr<Bucket>::from_offset(word); at;) {
        const Bucket& bucket = tx.read(at);
        for (unsigned i = 0; i < slots_per_bucket; ++i) {
          if (bucket.slots[i] != 0 && !detail::visit_goes_on(visit, at, i, bucket.slots[i])) {
            return false;
          }
        }
        at = detail::next_in_list(tx, circle, bucket.next);
      }
    }
    return true;
  }

  Ptr<Header> header_;
  Ptr<Directory> root_;                   // immutable: copied here to save the header read
  std::shared_ptr<const Directory> top_;  // of a cached handle: root_'s cells as they were
};

}  // namespace sp3

#include <sp3/containers/detail/hash_table_check.h>
#include <sp3/containers/detail/hash_table_growth.h>
