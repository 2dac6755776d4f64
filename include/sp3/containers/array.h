// Array<T>: a fixed number of objects of type T in a pool, found by index.
//
// Thread safety: an Array is a small value; its const members may be called by several threads,
//   each with its own transaction. Transactions conflict only where they touch the same entry.
// Ownership and lifetime: the pool owns the array until destroy(); the handle owns nothing
//   persistent. A handle made by create() or reserve() is good once that transaction has committed;
//   no handle may be used after destroy().
// Invariants:
//   1. Every entry is an object of its own, and its Ptr never changes while the array exists.
//   2. The directory is a radix tree of chunks of 128 offsets: `levels` is the least number with
//      128^levels >= length, but 1 for one entry; chunks at level 0 name entries and those above
//      name chunks.
//   3. A cell of the directory is set if and only if an index below `filled` needs it.
//   4. No offset occurs twice.
// Durable: with the transaction, as everything done through it. The handle's cache is not.
// Complexity: at, get and set cost `levels` directory reads and one entry; swap twice that; none of
//   the directory reads remain in a handle returned by cached().
// Source: the array of the paper's SPS workload (Table I).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <sp3/containers/detail/damaged.h>
#include <sp3/containers/detail/put.h>
#include <sp3/containers/detail/violation.h>
#include <sp3/containers/detail/visit.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

template <Storable T>
class Array {
 public:
  static constexpr unsigned chunk_bits = 7;
  static constexpr std::uint64_t chunk_size = std::uint64_t{1} << chunk_bits;

  // One node of the directory: 1 KiB, so that the smallest slabs hold several.
  struct Chunk {
    std::array<std::uint64_t, chunk_size> offsets;
  };

  // What names the array in the pool. Only `filled` ever changes.
  struct Header {
    std::uint64_t length;
    std::uint64_t levels;
    std::uint64_t filled;
    Ptr<Chunk> root;  // null if length is 0
  };

  Array() noexcept = default;
  // A handle that was moved from is as good as before: moves are copies.
  Array(const Array&) = default;
  Array& operator=(const Array&) = default;

  // A new array of `length` copies of `initial`. It is written by one transaction; use reserve()
  // and fill() for an array that is too large for one (transaction_too_large).
  static Array create(Transaction& tx, std::uint64_t length, const T& initial = T{}) {
    Array array = reserve(tx, length);
    array.fill(tx, length, initial);
    return array;
  }

  // A new array of `length` entries that are yet to be made by fill().
  static Array reserve(Transaction& tx, std::uint64_t length) {
    const Ptr<Chunk> root = length == 0 ? Ptr<Chunk>() : tx.make<Chunk>();
    const Ptr<Header> header = tx.make<Header>(length, levels_for(length), std::uint64_t{0}, root);
    return Array(header, tx.read(header));
  }

  // The array that `header` names.
  static Array open(Transaction& tx, Ptr<Header> header) { return Array(header, tx.read(header)); }

  // Makes up to `limit` of the missing entries, in index order, as copies of `initial`.
  // Returns whether the array is complete.
  bool fill(Transaction& tx, std::uint64_t limit, const T& initial = T{}) const {
    const std::uint64_t first = filled(tx);
    const std::uint64_t last = first + std::min(limit, length_ - first);
    for (std::uint64_t i = first; i < last; ++i) {
      const Ptr<Chunk> chunk = leaf_chunk(tx, i, true);
      const Ptr<T> entry = tx.make<T>(initial);
      tx.write(chunk).offsets[i % chunk_size] = entry.offset();
    }
    if (last != first) tx.write(header_).filled = last;
    return last == length_;
  }

  // A handle that holds all entries' Ptrs in DRAM (8 bytes per entry, shared by its copies), so
  // that at() reads nothing from the pool. Invariant 1 makes that safe: a complete array's
  // directory is never written again.
  // REQUIRES: the array was completed by an earlier transaction, not by `tx`: if `tx` were
  // aborted after it made entries, the cache would name objects that never came to be.
  // Errors: std::logic_error if the array is not complete.
  [[nodiscard]] Array cached(Transaction& tx) const {
    if (filled(tx) != length_) {
      throw std::logic_error("sp3::Array::cached: " + std::to_string(filled(tx)) + " of " +
                             std::to_string(length_) + " entries are filled");
    }
    for_each_chunk(tx, length_, [](const Chunk&, std::uint64_t) { return true; });  // are there
    auto entries = std::make_shared<std::vector<Ptr<T>>>();
    entries->reserve(length_);
    for_each_chunk(tx, length_, [&](const Chunk& chunk, std::uint64_t count) {
      for (std::uint64_t j = 0; j < count; ++j) {
        entries->push_back(Ptr<T>::from_offset(chunk.offsets[j]));
      }
      return true;
    });
    Array result = *this;
    result.entries_ = entries->data();
    result.cache_ = std::move(entries);
    return result;
  }

