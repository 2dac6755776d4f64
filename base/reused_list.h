// ReusedList: items appended one after the other and forgotten all at once; its memory is used
// again.
//
// As std::vector, but appending is a compare and a store: growing is not inline, and an appended
// item is not initialised, so whoever appends it assigns all of it.
//
// Thread safety: as an array.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/assert.h"

namespace sp3::base {

template <class T>
class ReusedList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // The new last item, with any contents. Invalidates references to items. Errors: std::bad_alloc,
  // and then there is none.
  T& append() {
    if (!has_room()) [[unlikely]]
      grow(1);
    return append_in_room();
  }
  // The same where there is room.
  T& append_in_room() noexcept {
    SP3_ASSERT(has_room());
    return *end_++;
  }
  void drop_last() noexcept {
    SP3_ASSERT(!empty());
    --end_;
  }
  void clear() noexcept { end_ = items_.get(); }
  // Makes room for `count` more, so that appending them cannot fail. Errors: std::bad_alloc.
  void make_room(std::size_t count) {
    if (static_cast<std::size_t>(limit_ - end_) < count) [[unlikely]]
      grow(count);
  }
  // Forgets the first `count`; the others move up.
  void drop_front(std::size_t count) noexcept { end_ = std::copy(begin() + count, end_, begin()); }

  [[nodiscard]] bool has_room() const noexcept { return end_ != limit_; }  // for one more
  [[nodiscard]] bool empty() const noexcept { return end_ == items_.get(); }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(end_ - items_.get());
  }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return items_[i]; }
  [[nodiscard]] T* begin() noexcept { return items_.get(); }
  [[nodiscard]] T* end() noexcept { return end_; }
  [[nodiscard]] const T* begin() const noexcept { return items_.get(); }
  [[nodiscard]] const T* end() const noexcept { return end_; }

 private:
  static constexpr std::size_t kFirst = 16;  // items

  [[gnu::noinline]] void grow(std::size_t more_items) {
    const std::size_t items = size();
    const std::size_t room = std::max(kFirst, items + std::max(items, more_items));
    auto more = std::make_unique<T[]>(room);
    std::copy(begin(), end(), more.get());
    items_ = std::move(more);
    end_ = items_.get() + items;
    limit_ = items_.get() + room;
  }

  std::unique_ptr<T[]> items_;
  T* end_ = nullptr;
  T* limit_ = nullptr;
};

}  // namespace sp3::base
