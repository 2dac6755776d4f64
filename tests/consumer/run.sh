#!/usr/bin/env bash
# Installs a built sp3 into a temporary prefix, moves that, and uses it from an outside project:
# first with find_package, then with pkg-config. The move shows that no path is baked in, and the
# space in the new name that none is taken for two words.
set -euo pipefail

if [[ $# -ne 4 ]]; then
  echo "usage: run.sh CMAKE BUILD_DIR CXX static|shared|hidden" >&2
  exit 2
fi
cmake=$1 build=$2 cxx=$3 linkage=$4
program=$(cd "$(dirname "$0")/program" && pwd)
unset DESTDIR  # of whoever packages what is built
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== install"
"$cmake" --install "$build" --prefix "$work/first" > "$work/install.log"
mv "$work/first" "$work/the prefix"
prefix="$work/the prefix"

echo "== every public header is installed"
headers() { (cd "$1" && find sp3 -name '*.h' | LC_ALL=C sort); }
diff <(headers "$program/../../../include") <(headers "$prefix/include") || {
  echo "list the header in include/CMakeLists.txt" >&2
  exit 1
}

echo "== where the sources were is nobody's business but a debugger's"
root=$(cd "$program/../../.." && pwd)
find "$prefix" -name 'libsp3.*' -type f | while read -r library; do
  strip --strip-debug -o "$work/stripped" "$library"
  ! grep -a -o -m 1 -F "$root/" "$work/stripped" >&2
done

echo "== another C++ is refused by name"
refused() {
  local header=$1 reason=$2
  shift 2
  echo "#include <$header>" > "$work/refused.cc"
  "$cxx" "$@" -fsyntax-only -I "$prefix/include" "$work/refused.cc" 2> "$work/refused.log" || true
  grep -m 1 ' error: ' "$work/refused.log" | grep -q "$reason" || {
    echo "$header: include <sp3/detail/export.h>" >&2
    exit 1
  }
}
(cd "$prefix/include" && find sp3 -name '*.h' -not -path '*/detail/*') | while read -r header; do
  refused "$header" "sp3 needs C++20" -std=c++17
  refused "$header" "sp3 needs exceptions" -std=c++20 -fno-exceptions
done

echo "== types whose names others share are refused"
for type in 'decltype([] {})' 'Of<decltype([] {})>'; do
  printf '#include <sp3/type.h>\ntemplate <class> struct Of { int number; };\nusing Type = %s;\n%s\n' \
    "$type" 'constexpr auto name = sp3::TypeTag<Type>::name;' > "$work/refused.cc"
  "$cxx" -std=c++20 -fsyntax-only -I "$prefix/include" "$work/refused.cc" 2> "$work/refused.log" || true
  grep -q 'error: .*sp3::TypeTag' "$work/refused.log" || {
    echo "sp3 takes $type for others of its kind" >&2
    exit 1
  }
done

echo "== no warning, neither from the headers nor for what they ask of a program"
"$cxx" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast \
  -Werror -I "$prefix/include" "$program/main.cc"

if [[ $linkage != static ]]; then
  echo "== threads that end may call it at any time"
  readelf -d "$(find "$prefix" -name libsp3.so)" | grep -q NODELETE
fi

if [[ $linkage == hidden ]]; then
  echo "== nothing internal is exported"
  library=$(find "$prefix" -name libsp3.so)
  # Without parameters, which may be of internal types.
  inside=$(nm -D --defined-only --format=just-symbols "$library" | c++filt --no-params |
    grep -E '(^|[ <(])sp3::(base|emu|pool|log|index|rangelock|recovery|runtime)::' || true)
  if [[ -n $inside ]]; then
    echo "$inside" >&2
    exit 1
  fi
fi

echo "== find_package"
"$cmake" -S "$program" -B "$work/by-cmake" -G Ninja \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/by-cmake"
"$work/by-cmake/consumer" "$work/by-cmake.pool"

echo "== pkg-config"
pc=$(find "$prefix" -name sp3.pc)
libdir=$(dirname "$(dirname "$pc")")
# Before where the others may be.
export PKG_CONFIG_PATH=${pc%/*}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
if [[ $linkage == static ]]; then
  flags=$(pkg-config --static --cflags --libs sp3)
else
  flags="$(pkg-config --cflags --libs sp3) -Wl,-rpath,${libdir@Q}"
fi
# pkg-config's output is a piece of a shell's command line.
eval "${cxx@Q} -std=c++20 -O2 ${program@Q}/main.cc -o ${work@Q}/by-pkg-config $flags"
"$work/by-pkg-config" "$work/by-pkg-config.pool"

if [[ -x $prefix/bin/sp3-sim ]]; then
  echo "== the command and its simulator"
  "$prefix/bin/sp3" --version
  "$prefix/bin/sp3" report --help > "$work/report-help"
  grep -q RESULTS "$work/report-help"
  "$prefix/bin/sp3" sim --explore --seeds 1-3
fi
