#!/usr/bin/env python3
"""Tests of what benchmarks of the sp3 command print: rows and tables say the same, and hang together.

usage: bench_rows_test.py SP3
"""

import json
import os
import sys

from command_line import CommandTest, main


class BenchRowsTest(CommandTest):
    def test_what_rows_and_tables_say_hangs_together(self):
        shown = self.sp3("bench", "--workload", "hashtable", "--system", "sp3", "--seconds", "0.3", "--warmup", "0",
                         "--checkpoint-ms", "10", "--entries", "1000", "--repeat", "3", "--pool-size", "64M",
                         "--json", "rows.json").stdout
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            [row] = json.load(file)
        self.assertGreater(row["commits"], row["writing_commits"])
        self.assertGreater(row["writing_commits"], 0)
        self.assertLess(row["aborts"], row["commits"])
        self.assertAlmostEqual(row["abort_ratio"], row["aborts"] / row["commits"])
        self.assertAlmostEqual(row["throughput_tx_per_s"], row["operations"] / row["seconds"], delta=1)
        # Each for itself: one fence, for at least the lines of an entry.
        self.assertAlmostEqual(row["fences_per_tx"], 1, delta=0.1)
        self.assertGreater(row["lines_per_tx"], 1.5)
        self.assertGreater(row["checkpoints"], 0)
        self.assertGreater(row["checkpoint_lines"], row["checkpoint_fences"])
        self.assertGreaterEqual(row["checkpoint_fences"], 2 * row["checkpoints"])
        latencies = [row[f"latency_{which}_ns"] for which in ("p50", "p99", "p999", "max")]
        self.assertEqual(latencies, sorted(latencies))
        self.assertLess(latencies[0], latencies[-1])
        self.assertLess(latencies[0], 2e9 / row["throughput_tx_per_s"])
        times = row["throughputs"]
        self.assertAlmostEqual(row["spread"], (max(times) - min(times)) / row["throughput_tx_per_s"])
        heading, told = (line.split() for line in shown.splitlines()
                         if line.startswith(("workload ", "hashtable ")))
        columns = ("workload", "threads", "system", "ktx/s", "spread", "aborts/tx", "fences/wr", "lines/wr",
                   "p50 ns", "p99 ns", "max ns", "line ns")
        self.assertEqual(" ".join(heading), " ".join(columns))
        thousands = row["throughput_tx_per_s"] / 1000
        self.assertEqual(told, [
            "hashtable", "1", "sp3", f"{thousands:.{3 if thousands < 10 else 1}f}", f"{100 * row['spread']:.1f}%",
            f"{row['abort_ratio']:.4f}", f"{row['fences_per_tx']:.3f}", f"{row['lines_per_tx']:.2f}",
            *(f"{row[f'latency_{which}_ns']:.0f}" for which in ("p50", "p99", "max")), "-"])

    def test_the_floor_is_what_transactions_are_held_against(self):
        rows = json.loads(self.sp3("micro", "--floor", "--seconds", "0.1", "--repeat", "1", "--pool-size", "40M",
                                   "--json", "-").stdout)
        of = {row["micro"]: row["value"] for row in rows}
        self.assertAlmostEqual(of["floor_ratio"], of["floor_sps"] / of["floor"])
        self.assertEqual([row["unit"] for row in rows], ["writes/s", "tx/s", ""])


if __name__ == "__main__":
    main(sys.argv)
