// Documents that anybody may have written are not nested deeply: values are copied, compared and
// written by functions that call themselves for each level.
#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/command.h"

namespace sp3::tools {

// For nlohmann::json::parse. Throws UsageError, which begins with `what`.
inline nlohmann::json::parser_callback_t refuse_deep_nesting(const std::string& what) {
  return [what](int depth, nlohmann::json::parse_event_t /*event*/, const nlohmann::json&) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) {
      throw UsageError(fmt::format("{}: is nested deeper than {} levels", what, kDeepest));
    }
    return true;
  };
}

}  // namespace sp3::tools
