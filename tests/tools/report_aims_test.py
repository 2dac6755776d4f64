#!/usr/bin/env python3
"""Tests of the aims in tools/report: what is wanted, reached and bounds it, by the rows there are.

usage: report_aims_test.py REPORT_FOLDER
"""

import pathlib
import re
import sys
import unittest

import report_rows
from report_rows import lock_row, recovery, row, some_rows


class AimsTest(report_rows.ReadingTest):
    def aims(self, rows):
        """{what: the other cells} of the tables of aims of all settings."""
        import aims

        found = {}
        for setting, rows in self.load(rows).settings():
            table = aims.transactions(setting, rows)
            found |= {line[0]: line[1:] for line in (table.rows if table else [])}
        return found

    def test_aims_stand_beside_what_was_reached_and_could_be(self):
        half = {"flush_cost_ns": 500.0, "commits": 10, "writing_commits": 5}
        found = self.aims([
            row("sp3", "hashtable", 2, 3e6, **half), row("quadra", "hashtable", 2, 2e6, **half),
            row("sp3-async", "hashtable", 2, 6e6, **half, fences_per_tx=0.06, durability="async"),
            row("dram-tx", "hashtable", 2, 8e6, **half), row("pmdk", "hashtable", 2, 1e6, **half),
        ])  # fmt: skip
        # Without a log each thread takes 250 ns, and 250 for every other fence: 4 million.
        self.assertEqual(found["Hash table, ×2: sp3 over quadra"], ["at least 2", "1.500", "2.00", "no"])
        self.assertEqual(found["Hash table, ×2: sp3 over pmdk"], ["at least 3", "3.000", "4.00", "yes"])
        self.assertEqual(found["Hash table, ×2: sp3-async over sp3"],
                         ["at least 2.5", "2.000", "2.67", "no"])  # fmt: skip
        self.assertEqual(found["sp3: fences of a writing transaction"], ["at most 1", "1.000", "–", "yes"])
        self.assertEqual(found["sp3-async: fences of a writing transaction"],
                         ["at most 0.05", "0.060", "–", "no"])  # fmt: skip

    def test_aims_depend_on_threads_and_latency(self):
        for latency, threads, wanted in ((0, 1, "1.1"), (0, 2, "1.8"), (500, 2, "2")):
            rows = [row(system, "sps", threads, 1e6, latency_ns=latency) for system in ("sp3", "quadra")]
            with self.subTest(latency=latency, threads=threads):
                found = self.aims(rows)[f"SPS, ×{threads}: sp3 over quadra"]
                self.assertEqual(found, [f"at least {wanted}", "1.000", "–", "no"])
        for other in ({"latency_model": "line"}, {"threads": 4}, {"mix": "A"}, {"memory": "dax"},
                      {"entry_size": 64}, {"zipf": 0.5}, {"locks": "encounter"}, {"group": 4},
                      {"entries": 1000}, {"fill": 0.5}, {"durability": "async"}):  # fmt: skip
            rows = [row(system, "sps", 2, 1e6) | other for system in ("sp3", "quadra")]
            with self.subTest(other=other):
                self.assertFalse(any("quadra" in what for what in self.aims(rows)))

    def test_groups_are_set_beside_single_commits_with_500_ns_alone(self):
        for latency in (0, 200, 500):
            rows = [row("sp3", "sps", 1, 1e6, latency_ns=latency),
                    row("sp3-async", "sps", 1, 2e6, latency_ns=latency, durability="async")]  # fmt: skip
            with self.subTest(latency=latency):
                self.assertEqual("SPS, ×1: sp3-async over sp3" in self.aims(rows), latency == 500)

    def test_the_aims_over_the_published_figures_are_those_of_the_document(self):
        import aims

        text = (pathlib.Path(report_rows.REPORT).parents[1] / "docs/PERFORMANCE.md").read_text("utf-8")
        table = re.findall(r"^\| (\d) / \+?(\d+)(?: ns)? \| ([\d. |]+) \|$", text.partition("## Targets")[2],
                           re.MULTILINE)[:3]  # fmt: skip
        told = {(int(threads), int(latency)): dict(zip(self.results.WORKLOADS, map(float, cells.split(" | "))))
                for threads, latency, cells in table}  # fmt: skip
        self.assertEqual(aims.OVER_PUBLISHED, told)

    def test_aims_of_stores_are_over_the_best_of_them(self):
        stores = {"lmdb": 2e4, "rocksdb": 4e4, "sqlite": 1e4}
        rows = [row(store, "bptree", threads, value, memory="file")
                for store, value in stores.items() for threads in (1, 2, 16)]  # fmt: skip
        rows += [row("sp3", "bptree", threads, 4e4, memory="file") for threads in (1, 2, 16)]
        self.assertEqual(
            {what: line for what, line in self.aims(rows).items() if " over " in what},
            {"B+ tree, ×1: sp3 over rocksdb": ["at least 0.95", "1.000", "–", "yes"],
             "B+ tree, ×2: sp3 over rocksdb": ["at least 1.3", "1.000", "–", "no"],
             "B+ tree, ×16: sp3 over rocksdb": ["at least 1", "1.000", "–", "yes"]},
        )  # fmt: skip
        in_groups = [each | {"durability": "async"} for each in rows if each["threads"] == 2]
        for system in ("sp3", "sp3-async"):  # as sp3 compare and as sp3 bench call it
            in_groups[-1]["system"] = system
            found = self.aims(in_groups)
            self.assertEqual(found[f"B+ tree, ×2: {system} over lmdb"], ["at least 1.5", "2.000", "–", "yes"])
            self.assertEqual(found[f"B+ tree, ×2: {system} over rocksdb"], ["at least 5", "1.000", "–", "no"])

    def test_aims_over_conservative_are_for_two_threads_and_500_ns_a_line(self):
        queue = "Queue, ×2: sp3 over nvm-tx"
        aborts = "aborts on SPS, ×2: sp3 over nvm-tx"

        def rows(line, theirs=0.2):
            return [row(system, workload, 2, value, abort_ratio=ratio, **line)
                    for system, value, ratio in (("sp3", 3e6, 0.01), ("nvm-tx", 2e6, theirs))
                    for workload in ("sps", "queue")]  # fmt: skip

        for simulated in (False, True):
            found = self.aims(rows({"latency_model": "line", "simulated": simulated}))
            self.assertEqual(found[queue], ["at least 1.5", "1.500", "–", "yes"])
            self.assertEqual(found[aborts], ["at most 0.1", "0.050", "–", "yes"])
        self.assertNotIn(aborts, self.aims(rows({"latency_model": "line"}, theirs=0)))
        for other in ({}, {"latency_model": "line", "latency_ns": 100}, {"latency_model": "line", "threads": 4},
                      {"latency_model": "line", "entries": 1000}, {"memory": "file", "latency_model": "line"}):
            found = self.aims([each | other for each in rows({})])
            self.assertFalse({queue, aborts} & set(found), other)

    def test_a_durable_commit_waits_for_the_disk_once(self):
        waits = ": fences of a writing transaction, each a wait for the disk"
        rows = [row("sp3", "bptree", threads, 10.0, memory="file", fences_per_tx=fences)
                for threads, fences in ((1, 1.0), (2, 1.25))]  # fmt: skip
        self.assertEqual(self.aims(rows), {"sp3" + waits: ["at most 1", "1.250", "–", "no"]})
        rows = [each | {"durability": "async", "fences_per_tx": 0.031} for each in rows]
        self.assertEqual(self.aims(rows), {"sp3" + waits: ["at most 0.05", "0.031", "–", "yes"]})

    def test_the_papers_averages_are_aims_where_all_five_were_run(self):
        yielded = {"latency_model": "yield", "latency_ns": 20000}
        found = self.aims(some_rows(**yielded))
        self.assertEqual(found["sp3 over pmdk, ×16: mean of the five (geometric mean 4.00)"],
                         ["at least 17.233", "4.000", "–", "no"])  # fmt: skip
        for rows in (some_rows(**yielded)[3:], some_rows(latency_model="yield", latency_ns=10000),
                     some_rows(simulated=True), some_rows(simulated=True, latency_model="line", latency_ns=0),
                     some_rows(simulated=True, latency_model="line", latency_line_ns=100)):
            self.assertFalse(any("mean of the five" in what for what in self.aims(rows)))
        # dram-tx makes 3.2 million on 16 cores, each of them one in 5 µs, and in 8 with six lines.
        found = self.aims(some_rows(simulated=True, latency_model="line", commits=1, writing_commits=1))
        self.assertEqual(found["sp3 over mnemosyne, ×16: mean of the five (geometric mean 2.00)"],
                         ["at least 6.1399", "2.000", "2.50", "no"])  # fmt: skip

    def test_aims_of_locks_and_of_recovery(self):
        import aims

        pairs = {"none": 9e6, "bare": 6e6, "grid": 5.7e6, "skiplist": 4e6, "published": 1e6}
        rows = [lock_row(lock, "W1", 2, pairs_per_s=value) for lock, value in pairs.items()]
        counted = {("grid", 0): 100, ("grid", 64): 121, ("published", 0): 1000, ("skiplist", 0): 300}
        for (lock, held), value in counted.items():
            rows.append(lock_row(lock, "uncontended", 1, held=held, instructions_per_pair=value))
            del rows[-1]["pairs_per_s"]
        found = {line[0]: line[1:] for line in aims.locks(self.load(rows).locks).rows}
        self.assertEqual(found, {
            "W1, ×2: grid over bare": ["at least 0.95", "0.950", "1.50", "yes"],
            "W1, ×2: skiplist over published": ["at least 4", "4.000", "9.00", "yes"],
            "instructions, 0 held: grid over published": ["at most 0.1", "0.100", "–", "yes"],
            "instructions, 0 held: skiplist over published": ["at most 0.25", "0.300", "–", "no"],
            "instructions of grid: as many held as buckets over 0 held":
                ["at most 1.15", "1.210", "–", "no"],
        })  # fmt: skip
        rows = [lock_row(lock, "W1", 2, pairs_per_s=value, slots=slots)
                for slots in (64, 1024) for lock, value in (("grid", 3e6), ("bare", 2e6))]  # fmt: skip
        self.assertEqual([line[0] for line in aims.locks(self.load(rows).locks).rows],
                         ["W1, ×2: grid over bare, slots 64", "W1, ×2: grid over bare, slots 1024"])  # fmt: skip
        rows = [recovery(2, 12.0, log_bytes=12 * 2**30, log_limit_bytes=12 * 2**30), recovery(1, 1.0)]
        self.assertEqual(aims.recoveries(self.load(rows).recoveries).rows,
                         [["12 GiB of log, stamp, ×2: seconds for 10 GiB", "at most 10", "10.000", "–", "yes"]])  # fmt: skip
        self.assertIsNone(aims.recoveries(self.load([recovery(1, 1.0)]).recoveries))

    def test_a_bound_that_rows_do_not_tell_is_none(self):
        full = {"flush_cost_ns": 500.0, "commits": 10, "writing_commits": 5}
        for name, value in (("commits", None), ("commits", 0), ("writing_commits", None)):
            rows = [row(system, "sps", 2, 1e6, **full | {name: value})
                    for system in ("sp3", "quadra", "dram-tx")]  # fmt: skip
            with self.subTest(name=name, value=value):
                self.assertEqual(self.aims(rows)["SPS, ×2: sp3 over quadra"], ["at least 2", "1.000", "–", "no"])
        for name in full:
            with self.assertRaisesRegex(self.results.BadInput, f"results.json: row 0: {name}"):
                self.load([row("sp3", "sps", 1, 10.0, **{name: "much"})])


if __name__ == "__main__":
    report_rows.REPORT = sys.argv.pop(1)
    unittest.main(verbosity=1)
