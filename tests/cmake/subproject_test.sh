#!/usr/bin/env bash
# Configures a project that has sp3 as a part: what is its own stays its own.
set -euo pipefail

if [[ $# -ne 4 ]]; then
  echo "usage: subproject_test.sh CMAKE GENERATOR CXX SOURCE_DIR" >&2
  exit 2
fi
# CMake takes them for settings of the project.
unset CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER_LAUNCHER CMAKE_EXPORT_COMPILE_COMMANDS
cmake=$1 generator=$2 cxx=$3 sp3=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/CMakeLists.txt" << 'END'
cmake_minimum_required(VERSION 3.25)
project(whole LANGUAGES CXX)
include(FeatureSummary)
find_package(NotThere QUIET)
set_package_properties(NotThere PROPERTIES TYPE REQUIRED)

add_subdirectory("${SP3}" sp3)

option(BUILD_SHARED_LIBS "Another project's default" ON)
if(NOT BUILD_SHARED_LIBS)
  message(SEND_ERROR "sp3 settled BUILD_SHARED_LIBS")
endif()
get_property(not_found GLOBAL PROPERTY PACKAGES_NOT_FOUND)
if(NOT not_found STREQUAL "NotThere")
  message(SEND_ERROR "not found: want NotThere, found ${not_found}")
endif()
foreach(part IN ITEMS TESTS TOOLS BENCH EXAMPLES)
  if(SP3_BUILD_${part})
    message(SEND_ERROR "SP3_BUILD_${part} is on")
  endif()
endforeach()
foreach(setting IN ITEMS
    CMAKE_BUILD_TYPE CMAKE_CXX_STANDARD CMAKE_CXX_COMPILER_LAUNCHER CMAKE_EXPORT_COMPILE_COMMANDS)
  if(${setting})
    message(SEND_ERROR "sp3 set ${setting} to ${${setting}}")
  endif()
endforeach()
END
"$cmake" -S "$work" -B "$work/build" -G "$generator" "-DCMAKE_CXX_COMPILER=$cxx" "-DSP3=$sp3"
