// How the containers tell of bytes that make no sense. Objects carry no checksum, so what a node
// says is held against what it can be wherever it would lead out of bounds, or round and round.
#pragma once

#include <cstdint>
#include <string>

#include <sp3/detail/circle_check.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>

namespace sp3::detail {

// Out of line, for they are called once in the life of a pool, from loops that are to stay small.
template <class T>
[[noreturn, gnu::cold, gnu::noinline]] void damaged(Transaction& tx, Ptr<T> object,
                                                    const char* message, const char* wanted,
                                                    std::uint64_t found) {
  tx.report_damage(object, message, wanted, std::to_string(found));
}
template <class T>
[[noreturn, gnu::cold, gnu::noinline]] void exceeded(Transaction& tx, Ptr<T> object,
                                                     const char* message, std::uint64_t most,
                                                     std::uint64_t found) {
  tx.report_damage(object, message, "at most " + std::to_string(most), std::to_string(found));
}

// `next`, which the list may end with.
template <class T>
Ptr<T> next_in_list(Transaction& tx, CircleCheck& circle, Ptr<T> next) {
  if (next && circle.comes_back_to(next.offset())) [[unlikely]]
    damaged(tx, next, "a list of nodes does not end", "an end", next.offset());
  return next;
}

}  // namespace sp3::detail
