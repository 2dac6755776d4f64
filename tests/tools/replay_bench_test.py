#!/usr/bin/env python3
"""Tests of what bench/replay.cc does with its arguments.

usage: replay_bench_test.py REPLAY_BENCH
"""

import glob
import signal
import subprocess
import sys
import tempfile
import time

from command_line import USAGE, CommandTest, main


def files_of(process):
    return [name for place in ("/dev/shm", tempfile.gettempdir())
            for name in glob.glob(f"{place}/sp3-replay-bench-{process.pid}*")]


class ReplayBenchTest(CommandTest):
    def test_arguments_that_cannot_be_are_named(self):
        for named, arguments in (("log MiB", "abc"), ("log MiB", "1"), ("homes MiB", "8 x"),
                                 ("sessions", "128 64 0"), ("sessions", "4 1 5"),
                                 ("repeats", "128 64 2 0"), ("repeats", "128 64 2 -1")):
            self.assertIn(named + ": wanted", self.sp3(*arguments.split(), code=USAGE).stderr)

    def test_a_small_log_is_replayed(self):
        self.assertIn("4 sessions", self.sp3("4", "1", "4", "1").stdout)

    def test_a_signal_leaves_no_file(self):
        with subprocess.Popen([self.SP3, "64", "16", "4", "1000"],
                              stdout=subprocess.DEVNULL) as process:
            try:
                while process.poll() is None and not files_of(process):
                    time.sleep(0.01)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
            finally:
                process.kill()
            self.assertEqual(files_of(process), [])


if __name__ == "__main__":
    main(sys.argv)
