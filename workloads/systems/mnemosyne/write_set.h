// WriteSet: what a transaction has stored so far, by word, in the order of first stores.
//
// Thread safety: none. Complexity: O(1) amortised; clear() does not touch the index.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/systems/mnemosyne/torn_log.h"

namespace sp3::workloads::mnemosyne {

class WriteSet {
 public:
  WriteSet() : index_(kInitialIndex) {}

  void clear() {
    stores_.clear();
    if (++generation_ == 0) {  // after 2^32 transactions
      index_.assign(index_.size(), {});
      generation_ = 1;
    }
  }

  void put(std::uint64_t at, std::uint64_t value) {
    Cell& cell = find_cell(at);
    if (cell.generation == generation_) {
      stores_[cell.position].value = value;
      return;
    }
    cell = {generation_, static_cast<std::uint32_t>(stores_.size())};
    stores_.push_back({at, value});
    if (2 * stores_.size() > index_.size()) grow();
  }

  // Null if the word was not stored to.
  [[nodiscard]] const std::uint64_t* find(std::uint64_t at) {
    const Cell& cell = find_cell(at);
    return cell.generation == generation_ ? &stores_[cell.position].value : nullptr;
  }

  [[nodiscard]] bool empty() const { return stores_.empty(); }
  [[nodiscard]] const std::vector<Stored>& stores() const { return stores_; }

 private:
  struct Cell {
    std::uint32_t generation = 0;
    std::uint32_t position = 0;
  };
  static constexpr std::size_t kInitialIndex = 256;

  // The word's cell, or the free one where it belongs.
  Cell& find_cell(std::uint64_t at) {
    const std::size_t mask = index_.size() - 1;
    // Neighbouring words are scattered: entries are stored in a piece, and where the cells of two
    // such pieces overlapped, each word would be searched for through all of the other piece.
    for (std::size_t i = (at * 0x9e3779b97f4a7c15ULL >> 32) & mask;; i = (i + 1) & mask) {
      Cell& cell = index_[i];
      if (cell.generation != generation_ || stores_[cell.position].at == at) return cell;
    }
  }

  void grow() {
    index_.assign(2 * index_.size(), {});
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      find_cell(stores_[i].at) = {generation_, static_cast<std::uint32_t>(i)};
    }
  }

  std::vector<Stored> stores_;
  std::vector<Cell> index_;  // a power of two, less than half full
  std::uint32_t generation_ = 1;
};

}  // namespace sp3::workloads::mnemosyne
