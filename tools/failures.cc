#include "tools/failures.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace sp3::tools {

void Failures::add(const std::string& what, std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    lines_.push_back(what + ": " + thrown.what());
  }
  if (first_ == nullptr) first_ = std::move(error);
}

void Failures::require_some_of(std::size_t all) const {
  if (lines_.size() == all && first_ != nullptr) std::rethrow_exception(first_);
}

void Failures::require_none_of(std::size_t all) const {
  if (lines_.empty()) return;
  throw std::runtime_error(
      fmt::format("{} of {} could not be measured: {}", lines_.size(), all, lines_.front()));
}

}  // namespace sp3::tools
