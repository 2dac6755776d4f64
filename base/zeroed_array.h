// ZeroedArray: a fixed number of zeros that cost memory only where they are used.
//
// For arrays whose length is a limit that is rarely reached: the allocator takes large ones from
// fresh pages, which the system provides when they are first touched.
//
// Thread safety: as an array. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace sp3::base {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_default_constructible_v<T> &&
                std::is_trivially_destructible_v<T>);

 public:
  explicit ZeroedArray(std::size_t size) : items_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
    if (items_ == nullptr && size != 0) throw std::bad_alloc();
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
