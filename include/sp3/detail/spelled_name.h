// A type's name as the compiler spells it, and whether another type could be spelled alike.
#pragma once

#include <cstddef>
#include <string_view>

namespace sp3::detail {

template <class T>
constexpr std::string_view spelled_name() {
  return __PRETTY_FUNCTION__;
}
// Whether the name so spelled holds that of a lambda.
constexpr bool is_nameless(std::string_view spelled) {
  return spelled.find("<lambda(") != spelled.npos || spelled.find("<lambda>") != spelled.npos ||
         spelled.find("(lambda at ") != spelled.npos;
}
// Whether it holds a name that GCC gives to every structure, or enumeration, that has none.
constexpr bool is_unnamed(std::string_view spelled) {
  return spelled.find("<unnamed ") != spelled.npos;
}
// Whether a lambda takes part in it otherwise than as the place where GCC says that a type is
// declared ("f()::<lambda(int)> mutable::Local"), for such a type has a name. Not in a generic lambda
// ("<lambda(auto:7)>::Local"), which has the same one for all arguments, and a running number.
constexpr bool is_of_lambda(std::string_view spelled) {
  constexpr std::string_view kLambda = "<lambda(";
  for (std::size_t at = spelled.find(kLambda); at != spelled.npos; at = spelled.find(kLambda)) {
    spelled.remove_prefix(at + kLambda.size());
    std::string_view parameters = spelled;
    for (int depth = 1; depth > 0 && !spelled.empty(); spelled.remove_prefix(1)) {
      if (spelled.front() == '(') ++depth;
      if (spelled.front() == ')') --depth;
    }
    parameters.remove_suffix(spelled.size());
    std::string_view rest = spelled;
    for (const std::string_view part : {std::string_view(">"), std::string_view(" mutable")}) {
      if (rest.starts_with(part)) rest.remove_prefix(part.size());
    }
    if (!rest.starts_with("::") || parameters.find("auto:") != parameters.npos) return true;
  }
  return spelled.find("<lambda>") != spelled.npos || spelled.find("(lambda at ") != spelled.npos;
}
// Whether clang has left out the end of a template argument.
constexpr bool is_cut_short(std::string_view spelled) {
  return spelled.find(", ...}") != spelled.npos;
}

}  // namespace sp3::detail
