#!/usr/bin/env python3
"""Tests of the sp3 command from outside: pools, arguments, what it prints and returns.

usage: cli_test.py SP3
"""

import json
import os
import struct
import subprocess
import sys
import time
import unittest

from command_line import ERROR, FOUND, OK, USAGE, CommandTest, main


class CliTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.pool = os.path.join(self.directory.name, "test.pool")

    def create(self):
        return self.sp3("pool", "create", self.pool, "--size", "8M", "--memory", "emulated")

    def test_a_new_pool_is_described_sound_and_has_nothing_to_recover(self):
        self.create()
        self.assertEqual(os.stat(self.pool).st_mode & 0o777, 0o600)
        info = json.loads(self.sp3("pool", "info", self.pool, "--json").stdout)
        self.assertEqual(info["size"], 8 << 20)
        self.assertTrue(info["clean"])
        self.assertEqual(len(info["uuid"]), 36)
        self.assertIn(info["uuid"], self.sp3("pool", "info", self.pool).stdout)
        check = json.loads(self.sp3("pool", "check", self.pool, "--json").stdout)
        self.assertTrue(check["sound"])
        self.assertEqual(check["damage"], [])
        self.sp3("pool", "check", self.pool)
        self.assertIn("nothing to recover", self.sp3("pool", "recover", self.pool).stdout)

    def test_help_that_nobody_gets_is_an_error(self):
        with open("/dev/full", "w") as full:
            told = subprocess.run([self.SP3, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(told.returncode, ERROR)
        self.assertIn("could not be written", told.stderr)

    def test_errors_that_nobody_gets_end_with_the_same_codes(self):
        for redirection in ("2>/dev/full", "2>&-"):
            for arguments, code in ((["pool", "info", "nope"], ERROR), (["paint"], USAGE),
                                    (["pool", "create", self.pool, "--size", "1"], USAGE)):
                with self.subTest(redirection=redirection, arguments=arguments):
                    self.assertEqual(self.redirected(redirection, *arguments).returncode, code)

    def test_a_report_of_no_rows_is_a_mistake(self):
        empty = os.path.join(self.directory.name, "empty.json")
        with open(empty, "w") as out:
            out.write("[]")
        self.assertIn("no rows", self.sp3("report", empty, code=USAGE).stderr)

    def content(self):
        with open(self.pool, "rb") as file:
            return file.read()

    def write(self, content):
        with open(self.pool, "wb") as file:
            file.write(content)

    def test_a_pool_is_never_an_output(self):
        self.create()
        sound = self.content()
        without_copy_a = bytes(4096) + sound[4096:]
        for pool in (sound, without_copy_a):
            self.write(pool)
            for command in (["log", self.pool, "--dot", self.pool], ["bench", "--json", self.pool],
                            ["lockbench", "--json", self.pool]):
                self.assertIn("is a pool", self.complaint(*command, code=USAGE))
            self.assertEqual(self.content(), pool)

    def test_the_graph_of_a_log_never_takes_the_place_of_the_pool(self):
        """Whatever it holds, and however it is called."""
        self.write(b"no pool" * 10000)
        link, other_name = self.pool + ".link", self.pool + ".other"
        os.symlink(self.pool, link)
        os.link(self.pool, other_name)
        for output in (self.pool, link, other_name):
            self.assertIn("is the pool itself",
                          self.complaint("log", self.pool, "--dot", output, code=USAGE))

    def test_outputs_that_cannot_be_written_are_refused_before_anything_is_done(self):
        for link, leads_to in (("link", "missing/rows.json"), ("round", "round"), ("new", "made.json")):
            os.symlink(leads_to, os.path.join(self.directory.name, link))
        command = ("lockbench", "--pairs", "20", "--repeat", "1", "--json")
        for output in ("missing/rows.json", "link", "round", "x" * 300, "."):
            with self.subTest(output=output):
                self.assertIn(f"--json: {output}: ", self.complaint(*command, output, code=USAGE))
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["link", "new", "round"])
        self.sp3(*command, "new")
        self.assertIn("made.json", os.listdir(self.directory.name))

    def test_a_command_that_does_not_exist_is_named(self):
        self.assertIn("'paint'", self.complaint("paint", code=USAGE))
        self.assertIn("'paint'", self.complaint("pool", "paint", code=USAGE))
        # Not where something else is missing.
        self.assertIn("--size", self.complaint("pool", "create", self.pool, "paint", code=USAGE))

    def test_a_log_of_two_segments_serves_a_session(self):
        self.sp3("pool", "create", self.pool, "--size", "4M", "--log-size", "8K", "--segment-size", "4K")
        info = json.loads(self.sp3("pool", "info", self.pool, "--json").stdout)
        self.assertEqual(info["max_sessions"], 1)

    def test_output_that_is_lost_is_an_error(self):
        self.create()
        for command in (["pool", "info"], ["pool", "info", "--json"], ["pool", "check", "--json"],
                        ["log"], ["log", "--dot", "-"], ["pool", "recover"]):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                result = subprocess.run([self.SP3, *command, self.pool], stdout=full,
                                        stderr=subprocess.PIPE, check=False)
                self.assertEqual(result.returncode, ERROR)
                self.assertIn(b"sp3: ", result.stderr)

    def test_a_path_may_be_any_bytes(self):
        self.create()
        path = os.fsencode(self.pool) + b"\xff"
        os.rename(self.pool, path)
        for command in ("info", "check"):
            result = subprocess.run([self.SP3, "pool", command, path, "--json"], check=True,
                                    stdout=subprocess.PIPE)
            self.assertIn("\N{REPLACEMENT CHARACTER}", json.loads(result.stdout)["path"])

    def damaged_pool(self):
        """A pool that a killed process left, without the first record behind each segment header,
        and its content. Where these are older than the last checkpoint nobody misses them: which
        they are hangs on when the process was killed, so another one is."""
        magic = (0x47533353).to_bytes(4, "little")
        for seed in range(3, 40):
            directory = os.path.join(self.directory.name, str(seed))
            os.mkdir(directory)
            self.sp3("crash-test", "--rounds", "1", "--seed", str(seed), "--workload", "queue",
                     "--keep", "--path", directory)  # fmt: skip
            [name] = [f for f in os.listdir(directory) if f.endswith(".crashed")]
            pool = os.path.join(directory, name)
            with open(pool, "rb") as file:
                content = bytearray(file.read())
            for at in range(0, len(content), 4096):
                if content[at + 4:at + 8] == magic:
                    content[at + 100] ^= 1
            with open(pool, "wb") as file:
                file.write(content)
            check = subprocess.run([self.SP3, "pool", "check", pool], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, check=False)  # fmt: skip
            if check.returncode == FOUND:
                return pool, content
        return self.fail("no process was killed in time")

    def test_losses_are_told_before_they_are_final(self):
        pool, content = self.damaged_pool()
        # Where it is closed the pool's file must not take its number, and what is printed.
        for redirection in (">/dev/full", ">&-", ">&- 2>&-"):
            result = self.redirected(redirection, "pool", "recover", "--accept-loss", pool)
            self.assertEqual(result.returncode, ERROR)
            with open(pool, "rb") as file:
                self.assertTrue(file.read() == content, f"{redirection}: it was written to")
        self.assertIn("lost  ", self.sp3("pool", "recover", "--accept-loss", pool, code=FOUND).stdout)
        self.sp3("pool", "check", pool)

    def test_geometry_is_taken(self):
        told = self.sp3("pool", "create", self.pool, "--size", "4M", "--log-size", "1M", "--segment-size",
                        "16K", "--slab-size", "32K", "--max-sessions", "5").stdout
        self.assertIn(f"{self.pool}: created, 4 MiB, 1 MiB of log, ", told)
        info = json.loads(self.sp3("pool", "info", self.pool, "--json").stdout)
        self.assertEqual((info["segment_size"], info["slab_size"]), (16 << 10, 32 << 10))
        self.assertEqual(info["max_sessions"], 5)

    def test_sessions_are_counted_as_the_user_counts_them(self):
        log_of_16_segments = ["--size", "1M", "--log-size", "64K", "--segment-size", "4096"]
        complaint = self.complaint("pool", "create", self.pool, *log_of_16_segments,
                                   "--max-sessions", "16", code=USAGE)
        self.assertIn("wanted at most 15", complaint)
        self.assertIn("found 16", complaint)
        self.sp3("pool", "create", self.pool, *log_of_16_segments, "--max-sessions", "15")
        info = json.loads(self.sp3("pool", "info", self.pool, "--json").stdout)
        self.assertEqual(info["max_sessions"], 15)

    def test_pools_that_cannot_be_used_are_errors(self):
        missing = os.path.join(self.directory.name, "missing.pool")
        for command in (["pool", "info"], ["pool", "check"], ["pool", "recover"], ["log"]):
            self.assertIn("missing.pool", self.complaint(*command, missing, code=ERROR))
            self.complaint(*command, self.directory.name, code=ERROR)
        with open(self.pool, "wb") as file:
            file.write(b"not a pool" * 10000)
        for command in (["pool", "info"], ["pool", "check"], ["pool", "recover"], ["log"]):
            self.assertIn("test.pool", self.complaint(*command, self.pool, code=ERROR))
        self.complaint("pool", "create", self.pool, "--size", "8M", code=ERROR)  # it exists

    def test_a_file_that_is_damaged_as_a_whole_is_found(self):
        self.create()
        sound = self.content()
        copy_bytes = struct.unpack_from("<I", sound, 44)[0]
        both_copies = bytearray(sound)
        for copy in (0, copy_bytes):
            both_copies[copy + 64] ^= 1
        for damaged in (bytes(both_copies), sound[:len(sound) // 2], sound[:100], sound + b"more"):
            self.write(damaged)
            with self.subTest(bytes=len(damaged)):
                for command in (["pool", "check"], ["pool", "recover"], ["pool", "info"], ["log"],
                                ["pool", "recover", "--accept-loss"]):
                    self.assertIn("test.pool", self.complaint(*command, self.pool, code=FOUND))
                told = json.loads(self.sp3("pool", "check", self.pool, "--json", code=FOUND).stdout)
                self.assertEqual((told["path"], told["sound"], told["clean"]), (self.pool, False, None))
                self.assertEqual((len(told["damage"]), told["more_damage"]), (1, 0))
                self.assertEqual(self.content(), damaged)

    def test_bad_arguments_are_usage_errors(self):
        for arguments in (
            [], ["nonsense"], ["pool"], ["pool", "create", self.pool],
            ["pool", "create", self.pool, "--size", "8X"], ["pool", "create", self.pool, "--size", "1"],
            ["pool", "create", self.pool, "--size", "99999999T"],
            ["pool", "create", self.pool, "--size", "8M", "--memory", "paper"],
            ["pool", "create", self.pool, "--size", "8M", "--slab-size", "5000"],
            ["pool", "info"], ["pool", "recover", self.pool, "--strategy", "luck"],
            ["bench", "--workload", "heap"], ["bench", "--system", "oracle"],
            ["bench", "--threads", "0"], ["bench", "--threads", "many"],
            # 4 modulo 2^64.
            ["bench", "--threads=-18446744073709551612"], ["bench", "--threads= 4"],
            ["lockbench", "--workload", "uncontended", "--held", " -18446744073709551612"],
            ["bench", "--zipf", "1"],
            ["bench", "--entries", "0"], ["bench", "--entry-size", "100"],
            ["bench", "--seconds", "-1"], ["bench", "--repeat", "0"], ["bench", "--model", "none"],
            ["bench", "--probe", "perf,oracle"], ["bench", "--memory", "automatic"], ["bench", "--durability", "maybe"],
            ["bench", "--seconds", "1", "--operations", "5"], ["bench", "--operations", "-1"],
            ["bench", "--operations", "0"], ["bench", "--seed", "-1"], ["lockbench", "--pairs", "-1"],
            ["lockbench", "--pairs", "0"], ["micro", "--open", "--open-objects", "0"],
            ["bench", "--json", "missing/x.json"], ["bench", "--json", ""], ["log", self.pool, "--limit", "-1"], ["bench", "--insert-ratio", "2"],
            ["bench", "--memory", "file", "--latency-ns", "5"], ["bench", "--memory", "file", "--line-ns", "5"],
            ["bench", "--system", "mnemosyne", "--group", "0"], ["bench", "--operations", "1" + 20 * "0"],
            ["bench", "--range-mix", "4294967297:0:0"], ["bench", "--range-mix", "1:1"],
            ["bench", "--range-mix", "1:1:1:1"], ["bench", "--range-mix", "1:-1:1"],
            ["bench", "--group", "4294967297"],
            ["bench", "--workload", "tpcc", "--warehouses", "0"],
            ["bench", "--workload", "tpcc", "--warehouses", "1001"],
            ["bench", "--workload", "bank", "--system", "nvm-ideal"],
            ["crash-test", "--workload", "tpcc"], ["compare", "--workload", "tpcc"],
            ["bench", "--system", "nvm-ideal", "--workload", "queue"],
            ["compare", "--system", "oracle"], ["compare", "--section", "yield"],
            ["compare", "--repeat", "0"], ["compare", "--threads", "0"], ["compare", "--seconds", "0"],
            ["micro", "--seconds", "0"], ["lockbench", "--seconds", "0"], ["bench", "--seconds", "0"],
            ["compare", "--section", "file", "--workload", "sps", "--system", "lmdb"],
            ["micro", "--repeat", "0"], ["crash-test", "--rounds", "0"],
            ["recovery-bench", "--log-bytes", "1K"], ["recovery-bench", "--threads", "0"],
            ["recovery-bench", "--strategy", "luck"], ["recovery-bench", "--writers", "0"],
            ["recovery-bench", "--checkpoint-ms", "0"], ["recovery-bench", "--repeat", "0"],
            ["lockbench", "--lock", "nope"], ["lockbench", "--workload", "W3"],
            ["lockbench", "--repeat", "0"], ["lockbench", "--threads", "0"],
            ["lockbench", "--workload", "uncontended", "--held", "70000"],
            ["lockbench", "--workload", "uncontended", "--threads", "1,2"],
            # They would wait for each other for ever: each thread holds up to 15 and wants another.
            ["lockbench", "--workload", "W2", "--slots", "16", "--threads", "2"],
            ["lockbench", "--workload", "W2", "--lock", "bare", "--buckets", "64", "--threads", "2"],
            ["lockbench", "--lock", "bare", "--buckets", "0"],
            ["lockbench", "--lock", "bare", "--buckets", "3"],
            ["crash-test", "--durability", "never"], ["crash-test", "--threads", "99"],
            ["crash-test", "--deadline", "0"], ["crash-test", "--deadline", "100000"],
            ["crash-test", "--workload", "heap"], ["crash-test", "--path", "/nowhere"],
        ):
            with self.subTest(arguments=arguments):
                self.complaint(*arguments, code=USAGE)
        self.assertFalse(os.path.exists(self.pool))

    def test_no_text_is_no_value(self):
        for command, options in (
            (["bench"], ["--pool-size", "--path", "--workload", "--range-mix"]),
            (["compare"], ["--threads", "--directory", "--section"]),
            (["lockbench"], ["--held", "--lock"]), (["crash-test"], ["--path", "--memory"]),
            (["micro"], ["--path", "--open-size"]), (["recovery-bench"], ["--checkpoint-ms", "--path"]),
            (["pool", "create", self.pool, "--size", "8M"], ["--log-size", "--segment-size", "--slab-size"]),
            (["pool", "info"], ["path"]),
        ):
            for option in options:
                with self.subTest(command=command, option=option):
                    value = [""] if option == "path" else [option, ""]
                    self.assertIn(f"{option}: wanted some text, found nothing",
                                  self.complaint(*command, *value, code=USAGE))
        self.assertFalse(os.path.exists(self.pool))

    def test_help_is_no_error(self):
        for command in ([], ["pool"], ["pool", "create"], ["log"], ["bench"], ["compare"], ["micro"],
                        ["crash-test"], ["lockbench"], ["recovery-bench"]):
            self.assertIn("--help", self.sp3(*command, "--help").stdout)
        self.assertIn("sp3", self.sp3("--version").stdout)
        self.assertNotIn("crash-victim", self.sp3("--help").stdout)

    def test_recover_says_that_a_closed_pool_is_damaged(self):
        self.sp3("crash-test", "--rounds", "1", "--seed", "3", "--workload", "rbtree", "--keep",
                 "--durability", "sync", "--path", self.directory.name)
        [name] = [f for f in os.listdir(self.directory.name) if f.endswith(".pool")]
        pool = os.path.join(self.directory.name, name)
        self.sp3("pool", "recover", pool)
        with open(pool, "rb") as file:
            sound = bytearray(file.read())
        # As docs/DATA_LAYOUT.md has it: the extents of a superblock, the records of a directory.
        (_, _, directory, _), (_, _, slabs, _) = (
            struct.unpack_from("<IIQQ", sound, 112 + 24 * extent) for extent in (1, 3))
        slab_size = struct.unpack_from("<I", sound, 108)[0]
        number, bitmap, bitmap_bytes = next(
            (n, slabs + n * slab_size, -(-slab_size // slot // 512) * 64) for n, (kind, slot, live) in
            ((n, struct.unpack_from("<Q4xII", sound, directory + 32 * n)) for n in range(1, 100))
            if kind != 0 and live != 0)
        for copies, code in (((0,), OK), ((0, 1), FOUND)):
            damaged = sound.copy()
            for copy in copies:
                damaged[bitmap + copy * bitmap_bytes] ^= 1
            with open(pool, "wb") as file:
                file.write(damaged)
            self.assertIn("1 places" if copies == (0,) else "2 places",
                          self.sp3("pool", "check", pool, code=FOUND).stdout)
            result = self.sp3("pool", "recover", pool, code=code)
            if code == FOUND:
                self.assertRegex(result.stderr, rf"^sp3: the bitmap of slab {number} .*, at byte {bitmap + bitmap_bytes}\n$")
                with open(pool, "rb") as file:
                    self.assertEqual(file.read(), damaged)

    def test_report_is_run_from_where_the_tool_is(self):
        missing = os.path.join(self.directory.name, "missing.json")
        self.assertIn("missing.json", self.sp3("report", missing, code=USAGE).stderr)

    @unittest.skipUnless(os.access("/usr/bin/python3", os.X_OK), "no interpreter of Debian's")
    def test_reports_are_drawn_by_debians_python(self):
        """Which sees Debian's matplotlib, whatever comes first in the path."""
        tools = os.path.join(self.directory.name, "bin")
        os.mkdir(tools)
        os.symlink(sys.executable, os.path.join(tools, "python3"))
        where = {"env": os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONVERBOSE": "1"}}
        said = self.sp3("report", "missing.json", code=USAGE, **where).stderr
        self.assertIn("code object from '/usr/lib/python3", said)


if __name__ == "__main__":
    main(sys.argv)
