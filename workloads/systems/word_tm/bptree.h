// bptree over words: a B+ tree with nodes of half a kilobyte and a value object for every key.
// Invariants: all leaves are equally deep; keys increase within a node; child i of an inner node
// holds the keys k with keys[i-1] <= k < keys[i]; `next` links the leaves in order.
//
//   header  +0 height (0: the root is a leaf), +1 the root
//   leaf    +0 count, +1 next, +kKeys keys, +kValues references to values
//   inner   +0 count of keys, +kKeys keys, +kChildren count + 1 references
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <string>

#include "workloads/contents.h"
#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"

namespace sp3::workloads::word_tm {

class BpTree {
 public:
  explicit BpTree(const WorkloadSpec& spec) : words_(spec.entry_size / 8) {}

  template <WordTransaction Tx>
  void create(Tx& tx) {
    const Word leaf = tx.allocate(kNodeWords);
    tx.store(leaf, 0);
    tx.store(leaf + kNext, 0);
    header_ = tx.allocate(2);
    tx.store(header_, 0);
    tx.store(header_ + 1, leaf);
    tx.store(kRoot, header_);
  }

  template <WordTransaction Tx>
  void attach(Tx& tx) {
    header_ = tx.load(kRoot);
  }

  // Returns whether the key is new.
  template <WordTransaction Tx>
  bool insert(Tx& tx, std::uint64_t key, std::uint64_t tag) const {
    EntryWords entry;
    entry.make(tag, words_);
    Path path;
    const Word leaf = descend(tx, key, path);
    const std::uint64_t count = tx.load(leaf);
    const std::uint64_t position = lower_position(tx, leaf, count, key);
    if (position < count && tx.load(leaf + kKeys + position) == key) {
      tx.store(tx.load(leaf + kValues + position), entry.data(), words_);
      return false;
    }
    const Word value = tx.allocate(words_);
    tx.store(value, entry.data(), words_);
    if (count < kMaxKeys) {
      put(tx, leaf, kKeys, count, position, key);
      put(tx, leaf, kValues, count, position, value);
      tx.store(leaf, count + 1);
    } else {
      split_leaf(tx, path, leaf, position, key, value);
    }
    return true;
  }

  template <WordTransaction Tx>
  bool lookup(Tx& tx, std::uint64_t key, EntryWords& value) const {
    Path path;
    const Word leaf = descend(tx, key, path);
    const std::uint64_t count = tx.load(leaf);
    const std::uint64_t position = lower_position(tx, leaf, count, key);
    if (position == count || tx.load(leaf + kKeys + position) != key) return false;
    tx.load(tx.load(leaf + kValues + position), value.data(), words_);
    return true;
  }

  // Reads up to `count` entries from the least key on that is not less than `key`, each in `value`
  // in turn. Returns how many.
  template <WordTransaction Tx>
  std::uint64_t scan(Tx& tx, std::uint64_t key, std::uint64_t count, EntryWords& value) const {
    Path path;
    Word leaf = descend(tx, key, path);
    std::uint64_t found = 0;
    std::uint64_t position = lower_position(tx, leaf, tx.load(leaf), key);
    for (; leaf != 0 && found < count; leaf = tx.load(leaf + kNext), position = 0) {
      const std::uint64_t end = std::min(tx.load(leaf), position + (count - found));
      for (; position < end; ++position, ++found) {
        tx.load(tx.load(leaf + kValues + position), value.data(), words_);
      }
    }
    return found;
  }

  template <WordTransaction Tx>
  std::string check_structure(Tx& tx) const {
    Check check;
    check_node(tx, tx.load(header_ + 1), tx.load(header_), nullptr, nullptr, check);
    if (check.violation.empty() && check.next_leaf != 0) {
      check.violation = "The last leaf has a successor.";
    }
    return check.violation;
  }

  template <WordTransaction Tx>
  void visit(Tx& tx, const ItemVisitor& visitor) const {
    Word at = tx.load(header_ + 1);
    for (std::uint64_t level = tx.load(header_); level > 0; --level) at = tx.load(at + kChildren);
    EntryWords entry;
    for (; at != 0; at = tx.load(at + kNext)) {
      const std::uint64_t count = tx.load(at);
      for (std::uint64_t i = 0; i < count; ++i) {
        tx.load(tx.load(at + kValues + i), entry.data(), words_);
        if (!visitor({tx.load(at + kKeys + i), entry.tag(), entry.intact(words_)})) return;
      }
    }
  }

