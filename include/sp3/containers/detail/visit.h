// What the containers share: what an ordered key is, and how a visitor ends a walk.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

namespace sp3::detail {

// A key that a search tree can order.
template <class K>
concept Ordered = requires(const K& a, const K& b) {
  { a < b } -> std::convertible_to<bool>;
};

// Calls visit(arguments...). A visitor that returns something returns whether to go on; one that
// returns nothing sees everything.
template <class F, class... Arguments>
bool visit_goes_on(F& visit, const Arguments&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, const Arguments&...>>) {
    std::invoke(visit, arguments...);
    return true;
  } else {
    return static_cast<bool>(std::invoke(visit, arguments...));
  }
}

}  // namespace sp3::detail