  // The number of entries, filled or not. Reads nothing: it never changes.
  [[nodiscard]] std::uint64_t size(Transaction& /*tx*/) const noexcept { return length_; }

  // The entry's Ptr. Errors: std::out_of_range if `index` >= size, or the entry is not filled yet.
  [[nodiscard]] Ptr<T> at(Transaction& tx, std::uint64_t index) const {
    if (index >= length_) out_of_range(index);
    if (entries_ != nullptr) return entries_[index];
    const Ptr<Chunk> chunk = leaf_chunk(tx, index, false);
    const Ptr<T> entry =
        chunk ? Ptr<T>::from_offset(tx.read(chunk).offsets[index % chunk_size]) : Ptr<T>();
    if (!entry) not_there(tx, index);
    return entry;
  }

  // A copy of the entry. Errors: as at().
  [[nodiscard]] T get(Transaction& tx, std::uint64_t index) const { return tx.read(at(tx, index)); }

  // Overwrites the entry. Errors: as at().
  void set(Transaction& tx, std::uint64_t index, const T& value) const {
    detail::put(tx, at(tx, index), value);
  }

  // Exchanges the contents of two entries; their Ptrs stay where they are. Errors: as at().
  void swap(Transaction& tx, std::uint64_t i, std::uint64_t j) const {
    const Ptr<T> a = at(tx, i);
    const Ptr<T> b = at(tx, j);
    if (a == b) return;
    tx.prefetch_for_write(a);
    tx.prefetch_for_write(b);
    std::swap(tx.write(a), tx.write(b));
  }

  // Calls visit(entry) for every filled entry in index order; a visitor that returns false ends it.
  template <class F>
  void for_each(Transaction& tx, F&& visit) const {
    for_each_chunk(tx, filled(tx), [&](const Chunk& chunk, std::uint64_t count) {
      for (std::uint64_t j = 0; j < count; ++j) {
        const auto entry = Ptr<T>::from_offset(chunk.offsets[j]);
        if (!detail::visit_goes_on(visit, tx.read(entry))) return false;
      }
      return true;
    });
  }

  // Destroys up to `limit` entries from the end: destroying a large array in several transactions.
  // Returns whether no entry is left. What is left may be used, drained, filled up again or
  // destroyed; cached handles are void.
  bool drain(Transaction& tx, std::uint64_t limit) const {
    const std::uint64_t last = filled(tx);
    const std::uint64_t rest = last - std::min(limit, last);
    for (std::uint64_t i = last; i > rest; --i) remove_last(tx, i - 1);
    if (rest != last) tx.write(header_).filled = rest;
    return rest == 0;
  }

  // Frees everything, the header included.
  void destroy(Transaction& tx) const {
    drain(tx, length_);
    const Ptr<Chunk> root = tx.read(header_).root;
    if (root) tx.destroy(root);
    tx.destroy(header_);
  }

