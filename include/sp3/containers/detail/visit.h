// What the containers share: what an ordered key is, and how a visitor ends a walk.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

namespace sp3::detail {

// A key that a search tree can order. The order must be a strict weak one: to a tree of doubles a
// NaN would be equal to whatever it meets first.
template <class K>
concept Ordered = requires(const K& a, const K& b) {
  { a < b } -> std::convertible_to<bool>;
};

// Calls visit(arguments...). A visitor that returns something returns whether to go on; one that
// returns nothing sees everything. No visitor is noexcept, as no body is: it may use the
// transaction, and a conflict must be able to leave it.
template <class F, class... Arguments>
bool visit_goes_on(F& visit, const Arguments&... arguments) {
  static_assert(!std::is_nothrow_invocable_v<F&, const Arguments&...>,
                "a visitor is not noexcept: a conflict leaves it by an exception");
  using Result = std::invoke_result_t<F&, const Arguments&...>;
  if constexpr (std::is_void_v<Result>) {
    std::invoke(visit, arguments...);
    return true;
  } else {
    // A sum that a lambda returns unawares would end the walk at zero.
    static_assert(std::is_same_v<std::remove_cvref_t<Result>, bool>,
                  "a visitor returns whether to go on, as a bool, or nothing");
    return std::invoke(visit, arguments...);
  }
}

}  // namespace sp3::detail
