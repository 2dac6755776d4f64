#!/usr/bin/env python3
"""Tests of sp3 recovery-bench from outside.

usage: recovery_bench_test.py SP3
"""

import json
import os
import sys

from command_line import ERROR, CommandTest, main


class RecoveryBenchTest(CommandTest):
    def test_recovery_of_a_log_that_stops_growing_is_an_error(self):
        command = ("recovery-bench", "--workload", "queue", "--insert-ratio", "0", "--entries", "2000",
                   "--log-bytes", "8M", "--repeat", "1", "--threads", "1")
        said = self.complaint(*command, code=ERROR)
        self.assertRegex(said, r"transactions of this workload wrote nothing to the log, which has \d+ bytes$")
        # Where time ends it, it may.
        self.sp3(*command, "--checkpoint-ms", "300")

    def test_recovery_of_a_log_that_nobody_writes_is_an_error(self):
        for more in ([], ["--checkpoint-ms", "20"]):
            result = self.sp3("recovery-bench", "--workload", "hashtable", "--insert-ratio", "0", "--entries", "100",
                              "--log-bytes", "1M", "--repeat", "1", *more, code=ERROR)
            self.assertIn("wrote nothing to the log", result.stderr)

    def test_a_log_that_fails_takes_no_other_with_it(self):
        result = self.sp3("recovery-bench", "--log-bytes", "1M,900T", "--threads", "1", "--strategy",
                          "stamp", "--entries", "100", "--repeat", "1", "--json", "rows.json",
                          code=ERROR)
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            self.assertEqual([row["log_limit_bytes"] for row in json.load(file)], [1 << 20])
        self.assertIn("failed: sps, 900 TiB of log: there is no room for the pool: ", result.stdout)
        self.assertRegex(result.stderr, "^sp3: 1 of 2 could not be measured: .*\n$")

    def test_recovery_bench_recovers_one_log_in_every_way(self):
        fields = {"strategy": str, "threads": int, "writers": int, "checkpoint_ms": int,
                  "recovery_seconds": float, "log_bytes": int, "records": int, "replayed": int,
                  "dropped": int, "memory_peak_bytes": int, "cpu_seconds": float, "spread": float,
                  "memory": str, "workload": str, "seed": int, "commit": str, "machine": dict}
        rows = json.loads(self.sp3(
            "recovery-bench", "--log-bytes", "1M", "--threads", "1,3", "--workload", "sps,hashtable",
            "--entries", "500", "--repeat", "1", "--writers", "3", "--path", "crashed.pool", "--json",
            "-").stdout)
        self.assertEqual(len(rows), 2 * 2 * 2)
        for row in rows:
            for field, kind in fields.items():
                self.assertIs(type(row[field]), kind, field)
            phases = sum(row[phase + "_seconds"]
                         for phase in ("scan", "cut", "order", "replay", "flush"))
            self.assertGreater(phases, 0)
            self.assertLessEqual(phases, row["recovery_seconds"])
            self.assertEqual(row["recoveries"], [row["recovery_seconds"]])
            self.assertEqual(row["records"], row["replayed"] + row["dropped"])
            self.assertGreaterEqual(row["log_bytes"], row["log_limit_bytes"])
            self.assertEqual(row["checkpoint_ms"], 0)
        self.assertEqual(len({(row["workload"], row["strategy"], row["threads"]) for row in rows}),
                         len(rows))
        # Whatever recovers it, a log holds the same transactions.
        self.assertEqual(len({(row["workload"], row["records"]) for row in rows}), 2)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_recovery_bench_writes_for_as_long_as_a_checkpoint_takes_to_come(self):
        result = self.sp3("recovery-bench", "--log-bytes", "64M", "--checkpoint-ms", "20,40",
                          "--threads", "1", "--strategy", "stamp", "--entries", "500",
                          "--latency-ns", "2000", "--repeat", "1", "--memory", "emulated",
                          "--json", "rows.json")
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([row["checkpoint_ms"] for row in rows], [20, 40])
        for row in rows:
            self.assertGreaterEqual(row["write_seconds"] * 1000, row["checkpoint_ms"])
            self.assertGreater(row["replayed"], 0)
        self.assertEqual(result.stdout.count("checkpoints every"), 2)

    def test_recovery_bench_says_what_ran_before_the_crash(self):
        command = ("recovery-bench", "--log-bytes", "1M", "--entries", "300", "--repeat", "1",
                   "--threads", "1", "--strategy", "stamp", "--workload")
        ranges = json.loads(self.sp3(*command, "ranges", "--range-most", "4096", "--range-lock", "grid",
                                     "--json", "-").stdout)
        self.assertEqual([(row["range_most"], row["range_lock"]) for row in ranges], [(4096, "grid")])
        tpcc = self.sp3(*command, "tpcc", "--json", "rows.json").stdout
        self.assertIn("tpcc, warehouses: 1, 50 % new-orders; emulated memory", tpcc)
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            self.assertEqual([row["warehouses"] for row in json.load(file)], [1])

    def test_recovery_bench_has_room_for_large_records(self):
        for workload in (["ranges"], ["ranges", "--writers", "8", "--range-zipf", "0"],
                         ["hashtable", "--entry-size", "4096", "--insert-ratio", "1", "--writers", "8"]):
            with self.subTest(workload=workload):
                self.sp3("recovery-bench", "--log-bytes", "1M,16M", "--repeat", "1", "--threads", "2", "--strategy",
                         "stamp", "--entries", "40000", "--workload", *workload)

    def test_recovery_bench_prints_what_its_rows_hold(self):
        shown = self.sp3("recovery-bench", "--log-bytes", "16M", "--threads", "1", "--writers", "1", "--entries", "500",
                         "--repeat", "3", "--json", "rows.json").stdout
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            rows = json.load(file)
        told = [line.split() for line in shown.splitlines() if line.startswith("sps  ")]
        self.assertEqual(len(told), len(rows))
        for row, columns in zip(rows, told):
            # One session depends on no other.
            self.assertEqual((row["dependencies"], row["sessions"]), (0, 1))
            self.assertGreater(row["bytes_replayed"], 0)
            self.assertLess(row["bytes_replayed"], row["log_bytes"])
            self.assertAlmostEqual(row["bytes_per_s"] * row["recovery_seconds"] / row["log_bytes"], 1)
            self.assertLess(row["cpu_seconds"], 2 * row["recovery_seconds"] + 0.1)
            times = row["recoveries"]
            self.assertEqual(row["recovery_seconds"], sorted(times)[1])
            self.assertAlmostEqual(row["spread"], (max(times) - min(times)) / row["recovery_seconds"])
            self.assertEqual(columns[3:16], [
                str(row["replayed"]), row["strategy"], "1", f"{row['recovery_seconds']:.3f}", f"{100 * row['spread']:.1f}%",
                *(f"{row[phase + '_seconds']:.3f}" for phase in ("scan", "cut", "order", "replay", "flush", "cpu")),
                f"{row['bytes_per_s'] / 1e9:.2f}", *columns[15:16]])

    def test_recovery_bench_measures_files(self):
        rows = json.loads(self.sp3("recovery-bench", "--log-bytes", "1M", "--memory", "file", "--entries",
                                   "100", "--repeat", "1", "--threads", "2", "--json", "-").stdout)
        self.assertEqual([(row["memory"], row["strategy"]) for row in rows],
                         [("file", "stamp"), ("file", "dag")])
        for row in rows:
            self.assertGreater(row["replayed"], 0)
            self.assertIn(" on ", row["file_system"])
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_recovery_bench_says_when_there_is_no_room(self):
        said = self.complaint("recovery-bench", "--log-bytes", "4000T", code=ERROR)
        self.assertIn("no room", said)
        self.assertIn("wanted", said)
        self.assertIn("found", said)


if __name__ == "__main__":
    main(sys.argv)
