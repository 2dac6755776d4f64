// A hash table on libpmemobj: chained buckets, as many as the key space has keys, in the manner of
// libpmemobj's hashmap_tx example; readers-writer locks for stripes of the buckets, held to commit.
//
// Invariant: a node is in the chain of the bucket that its key's hash selects, and no key occurs
// twice. The table never grows: it is made large enough, which favours it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <sp3/containers/hash.h>

#include "workloads/systems/pmdk/map.h"

namespace sp3::workloads::pmdk {

template <std::size_t Size>
class HashTable {
 public:
  HashTable(const Heap& heap, const WorkloadSpec& spec)
      : heap_(heap), buckets_(std::bit_ceil(spec.key_space())) {}

  void create() {
    Root& root = heap_.root<Root>();
    heap_.make_array(root.stripes, kStripes);
    heap_.make_array(root.heads, buckets_);
    attach();
  }

  void attach() {
    const Root& root = heap_.root<Root>();
    stripes_ = &heap_.at(root.stripes);
    heads_ = &heap_.at(root.heads);
  }

  bool search(std::uint64_t key, Entry<Size>& result) const {
    const std::uint64_t bucket = bucket_of(key);
    const SharedLock lock(heap_, stripes_[bucket % kStripes]);
    const Ref<Node> node = find(bucket, key);
    if (node) result = heap_.at(node).value;
    return static_cast<bool>(node);
  }

  void insert(std::uint64_t key, const Entry<Size>& value) {
    put(key, value, [](const Entry<Size>&) {});
  }

  bool modify(std::uint64_t key, const Entry<Size>& value, Entry<Size>& before) {
    return put(key, value, [&](const Entry<Size>& found) { before = found; });
  }

  std::string check_structure() const {
    for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) {
      for (Ref<Node> at = heads_[bucket].first; at; at = heap_.at(at).next) {
        const std::uint64_t key = heap_.at(at).key;
        if (bucket_of(key) == bucket) continue;
        return fmt::format("Key {} is in bucket {}, not in {}.", key, bucket, bucket_of(key));
      }
    }
    return {};
  }

  void visit(const ItemVisitor& visitor) const {
    for (std::uint64_t bucket = 0; bucket < buckets_; ++bucket) {
      for (Ref<Node> at = heads_[bucket].first; at; at = heap_.at(at).next) {
        const Node& node = heap_.at(at);
        if (!visitor({node.key, node.value.tag(), node.value.intact()})) return;
      }
    }
  }

 private:
  static constexpr std::uint64_t kStripes = 1024;

  struct Node {
    static constexpr std::uint64_t kType = 1;
    std::uint64_t key;
    Ref<Node> next;
    [[no_unique_address]] Gap<gap_before_value(16, Size)> gap;
    Entry<Size> value;
  };
  struct Head {
    Ref<Node> first;
  };
  struct Root {
    Ref<PMEMrwlock> stripes;
    Ref<Head> heads;
  };

  [[nodiscard]] std::uint64_t bucket_of(std::uint64_t key) const {
    return mix_hash(key) & (buckets_ - 1);
  }
  [[nodiscard]] Ref<Node> find(std::uint64_t bucket, std::uint64_t key) const {
    Ref<Node> at = heads_[bucket].first;
    while (at && heap_.at(at).key != key) at = heap_.at(at).next;
    return at;
  }

  // Whether the key was there; see(its value) is then called first.
  template <class See>
  bool put(std::uint64_t key, const Entry<Size>& value, See see) {
    const std::uint64_t bucket = bucket_of(key);
    Tx tx(heap_);
    tx.lock(stripes_[bucket % kStripes]);
    const Ref<Node> node = find(bucket, key);
    if (node) {
      see(heap_.at(node).value);
      tx.change(heap_.at(node).value) = value;
    } else {
      const Ref<Node> fresh =
          tx.make(Node{.key = key, .next = heads_[bucket].first, .gap = {}, .value = value});
      tx.change(heads_[bucket]).first = fresh;
    }
    tx.commit();
    return static_cast<bool>(node);
  }

  const Heap& heap_;
  std::uint64_t buckets_;  // a power of two
  PMEMrwlock* stripes_ = nullptr;
  Head* heads_ = nullptr;
};

template <std::size_t Size>
using HashTableWorkload = MapWorkload<HashTable<Size>, Size>;

}  // namespace sp3::workloads::pmdk
