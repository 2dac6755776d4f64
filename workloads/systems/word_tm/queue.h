// queue over words: enqueue or dequeue. Invariant: the list from the oldest node on ends
// at the newest.
//
//   header  +kFirst the oldest node, +kLast the newest (both 0: empty), apart from each other
//   node    +0 next, +1 value
#pragma once

#include <string>
#include <unordered_set>

#include "workloads/contents.h"
#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"

namespace sp3::workloads::word_tm {

class Queue {
 public:
  explicit Queue(const WorkloadSpec& spec) : words_(spec.entry_size / 8) {}

  template <WordTransaction Tx>
  void create(Tx& tx) {
    header_ = tx.allocate(kHeaderWords);
    tx.store(header_ + kFirst, 0);
    tx.store(header_ + kLast, 0);
    tx.store(kRoot, header_);
  }

  template <WordTransaction Tx>
  void attach(Tx& tx) {
    header_ = tx.load(kRoot);
  }

  template <WordTransaction Tx>
  void populate(Tx& tx, std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t tag = from; tag < to; ++tag) push(tx, tag);
  }

  template <WordTransaction Tx>
  bool execute(Tx& tx, const Operation& operation) const {
    if (operation.kind == OperationKind::dequeue) return pop(tx);
    push(tx, operation.value);
    return true;
  }

  template <WordTransaction Tx>
  std::string check_structure(Tx& tx) const {
    Word last = 0;
    std::unordered_set<Word> met;
    for (Word node = tx.load(header_ + kFirst); node != 0; node = tx.load(node)) {
      if (!met.insert(node).second) {
        return "The list of " + std::to_string(met.size()) + " nodes runs in a circle through " +
               std::to_string(node) + ".";
      }
      last = node;
    }
    const Word newest = tx.load(header_ + kLast);
    if (last == newest) return {};
    return "The list ends at " + std::to_string(last) + ", but the newest node is " +
           std::to_string(newest) + ".";
  }

  template <WordTransaction Tx>
  void visit(Tx& tx, const ItemVisitor& visitor) const {
    EntryWords entry;
    std::uint64_t position = 0;
    for (Word node = tx.load(header_ + kFirst); node != 0; node = tx.load(node)) {
      tx.load(node + 1, entry.data(), words_);
      if (!visitor({position++, entry.tag(), entry.intact(words_)})) return;
    }
  }

 private:
  // A multiple of any unit of persistence apart, so that both ends can be changed at once.
  static constexpr Word kFirst = 0;
  static constexpr Word kLast = 24;
  static constexpr std::size_t kHeaderWords = 48;

  template <WordTransaction Tx>
  void push(Tx& tx, std::uint64_t tag) const {
    EntryWords entry;
    entry.make(tag, words_);
    const Word node = tx.allocate(1 + words_);
    tx.store(node, 0);
    tx.store(node + 1, entry.data(), words_);
    if (const Word last = tx.load(header_ + kLast); last != 0) {
      tx.store(last, node);
    } else {
      tx.store(header_ + kFirst, node);
    }
    tx.store(header_ + kLast, node);
  }

  template <WordTransaction Tx>
  bool pop(Tx& tx) const {
    const Word node = tx.load(header_ + kFirst);
    if (node == 0) return false;
    EntryWords entry;  // the caller of a dequeue wants the value, so its words are read
    tx.load(node + 1, entry.data(), words_);
    const Word next = tx.load(node);
    tx.store(header_ + kFirst, next);
    if (next == 0) tx.store(header_ + kLast, 0);
    tx.release(node, 1 + words_);
    return true;
  }

  std::size_t words_;
  Word header_ = 0;
};

}  // namespace sp3::workloads::word_tm
