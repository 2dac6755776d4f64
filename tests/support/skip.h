// SP3_SKIP: ends a test case that cannot be run in this build. ctest lists it as skipped.
#pragma once

#include <catch2/catch.hpp>

// cmake/AddTest.cmake tells ctest what the warning begins with.
#define SP3_SKIP(why)          \
  do {                         \
    WARN("SP3_SKIPPED: " why); \
    return;                    \
  } while (false)
