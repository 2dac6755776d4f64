# Inline functions of internal headers assert too, so all code in the build must agree on this.
# It is ours alone: NDEBUG says nothing about it.
if(SP3_ASSERTIONS)
  add_compile_definitions(SP3_ASSERTIONS)
endif()

# The rest is for a developer's own build. A project that embeds sp3 keeps its own settings.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# clang-tidy and editors read the compile database.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Adds the target all_verify_interface_header_sets: every public header compiles on its own.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(SP3_CCACHE ccache)
mark_as_advanced(SP3_CCACHE)
if(SP3_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # What it asks for before it caches a file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${SP3_CCACHE}")
endif()
