// HashTable: the invariants, checked. Included by hash_table.h.
#pragma once

#include <unordered_set>

#include <sp3/containers/hash_table.h>

namespace sp3 {

// Walks the trie; every member returns the first violation it meets.
template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K>
struct HashTable<K, V, Hash>::Check {
  Transaction& tx;
  std::unordered_set<std::uint64_t> seen;  // offsets of directories, buckets and nodes

  static std::string at(std::uint64_t offset) { return " at " + std::to_string(offset); }

  // `prefix` holds the hash bits that lead here, left-aligned.
  std::string directory(Level level, std::uint64_t prefix) {
    const std::uint64_t offset = level.offset();
    if (level.end() > max_depth) return "The trie is deeper than the hash.";
    if (level.is_small() && level.begin < 2 * cell_bits) {
      return "The directory" + at(offset) + " is small, and named by the first.";
    }
    if (!seen.insert(offset).second) return "The directory" + at(offset) + " occurs twice.";
    const auto cells = read_cells(tx, level);
    for (std::size_t i = 0; i < cells.size();) {
      const std::uint64_t cell_prefix = prefix | std::uint64_t{i} << (64 - level.end());
      if (cells[i] == 0) {
        return "Cell " + std::to_string(i) + " of the directory" + at(offset) + " is null.";
      }
      if ((cells[i] & directory_flag) != 0) {
        std::string error = directory({cells[i], level.end()}, cell_prefix);
        if (!error.empty()) return error;
        ++i;
        continue;
      }
      const Ptr<Bucket> bucket = Ptr<Bucket>::from_offset(cells[i]);
      const std::uint64_t depth = tx.read(bucket).depth;
      if (depth < level.begin || depth > level.end()) {
        return "The bucket" + at(bucket.offset()) + " has depth " + std::to_string(depth) +
               " in a directory for bits " + std::to_string(level.begin) + " to " +
               std::to_string(level.end()) + ".";
      }
      const std::size_t width = std::size_t{1} << (level.end() - depth);
      std::size_t end = i;
      while (end < cells.size() && cells[end] == cells[i]) ++end;
      if (i % width != 0 || end - i != width) {
        return "The bucket" + at(bucket.offset()) + " of depth " + std::to_string(depth) +
               " is named by cells " + std::to_string(i) + " to " + std::to_string(end - 1) +
               " of the directory" + at(offset) + ".";
      }
      std::string error = chain(bucket, depth, cell_prefix);
      if (!error.empty()) return error;
      i = end;
    }
    return {};
  }

  std::string chain(Ptr<Bucket> first, std::uint64_t depth, std::uint64_t prefix) {
    std::vector<K> keys;
    for (Ptr<Bucket> name = first; name; name = tx.read(name).next) {
      if (!seen.insert(name.offset()).second) {
        return "The bucket" + at(name.offset()) + " occurs twice.";
      }
      const Bucket& bucket = tx.read(name);
      if (bucket.depth != depth) {
        return "The overflow bucket" + at(name.offset()) + " has depth " +
               std::to_string(bucket.depth) + ", its chain " + std::to_string(depth) + ".";
      }
      if (name != first && is_vacant(bucket)) {
        return "The overflow bucket" + at(name.offset()) + " is empty.";
      }
      for (const std::uint64_t slot : bucket.slots) {
        if (slot == 0) continue;
        std::string error = resident(slot, depth, prefix);
        if (!error.empty()) return error;
        const K& key = tx.read(unpack(slot)).key;
        if (std::ranges::find(keys, key) != keys.end()) {
          return "The node" + at(unpack(slot).offset()) + " repeats a key of the bucket" +
                 at(first.offset()) + ".";
        }
        keys.push_back(key);
      }
    }
    return {};
  }

  std::string resident(std::uint64_t slot, std::uint64_t depth, std::uint64_t prefix) {
    const Ptr<Node> node = unpack(slot);
    if (!seen.insert(node.offset()).second) {
      return "The node" + at(node.offset()) + " occurs twice.";
    }
    const std::uint64_t hash = Hash{}(tx.read(node).key);
    if (slot != pack(node, hash)) {
      return "The node" + at(node.offset()) + " has tag " + std::to_string(slot >> tag_shift) +
             " and hash " + std::to_string(hash) + ".";
    }
    if (depth != 0 && (hash ^ prefix) >> (64 - depth) != 0) {
      return "The node" + at(node.offset()) + " with hash " + std::to_string(hash) +
             " is in the bucket of the hashes that begin like " + std::to_string(prefix) + " in " +
             std::to_string(depth) + " bits.";
    }
    return {};
  }
};

template <Storable K, Storable V, class Hash>
requires std::equality_comparable<K> std::string HashTable<K, V, Hash>::check_invariants(
    Transaction& tx)
const {
  return detail::violation_in([&] {
    if (tx.read(header_).root != root_) {
      return "The header names the root " + std::to_string(tx.read(header_).root.offset()) +
             ", the handle " + std::to_string(root_.offset()) + ".";
    }
    // As a name, without what a cell says besides: throws if there is no such directory.
    static_cast<void>(tx.read(root_));
    Check check{tx, {}};
    return check.directory(root_level(), 0);
  });
}

}  // namespace sp3
