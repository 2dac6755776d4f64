# Inline functions of internal headers assert too, so all code in the build must agree on this.
# It is ours alone: NDEBUG says nothing about it.
if(SP3_ASSERTIONS)
  add_compile_definitions(SP3_ASSERTIONS)
endif()

# What names a source, as assertions do, calls it by its place in the repository: where that was is
# in no binary, but in what debuggers read.
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")

# The rest is for a developer's own build. A project that embeds sp3 keeps its own settings.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# A later one is somebody's wish.
if(NOT CMAKE_CXX_STANDARD OR CMAKE_CXX_STANDARD LESS 20)
  set(CMAKE_CXX_STANDARD 20)
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# clang-tidy and editors read the compile database.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Adds the target all_verify_interface_header_sets: every public header compiles on its own.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

find_program(SP3_CCACHE ccache)
mark_as_advanced(SP3_CCACHE)
if(SP3_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  block(PROPAGATE CMAKE_CXX_COMPILER_LAUNCHER)
    # CCACHE_SLOPPINESS: what it asks for before it caches a file that uses a precompiled header.
    set(launcher env CCACHE_SLOPPINESS=pch_defines,time_macros "${SP3_CCACHE}")
    # Where it cannot write its cache it compiles nothing. CCACHE_RECACHE makes it write.
    set(trial "${PROJECT_BINARY_DIR}/CMakeFiles/ccache_trial")
    file(WRITE "${trial}.cc" "int main() {}\n")
    execute_process(
      COMMAND env CCACHE_RECACHE=1
        ${launcher} "${CMAKE_CXX_COMPILER}" -c "${trial}.cc" -o "${trial}.o"
      RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE why)
    if(result STREQUAL "0")
      set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    else()
      string(STRIP "${why}" why)
      message(NOTICE "Building without ccache, which fails: ${why}")
    endif()
  endblock()
endif()
