#!/usr/bin/env bash
# Configures sp3 as those do who package it: what they set holds, and nothing is written elsewhere.
set -euo pipefail

if [[ $# -ne 4 ]]; then
  echo "usage: settings_test.sh CMAKE GENERATOR CXX SOURCE_DIR" >&2
  exit 2
fi
cmake=$1 generator=$2 cxx=$3 sp3=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# configure NAME SETTING...
configure() {
  "$cmake" -S "$sp3" -B "$work/in/$1" -G "$generator" "-DCMAKE_CXX_COMPILER=$cxx" \
    -DSP3_BUILD_TESTS=OFF -DSP3_BUILD_BENCH=OFF "${@:2}" > "$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
}

echo "== programs and data with no prefix in common"
configure apart -DCMAKE_INSTALL_BINDIR=/opt/sp3/bin
configure far -DCMAKE_INSTALL_DATADIR=/data
found=$(cd "$work" && echo * in/*)
[[ $found == "in log in/apart in/far" ]] || {
  echo "written outside of the build trees: $found" >&2
  exit 1
}

echo "== the command is built beside its simulator"
configure bin "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=$work/in/bin/bin"
found=$(grep -rhoE --include=cmake_install.cmake '"/[^"]*/sp3(-sim)?"' "$work/in/bin" | xargs dirname | sort -u)
[[ $found == "$work/in/bin/tools" ]] || {
  echo "they are in $found" >&2
  exit 1
}

echo "== a later C++"
configure later -DCMAKE_CXX_STANDARD=23
grep -q -- -std=c++23 "$work/in/later/compile_commands.json" || {
  echo "CMAKE_CXX_STANDARD has no effect" >&2
  exit 1
}

echo "== the oldest CPUs, for SP3_ARCH as the compiler has it"
grep -rlE --include=*.cc 'include <.*intrin.h>' "$sp3"/{base,emu,pool,log,index,rangelock,recovery,runtime} |
  while read -r source; do
    "$cxx" -std=c++20 -march=x86-64 -I "$sp3" -I "$sp3/include" -c "$source" -o "$work/old.o"
  done
