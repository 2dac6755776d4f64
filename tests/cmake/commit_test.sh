#!/usr/bin/env bash
# cmake/Commit.cmake: which commit a build names, and that it writes only what has changed.
set -euo pipefail

if [[ $# -ne 2 ]]; then
  echo "usage: commit_test.sh CMAKE COMMIT_CMAKE" >&2
  exit 2
fi
cmake=$1 script=$2
if ! command -v git > /dev/null; then
  echo "SP3_SKIPPED: there is no git"
  exit 0
fi
# A hook's variables would lead to the repository that it is of.
unset $(git rev-parse --local-env-vars)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CEILING_DIRECTORIES=$work
git=(git -C "$work/top" -c user.name=sp3 -c user.email=sp3@example.org)

# wants FOLDER PATTERN
wants() {
  "$cmake" "-DSOURCE_DIR=$work/$1" "-DOUTPUT=$work/built_from.cc" -P "$script"
  grep -qE "return \"$2\";" "$work/built_from.cc" || {
    echo "$1: want $2, found:" >&2
    cat "$work/built_from.cc" >&2
    exit 1
  }
}

mkdir -p "$work/top/unpacked" "$work/elsewhere"
git -C "$work/top" init --quiet
echo 1 > "$work/top/file"
"${git[@]}" add file
"${git[@]}" commit --quiet -m "A file"

wants top '[0-9a-f]{7,}'
touch -d 2001-01-01 "$work/built_from.cc"
wants top '[0-9a-f]{7,}'
[[ $(stat -c %Y "$work/built_from.cc") -lt 1000000000 ]] || {
  echo "written again with the same commit" >&2
  exit 1
}
echo 2 > "$work/top/file"
wants top '[0-9a-f]{7,}-dirty'
"${git[@]}" commit --quiet -am "Changed"
"${git[@]}" tag 'a"quote'
wants top 'a\\"quote'
# Inside another repository, and in none; there too beside variables that name one.
wants top/unpacked unknown
wants elsewhere unknown
GIT_DIR=$work/top/.git wants elsewhere unknown
