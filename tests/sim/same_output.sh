#!/usr/bin/env bash
# Runs two programs and compares what they print, which must be something.
set -euo pipefail
one=$("$1")
other=$("$2")
printf '%s\n' "$one"
[[ -n $one && $one == "$other" ]] || {
  printf 'but the second printed\n%s\n' "$other"
  exit 1
}
