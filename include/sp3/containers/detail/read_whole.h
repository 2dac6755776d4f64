// Reading an object of several cache lines that will be searched.
#pragma once

#include <cstddef>

#include <sp3/detail/prefetch_lines.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3::detail {

// As tx.read(). The object's lines come from memory at the same time: a search would ask for one
// after the other, each when it knows that it needs it.
template <Storable T>
const T& read_whole(Transaction& tx, Ptr<T> name) {
  const T& object = tx.read(name);
  prefetch_lines(reinterpret_cast<const std::byte*>(&object), sizeof(T));
  return object;
}

}  // namespace sp3::detail
