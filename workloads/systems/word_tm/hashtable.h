// hashtable over words: a table of chains. Invariant: a node is in the chain of its key's bucket.
//
//   header  +0 number of buckets (a power of two), +1 the bucket array
//   node    +0 next, +1 key, +value_ the value
//
// The table is made for the size of the key space and never grows: a growing one would only cost
// the systems that are compared with ours.
#pragma once

#include <bit>
#include <string>
#include <unordered_set>

#include "workloads/contents.h"
#include "workloads/place_of_value.h"
#include "workloads/rng.h"
#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"

namespace sp3::workloads::word_tm {

class HashTable {
 public:
  explicit HashTable(const WorkloadSpec& spec)
      : buckets_(std::bit_ceil(spec.key_space())), words_(spec.entry_size / 8) {}

  template <WordTransaction Tx>
  void create(Tx& tx) {
    value_ = place_of_value(2, words_, Tx::kGrain);
    const Word header = tx.allocate(2);
    array_ = tx.allocate(buckets_);
    // A large array is fresh memory, which is zero; a small one may be anything.
    for (std::uint64_t i = 0; i < buckets_; ++i) {
      if (tx.load(array_ + i) != 0) tx.store(array_ + i, 0);
    }
    tx.store(header, buckets_);
    tx.store(header + 1, array_);
    tx.store(kRoot, header);
  }

  template <WordTransaction Tx>
  void attach(Tx& tx) {
    value_ = place_of_value(2, words_, Tx::kGrain);
    const Word header = tx.load(kRoot);
    buckets_ = tx.load(header);
    array_ = tx.load(header + 1);
  }

  // Returns whether the key is new.
  template <WordTransaction Tx>
  bool insert(Tx& tx, std::uint64_t key, std::uint64_t tag) const {
    EntryWords entry;
    entry.make(tag, words_);
    const Word bucket = bucket_of(key);
    if (const Word node = find(tx, bucket, key); node != 0) {
      tx.store(node + value_, entry.data(), words_);
      return false;
    }
    const Word node = tx.allocate(value_ + words_);
    tx.store(node, tx.load(bucket));
    tx.store(node + 1, key);
    tx.store(node + value_, entry.data(), words_);
    tx.store(bucket, node);
    return true;
  }

  // Fills `found` and returns true if the key is there.
  template <WordTransaction Tx>
  bool lookup(Tx& tx, std::uint64_t key, EntryWords& found) const {
    const Word node = find(tx, bucket_of(key), key);
    if (node == 0) return false;
    tx.load(node + value_, found.data(), words_);
    return true;
  }

  template <WordTransaction Tx>
  std::string check_structure(Tx& tx) const {
    for (std::uint64_t i = 0; i < buckets_; ++i) {
      std::unordered_set<Word> met;
      for (Word node = tx.load(array_ + i); node != 0; node = tx.load(node)) {
        const std::uint64_t key = tx.load(node + 1);
        if (bucket_of(key) != array_ + i) {
          return "Key " + std::to_string(key) + " is in bucket " + std::to_string(i) + ".";
        }
        if (!met.insert(node).second) {
          return "The chain of bucket " + std::to_string(i) + " runs in a circle.";
        }
      }
    }
    return {};
  }

  template <WordTransaction Tx>
  void visit(Tx& tx, const ItemVisitor& visitor) const {
    EntryWords entry;
    for (std::uint64_t i = 0; i < buckets_; ++i) {
      for (Word node = tx.load(array_ + i); node != 0; node = tx.load(node)) {
        tx.load(node + value_, entry.data(), words_);
        if (!visitor({tx.load(node + 1), entry.tag(), entry.intact(words_)})) return;
      }
    }
  }

 private:
  [[nodiscard]] Word bucket_of(std::uint64_t key) const {
    return array_ + (mix64(key) & (buckets_ - 1));
  }

  template <WordTransaction Tx>
  Word find(Tx& tx, Word bucket, std::uint64_t key) const {
    Word node = tx.load(bucket);
    while (node != 0 && tx.load(node + 1) != key) node = tx.load(node);
    return node;
  }

  std::uint64_t buckets_;
  std::size_t words_;
  Word value_ = 0;  // its place in a node
  Word array_ = 0;
};

}  // namespace sp3::workloads::word_tm
