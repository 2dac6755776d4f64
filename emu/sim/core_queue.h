// CoreQueue: the cores by when each goes on, the first on top: a binary heap whose places are known.
//
// Equal times go by core number, so the order is one. Cores with the time kNever stay at the bottom.
// All operations are O(log cores) but top() and second(), which are O(1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sp3::emu::sim {

class CoreQueue {
 public:
  using Core = std::uint32_t;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void clear() {
    heap_.clear();
    place_.clear();
  }
  // Cores are added in the order of their numbers.
  void add(std::uint64_t time) {
    const auto core = static_cast<Core>(place_.size());
    place_.push_back(static_cast<std::uint32_t>(heap_.size()));
    heap_.push_back({time, core});
    up(heap_.size() - 1);
  }
  void set(Core core, std::uint64_t time) {
    const std::size_t at = place_[core];
    const bool later = heap_[at].time < time;
    heap_[at].time = time;
    if (later) {
      down(at);
    } else {
      up(at);
    }
  }
  [[nodiscard]] Core top() const { return heap_[0].core; }
  [[nodiscard]] std::uint64_t first() const { return heap_[0].time; }
  // When the one after the top goes on.
  [[nodiscard]] std::uint64_t second() const {
    if (heap_.size() < 2) return kNever;
    return heap_.size() == 2 ? heap_[1].time : std::min(heap_[1].time, heap_[2].time);
  }

 private:
  struct Item {
    std::uint64_t time;
    Core core;
    [[nodiscard]] bool before(const Item& other) const {
      return time < other.time || (time == other.time && core < other.core);
    }
  };

  void put(std::size_t at, Item item) {
    heap_[at] = item;
    place_[item.core] = static_cast<std::uint32_t>(at);
  }
  void up(std::size_t at) {
    const Item item = heap_[at];
    for (; at > 0 && item.before(heap_[(at - 1) / 2]); at = (at - 1) / 2) {
      put(at, heap_[(at - 1) / 2]);
    }
    put(at, item);
  }
  void down(std::size_t at) {
    const Item item = heap_[at];
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(item)) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, item);
  }

  std::vector<Item> heap_;
  std::vector<std::uint32_t> place_;  // in the heap, by core
};

}  // namespace sp3::emu::sim
