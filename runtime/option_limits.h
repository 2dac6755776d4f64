// What options a pool can be opened with.
#pragma once

#include <cstddef>
#include <string>

#include <sp3/options.h>

namespace sp3::runtime {

// Errors: invalid_argument for an option outside its limits; `path` is for messages. What depends
// on the machine or on the file is checked where it is used, the geometry as a pool is laid out.
void check_options(const Options& options, const std::string& path);

// How many threads bring objects home, with the number chosen where the options leave it open.
std::size_t checkpoint_threads(const Options& options);

}  // namespace sp3::runtime
