// replace(): a store only if it changes something, for what seldom does and lies in the cache.
//
// Behind a fence stores are few: docs/adr/0022.
#pragma once

namespace sp3::base {

template <class T>
[[gnu::always_inline]] inline void replace(T& old, T value) noexcept {
  if (old != value) old = value;
}

}  // namespace sp3::base
