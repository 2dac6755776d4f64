// Failures: what of a plan could not be measured. The rest is printed and written all the same.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace sp3::tools {

// Thread safety: none.
class Failures {
 public:
  // REQUIRES: `error` is a std::exception.
  void add(const std::string& what, std::exception_ptr error);

  // "what: why", in the order of add().
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

  // Before anything is written. Rethrows the first error if nothing of `all` was measured: then it
  // says more than a count.
  void require_some_of(std::size_t all) const;
  // When the rest is written. Throws std::runtime_error that counts them and tells the first.
  void require_none_of(std::size_t all) const;

 private:
  std::vector<std::string> lines_;
  std::exception_ptr first_;
};

}  // namespace sp3::tools
