// sps over words: swap two entries of an array.
#pragma once

#include <string>

#include "workloads/contents.h"
#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"

namespace sp3::workloads::word_tm {

class Sps {
 public:
  explicit Sps(const WorkloadSpec& spec) : entries_(spec.entries), words_(spec.entry_size / 8) {}

  template <WordTransaction Tx>
  void create(Tx& tx) {
    base_ = tx.allocate(entries_ * words_);
    tx.store(kRoot, base_);
  }

  template <WordTransaction Tx>
  void attach(Tx& tx) {
    base_ = tx.load(kRoot);
  }

  // Entries [from, to) of the initial content: entry i has tag i.
  template <WordTransaction Tx>
  void populate(Tx& tx, std::uint64_t from, std::uint64_t to) const {
    EntryWords entry;
    for (std::uint64_t i = from; i < to; ++i) {
      entry.make(i, words_);
      tx.store(at(i), entry.data(), words_);
    }
  }

  template <WordTransaction Tx>
  bool execute(Tx& tx, const Operation& operation) const {
    EntryWords first;
    EntryWords second;
    tx.load(at(operation.key), first.data(), words_);
    tx.load(at(operation.value), second.data(), words_);
    tx.store(at(operation.key), second.data(), words_);
    tx.store(at(operation.value), first.data(), words_);
    return true;
  }

  // An array has no structure beyond its contents.
  template <WordTransaction Tx>
  std::string check_structure(Tx& /*tx*/) const {
    return {};
  }

  template <WordTransaction Tx>
  void visit(Tx& tx, const ItemVisitor& visitor) const {
    EntryWords entry;
    for (std::uint64_t i = 0; i < entries_; ++i) {
      tx.load(at(i), entry.data(), words_);
      if (!visitor({i, entry.tag(), entry.intact(words_)})) return;
    }
  }

 private:
  [[nodiscard]] Word at(std::uint64_t i) const { return base_ + i * words_; }

  std::uint64_t entries_;
  std::size_t words_;
  Word base_ = 0;
};

}  // namespace sp3::workloads::word_tm
