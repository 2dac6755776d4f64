#!/usr/bin/env python3
"""Tests of what reads JSON: documents as somebody may have changed them are taken, or refused by one
line that names the file.

usage: changed_json_test.py SP3 REPORT_FOLDER
"""

import json
import os
import sys

import report_rows
from command_line import CommandTest, main
from json_mutations import mutations
from report_rows import lock_row, recovery, row


class ChangedJsonTest(CommandTest):
    def test_results_of_a_comparison(self):
        command = ("compare", "--results", "results.json", "--section", "emulated", "--system",
                   "sp3,nvm-tx", "--workload", "sps", "--threads", "1", "--operations", "50",
                   "--entries", "100", "--repeat", "2")  # fmt: skip
        self.sp3(*command)
        with open(os.path.join(self.directory.name, "results.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assert_taken_or_refused(found, 25, "results.json", *command)


class ChangedRowsTest(report_rows.ReadingTest):
    DOCUMENT = {
        "format": "sp3-compare", "version": 1, "skipped": ["x on y: z"],
        "rows": [
            row("sp3", "sps", 1, 1e5, probes={"cycles": "x"}, instructions_per_tx=5.0,
                line_transfers_ns=[20.0, None, 90.5], pool_size=2**30, group=32, warmup_seconds=1.5),
            row("sp3", "sps", 4, 2e5), row("nvm-tx", "sps", 1, 5e4), row("sp3", "queue", 4, 3e5),
            row("sp3", "tpcc", 1, 10.0, warehouses=1), row("sp3", "hashtable", 1, 1.0, mix="ycsb-a"),
            recovery(1, 3.0), recovery(2, 2.0, strategy="dag", range_mix=[1, 1, 0], replayed=0),
            lock_row("grid", "W1", 1), lock_row("grid", "W1", 4, held=5, fairness=0.5),
            lock_row("list", "W2", 4, instructions_per_pair=5.0),
            {"native_mean_ns": 5.0, "simulated_mean_ns": 6.0, "ratio": 1.2, "workload": "sps",
             "system": "sp3", "cores": 2},
            {"factor": 2, "gain": 1.5, "speedup": 2.5, "same_order": True, "cores": [1, 4],
             "systems": ["sp3", "nvm-tx"], "workload": "sps", "cost": "fence"},
        ],
    }  # fmt: skip

    def listed(self, found):
        """All that a report says of the rows but in pictures."""
        import aims
        import groups
        import tables

        for setting, rows in found.settings():
            yield from self.results.distances(rows) + self.results.measured_twice(rows)
            yield from (aims.transactions(setting, rows), tables.comparison(setting, rows),
                        tables.scaling(setting, rows), tables.counts(setting, rows),
                        tables.probes(setting, rows))  # fmt: skip
        for _, rows, _ in groups.recoveries(found.recoveries):
            yield from (aims.recoveries(rows), tables.recoveries(rows))
        for _, rows, _ in groups.locks(found.locks):
            yield from (aims.locks(rows), tables.lock_counts(rows), tables.lock_runs(rows))
        yield from (tables.validation(found.validations), tables.sensitivity(found.sensitivities),
                    tables.machines(found))  # fmt: skip

    def test_rows_of_a_report(self):
        path = os.path.join(self.directory.name, "results.json")
        taken = 0
        for number, text in enumerate(mutations(self.DOCUMENT, 150, seed=2)):
            with open(path, "wb") as file:
                file.write(text)
            with self.subTest(number=number, text=text[:4000]):
                try:
                    found = self.results.load([path])
                except self.results.BadInput as error:
                    self.assertRegex(str(error), r"\A.*results\.json.*\Z")
                    continue
                self.assertGreater(len(list(self.listed(found))), 0)
                taken += 1
        self.assertTrue(10 < taken < 140, taken)


if __name__ == "__main__":
    report_rows.REPORT = sys.argv.pop(2)
    main(sys.argv)