 private:
  static constexpr std::uint64_t kFanout = 32;
  static constexpr std::uint64_t kMaxKeys = kFanout - 1;
  static constexpr std::uint64_t kLeftKeys = kFanout - kFanout / 2;  // of kFanout in a split leaf
  static constexpr Word kNext = 1;
  static constexpr Word kKeys = 2;
  static constexpr Word kValues = kKeys + kMaxKeys;
  static constexpr Word kChildren = kKeys + kMaxKeys;
  static constexpr std::size_t kNodeWords = kChildren + kFanout;

  // The inner nodes from the root down and the child taken in each.
  class Path {
   public:
    Path() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would clear the arrays
    void push(Word node, std::uint64_t index) noexcept {
      assert(size_ < kCapacity);
      nodes_[size_] = node;
      indices_[size_++] = index;
    }
    void pop() noexcept { --size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] Word node() const noexcept { return nodes_[size_ - 1]; }
    [[nodiscard]] std::uint64_t index() const noexcept { return indices_[size_ - 1]; }

   private:
    static constexpr unsigned kCapacity = 32;
    std::array<Word, kCapacity> nodes_;
    std::array<std::uint64_t, kCapacity> indices_;
    unsigned size_ = 0;
  };

  // The first position whose key is not less than `key`.
  template <WordTransaction Tx>
  static std::uint64_t lower_position(Tx& tx, Word node, std::uint64_t count, std::uint64_t key) {
    std::uint64_t first = 0;
    while (count > 0) {
      const std::uint64_t half = count / 2;
      if (tx.load(node + kKeys + first + half) < key) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return first;
  }

  template <WordTransaction Tx>
  Word descend(Tx& tx, std::uint64_t key, Path& path) const {
    Word at = tx.load(header_ + 1);
    for (std::uint64_t level = tx.load(header_); level > 0; --level) {
      const std::uint64_t count = tx.load(at);
      std::uint64_t index = lower_position(tx, at, count, key);
      if (index < count && tx.load(at + kKeys + index) == key) ++index;
      path.push(at, index);
      at = tx.load(at + kChildren + index);
    }
    return at;
  }

  // Puts `element` at `position` of the array of `count` elements at node + array.
  template <WordTransaction Tx>
  static void put(Tx& tx, Word node, Word array, std::uint64_t count, std::uint64_t position,
                  std::uint64_t element) {
    assert(position <= count && count - position < kFanout);
    std::array<std::uint64_t, kFanout> moved;
    moved[0] = element;
    const std::uint64_t tail = std::min(count - position, kMaxKeys);  // says its bound
    tx.load(node + array + position, moved.data() + 1, tail);
    tx.store(node + array + position, moved.data(), tail + 1);
  }

  template <WordTransaction Tx>
  static void copy(Tx& tx, Word from, Word to, std::uint64_t count) {
    std::array<std::uint64_t, kFanout> words;
    tx.load(from, words.data(), count);
    tx.store(to, words.data(), count);
  }

  template <WordTransaction Tx>
  void split_leaf(Tx& tx, Path& path, Word leaf, std::uint64_t position, std::uint64_t key,
                  Word value) const {
    const bool goes_left = position < kLeftKeys;
    const std::uint64_t kept = goes_left ? kLeftKeys - 1 : kLeftKeys;
    const std::uint64_t moved = kMaxKeys - kept;
    const Word sibling = tx.allocate(kNodeWords);
    copy(tx, leaf + kKeys + kept, sibling + kKeys, moved);
    copy(tx, leaf + kValues + kept, sibling + kValues, moved);
    tx.store(sibling + kNext, tx.load(leaf + kNext));
    tx.store(leaf + kNext, sibling);
    const Word target = goes_left ? leaf : sibling;
    const std::uint64_t count = goes_left ? kept : moved;
    put(tx, target, kKeys, count, goes_left ? position : position - kept, key);
    put(tx, target, kValues, count, goes_left ? position : position - kept, value);
    tx.store(leaf, goes_left ? kept + 1 : kept);
    tx.store(sibling, goes_left ? moved : moved + 1);
    insert_child(tx, path, tx.load(sibling + kKeys), sibling);
  }

  // Inserts `child`, whose least key is `key`, right of the child that the path leads to.
  template <WordTransaction Tx>
  void insert_child(Tx& tx, Path& path, std::uint64_t key, Word child) const {
    for (; !path.empty(); path.pop()) {
      const Word node = path.node();
      const std::uint64_t count = tx.load(node);
      if (count < kMaxKeys) {
        put(tx, node, kKeys, count, path.index(), key);
        put(tx, node, kChildren, count + 1, path.index() + 1, child);
        tx.store(node, count + 1);
        return;
      }
      child = split_inner(tx, node, path.index(), key, child);
    }
    const Word root = tx.allocate(kNodeWords);
    tx.store(root, 1);
    tx.store(root + kKeys, key);
    tx.store(root + kChildren, tx.load(header_ + 1));
    tx.store(root + kChildren + 1, child);
    tx.store(header_, tx.load(header_) + 1);
    tx.store(header_ + 1, root);
  }

  // Splits a full inner node while inserting; returns the new right half, and in `key` the key that
  // separates the two.
  template <WordTransaction Tx>
  static Word split_inner(Tx& tx, Word node, std::uint64_t position, std::uint64_t& key,
                          Word child) {
    std::array<std::uint64_t, kFanout> keys;
    std::array<std::uint64_t, kFanout + 1> children;
    tx.load(node + kKeys, keys.data(), kMaxKeys);
    tx.load(node + kChildren, children.data(), kFanout);
    std::copy_backward(keys.begin() + position, keys.begin() + kMaxKeys, keys.end());
    keys[position] = key;
    std::copy_backward(children.begin() + position + 1, children.begin() + kFanout, children.end());
    children[position + 1] = child;

    constexpr std::uint64_t kLeft = kFanout / 2;  // of kFanout keys; the next goes up
    constexpr std::uint64_t kRight = kFanout - kLeft - 1;
    const Word sibling = tx.allocate(kNodeWords);
    tx.store(node, kLeft);
    tx.store(node + kKeys, keys.data(), kLeft);
    tx.store(node + kChildren, children.data(), kLeft + 1);
    tx.store(sibling, kRight);
    tx.store(sibling + kKeys, keys.data() + kLeft + 1, kRight);
    tx.store(sibling + kChildren, children.data() + kLeft + 1, kRight + 1);
    key = keys[kLeft];
    return sibling;
  }

  struct Check {
    std::string violation;
    Word next_leaf = 0;  // what the leaf before said
    bool any_leaf = false;
  };

  template <WordTransaction Tx>
  void check_node(Tx& tx, Word at, std::uint64_t level, const std::uint64_t* from,
                  const std::uint64_t* to, Check& check) const {
    const std::uint64_t count = tx.load(at);
    if (count > kMaxKeys || (count == 0 && level > 0)) {
      check.violation = "A node has " + std::to_string(count) + " keys.";
    }
    std::array<std::uint64_t, kMaxKeys> keys{};
    for (std::uint64_t i = 0; i < count && check.violation.empty(); ++i) {
      keys[i] = tx.load(at + kKeys + i);
      const bool low = i > 0 ? keys[i] <= keys[i - 1] : from != nullptr && keys[i] < *from;
      if (low || (to != nullptr && keys[i] >= *to)) {
        check.violation = "Key " + std::to_string(keys[i]) + " is out of order.";
      }
    }
    if (level == 0) {
      if (check.any_leaf && check.next_leaf != at) check.violation = "A leaf is not linked.";
      check.any_leaf = true;
      check.next_leaf = tx.load(at + kNext);
      return;
    }
    for (std::uint64_t i = 0; i <= count && check.violation.empty(); ++i) {
      check_node(tx, tx.load(at + kChildren + i), level - 1, i == 0 ? from : &keys[i - 1],
                 i == count ? to : &keys[i], check);
    }
  }

  std::size_t words_;
  Word header_ = 0;
};

}  // namespace sp3::workloads::word_tm
