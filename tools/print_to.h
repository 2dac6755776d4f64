// print_to(): printing that does not throw. What standard error does not take is lost, and nothing
// else with it; of standard output, require_output() (tools/command.h) tells at the end.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace sp3::tools {

template <class... Values>
void print_to(std::FILE* out, fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

}  // namespace sp3::tools
