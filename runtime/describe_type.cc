#include "runtime/describe_type.h"

#include <string_view>

#include <fmt/format.h>

namespace sp3::runtime {
namespace {

// Out of "… [with T = Account; std::string_view = …]" or "… [T = Account]", as compilers write what
// TypeTag takes for a name; any other name as it is.
std::string_view shown(std::string_view name) {
  constexpr std::string_view kBefore = "T = ";
  const std::size_t begin = name.find(kBefore);
  if (begin == name.npos || !name.ends_with(']')) return name;
  name.remove_prefix(begin + kBefore.size());
  name.remove_suffix(1);
  return name.substr(0, name.find("; "));
}

}  // namespace

std::string describe_type(const detail::TypeInfo& type) {
  const std::string_view name = shown(type.name);
  return fmt::format("{}{}{:#x} ({} bytes)", name, name.empty() ? "" : ", ", type.fingerprint,
                     type.size);
}

}  // namespace sp3::runtime
