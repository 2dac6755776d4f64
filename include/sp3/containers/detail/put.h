// How the containers give an object, and a key, a new value.
#pragma once

#include <type_traits>

#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3::detail {

// What becomes of a key's value when it is to get another.
enum class Present { stays, is_replaced };

// Whether a new value is taken for new as a whole, so that the old one is neither read nor copied.
// Of a larger one what has not changed stays out of the log: that is many lines.
template <class T>
inline constexpr bool put_whole = sizeof(T) <= 1024 && std::is_copy_assignable_v<T>;

template <Storable T>
void put(Transaction& tx, Ptr<T> object, const T& value) {
  if constexpr (put_whole<T>) {
    tx.assign(object, value);
  } else {
    tx.write(object) = value;
  }
}

}  // namespace sp3::detail