  // Empty if invariants 2 to 4 hold; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const {
    return detail::violation_in([&] { return violation(tx); });
  }

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  struct Check;

  // The levels follow from the length: those of a damaged header could be any number.
  Array(Ptr<Header> header, const Header& contents) noexcept
      : header_(header),
        root_(contents.root),
        length_(contents.length),
        levels_(levels_for(contents.length)) {}

  // As invariant 2 says: as many as the digits to the base 128 of the last index.
  static constexpr std::uint64_t levels_for(std::uint64_t length) noexcept {
    if (length <= 1) return length;
    return (std::bit_width(length - 1) + chunk_bits - 1) / chunk_bits;
  }

  // How many entries are filled; not more than there are, whatever a damaged header says.
  [[nodiscard]] std::uint64_t filled(Transaction& tx) const {
    return std::min(tx.read(header_).filled, length_);
  }

  [[nodiscard]] std::string violation(Transaction& tx) const {
    const Header& header = tx.read(header_);
    if (header.length != length_) {
      return "The header says " + std::to_string(header.length) + " entries, the handle " +
             std::to_string(length_) + ".";
    }
    if (header.levels != levels_) {
      return "The header says " + std::to_string(header.levels) + " for the levels, not " +
             std::to_string(levels_) + " as length " + std::to_string(length_) + " needs.";
    }
    if (header.filled > header.length) {
      return "The array has " + std::to_string(header.filled) + " entries but length " +
             std::to_string(header.length) + ".";
    }
    if (static_cast<bool>(header.root) != (header.length != 0)) {
      return "The directory's root is " + std::to_string(header.root.offset()) +
             " in an array of length " + std::to_string(header.length) + ".";
    }
    if (!header.root) return {};
    Check check{tx, header.filled, {}};
    return check.chunk(header.root.offset(), levels_ - 1, 0);
  }

  // The chunk that names entry `index`, or null. With `build`, missing chunks are made.
  Ptr<Chunk> leaf_chunk(Transaction& tx, std::uint64_t index, bool build) const {
    Ptr<Chunk> chunk = root_;
    for (std::uint64_t level = levels_ - 1; level > 0 && chunk; --level) {
      const std::uint64_t cell = (index >> (level * chunk_bits)) % chunk_size;
      Ptr<Chunk> child = Ptr<Chunk>::from_offset(tx.read(chunk).offsets[cell]);
      if (!child && build) {
        child = tx.make<Chunk>();
        tx.write(chunk).offsets[cell] = child.offset();
      }
      chunk = child;
    }
    return chunk;
  }

  // Calls visit(chunk, count) for the chunks of the first `entries` entries until it returns false.
  // None is met twice, however long damage says that the array is.
  template <class F>
  void for_each_chunk(Transaction& tx, std::uint64_t entries, F&& visit) const {
    std::unordered_set<std::uint64_t> seen;
    for (std::uint64_t done = 0; done < entries;) {
      const Ptr<Chunk> name = leaf_chunk(tx, done, false);
      if (!name || !seen.insert(name.offset()).second) [[unlikely]]
        not_there(tx, done);
      const std::uint64_t count = std::min(chunk_size, entries - done);
      if (!visit(tx.read(name), count)) return;
      done += count;
    }
  }

  // Destroys entry `index`, which is the last, and the chunks below the root that it leaves empty.
  void remove_last(Transaction& tx, std::uint64_t index) const {
    std::array<Ptr<Chunk>, std::numeric_limits<std::uint64_t>::digits / chunk_bits + 1> path;
    path[levels_ - 1] = root_;
    for (std::uint64_t level = levels_ - 1; level > 0; --level) {
      const std::uint64_t cell = (index >> (level * chunk_bits)) % chunk_size;
      path[level - 1] = Ptr<Chunk>::from_offset(tx.read(path[level]).offsets[cell]);
    }
    for (std::uint64_t level = 0; level < levels_; ++level) {
      const std::uint64_t cell = (index >> (level * chunk_bits)) % chunk_size;
      std::uint64_t& offset = tx.write(path[level]).offsets[cell];
      if (level == 0) {
        tx.destroy(Ptr<T>::from_offset(offset));
      } else {
        tx.destroy(path[level - 1]);
      }
      offset = 0;
      if (cell != 0) break;
    }
  }

  [[noreturn]] void not_there(Transaction& tx, std::uint64_t index) const {
    if (index >= filled(tx)) out_of_range(index);
    detail::damaged(tx, header_, "an array lacks an entry", "a chunk and an object of its own",
                    index);
  }

  [[noreturn]] void out_of_range(std::uint64_t index) const {
    throw std::out_of_range("sp3::Array: there is no entry " + std::to_string(index) +
                            " in an array of length " + std::to_string(length_));
  }

  Ptr<Header> header_;
  Ptr<Chunk> root_;  // root, length and levels are immutable: copied here to save the header read
  std::uint64_t length_ = 0;
  std::uint64_t levels_ = 0;
  const Ptr<T>* entries_ = nullptr;  // cache_->data(), one load closer
  std::shared_ptr<const std::vector<Ptr<T>>> cache_;
};

// Walks the directory below one chunk.
template <Storable T>
struct Array<T>::Check {
  Transaction& tx;
  std::uint64_t filled;
  std::unordered_set<std::uint64_t> seen;

  std::string chunk(std::uint64_t offset, std::uint64_t level, std::uint64_t first) {
    if (!seen.insert(offset).second) {
      return "Chunk " + std::to_string(offset) + " occurs twice in the directory.";
    }
    const Chunk& cells = tx.read(Ptr<Chunk>::from_offset(offset));
    for (std::uint64_t i = 0; i < chunk_size; ++i) {
      const std::uint64_t cell = cells.offsets[i];
      // A directory for more than 2^64 entries has cells for indices that there are not.
      const std::uint64_t below = level * chunk_bits;
      const bool exists = below == 0 || i <= (~std::uint64_t{0} - first) >> below;
      const std::uint64_t index = first + (i << below);
      if ((cell != 0) != (exists && index < filled)) {
        return "The cell of entry " + std::to_string(index) + " at level " + std::to_string(level) +
               " holds " + std::to_string(cell) + " while " + std::to_string(filled) +
               " entries are filled.";
      }
      if (cell == 0) continue;
      if (level > 0) {
        std::string error = chunk(cell, level - 1, index);
        if (!error.empty()) return error;
        continue;
      }
      if (!seen.insert(cell).second) {
        return "Entry " + std::to_string(index) + " shares the object at " + std::to_string(cell) +
               " with an earlier one.";
      }
      static_cast<void>(tx.read(Ptr<T>::from_offset(cell)));  // throws if there is no such object
    }
    return {};
  }
};

}  // namespace sp3
