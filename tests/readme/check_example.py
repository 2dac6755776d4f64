"""Checks that the example in README.md is examples/bank.cc, which is built and run as a test.

Usage: check_example.py REPOSITORY
"""

import pathlib
import re
import signal
import sys

LONGEST = 30  # lines: a complete program that still fits on a page


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    readme = (root / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: (\S+) -->\n```cpp\n(.*?)```", readme, re.DOTALL)
    if found is None:
        print("README.md: no block marked '<!-- example: FILE -->'")
        return 1
    source = root / found.group(1)
    if source.read_text(encoding="utf-8") != found.group(2):
        print(f"README.md: the example differs from {found.group(1)}")
        return 1
    lines = found.group(2).count("\n")
    if lines > LONGEST:
        print(f"README.md: the example has {lines} lines, at most {LONGEST} are allowed")
        return 1
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads no more ends it, without a word
    sys.exit(main())
