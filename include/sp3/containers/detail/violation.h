// How the containers' checks tell of pointers that lead nowhere.
#pragma once

#include <string>

#include <sp3/error.h>

namespace sp3::detail {

// What check() returns; or, if it meets a pointer that leads to no object, or to one of another
// type, a sentence with the error's text. Conflicts and all other errors pass: they say nothing of
// the container.
template <class F>
std::string violation_in(F&& check) {
  try {
    return check();
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    if (code != ErrorCode::invalid_pointer && code != ErrorCode::destroyed_object &&
        code != ErrorCode::wrong_type) {
      throw;
    }
    return std::string("A pointer is wrong: ") + error.what() + ".";
  }
}

}  // namespace sp3::detail
