#!/usr/bin/env python3
"""Tests of what the sp3 command says and leaves where the system refuses it something.

usage: leftovers_test.py SP3
"""

import os
import subprocess
import sys

from command_line import ERROR, OK, CommandTest, main


class LeftoversTest(CommandTest):
    def with_small_files(self, *arguments):
        """Runs it where a file may have 1000 blocks."""
        return subprocess.run(["sh", "-c", 'ulimit -f 1000; exec "$0" "$@"', self.SP3, *arguments],
                              capture_output=True, text=True, timeout=240, check=False,
                              cwd=self.directory.name)  # fmt: skip

    def assert_refused(self, result, *words):
        """One line that says so, and no file."""
        self.assertEqual(result.returncode, ERROR, result)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in ("sp3: ", *words):
            self.assertIn(word, result.stderr)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_files_that_may_not_be_so_large(self):
        self.assert_refused(self.with_small_files("bench", "--workload", "sps", "--seconds", "0.1",
                                                  "--repeat", "1", "--path", "pool"), "File too large")
        result = self.with_small_files("compare", "--section", "emulated", "--workload", "sps", "--system",
                                       "sp3", "--seconds", "0.1", "--results", "results.json")
        self.assertEqual(result.returncode, ERROR, result)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(os.listdir(self.directory.name), ["results.json"])

    def test_a_process_that_may_start_no_thread(self):
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--nproc=1",
                  self.SP3]
        os.chmod(self.directory.name, 0o777)
        where = {"capture_output": True, "text": True, "check": False, "cwd": self.directory.name}
        try:
            if subprocess.run([*nobody, "--version"], **where).returncode != OK:
                self.skipTest("there is no nobody who may run it")
        except FileNotFoundError:
            self.skipTest("setpriv is not installed")
        self.assert_refused(subprocess.run(
            [*nobody, "bench", "--workload", "sps", "--seconds", "0.1", "--repeat", "1", "--path", "pool"],
            **where), "thread that waits for signals")


if __name__ == "__main__":
    main(sys.argv)
