// A type as errors show it.
#pragma once

#include <string>

#include <sp3/type.h>

namespace sp3::runtime {

// Its name and fingerprint. Of a pool's own types only the latter is known.
std::string describe_type(const detail::TypeInfo& type);

}  // namespace sp3::runtime
