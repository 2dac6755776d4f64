// ZeroedArray: a fixed number of zeros that cost memory only where they are used.
//
// For arrays whose length is a limit that is rarely reached: fresh pages, which the system provides
// when they are first touched. Large arrays ask for huge ones, of which five hundred times fewer
// have to be touched; so these cost memory by 2 MiB at a time.
//
// Thread safety: as an array. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include <sys/mman.h>

#include "base/align.h"

namespace sp3::base {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_default_constructible_v<T> &&
                std::is_trivially_destructible_v<T>);

 public:
  explicit ZeroedArray(std::size_t size) : items_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
    if (items_ == nullptr && size != 0) throw std::bad_alloc();
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    const auto begin = reinterpret_cast<std::uintptr_t>(items_.get());
    const std::uintptr_t first = round_up(begin, kHugePage);
    const std::uintptr_t end = round_down(begin + size * sizeof(T), kHugePage);
    if (end > first + kHugePage) {
      // A hint: refused by kernels without huge pages.
      (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
    }
  }

  T& operator[](std::size_t i) noexcept { return items_[i]; }
  const T& operator[](std::size_t i) const noexcept { return items_[i]; }

 private:
  struct Free {
    void operator()(T* items) const noexcept { std::free(items); }
  };
  std::unique_ptr<T[], Free> items_;
};

}  // namespace sp3::base
