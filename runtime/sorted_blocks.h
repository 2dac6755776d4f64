// SortedBlocks: a sorted list in memory, cheap to add to anywhere, and as cheap as a vector as long
// as it is short or grows at its end: a vector of blocks of up to kBlock elements each.
//
// Complexity: a search takes O(log n), adding moves kBlock elements at most and, once in kBlock / 2
// times, the blocks behind.
// Invariant: no block is empty, but one that is alone. The first keeps its memory when all is
// cleared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace sp3::runtime {

template <class T>
class SortedBlocks {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);

 public:
  static constexpr std::size_t kBlock = 64;

  struct Place {
    std::size_t block = 0;
    std::size_t index = 0;
  };

  SortedBlocks() : blocks_(1) {}

  [[nodiscard]] bool empty() const noexcept { return blocks_.front().empty(); }
  [[nodiscard]] Place end() const noexcept { return {blocks_.size() - 1, blocks_.back().size()}; }
  [[nodiscard]] bool is_end(Place place) const noexcept {
    return place.index == blocks_[place.block].size();  // only the last block has such a place
  }
  [[nodiscard]] const T& at(Place place) const noexcept {
    return blocks_[place.block][place.index];
  }
  [[nodiscard]] Place next(Place place) const noexcept {
    ++place.index;
    if (is_end(place) && place.block + 1 < blocks_.size()) return {place.block + 1, 0};
    return place;
  }

  // The first element for which is_before is false; it is true for all before.
  template <class IsBefore>
  [[nodiscard]] Place find(const IsBefore& is_before) const noexcept {
    // What is added next mostly lies behind what was added last.
    if (empty() || is_before(blocks_.back().back())) return end();
    std::size_t block = 0;
    if (blocks_.size() > 1) {
      const auto ends_before = [&](const auto& each) { return is_before(each.back()); };
      block = static_cast<std::size_t>(
          std::partition_point(blocks_.begin(), blocks_.end(), ends_before) - blocks_.begin());
    }
    const std::vector<T>& in = blocks_[block];
    return {block, static_cast<std::size_t>(std::partition_point(in.begin(), in.end(), is_before) -
                                            in.begin())};
  }

  // So that insert(place) needs no memory. Errors: std::bad_alloc.
  void make_room(Place place) {
    const std::vector<T>& block = blocks_[place.block];
    if (block.size() == block.capacity() || block.size() == kBlock) [[unlikely]]
      grow(place.block);
  }
  // Adds the element before the one at `place`, and returns the place behind it.
  // REQUIRES: make_room(place), and nothing was added since.
  Place insert(Place place, T&& element) noexcept {
    if (blocks_[place.block].size() == kBlock) [[unlikely]]
      place = split(place);
    std::vector<T>& block = blocks_[place.block];
    if (place.index == block.size()) {  // at the end of all, as mostly
      block.push_back(std::move(element));
      return {place.block, place.index + 1};
    }
    block.insert(block.begin() + static_cast<std::ptrdiff_t>(place.index), std::move(element));
    return next(place);
  }

  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::vector<T>& block : blocks_) {
      for (T& element : block) visit(element);
    }
  }
  void clear() noexcept {
    blocks_.resize(1);
    blocks_.front().clear();
  }

 private:
  [[gnu::noinline]] void grow(std::size_t which) {
    std::vector<T>& block = blocks_[which];
    if (block.size() < kBlock) {
      block.reserve(std::min(kBlock, 2 * block.size() + 4));
      return;
    }
    spare_.reserve(kBlock);
    if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size());
  }
  // Makes two blocks of a full one: halves, or at its end a new one, so that ascending order fills
  // all.
  [[gnu::noinline]] Place split(Place place) noexcept {
    std::vector<T>& block = blocks_[place.block];
    const std::size_t keep = place.index == kBlock ? kBlock : kBlock / 2;
    const auto middle = block.begin() + static_cast<std::ptrdiff_t>(keep);
    spare_.insert(spare_.end(), std::make_move_iterator(middle),
                  std::make_move_iterator(block.end()));
    block.erase(middle, block.end());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(place.block) + 1,
                   std::exchange(spare_, {}));
    if (place.index < keep) return place;
    return {place.block + 1, place.index - keep};
  }

  std::vector<std::vector<T>> blocks_;
  std::vector<T> spare_;  // empty; the memory of the next block
};

}  // namespace sp3::runtime
