#!/usr/bin/env python3
"""Tests of sp3 crash-test from outside.

usage: crash_test.py SP3
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

from command_line import ERROR, FOUND, OK, CommandTest, main, process_state


def children(parent, argument, threads):
    """The children of a process that have this argument and so many threads."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                if int(file.read().rpartition(")")[2].split()[1]) != parent:
                    continue
            with open(f"/proc/{name}/cmdline", encoding="utf-8") as file:
                if argument in file.read().split("\0") and len(os.listdir(f"/proc/{name}/task")) >= threads:
                    yield int(name)
        except (OSError, ValueError):
            continue  # no process, or gone


class CrashTest(CommandTest):
    def test_a_victim_that_hangs_is_a_violation(self):
        """In each kind of round, whose victims are stopped until one was not about to die anyhow:
        when the pool is made, when transactions run, when what was recovered is told, and when it
        is closed."""
        # As victim.h numbers them; who runs transactions in four threads has more than five.
        for mode, threads, where in ((0, 1, "making the pool"), (1, 6, "running, its threads 0, 1, 2, 3"),
                                     (2, 1, ""), (3, 1, "")):
            with self.subTest(mode=mode), subprocess.Popen(
                    [self.SP3, "crash-test", "--rounds", "400", "--seed", "5", "--workload", "sps",
                     "--durability", "sync", "--threads", "4", "--deadline", "3", "--path", ".",
                     "--quiet"],
                    stdout=subprocess.PIPE, text=True, cwd=self.directory.name) as process:
                stopped = set()
                try:
                    while process.poll() is None:
                        for victim in children(process.pid, f"--mode={mode}", threads):
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(victim, signal.SIGSTOP)
                                stopped.add(victim)
                finally:
                    process.kill()
                said = process.stdout.read()
                self.assertEqual(process.returncode, FOUND, said)
                self.assertRegex(said, r"(?m)^round +\d+ .* VIOLATION$")
                found = re.search(rf"(?m)^  The victim hangs {where}.*: nothing for 3 s; seed \d+, "
                                  r"process (\d+) with .* T", said)
                self.assertIsNotNone(found, said)
                self.assertIn(int(found[1]), stopped)
                self.assertIsNone(process_state(found[1]))

    def test_a_crash_test_that_nobody_reads_leaves_no_pool(self):
        with subprocess.Popen([self.SP3, "crash-test", "--rounds", "10000", "--path", "."],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.directory.name) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertIn(b"standard output", process.stderr.read())
            self.assertEqual(process.wait(timeout=60), ERROR)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_an_interrupt_from_the_terminal_is_no_violation(self):
        """It goes to all processes of the group. A victim's end of it is not to be judged, and
        keeps no pool, even if the victim is the quicker one."""

        def interrupt(pid, signal_number):
            os.kill(pid, signal.SIGSTOP)
            os.killpg(pid, signal_number)
            time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)

        for _ in range(10):
            self.assertEqual(self.end_while_it_has_a_pool(
                signal.SIGINT, "crash-test", "--rounds", "10000", send=interrupt), [])

    def test_an_interrupt_ends_a_victim_that_would_make_its_pool(self):
        """Stopped before it has, it would make it when nobody removes it any more."""
        for _ in range(10):
            with subprocess.Popen([self.SP3, "crash-test", "--rounds", "1", "--path", "."],
                                  stdout=subprocess.DEVNULL, cwd=self.directory.name) as process:
                try:
                    victim = None
                    while process.poll() is None and victim is None:
                        victim = next(children(process.pid, "--mode=0", 1), None)
                    os.kill(victim, signal.SIGSTOP)
                    process.send_signal(signal.SIGINT)
                    self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
                    self.assertIn(process_state(victim), (None, "Z"))
                finally:
                    process.kill()
                    if victim is not None:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(victim, signal.SIGKILL)
            self.assertEqual(os.listdir(self.directory.name), [])

    def test_a_pool_that_cannot_be_made_is_no_violation(self):
        said = self.sp3("crash-test", "--rounds", "1", "--memory", "dax", "--path", ".", code=ERROR)
        self.assertIn("not on persistent memory", said.stderr)
        self.assertNotIn("VIOLATION", said.stdout)

    def test_a_crash_test_without_room_kills_nobody(self):
        result = self.on_tmpfs(self.directory.name, "20m", self.SP3, "crash-test", "--rounds", "1",
                               "--path", ".")
        self.assertEqual(result.returncode, ERROR, result.stdout)
        self.assertRegex(result.stderr, "^sp3: there is no room .*, wanted 32 MiB, found 20 MiB\n$")
        self.assertNotIn("round", result.stdout)

    def test_crash_test_kills_recovers_and_leaves_a_log_to_look_at(self):
        result = self.sp3("crash-test", "--rounds", "4", "--seed", "3", "--workload", "rbtree,queue",
                          "--durability", "async", "--keep", "--path", self.directory.name)
        self.assertIn("0 violations", result.stdout)
        self.assertIn("--seed 3", result.stdout)
        crashed = [f for f in os.listdir(self.directory.name) if f.endswith(".crashed")]
        self.assertEqual(len(crashed), 2)
        for name in crashed:
            pool = os.path.join(self.directory.name, name)
            self.assertIn("records", self.sp3("log", pool, "--limit", "5").stdout)
            records = [line for line in self.sp3("log", pool).stdout.splitlines()[1:-1]
                       if "watermark" not in line]
            graph = self.sp3("log", pool, "--dot", "-").stdout
            self.assertTrue(graph.startswith("digraph"))
            self.assertEqual(graph.count("[label="), len(records))
            if len({line.split()[0] for line in records}) < len(records):
                self.assertIn("->", graph)  # from a session's record to its next
            self.sp3("pool", "check", pool)
            self.sp3("pool", "recover", pool, "--strategy", "dag", "--threads", "2")
            self.assertTrue(json.loads(self.sp3("pool", "info", pool, "--json").stdout)["clean"])


if __name__ == "__main__":
    main(sys.argv)
