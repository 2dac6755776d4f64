#!/usr/bin/env python3
"""Tests of docs/spec/run.py, with model checkers that only take their time.

usage: run_test.py SPEC_DIRECTORY
"""

import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

JAVA = """#!/bin/sh
echo >> "$STARTED"
exec sleep 2
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.directory.name)
        spec = folder / "docs" / "spec"
        shutil.copytree(SPEC, spec)
        self.program = spec / "run.py"
        # What it would fetch is there, and nothing is in it.
        text = self.program.read_text(encoding="utf-8")
        jar = re.search(r'^TLC_PATH = ".*/(.*)"$', text, re.M)[1]
        checksum = f'TLC_SHA256 = "{hashlib.sha256().hexdigest()}"'
        self.program.write_text(re.sub(r"^TLC_SHA256 = .*$", checksum, text, flags=re.M), encoding="utf-8")
        (folder / "build" / "spec").mkdir(parents=True)
        (folder / "build" / "spec" / jar).touch()
        java = folder / "bin" / "java"
        java.parent.mkdir()
        java.write_text(JAVA)
        java.chmod(0o755)
        self.started = folder / "started"
        self.where = {
            "env": os.environ | {"PATH": f"{java.parent}:{os.environ['PATH']}", "STARTED": str(self.started)},
            "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
        }  # fmt: skip

    def tearDown(self):
        self.directory.cleanup()

    def command(self, *arguments):
        return [sys.executable, "-B", self.program, *arguments]

    def test_an_interrupt_starts_no_other_model_checker(self):
        with subprocess.Popen(self.command("--quick", "--jobs", "1"), start_new_session=True, **self.where) as process:
            while process.poll() is None and not self.started.exists():
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            said = process.communicate(timeout=240)
        self.assertEqual((said, process.returncode), (("", ""), -signal.SIGINT))
        self.assertLessEqual(len(self.started.read_text().splitlines()), 2)

    def test_arguments_that_cannot_be_are_named(self):
        for arguments in (["--only", "("], ["--jobs", "0"], ["--jobs", "many"]):
            with self.subTest(arguments=arguments):
                result = subprocess.run(self.command(*arguments), check=False, timeout=240, **self.where)
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"argument {arguments[0]}: ", result.stderr)


if __name__ == "__main__":
    SPEC = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
