#!/usr/bin/env python3
"""Tests of tools/report: which rows it takes, and what it computes from them.

usage: report_test.py REPORT_FOLDER
"""

import sys
import unittest

import report_rows
from report_rows import lock_row, recovery, row, some_rows


class ComputationTest(report_rows.ReadingTest):
    def test_rows_are_sorted_by_what_they_are(self):
        found = self.load(
            [
                row("sp3", "sps", 1, 10.0),
                {"lock": "grid", "workload": "W1", "threads": 1, "max_height": 8, "pairs_per_s": 5},
                {"recovery_seconds": 3, "threads": 1, "checkpoint_ms": 1000, "log_bytes": 2**30},
            ]
        )
        self.assertEqual([len(found.rows), len(found.locks), len(found.recoveries)], [1, 1, 1])

    def test_a_comparison_is_an_object_with_rows(self):
        found = self.load({"format": "sp3-compare", "rows": some_rows(), "skipped": ["x on y: z"]})
        self.assertEqual(len(found.rows), 75)
        self.assertEqual(found.skipped, ["x on y: z"])

    def test_what_is_no_result_is_refused_by_name(self):
        for content in ["{", "3", [3], [{"system": "sp3"}], [{"lock": "grid"}],
                        [{"system": "sp3", "throughput_tx_per_s": 1}]]:  # fmt: skip
            with self.assertRaisesRegex(self.results.BadInput, "results.json"):
                self.load(content)

    def test_a_durability_that_nobody_knows_is_refused(self):
        # The aims of fences are those of its kind: it ended the report with a traceback.
        for durability in ("eventual", ["sync"], None):
            with self.assertRaisesRegex(self.results.BadInput, "durability: wanted sync or async"):
                self.load([row("sp3", "sps", 1, 10.0, durability=durability)])

    def test_a_comparison_of_another_version_is_refused(self):
        for version in (2, "1", None, "\ud800"):
            with self.assertRaisesRegex(self.results.BadInput, "results.json: version: wanted 1"):
                self.load({"format": "sp3-compare", "version": version, "rows": some_rows()})
        self.load({"format": "sp3-compare", "version": 1, "rows": some_rows()})

    def test_settings_keep_apart_what_cannot_be_compared(self):
        found = self.load(
            some_rows()
            + some_rows(simulated=True)
            + some_rows(latency_model="yield", latency_ns=20000)
            + some_rows(memory="file", latency_ns=0)
            + some_rows(latency_ns=0)
            + some_rows(latency_ns=0, latency_model="line")
        )
        titles = [setting.title for setting, _ in found.settings()]
        self.assertEqual(
            titles,
            [
                "native, no added latency",  # whatever the model
                "native, +500 ns for each fence",
                "native, file memory",
                "native, yielded waits, +20 µs for each fence",
                "simulated cores, +500 ns for each fence",
            ],
        )

    def test_a_setting_says_what_its_commits_wait_for(self):
        for memory, durability, waits in (
            ("dax", "sync", "commits wait for persistent memory."),
            ("file", "sync", "commits wait for the disk."),
            ("file", "async", "groups of commits wait for the disk, most commits for nothing."),
        ):
            rows = self.load([row("sp3", "bptree", 1, 10.0, memory=memory, durability=durability, latency_ns=0)])
            with self.subTest(memory=memory, durability=durability):
                [(setting, _)] = rows.settings()
                self.assertEqual(setting.explanation, f"Native: real threads; {waits}")

    def titles(self, rows):
        found = self.load(rows).settings()
        self.assertEqual(sum(len(rows) for _, rows in found), len(rows))
        self.assertEqual(len({setting.slug for setting, _ in found}), len(found))
        return [setting.title for setting, _ in found]

    def test_a_title_tells_what_is_not_the_default_or_differs(self):
        machine = {"cpu": "A CPU", "cores": 2, "kernel": "7"}
        for other, plain, changed in (
            ({"latency_line_ns": 2000}, "", ", +2 µs for each line at a fence"),
            ({"checkpoint_threads": 2}, ", checkpoint threads by default", ", checkpoint threads 2"),
            ({"warmup_seconds": 0}, ", warmed up by operations", ", 0 s to warm up"),
            ({"locks": "encounter"}, ", locks at commit", ", locks at encounter"),
            ({"group": 64}, ", groups of 32", ", groups of 64"),
            ({"checkpoint_ms": 0}, ", checkpoints every 1 s", ", no checkpoints by time"),
            ({"flush": "clflush"}, ", flush clwb", ", flush clflush"),
            ({"commit": "def"}, ", commit abc<1>", ", commit def"),
            ({"machine": machine}, ", kernel 6", ", kernel 7"),
            ({"entries": 20000}, ", 100,000 entries", ", 20,000 entries"),
            ({"insert_ratio": 0.125}, ", 50 % inserts", ", 12.5 % inserts"),
            ({"pool_size": 2**30}, ", pool of ?", ", pool of 1024 MiB"),
            ({"file_system": "ext4 on /dev/vda1"}, ", on ?", ", on ext4 on /dev/vda1"),
        ):
            with self.subTest(other=other):
                base = "native, +500 ns for each fence"
                titles = self.titles(some_rows() + some_rows(**other))
                self.assertEqual(set(titles), {base + plain, base + changed})
        self.assertEqual(self.titles(some_rows(locks="encounter")),
                         ["native, +500 ns for each fence, locks at encounter"])  # fmt: skip

    def test_a_title_tells_nothing_that_only_another_environment_has(self):
        self.assertEqual(self.titles(some_rows() + some_rows(simulated=True, flush="none")),
                         ["native, +500 ns for each fence",
                          "simulated cores, +500 ns for each fence"])  # fmt: skip

    def test_ranges_are_a_setting_of_their_own(self):
        small = {"range_least": 64, "range_most": 128, "range_mix": [1, 1, 0]}
        large = small | {"range_most": 4096}
        rows = [row("sp3", "sps", 1, 10.0), row("sp3", "ranges", 1, 10.0, **small),
                row("sp3", "ranges", 1, 10.0, **large)]  # fmt: skip
        base = "native, +500 ns for each fence"
        self.assertEqual(set(self.titles(rows[:2])), {base, base + ", ranges"})
        self.assertEqual(set(self.titles(rows)), {base, base + ", ranges, range most 128",
                                                  base + ", ranges, range most 4096"})  # fmt: skip

    def test_bank_and_tpcc_are_settings_of_their_own(self):
        rows = [row("sp3", "sps", 1, 10.0), row("sp3", "bank", 1, 10.0),
                row("sp3", "tpcc", 1, 10.0, warehouses=1, new_orders_per_s=4.5)]  # fmt: skip
        base = "native, +500 ns for each fence"
        self.assertEqual(set(self.titles(rows)), {base, base + ", bank", base + ", tpcc"})
        rows.append(row("sp3", "tpcc", 1, 10.0, warehouses=8))
        self.assertEqual(set(self.titles(rows)), {base, base + ", bank",
                                                  base + ", tpcc, warehouses 1",
                                                  base + ", tpcc, warehouses 8"})  # fmt: skip

    def test_each_mix_is_a_setting_of_its_own(self):
        rows = [row("sp3", "bptree", 1, 10.0), row("sp3", "bptree", 1, 10.0, mix="ycsb-a"),
                row("sp3", "hashtable", 1, 10.0, mix="ycsb-a"),
                row("sp3", "bptree", 1, 10.0, mix="ycsb-e")]  # fmt: skip
        base = "native, +500 ns for each fence"
        self.assertEqual(set(self.titles(rows)), {base, base + ", ycsb-a", base + ", ycsb-e"})

    def test_the_paper_is_quoted_beside_its_own_mix_only(self):
        import tables

        for mix, quoted in (("paper", True), ("ycsb-a", False)):
            ((setting, rows),) = self.load(some_rows(mix=mix)).settings()
            for table in (tables.comparison(setting, rows), tables.scaling(setting, rows)):
                said = any(" to " in cell for line in table.rows for cell in line)
                self.assertEqual(said, quoted, table.title)

    def test_cells_with_several_rows_are_named(self):
        rows = [row("sp3", "sps", 1, 10.0), row("sp3", "sps", 2, 10.0), row("sp3", "sps", 1, 20.0)]
        self.assertEqual(self.results.measured_twice(rows[:2]), [])
        said = self.results.measured_twice(rows)
        self.assertIn("sp3 on sps ×1 (2 rows)", said[0])
        self.assertNotIn("×2", said[0])

    def test_recoveries_of_different_things_are_not_joined(self):
        import groups

        self.assertEqual([d for d, _, _ in groups.recoveries([recovery(1, 1.0)])], [[]])
        for other, plain, changed in (
            ({"workload": "rbtree"}, "SPS", "Red-black tree"),
            ({"memory": "file"}, "emulated memory", "file memory"),
            ({"latency_ns": 0}, "+500 ns", "+0 ns"),
            ({"entries": 20000}, "1,000 entries", "20,000 entries"),
            ({"commit": "def"}, "commit abc", "commit def"),
            ({"machine": {"cpu": "A CPU", "kernel": "7"}}, "kernel 6", "kernel 7"),
            ({"group": None}, "group ?", "group ?"),
        ):
            with self.subTest(other=other):
                rows = [recovery(1, 1.0, group=32), recovery(1, 2.0, **other)]
                found = groups.recoveries(rows)
                self.assertEqual([len(alike) for _, alike, _ in found], [1, 1])
                if "group" not in other:
                    self.assertIn(plain, found[0][0])
                self.assertIn(changed, found[1][0])

    def test_logs_of_about_the_same_size_are_different_logs(self):
        import groups

        rows = [recovery(1, 1.0, log_limit_bytes=size) for size in (1000 * 2**20, 1003 * 2**20)]
        rows += [recovery(1, 1.0, checkpoint_ms=5000, log_limit_bytes=size << 30) for size in (4, 8)]
        rows += [recovery(1, 1.0, checkpoint_ms=1000)]
        names = list(groups.log_names(rows).values())
        self.assertEqual(names, ["0.977 GiB of log", "0.979 GiB of log", "checkpoint every 1 s",
                                 "checkpoint every 5 s, at most 4 GiB of log",
                                 "checkpoint every 5 s, at most 8 GiB of log"])  # fmt: skip

    def test_recoveries_of_other_ranges_stand_apart(self):
        import groups

        for name, one, other in (("range_most", 256, 4096), ("range_mix", [1, 1, 0], [39, 9, 1])):
            rows = [recovery(1, 1.0), recovery(1, 2.0, workload="ranges", **{name: one}),
                    recovery(1, 3.0, workload="ranges", **{name: other})]  # fmt: skip
            found = groups.recoveries(self.load(rows).recoveries)
            said = name.replace("_", " ")
            self.assertEqual([details for details, _, _ in found],
                             [["SPS"], ["Ranges", f"{said} {one}"], ["Ranges", f"{said} {other}"]])  # fmt: skip

    def test_recoveries_of_other_mixes_tell_their_shares(self):
        import groups

        for member, one, other, told in (("insert_ratio", 0.5, 0.125, ["50 % inserts", "12.5 % inserts"]),
                                         ("fill", 1.0, 0.25, ["filled to 100 %", "filled to 25 %"])):
            rows = self.load([recovery(1, 1.0, **{member: one}), recovery(1, 2.0, **{member: other})])
            found = groups.recoveries(rows.recoveries)
            self.assertEqual([details for details, _, _ in found], [[words] for words in told])

    def test_how_far_apart_cores_were_is_told_of_several_threads(self):
        import groups

        def said(*transfers):
            return self.results.distances([row("sp3", "sps", 2, 1.0, line_transfers_ns=each)
                                           for each in transfers])  # fmt: skip

        self.assertEqual(said([None, None]), [])
        self.assertEqual(self.results.distances([row("sp3", "sps", 1, 1.0)]), [])
        self.assertEqual(said([24.6, None], [31.0]),
                         ["A cache line took 25 to 31 ns from core to core where several threads ran."])
        self.assertIn("25 to 204 ns from core to core where several threads ran: the cores moved",
                      said([24.6, 31.0], [203.9])[0])
        self.assertTrue(said([20.0], [60.0])[0].endswith("where several threads ran."))
        self.assertIn("the cores moved", said([20.0], [60.5])[0])
        grid = [lock_row("grid", "W1", threads, line_transfers_ns=each)
                for threads, each in ((1, [None]), (2, [20.0, 200.0]))]  # fmt: skip
        self.assertIn("20 to 200 ns", groups.locks(grid)[0][2][0])

    def test_of_recoveries_measured_twice_the_last_counts(self):
        import groups

        rows = [recovery(1, 1.0), recovery(2, 0.5), recovery(1, 3.0), recovery(1, 4.0, strategy="dag")]
        ((_, kept, said),) = groups.recoveries(rows)
        self.assertEqual([row["recovery_seconds"] for row in kept], [3.0, 0.5, 4.0])
        self.assertIn("1 GiB of log, stamp ×1 (2 rows)", said[0])
        self.assertNotIn("×2", said[0])
        self.assertEqual(groups.recoveries(rows[:2])[0][2], [])

    def test_locks_of_different_things_are_not_joined(self):
        import groups

        other = {"cpu": "A CPU", "kernel": "7"}
        rows = [lock_row("grid", "W1", 1), lock_row("grid", "W1", 1, machine=other),
                lock_row("grid", "W1", 1), lock_row("grid", "W1", 2)]  # fmt: skip
        found = groups.locks(rows)
        self.assertEqual([(details, len(alike)) for details, alike, _ in found],
                         [(["kernel 6"], 2), (["kernel 7"], 1)])  # fmt: skip
        self.assertIn("grid on W1 ×1 (2 rows)", found[0][2][0])

    def test_of_machines_of_one_name_the_flags_that_differ_are_told(self):
        import groups

        machines = [{"cpu": cpu, "flags": ["clflush", *flags]} for cpu, flags in
                    (("A", ["clwb"]), ("A", []), ("B", ["avx512f"]))]  # fmt: skip
        titles = self.titles([each for machine in machines for each in some_rows(machine=machine)])
        base = "native, +500 ns for each fence, cpu "
        self.assertEqual(set(titles), {base + "A, with clwb", base + "A, without clwb", base + "B"})
        found = groups.locks([lock_row("grid", "W1", 1, machine=machine) for machine in machines])
        self.assertEqual([details for details, _, _ in found],
                         [["cpu A", "with clwb"], ["cpu A", "without clwb"], ["cpu B"]])  # fmt: skip

    def test_numbers_are_written_out(self):
        from digits import number

        for value, digits, text in ((918191.4, 3, "918191"), (11204.6, 4, "11205"), (999.7, 3, "1000"),
                                    (9999.7, 4, "10000"), (1.375, 3, "1.38"), (128, 2, "128"),
                                    (0.25, 3, "0.25"), (0.00001234, 3, "0.0000123"), (0, 3, "0"),
                                    (2**21, 6, "2097152")):  # fmt: skip
            self.assertEqual(number(value, digits), text)

    def test_what_nothing_can_be_drawn_of_is_named(self):
        most = 10**400
        for member, value in (
            ("throughput_tx_per_s", most), ("entries", most), ("threads", 2**70), ("zipf", 1e308),
            ("system", "a\ud800"), ("workload", "\udfff"), ("system", "x" * 5000),
            ("machine", {"cpu": ["A"]}), ("machine", {"cpu": {"a": 1}}), ("pool_size", -1),
            ("machine", {"flags": 5}), ("machine", {"flags": "clwb"}), ("machine", {"flags": [5]}),
            ("machine", {"cpu": "\ud800"}), ("file_system", 3), ("mix", 1), ("probes", "none"),
            ("cpu_ns_per_tx", -1),
        ):  # fmt: skip
            with self.subTest(member=member, value=str(value)[:20].encode("ascii", "replace")):
                with self.assertRaisesRegex(self.results.BadInput, f"row 0: {member}") as caught:
                    self.load([row("sp3", "sps", 1, 10.0) | {member: value}])
                self.assertLess(len(str(caught.exception)), 400)
        for name in ("slots", "buckets", "held"):
            with self.assertRaisesRegex(self.results.BadInput, name):
                self.load([lock_row("grid", "W1", 1, **{name: "8"})])
        with self.assertRaisesRegex(self.results.BadInput, "skipped"):
            self.load({"rows": [], "skipped": ["\ud800"]})
        for flags in (["clwb"], [], None):
            self.load([row("sp3", "sps", 1, 10.0, machine={"flags": flags, "cpu": None})])

    def test_a_member_of_another_type_is_named(self):
        for member, value in (("threads", "2"), ("threads", 0), ("threads", True), ("spread", None),
                              ("throughput_tx_per_s", None), ("throughput_tx_per_s", -1),
                              ("zipf", float("nan")), ("latency_p50_ns", "700"), ("system", 3),
                              ("latency_model", "none"), ("machine", "A CPU"), ("flush", 1),
                              ("warmup_seconds", []), ("checkpoint_threads", [])):  # fmt: skip
            with self.subTest(member=member, value=value):
                with self.assertRaisesRegex(self.results.BadInput, f"row 1: .*{member}"):
                    self.load([row("sp3", "sps", 1, 10.0), row("sp3", "sps", 1, 10.0)
                               | {member: value}])  # fmt: skip
        for member, value in (("checkpoint_threads", []), ("range_lock", []), ("range_mix", 1),
                              ("range_mix", [[]]), ("range_most", {}), ("range_zipf", "0"),
                              ("warehouses", [])):  # fmt: skip
            with self.subTest(member=member, value=value):
                with self.assertRaisesRegex(self.results.BadInput, f"row 0: {member}"):
                    self.load([recovery(1, 1.0, **{member: value})])
        without = row("sp3", "sps", 1, 10.0)
        del without["spread"]
        with self.assertRaisesRegex(self.results.BadInput, "row 0: without spread"):
            self.load([without])
        with self.assertRaisesRegex(self.results.BadInput, "skipped"):
            self.load({"rows": some_rows(), "skipped": [3]})
        self.assertEqual(self.load({"rows": some_rows(), "skipped": None}).skipped, [])

    def test_ratios_and_their_mean_are_those_of_the_throughputs(self):
        rows = [row("sp3", "sps", 1, 80.0), row("pmdk", "sps", 1, 10.0),
                row("sp3", "queue", 1, 20.0), row("pmdk", "queue", 1, 10.0),
                row("sp3", "rbtree", 1, 20.0)]  # fmt: skip
        ratios = self.results.ratios(rows, "sp3", "pmdk", 1)
        self.assertEqual(ratios, {"sps": 8.0, "queue": 2.0})
        self.assertAlmostEqual(self.results.geometric_mean(ratios.values()), 4.0)
        self.assertIsNone(self.results.geometric_mean([]))
        self.assertEqual(self.results.geometric_mean([0.0, 4.0]), 0.0)

    def test_the_papers_numbers_stand_only_where_it_states_them(self):
        import tables

        found = self.load(some_rows())
        setting, rows = found.settings()[0]
        lines = {(line[0], line[1]): line for line in tables.comparison(setting, rows).rows}
        self.assertEqual(lines["16", "pmdk"][2:9], ["4.00 ×"] * 7)
        self.assertEqual(lines["16", "pmdk"][9:], ["0.79 to 51.50 ×", "17.23 ×"])
        self.assertEqual(lines["1", "mnemosyne"][9:], ["0.88 to 3.20 ×", "1.96 ×"])
        self.assertEqual(lines["4", "pmdk"][8:], ["4.00 ×", "–", "–"])
        self.assertEqual(lines["16", "nvm-tx"][8:], ["1.33 ×", "–", "–"])
        scaling = {line[0]: line for line in tables.scaling(setting, rows).rows}
        self.assertEqual(scaling["sp3"][6:], ["4.00 ×", "4.00 ×", "0.61 to 13.23 ×", "10.11 ×"])
        self.assertEqual(scaling["dram-tx"][8:], ["–", "–"])

    def test_the_papers_average_stands_beside_the_same_mean_of_the_same_workloads(self):
        import tables

        throughputs = dict(zip(["sps", "queue", "hashtable", "rbtree", "bptree"], (1, 2, 4, 8, 16)))
        rows = [row("sp3", workload, 16, 10.0 * times) for workload, times in throughputs.items()]
        rows += [row("pmdk", workload, 16, 10.0) for workload in throughputs]
        for kept, means in ((rows, ["4.00 ×", "6.20 ×", "0.79 to 51.50 ×", "17.23 ×"]),
                            (rows[:-1], ["2.83 ×"])):  # fmt: skip
            ((setting, found),) = self.load(kept).settings()
            table = tables.comparison(setting, found)
            self.assertEqual(table.rows[0][-len(means):], means)
            self.assertEqual(len(table.head), len(table.rows[0]))
            self.assertEqual(table.note != "", len(means) > 1)

    def test_nothing_of_the_paper_stands_beside_files(self):
        import tables

        ((setting, rows),) = self.load(some_rows(memory="file", latency_ns=0)).settings()
        table = tables.comparison(setting, rows)
        self.assertEqual((table.head[-1], table.note), ("geometric mean", ""))
        self.assertEqual(tables.scaling(setting, rows).head[-1], "geometric mean")


if __name__ == "__main__":
    report_rows.REPORT = sys.argv.pop(1)
    unittest.main(verbosity=1)
