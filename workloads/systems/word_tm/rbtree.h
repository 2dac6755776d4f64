// rbtree over words: a red-black tree without parent links, after Cormen et al., chapter 13.
//
// Invariants: keys increase from left to right; the root is black and no red node has a red child;
// all ways down from a node meet as many black nodes.
//
//   header  +0 the root
//   node    +kKey, +kChild left, +kChild+1 right, +kRed 0 or 1, +value_ the value
#pragma once

#include <array>
#include <cassert>
#include <string>

#include "workloads/contents.h"
#include "workloads/place_of_value.h"
#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"

namespace sp3::workloads::word_tm {

class RbTree {
 public:
  explicit RbTree(const WorkloadSpec& spec) : words_(spec.entry_size / 8) {}

  template <WordTransaction Tx>
  void create(Tx& tx) {
    value_ = place_of_value(kHead, words_, Tx::kGrain);
    header_ = tx.allocate(1);
    tx.store(header_, 0);
    tx.store(kRoot, header_);
  }

  template <WordTransaction Tx>
  void attach(Tx& tx) {
    value_ = place_of_value(kHead, words_, Tx::kGrain);
    header_ = tx.load(kRoot);
  }

  // Returns whether the key is new.
  template <WordTransaction Tx>
  bool insert(Tx& tx, std::uint64_t key, std::uint64_t tag) const {
    EntryWords entry;
    entry.make(tag, words_);
    Path path;
    Word at = tx.load(header_);
    while (at != 0) {
      const std::uint64_t found = tx.load(at + kKey);
      if (found == key) {
        tx.store(at + value_, entry.data(), words_);
        return false;
      }
      const unsigned side = found < key ? 1 : 0;
      path.push(at + kChild + side);
      at = tx.load(at + kChild + side);
    }
    const Word node = tx.allocate(value_ + words_);
    const std::array<std::uint64_t, kHead> head{key, 0, 0, path.empty() ? 0U : 1U};
    tx.store(node, head.data(), head.size());
    tx.store(node + value_, entry.data(), words_);
    tx.store(path.empty() ? header_ : path.link(0), node);
    repair(tx, path, node);
    return true;
  }

  template <WordTransaction Tx>
  bool lookup(Tx& tx, std::uint64_t key, EntryWords& result) const {
    Word at = tx.load(header_);
    while (at != 0) {
      const std::uint64_t found = tx.load(at + kKey);
      if (found == key) {
        tx.load(at + value_, result.data(), words_);
        return true;
      }
      at = tx.load(at + kChild + (found < key ? 1 : 0));
    }
    return false;
  }

  template <WordTransaction Tx>
  std::string check_structure(Tx& tx) const {
    std::string violation;
    black_height(tx, tx.load(header_), nullptr, nullptr, true, violation);
    return violation;
  }

  template <WordTransaction Tx>
  void visit(Tx& tx, const ItemVisitor& visitor) const {
    walk(tx, tx.load(header_), visitor);
  }

 private:
  static constexpr Word kKey = 0;
  static constexpr Word kChild = 1;
  static constexpr Word kRed = 3;
  static constexpr Word kHead = 4;  // words before the value

  // The links followed from the root down. link(0) is the last one.
  class Path {
   public:
    Path() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would clear links_
    void push(Word link) noexcept {
      assert(size_ < kCapacity);
      links_[size_++] = link;
    }
    void pop(unsigned count) noexcept { size_ -= count; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] Word link(unsigned back) const noexcept { return links_[size_ - 1 - back]; }

   private:
    static constexpr unsigned kCapacity = 128;
    std::array<Word, kCapacity> links_;
    unsigned size_ = 0;
  };

  // The node in which link `back` lies: what the link before it names.
  template <WordTransaction Tx>
  Word owner(Tx& tx, const Path& path, unsigned back) const {
    return tx.load(back + 1 < path.size() ? path.link(back + 1) : header_);
  }

  // `node` is red and hangs at the last link of the path; its parent may be red too.
  template <WordTransaction Tx>
  void repair(Tx& tx, Path& path, Word node) const {
    while (path.size() >= 2) {
      const Word parent = owner(tx, path, 0);
      if (tx.load(parent + kRed) == 0) return;
      const Word grand = owner(tx, path, 1);
      const Word side = path.link(1) - (grand + kChild);
      const Word uncle = tx.load(grand + kChild + (1 - side));
      if (uncle != 0 && tx.load(uncle + kRed) != 0) {
        tx.store(parent + kRed, 0);
        tx.store(uncle + kRed, 0);
        if (path.size() == 2) return;  // the grandparent is the root and stays black
        tx.store(grand + kRed, 1);
        node = grand;
        path.pop(2);
        continue;
      }
      const Word top = rotate(tx, parent, grand, node, side, path.link(0));
      tx.store(path.size() > 2 ? path.link(2) : header_, top);
      return;
    }
  }

  // Puts the middle one of the three nodes above the others. Returns it.
  template <WordTransaction Tx>
  Word rotate(Tx& tx, Word parent, Word grand, Word node, Word side, Word link) const {
    Word top = parent;
    const Word inner = 1 - side;
    if (link == parent + kChild + side) {
      tx.store(grand + kChild + side, tx.load(parent + kChild + inner));
    } else {
      top = node;
      tx.store(parent + kChild + inner, tx.load(node + kChild + side));
      tx.store(grand + kChild + side, tx.load(node + kChild + inner));
      tx.store(node + kChild + side, parent);
    }
    tx.store(top + kChild + inner, grand);
    tx.store(top + kRed, 0);
    tx.store(grand + kRed, 1);
    return top;
  }

  // Returns whether to go on.
  template <WordTransaction Tx>
  bool walk(Tx& tx, Word at, const ItemVisitor& visitor) const {
    if (at == 0) return true;
    if (!walk(tx, tx.load(at + kChild), visitor)) return false;
    EntryWords entry;
    tx.load(at + value_, entry.data(), words_);
    if (!visitor({tx.load(at + kKey), entry.tag(), entry.intact(words_)})) return false;
    return walk(tx, tx.load(at + kChild + 1), visitor);
  }

  // The number of black nodes on each way down; a circle would break the order of the keys.
  template <WordTransaction Tx>
  std::uint64_t black_height(Tx& tx, Word at, const std::uint64_t* above,
                             const std::uint64_t* below, bool red_parent,
                             std::string& violation) const {
    if (at == 0 || !violation.empty()) return 0;
    const std::uint64_t key = tx.load(at + kKey);
    const bool red = tx.load(at + kRed) != 0;
    if ((above != nullptr && key <= *above) || (below != nullptr && key >= *below)) {
      violation = "Key " + std::to_string(key) + " is out of order.";
    } else if (red && red_parent) {
      violation = "The node of key " + std::to_string(key) + " is red under red, or a red root.";
    }
    const std::uint64_t left = black_height(tx, tx.load(at + kChild), above, &key, red, violation);
    const std::uint64_t right =
        black_height(tx, tx.load(at + kChild + 1), &key, below, red, violation);
    if (left != right && violation.empty()) {
      violation = "The sides of key " + std::to_string(key) + " have unequal black heights.";
    }
    return left + (red ? 0 : 1);
  }

  std::size_t words_;
  Word value_ = 0;  // its place in a node
  Word header_ = 0;
};

}  // namespace sp3::workloads::word_tm
