#!/usr/bin/env python3
"""Tests of what the sp3 command says and leaves where the system refuses it something.

usage: leftovers_test.py SP3
"""

import json
import os
import subprocess
import sys

from command_line import ERROR, OK, CommandTest, main


class LeftoversTest(CommandTest):
    def with_files_of(self, blocks, *arguments):
        """Runs it where a file may have so many blocks."""
        return subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$0" "$@"', self.SP3, *arguments],
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
        self.assert_refused(self.with_files_of(1000, "bench", "--workload", "sps", "--seconds", "0.1",
                                               "--repeat", "1", "--path", "pool"), "File too large")
        result = self.with_files_of(1000, "compare", "--section", "emulated", "--workload", "sps",
                                    "--system", "sp3", "--seconds", "0.1", "--results", "results.json")
        self.assertEqual(result.returncode, ERROR, result)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(os.listdir(self.directory.name), ["results.json"])

    def test_a_measured_program_that_fails_is_an_error(self):
        """Under a valgrind that tells of no instructions: only what a lock cannot hold has none."""
        valgrind = os.path.join(self.directory.name, "valgrind")
        where = {"PATH": f"{self.directory.name}:{os.environ['PATH']}"}
        for status, code in ((2, OK), (3, ERROR)):
            with open(valgrind, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n[ $1 = --version ] && echo valgrind-3 && exit\n"
                           "case \"$*\" in *none*) echo Collected : 9; exit;; esac\n"
                           f"echo out of memory; echo Collected : 0; exit {status}\n")
            os.chmod(valgrind, 0o755)
            said = self.sp3("lockbench", "--instructions", "--lock", "grid", "--held", "0", code=code,
                            env=os.environ | where)
            self.assertEqual(said.stderr == "", code == OK)
        self.assertIn("ended with 3: out of memory; Collected", said.stderr)

    ROWS = ("lockbench", "--lock", "grid", "--workload", "W1", "--pairs", "20", "--repeat", "1", "--json")

    def test_rows_that_cannot_be_written_leave_those_that_were_there(self):
        if "TSAN_OPTIONS" in os.environ:  # as its tests are run
            self.skipTest("ThreadSanitizer writes a file of its own as it starts")
        name = os.path.join(self.directory.name, "rows.json")
        with open(name, "w", encoding="utf-8") as file:
            file.write("old")
        self.sp3(*self.ROWS, "rows.json")
        with open(name, encoding="utf-8") as file:
            rows = file.read()
        self.assertEqual(len(json.loads(rows)), 1)
        for output in ("rows.json", "new.json"):
            result = self.with_files_of(0, *self.ROWS, output)
            self.assertEqual(result.returncode, ERROR, result)
            self.assertIn(f"{output}: cannot be written: File too large", result.stderr)
            self.assertEqual(os.listdir(self.directory.name), ["rows.json"])
        with open(name, encoding="utf-8") as file:
            self.assertEqual(file.read(), rows)

    def test_what_is_mounted_may_be_called_by_any_bytes(self):
        os.mkdir(os.path.join(self.directory.name, "there"))
        pool = ["--entries", "100", "--repeat", "1", "--memory", "file", "--path", "there/pool", "--json", "-"]
        for command in (["bench", "--workload", "sps", "--operations", "20"], ["micro", "--empty"],
                        ["recovery-bench", "--log-bytes", "1M"]):
            arguments = [argument for argument in pool if command[0] != "micro" or argument not in pool[:2]]
            result = self.on_tmpfs("there", "900m", self.SP3, *command, *arguments, source=b"a\xff")
            self.assertEqual(result.returncode, OK, result.stderr)
            self.assertEqual(json.loads(result.stdout)[0]["file_system"], "tmpfs on a\N{REPLACEMENT CHARACTER}")

    def test_rows_go_where_a_name_leads(self):
        """What has another name, or is open elsewhere, is written to; a link leads to what is
        replaced; permissions stay."""
        names = [os.path.join(self.directory.name, name) for name in ("first", "second", "link", "fifo")]
        first, second, link, fifo = names
        with open(first, "w", encoding="utf-8") as file:
            file.write("long" * 10000)
        os.chmod(first, 0o640)
        os.symlink("first", link)
        self.sp3(*self.ROWS, link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(first).st_mode & 0o777, 0o640)
        os.link(first, second)
        inode = os.stat(first).st_ino
        self.sp3(*self.ROWS, first)
        self.assertEqual(os.stat(first).st_ino, inode)
        os.mkfifo(fifo)
        with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
            self.sp3(*self.ROWS, fifo)
            through_fifo = reader.stdout.read()
        for redirection in ("", "> second"):
            result = self.redirected(redirection, *self.ROWS, "/dev/stdout")
            self.assertEqual(result.returncode, OK, result)
        self.assertEqual(os.stat(second).st_ino, inode)
        self.sp3(*self.ROWS, "/dev/null")
        self.sp3(*self.ROWS, first)
        with open(first, "rb") as file:
            for text in (through_fifo, file.read()):
                self.assertEqual(len(json.loads(text)), 1)
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["fifo", "first", "link", "second"])

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
