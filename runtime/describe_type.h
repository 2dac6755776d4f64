// A type as errors show it.
#pragma once

#include <string>

#include <sp3/type.h>

namespace sp3::runtime {

// Its name, fingerprint and size. Of the types in a pool no names are known.
std::string describe_type(const detail::TypeInfo& type);

}  // namespace sp3::runtime
