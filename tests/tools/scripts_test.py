#!/usr/bin/env python3
"""Tests of what all Python programs of the repository have in common.

usage: scripts_test.py REPOSITORY
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

# With arguments that make each print something, of which nothing depends on what is installed.
PROGRAMS = {
    "bench/phases.py": ["--help"],
    "docs/spec/run.py": ["--help"],
    "tests/layers/check_layers.py": ["{empty}"],
    "tests/readme/check_example.py": ["{empty}"],
    "tests/spec/check_spec.py": ["{root}/docs/spec"],
    "tools/report/__main__.py": ["--help"],
}


class ScriptsTest(unittest.TestCase):
    def test_every_program_is_known_here(self):
        found = {
            str(path.relative_to(ROOT)) for folder in ("bench", "docs", "tests", "tools")
            for path in (ROOT / folder).rglob("*.py")
            if "__name__ ==" in path.read_text(encoding="utf-8") and not path.stem.endswith("_test")
        }  # fmt: skip
        self.assertEqual(found, set(PROGRAMS))

    def test_a_program_that_nobody_reads_ends_without_a_word(self):
        with tempfile.TemporaryDirectory() as empty:
            (pathlib.Path(empty) / "README.md").touch()
            for program, arguments in PROGRAMS.items():
                with self.subTest(program=program):
                    reading, writing = os.pipe()
                    os.close(reading)
                    arguments = [a.format(root=ROOT, empty=empty) for a in arguments]
                    result = subprocess.run([sys.executable, "-B", ROOT / program, *arguments],
                                            stdout=writing, stderr=subprocess.PIPE, check=False)  # fmt: skip
                    os.close(writing)
                    self.assertEqual(result.stderr, b"")
                    self.assertEqual(result.returncode, -signal.SIGPIPE)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
