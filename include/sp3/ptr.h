// Ptr<T>: the name of an object in a pool.
//
// A Ptr is the offset of the object's home slot from the start of the pool file: eight bytes, the
// same wherever the pool is mapped, so a Ptr may itself be stored in persistent objects. Zero is
// null. A Ptr is a value and owns nothing.
//
// A Ptr to a destroyed object, to an object of another type or to no object at all is reported by
// Transaction::read as a typed error. A Ptr whose slot was reused by a later object of the same
// type is a dangling pointer: it reads that later object. So does a Ptr of one pool in a transaction
// of another that has an object of the type at that offset, as pools of the same program often do.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <sp3/detail/export.h>

namespace sp3 {

template <class T>
class Ptr {
 public:
  constexpr Ptr() noexcept = default;
  constexpr Ptr(std::nullptr_t) noexcept {}

  static constexpr Ptr from_offset(std::uint64_t offset) noexcept {
    Ptr p;
    p.offset_ = offset;
    return p;
  }

  [[nodiscard]] constexpr std::uint64_t offset() const noexcept { return offset_; }
  constexpr explicit operator bool() const noexcept { return offset_ != 0; }
  friend constexpr auto operator<=>(const Ptr&, const Ptr&) noexcept = default;

 private:
  std::uint64_t offset_ = 0;
};

}  // namespace sp3

// For tables in DRAM; those in a pool hash their keys by sp3::DefaultHash.
template <class T>
struct std::hash<sp3::Ptr<T>> {
  std::size_t operator()(const sp3::Ptr<T>& name) const noexcept {
    return std::hash<std::uint64_t>()(name.offset());
  }
};
