// A counter that one thread advances and any thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace sp3::base {

class Counter {
 public:
  // One writer at a time, so a load and a store suffice: no locked instruction on the hot path.
  // relaxed: readers want a number, not an order.
  void add(std::uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void raise_to(std::uint64_t n) noexcept {
    if (n > value_.load(std::memory_order_relaxed)) value_.store(n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace sp3::base
