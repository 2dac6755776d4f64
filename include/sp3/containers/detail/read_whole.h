// Reading an object of several cache lines that will be searched.
#pragma once

#include <algorithm>
#include <cstddef>

#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3::detail {

// As tx.read(). The object's lines come from memory at the same time: a search would ask for one
// after the other, each when it knows that it needs it.
template <Storable T>
const T& read_whole(Transaction& tx, Ptr<T> name) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 512;  // the hardware follows a longer run by itself
  const T& object = tx.read(name);
  for (std::size_t at = kLine; at < std::min(sizeof(T), kMost); at += kLine) {
    __builtin_prefetch(reinterpret_cast<const std::byte*>(&object) + at);
  }
  return object;
}

}  // namespace sp3::detail
