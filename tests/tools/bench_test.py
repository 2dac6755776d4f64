#!/usr/bin/env python3
"""Tests of the benchmarks of the sp3 command from outside: bench, micro, lockbench.

usage: bench_test.py SP3
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from command_line import ERROR, OK, USAGE, CommandTest, has_room, main


def kind_of_file_system(directory):
    return subprocess.run(["stat", "--file-system", "--format", "%T", directory], capture_output=True,
                          text=True, check=True).stdout.strip()


class BenchTest(CommandTest):
    def test_what_would_do_nothing_or_something_else_is_a_mistake(self):
        for arguments, said in (
            (["bench", "--zipf", ""], "--zipf: wanted a number, found nothing"),
            (["bench", "--seed", ""], "--seed: wanted a number, found nothing"),
            (["bench", "--latency-ns", "0,500"], "--latency-ns: wanted a number, found 0,500"),
            (["bench", "--repeat", "4294967297"], "--repeat: wanted at most 4294967295, found 4294967297"),
            (["bench", "--operations", "10", "--warmup", "1"], "--warmup"),
            (["crash-test", "--strategy", "x"], "stamp, dag or both"),
            (["crash-test", "--workload", "foo"], "ranges, bank, but not foo"),
            (["lockbench", "--lock", "skiplist,grid", "--buckets", "0"], "buckets"),
            (["lockbench", "--instructions", "--workload", "W1"], "--instructions"),
            (["lockbench", "--instructions", "--lock", "none"], "no instructions"),
            (["lockbench", "--instructions", "--pairs", "5"], "--instructions"),
            (["lockbench", "--instructions", "--repeat", "1"], "--instructions"),
            (["lockbench", "--instructions", "--seconds", "1"], "--instructions"),
            (["lockbench", "--workload", "overlap", "--slots", "64"], "--slots means nothing to overlap"),
            (["lockbench", "--workload", "height", "--max-height", "4"], "--max-height means nothing"),
            (["lockbench", "--held", "5"], "--held means nothing to W1"),
            (["lockbench", "--workload", "overlap,W2", "--held", "5"], "--held means nothing to overlap, W2"),
            (["micro", "--floor", "--durability", "async"], "--durability: micro measures sync only"),
            (["lockbench", "--lock", "skiplist", "--buckets", "100"], "--buckets means nothing to skiplist"),
            (["lockbench", "--lock", "list,grid", "--max-height", "4"], "--max-height means nothing to list, grid"),
            (["lockbench", "--lock", "bitmap,grid", "--workload", "W1,height"],
             "--workload height means nothing to bitmap, grid"),
            (["lockbench", "--threads", "1,,2"], "--threads: wanted a value on both sides of a comma, found '1,,2'"),
            (["bench", "--workload", "sps,"], "--workload: wanted a value on both sides"),
            (["bench", "--system", ""], "--system: wanted some text, found nothing"),
            (["recovery-bench", "--checkpoint-ms", "10,1K"], "milliseconds, found '1K'"),
            (["compare", "--section", "emulated", "--system", "lmdb"], "systems lmdb"),
            (["compare", "--workload", "sps,queue", "--fill", "0.5"], "--fill means nothing to sps, queue"),
            (["compare", "--workload", "queue", "--zipf", "0.5"], "--zipf means nothing to queue"),
            (["compare", "--section", "emulated", "--directory", "."], "--directory: nothing of what is run"),
            (["micro", "--empty", "--open-size", "1G"], "--open-size means nothing to --empty"),
            (["micro", "--floor", "--read", "--open-objects", "9"], "--open-objects means nothing to --floor, --read"),
            (["micro", "--read", "--open", "--seconds", "1"], "--seconds means nothing to --read, --open"),
            (["micro", "--checkpoint", "--pool-size", "1G"], "--pool-size means nothing to --checkpoint"),
            (["micro", "--checkpoint", "--checkpoint-ms", "9"], "--checkpoint-ms means nothing to --checkpoint"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.complaint(*arguments, code=USAGE))

    def test_options_that_nothing_chosen_looks_at_are_refused(self):
        for option, value in (("least", "5"), ("least", "0"), ("most", "9"), ("zipf", "7"), ("mix", "1:1:1"),
                              ("chunk", "512"), ("lock", "grid")):
            for command in ("bench", "recovery-bench"):
                self.assertIn(f"--range-{option} means nothing to sps, bptree", self.complaint(
                    command, "--workload", "sps,bptree", f"--range-{option}", value, code=USAGE))
        for arguments, said in (
            ("--workload sps,bank --warehouses 3", "--warehouses means nothing to sps, bank"),
            ("--workload ranges,sps --insert-ratio 0.1", "--insert-ratio means nothing to ranges, sps"),
            ("--workload sps,queue --fill 0.5", "--fill means nothing to sps, queue"),
            ("--workload queue --zipf 0", "--zipf means nothing to queue"),
            ("--group 5", "--group means nothing to sp3 with --durability sync"),
            ("--memory file --flush clwb", "--flush: file memory is not flushed by an instruction"),
            ("--system mnemosyne,quadra --locks encounter", "--locks means nothing to mnemosyne, quadra"),
            ("--system mnemosyne --checkpoint-threads 2", "--checkpoint-threads means nothing to mnemosyne"),
            ("--system mnemosyne --checkpoint-ms 5", "--checkpoint-ms means nothing to mnemosyne"),
            ("--system sp3-async --durability sync", "--durability means nothing to sp3-async unless it is async"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.complaint("bench", *arguments.split(), code=USAGE))
        self.assertIn("--group means nothing", self.complaint("micro", "--empty", "--group", "5", code=USAGE))
        # To one of those that are chosen they mean something.
        self.sp3("bench", "--workload", "sps,queue,ranges", "--system", "sp3,sp3-async,mnemosyne", "--operations", "50",
                 "--entries", "100", "--repeat", "1", "--range-most", "256", "--range-lock", "grid", "--insert-ratio", "0.4",
                 "--group", "5", "--durability", "sync", "--locks", "encounter", "--checkpoint-threads", "2")
        self.sp3("bench", "--workload", "sps", "--durability", "async", "--group", "5", "--operations", "50",
                 "--entries", "100", "--repeat", "1")

    def test_mistakes_name_the_option_as_it_is_given(self):
        for option, value, said in (
            ("--workload", "heap", "wanted one of sps, queue, "), ("--system", "oracle", "wanted one of sp3, "),
            ("--mix", "ycsb-g", "wanted paper, "), ("--zipf", "1", "wanted 0 <= theta < 1, found 1"),
            ("--entries", "1", "wanted 2 to 2^32 - 1, found 1"), ("--entry-size", "100", "wanted one of 16, "),
            ("--insert-ratio", "2", "wanted 0 to 1, found 2"), ("--fill", "-1", "wanted 0 to 1, found -1"),
            ("--range-zipf", "1", "wanted 0 <= theta < 1"), ("--range-mix", "0:0:0", "wanted three shares"),
            ("--range-least", "0", "wanted 1 to 1048576, the longest, found 0"),
            ("--range-most", "0", "wanted 1 byte to 1 GiB, found 0"), ("--warehouses", "0", "wanted 1 to 1000, found 0"),
            ("--warmup", "-1", "wanted 0 to 86400 seconds, found -1"),
        ):
            workload = [] if option in ("--workload", "--mix") else ["--workload", "hashtable,ranges,tpcc"]
            with self.subTest(option=option):
                told = self.complaint("bench", *workload, option, value, code=USAGE)
                self.assertTrue(told.startswith(f"sp3: {option}: {said}"), told)

    def test_numbers_count_in_tens(self):
        """Also where zeros lead, as `seq -w` counts: to CLI11 010 is eight, and 08 is none."""
        small = ["--workload", "sps", "--operations", "050", "--repeat", "01", "--json", "-"]
        for command in (["bench"], ["sim", "--cores", "1", "--system", "sp3"]):
            if command[0] == "sim" and not os.path.exists(self.SP3 + "-sim"):
                continue
            for seed, found in (("08", 8), ("010", 10), ("00", 0), ("018446744073709551615", 2**64 - 1)):
                row = json.loads(self.sp3(*command, *small, "--entries", "0100", "--seed", seed).stdout)[0]
                self.assertEqual((row["seed"], row["entries"], row["operations"]), (found, 100, 50))
        for seed in ("0x10", "+1", "1e3", " 1", "0 "):
            self.assertIn(f"--seed: wanted a number, found {seed}",
                          self.complaint("bench", "--seed", seed, code=USAGE))
        self.assertIn("--seed: wanted at most 18446744073709551615, found 18446744073709551616",
                      self.complaint("bench", "--seed", "018446744073709551616", code=USAGE))

    def test_all_may_stand_beside_other_names(self):
        rows = json.loads(self.sp3("bench", "--workload", "queue,all,bank,all", "--operations", "50", "--entries", "100",
                                   "--repeat", "1", "--json", "-").stdout)
        self.assertEqual([row["workload"] for row in rows],
                         ["queue", "sps", "hashtable", "rbtree", "bptree", "bank"])
        rows = json.loads(self.sp3("lockbench", "--lock", "grid,all", "--pairs", "20", "--repeat", "1", "--json",
                                   "-").stdout)
        locks = [row["lock"] for row in rows]
        self.assertEqual((locks[0], len(locks)), ("grid", len(set(locks))))

    def test_rows_arrive_where_the_table_cannot(self):
        for command in (["bench", "--workload", "sps", "--entries", "100", "--operations", "50", "--repeat", "1"],
                        ["lockbench", "--pairs", "20", "--repeat", "1"], ["micro", "--empty", "--repeat", "1"],
                        ["recovery-bench", "--log-bytes", "1M", "--entries", "100", "--repeat", "1"]):
            for redirection in ("2>/dev/full", "2>&-"):
                with self.subTest(command=command, redirection=redirection):
                    result = self.redirected(redirection, *command, "--json", "-")
                    self.assertEqual(result.returncode, OK)
                    self.assertGreater(len(json.loads(result.stdout)), 0)

    def test_bench_rows_carry_all_fields(self):
        result = self.sp3("bench", "--workload", "all", "--system", "sp3,sp3-async,nvm-tx,dram-tx",
                          "--threads", "1,2", "--operations", "500", "--repeat", "2", "--entries",
                          "300", "--check", "--seed", "9", "--latency-ns", "100", "--pool-size", "32M", "--json",
                          "-")
        rows = json.loads(result.stdout)
        self.assertEqual(len(rows), 5 * 4 * 2)
        for row in rows:
            self.assert_bench_fields(row)
            self.assertEqual((row["seed"], row["entries"], row["repeat"]), (9, 300, 2))
            self.assertEqual((row["latency_ns"], row["latency_model"]), (100, "fence"))
            self.assertNotEqual(row["flush"], "automatic")
            self.assertIn("cpu", row["machine"])
        combinations = {(r["system"], r["workload"], r["threads"]) for r in rows}
        self.assertEqual(len(combinations), len(rows))
        self.assertIn("ktx/s", result.stderr)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_bank_and_tpcc_run_by_name(self):
        result = self.sp3("bench", "--workload", "bank,tpcc", "--system", "sp3,dram-tx,mnemosyne",
                          "--threads", "1,2", "--operations", "1000", "--repeat", "1", "--entries",
                          "300", "--warehouses", "2", "--check", "--json", "-")
        rows = json.loads(result.stdout)
        self.assertEqual(len(rows), 2 * 2 * 2)
        for row in rows:
            self.assert_bench_fields(row)
            if row["workload"] == "bank":
                self.assertNotIn("warehouses", row)
                continue
            self.assertEqual(row["warehouses"], 2)
            self.assertGreater(row["new_orders"], 300)
            self.assertGreater(row["new_orders"], row["misses"])
            committed = (row["new_orders"] - row["misses"]) / row["seconds"]
            self.assertAlmostEqual(row["new_orders_per_s"] / committed, 1)
        self.assertIn("new-orders/s, warehouses: 2\n", result.stderr)
        self.assertIn("skipped: mnemosyne on tpcc: ", result.stderr)
        self.assertEqual(os.listdir(self.directory.name), [])
        self.assertIn("but not tpcc", self.complaint("crash-test", "--workload", "tpcc", code=USAGE))

    def test_mixes_of_ycsb_run_where_they_mean_something(self):
        result = self.sp3("bench", "--workload", "sps,hashtable,bptree", "--mix",
                          "paper,ycsb,ycsb-a", "--system", "sp3,nvm-ideal,mnemosyne", "--operations",
                          "500", "--repeat", "1", "--entries", "300", "--pool-size", "32M", "--check",
                          "--json", "-")
        rows = json.loads(result.stdout)
        for row in rows:
            self.assert_bench_fields(row)
        mixes = {(row["workload"], row["system"]): [] for row in rows}
        for row in rows:
            mixes[row["workload"], row["system"]].append(row.get("mix", "paper")[-1])
        self.assertEqual("".join(mixes["bptree", "sp3"]), "rabcdef")
        self.assertEqual("".join(mixes["hashtable", "sp3"]), "rabcdf")
        self.assertEqual("".join(mixes["bptree", "nvm-ideal"]), "rabcf")
        self.assertEqual("".join(mixes["bptree", "mnemosyne"]), "rabcdef")
        self.assertEqual("".join(mixes["sps", "sp3"]), "r")
        scans = next(r for r in rows if (r["system"], r.get("mix")) == ("sp3", "ycsb-e"))
        self.assertLess(scans["writing_commits"], 60)
        self.assertIn("\nbptree ycsb-e", result.stderr)
        for said in ("skipped: sp3 on sps ycsb-a: ycsb-a is a mix for hashtable and bptree",
                     "skipped: sp3 on hashtable ycsb-e: ycsb-e scans",
                     "skipped: nvm-ideal on bptree ycsb-d: nvm-ideal only updates"):
            self.assertIn(said, result.stderr)
        self.assertIn("wanted paper, ycsb-a, ", self.complaint("bench", "--mix", "ycsb-g", code=USAGE))
        self.assertIn("--fill excludes --mix", self.complaint("bench", "--mix", "ycsb-a", "--fill",
                                                              "0.5", code=USAGE))
        self.assertIn("--insert-ratio excludes --mix ycsb-a", self.complaint(
            "bench", "--mix", "paper,ycsb-a", "--insert-ratio", "0.5", code=USAGE))
        rows = json.loads(self.sp3("bench", "--workload", "hashtable", "--mix", "paper", "--insert-ratio",
                                   "0.25", "--fill", "0.5", "--operations", "50", "--entries", "100",
                                   "--repeat", "1", "--pool-size", "32M", "--json", "-").stdout)
        self.assertEqual([row["insert_ratio"] for row in rows], [0.25])
        self.assertIn("hash table has no order", self.complaint(
            "bench", "--workload", "hashtable", "--mix", "ycsb-e", code=USAGE))

    def test_bench_writes_its_rows_to_a_file_and_says_what_it_skipped(self):
        rows_file = os.path.join(self.directory.name, "rows.json")
        result = self.sp3("bench", "--workload", "sps,queue", "--system", "nvm-ideal", "--operations",
                          "200", "--entries", "100", "--repeat", "1", "--no-latency", "--json", rows_file)
        self.assertIn("skipped: nvm-ideal on queue", result.stdout)
        with open(rows_file, encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([r["workload"] for r in rows], ["sps"])
        self.assertIsNone(rows[0]["latency_p50_ns"])
        self.assertRegex(result.stdout, r"nvm-ideal .* - +- +-\n")

    def test_what_is_named_twice_is_measured_once(self):
        rows = json.loads(self.sp3("bench", "--workload", "sps,sps", "--system", "sp3,sp3", "--threads",
                                   "1,01,1", "--operations", "50", "--entries", "100", "--repeat", "1",
                                   "--json", "-").stdout)
        self.assertEqual(len(rows), 1)

    def test_a_heading_tells_all_latency_that_was_added(self):
        command = ("bench", "--workload", "sps", "--operations", "50", "--entries", "100", "--repeat",
                   "1", "--latency-ns", "100")
        self.assertIn("+100 ns (fence)\n", self.sp3(*command).stdout)
        self.assertIn("+100 ns (fence), +300 ns for each line at a fence\n",
                      self.sp3(*command, "--line-ns", "300").stdout)

    def test_bench_says_what_probes_counted_or_why_not(self):
        result = self.sp3("bench", "--workload", "sps", "--operations", "300", "--entries", "100",
                          "--repeat", "1", "--probe", "perf,pcm", "--json", "-")
        row = json.loads(result.stdout)[0]
        self.assertEqual(set(row["probes"]), {"perf", "pcm"})
        counted = {"perf": ["instructions", "cycles", "llc_misses", "cpu_ns", "page_faults",
                            "context_switches"],
                   "pcm": ["media_read_bytes", "media_write_bytes"]}
        for probe, names in counted.items():
            note = row["probes"][probe]
            there = [name for name in names if name + "_per_tx" in row]
            for name in there:
                self.assertGreaterEqual(row[name + "_per_tx"], 0)
            if there != names:
                self.assertIn("unavailable: ", note)
                self.assertIn(f"{probe}: {note}", result.stderr)
        without = json.loads(self.sp3("bench", "--workload", "sps", "--operations", "300", "--entries",
                                      "100", "--repeat", "1", "--json", "-").stdout)[0]
        self.assertNotIn("probes", without)
        self.assertNotIn("cpu_ns_per_tx", without)

    def test_a_benchmark_that_is_ended_leaves_no_pool(self):
        for signal_number, command in (
            (signal.SIGINT, ("bench", "--workload", "sps", "--seconds", "3600")),
            (signal.SIGTERM, ("compare", "--section", "file", "--system", "sp3", "--seconds",
                              "3600")),
            (signal.SIGTERM, ("recovery-bench", "--log-bytes", "128M", "--repeat", "1000")),
            (signal.SIGTERM, ("crash-test", "--rounds", "10000")),
        ):
            with self.subTest(command=command):
                self.assertEqual(
                    self.end_while_it_has_a_pool(signal_number, *command, "--entries", "300"), [])

    def test_bench_does_not_overwrite(self):
        with open(os.path.join(self.directory.name, "file"), "w", encoding="utf-8"):
            pass
        self.complaint("bench", "--path", "file", code=USAGE)
        os.symlink("nowhere", os.path.join(self.directory.name, "link"))
        self.complaint("bench", "--path", "link", "--operations", "10", code=USAGE)
        for command in ("bench", "recovery-bench"):
            self.assertIn("found no directory 'nowhere'", self.complaint(
                command, "--path", "nowhere/pool", code=USAGE))
        self.complaint("micro", "--calibrate", "--path", "file", code=USAGE)

    def test_bench_leaves_files_beside_its_pool_alone(self):
        for name in ("foo.scratch", "foo.volatile"):
            with open(os.path.join(self.directory.name, name), "w", encoding="utf-8") as file:
                file.write(name)
        self.sp3("bench", "--workload", "sps", "--operations", "50", "--entries", "100", "--repeat",
                 "1", "--path", "foo")
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["foo.scratch", "foo.volatile"])
        for name in ("foo.scratch", "foo.volatile"):
            with open(os.path.join(self.directory.name, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), name)

    def test_a_cell_that_fails_takes_no_other_with_it(self):
        # So many sessions do not fit into so small a log.
        command = ("bench", "--workload", "sps", "--entries", "100", "--operations", "100", "--repeat",
                   "1", "--pool-size", "4M")
        result = self.sp3(*command, "--threads", "1,512,2", "--json", "rows.json", code=ERROR)
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            self.assertEqual([row["threads"] for row in json.load(file)], [1, 2])
        self.assertIn("failed: sp3 on sps with 512 threads: ", result.stdout)
        self.assertRegex(result.stderr, "^sp3: 1 of 3 could not be measured: .*\n$")
        # Alone it is told as what it is.
        self.complaint(*command, "--threads", "512", code=USAGE)

    def test_file_memory_runs(self):
        rows = json.loads(self.sp3("bench", "--workload", "hashtable", "--memory", "file", "--operations",
                                   "200", "--entries", "100", "--repeat", "1", "--pool-size", "32M",
                                   "--json", "-").stdout)
        self.assertEqual(rows[0]["memory"], "file")
        self.assertLessEqual(rows[0]["fences_per_tx"], 1.0)
        self.assertRegex(rows[0]["file_system"], "^[^ ]+ on .+")
        self.assertEqual((rows[0]["pool_size"], rows[0]["warmup_seconds"]), (32 << 20, None))

    def test_rows_tell_what_was_not_asked_for(self):
        row = json.loads(self.sp3("bench", "--workload", "sps", "--seconds", "0.3", "--warmup", "0.01",
                                  "--entries", "100", "--repeat", "1", "--system", "sp3", "--json",
                                  "-").stdout)[0]
        self.assertEqual(row["warmup_seconds"], 0.01)
        if has_room("/dev/shm"):
            self.assertIsNone(row["file_system"])
        self.assertGreaterEqual(row["pool_size"], 256 << 20)

    def test_rows_and_tables_tell_where_emulated_memory_is_not_in_memory(self):
        tiny = ["bench", "--workload", "sps", "--operations", "50", "--entries", "100", "--repeat", "1",
                "--system", "sp3", "--pool-size", "32M", "--json"]
        for directory in ("/dev/shm", os.getcwd()):
            path = os.path.join(directory, f"sp3-bench-test-{os.getpid()}.pool")
            shown = self.sp3(*tiny, "rows.json", "--path", path).stdout
            with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
                where = json.load(file)[0]["file_system"]
            if kind_of_file_system(directory) == "tmpfs":
                self.assertIsNone(where)
                self.assertNotIn("; emulated memory, on ", shown)
            else:
                self.assertRegex(where, "^[^ ]+ on .+")
                self.assertIn(f"; emulated memory, on {where}, ", shown)

    def test_pools_go_elsewhere_where_memory_has_no_room_for_them(self):
        with tempfile.TemporaryDirectory() as there:  # our own is in what the mount hides
            result = self.on_tmpfs("/dev/shm", "64m", self.SP3, "bench", "--workload", "sps",
                                   "--operations", "50", "--entries", "100", "--repeat", "1",
                                   "--system", "sp3", cwd=there)
        self.assertEqual(result.returncode, OK, result.stderr)
        if kind_of_file_system(tempfile.gettempdir()) != "tmpfs":
            self.assertIn("; emulated memory, on ", result.stdout)

    def test_rows_tell_what_the_memory_flushes_with(self):
        tiny = ["--entries", "100", "--repeat", "1", "--json", "-"]
        for command in (["bench", "--workload", "sps", "--operations", "50", *tiny],
                        ["micro", "--empty", "--repeat", "1", "--json", "-"],
                        ["recovery-bench", "--log-bytes", "1M", "--threads", "1", *tiny]):
            for asked in ("automatic", "clflush"):
                rows = json.loads(self.sp3(*command, "--flush", asked).stdout)
                self.assertEqual({row["flush"] for row in rows},
                                 {"non_temporal" if asked == "automatic" else asked}, command)

    def test_rows_and_tables_tell_what_a_flush_costs_with_its_latency(self):
        tiny = ["--repeat", "1", "--latency-ns", "20000", "--json", "-"]
        for command in (["bench", "--workload", "sps", "--entries", "100", "--operations", "50", *tiny],
                        ["micro", "--empty", *tiny],
                        ["recovery-bench", "--log-bytes", "1M", "--entries", "100", "--threads", "1", *tiny]):
            with self.subTest(command=command):
                result = self.sp3(*command)
                costs = {row["flush_cost_ns"] for row in json.loads(result.stdout)}
                self.assertEqual(len(costs), 1)
                cost = costs.pop()
                self.assertGreaterEqual(cost, 20000)
                self.assertIn(f"one line flushed and fenced costs {cost:.0f} ns here", result.stderr)

    def test_runs_of_several_threads_tell_how_far_apart_their_cores_are(self):
        far_enough = ["--core-distance", "0:1000000000"]
        has_two = len(os.sched_getaffinity(0)) > 1
        for command in (["bench", "--workload", "sps", "--entries", "100", "--operations", "50"],
                        ["lockbench", "--lock", "grid", "--pairs", "20"]):
            for limits in ([], far_enough) if has_two else ([],):
                rows = json.loads(self.sp3(*command, "--threads", "1,2", "--repeat", "3", "--json", "-",
                                           *limits).stdout)
                for row in rows:
                    several = row["threads"] > 1 and has_two
                    self.assertEqual(len(row["line_transfers_ns"]), 3)
                    self.assertIn(row["line_transfer_ns"], row["line_transfers_ns"])
                    for ns in row["line_transfers_ns"]:
                        # Beside other programs there may be no distance of several threads either.
                        self.assertTrue(several or ns is None)
                        self.assertGreater(ns or 1, 0)
                        self.assertLessEqual(ns or 1, 10_000)
            for wrong in ("5", ":", "5:1", "-1:5", "a:b"):
                said = self.complaint(*command, f"--core-distance={wrong}", code=USAGE)
                self.assertIn(f"wanted LEAST:MOST in ns, as 0:100, found '{wrong}'", said)

    def test_a_distance_that_cannot_be_measured_is_an_error_where_one_is_wanted(self):
        one_core = ["taskset", "-c", str(min(os.sched_getaffinity(0))), self.SP3, "bench", "--workload",
                    "sps", "--entries", "100", "--operations", "50", "--repeat", "1", "--threads", "2"]
        alone = subprocess.run([*one_core, "--json", "-"], capture_output=True, text=True, check=True)
        self.assertIsNone(json.loads(alone.stdout)[0]["line_transfer_ns"])
        wanted = subprocess.run([*one_core, "--core-distance", ":100"], capture_output=True, text=True,
                                check=False)
        self.assertEqual(wanted.returncode, ERROR)
        self.assertIn("there is no second core", wanted.stderr)

    def test_tables_say_on_what_cpu_and_from_what_source(self):
        for command in (["bench", "--workload", "sps", "--entries", "100", "--operations", "50", "--repeat", "1"],
                        ["lockbench", "--pairs", "20", "--repeat", "1"], ["micro", "--empty", "--repeat", "1"],
                        ["recovery-bench", "--log-bytes", "1M", "--entries", "100", "--repeat", "1"],
                        ["compare", "--section", "emulated", "--system", "sp3", "--workload", "sps", "--entries",
                         "100", "--operations", "50", "--repeat", "1"]):
            with self.subTest(command=command):
                self.assertRegex(self.sp3(*command).stdout, "^.+; built from .+\n")

    def test_micro_rows_have_values(self):
        rows = json.loads(self.sp3("micro", "--floor", "--empty", "--read", "--open", "--open-objects",
                                   "2000", "--open-size", "32M", "--pool-size", "40M", "--seconds", "0.05",
                                   "--repeat", "1", "--json", "-").stdout)
        sizes = {row["micro"]: row["pool_size"] >> 20 for row in rows}
        self.assertEqual([sizes[name] for name in ("floor_sps", "empty_transaction", "open")], [40, 64, 32])
        names = {row["micro"]: row["value"] for row in rows}
        for name in ("floor", "floor_sps", "floor_ratio", "open", "open_first_transaction",
                     "open_100000_reads"):
            self.assertGreater(names[name], 0)
        # Less what an empty loop takes, which may be interrupted and then take longer.
        for name in ("empty_transaction", "read_transaction"):
            self.assertIsInstance(names[name], float)

    def test_micro_opens_a_pool_as_often_as_asked(self):
        for repeat in ("1", "2"):
            rows = json.loads(self.sp3("micro", "--open", "--open-objects", "500", "--open-size", "32M",
                                       "--repeat", repeat, "--json", "-").stdout)
            self.assertIn("500 objects, 32 MiB, median of " + repeat, rows[0]["note"])

    def test_a_pool_goes_where_there_is_room_for_it(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as there:
            for command in (["micro", "--open", "--open-objects", "100", "--open-size", "1200M"],
                            ["bench", "--workload", "sps", "--entries", "100", "--operations", "50",
                             "--pool-size", "1200M"]):
                with self.subTest(command=command):
                    result = self.on_tmpfs("/dev/shm", "1100m", self.SP3, *command, "--repeat", "1",
                                           "--json", "-", cwd=there, env=os.environ | {"TMPDIR": there})
                    self.assertEqual(result.returncode, OK, result.stderr)
                    self.assertNotIn(json.loads(result.stdout)[0]["file_system"], (None, "tmpfs on none"))
            self.assertEqual(os.listdir(there), [])

    def test_lockbench_measures_every_lock_on_every_workload(self):
        fields = {"lock": str, "workload": str, "threads": int, "pairs_per_s": float,
                  "latency_p50_ns": float, "latency_p99_ns": float, "fairness": float, "held": int,
                  "spread": float, "conflicts": int, "machine": dict}
        rows = json.loads(self.sp3(
            "lockbench", "--lock", "all", "--workload", "W1,W2", "--threads", "2", "--seconds",
            "0.1", "--repeat", "1", "--json", "-").stdout)
        self.assertEqual(len(rows), 2 * len({row["lock"] for row in rows}))
        self.assertGreaterEqual({row["lock"] for row in rows}, {"none", "bare", "grid", "skiplist"})
        for row in rows:
            for field, kind in fields.items():
                self.assertIsInstance(row[field], kind, field)
            self.assertGreater(row["pairs_per_s"], 0)

        rows = json.loads(self.sp3(
            "lockbench", "--lock", "grid,skiplist", "--workload", "uncontended,shared,overlap",
            "--held", "0,1000", "--seconds", "0.01", "--repeat", "1", "--json", "-").stdout)
        self.assertEqual(len(rows), 2 * (2 + 4 + 4))
        for row in rows:
            self.assertEqual(row["memory_per_held_bytes"] is not None, row["held"] != 0)
            if row["held"] != 0:
                self.assertLess(row["memory_per_held_bytes"], 1 << 20)

        rows = json.loads(self.sp3(
            "lockbench", "--lock", "grid", "--workload", "uncontended,W1", "--held", "0", "--threads",
            "2,3", "--pairs", "20", "--repeat", "1", "--json", "-").stdout)
        self.assertEqual([(row["workload"], row["threads"]) for row in rows],
                         [("uncontended", 1), ("W1", 2), ("W1", 3)])

    def test_percentiles_of_batches_are_of_a_range_each(self):
        row = json.loads(self.sp3("lockbench", "--lock", "grid", "--workload", "W2", "--seconds", "0.3",
                                  "--repeat", "1", "--json", "-").stdout)[0]
        # Of anything that takes time half takes no longer than twice the mean.
        self.assertLess(row["latency_p50_ns"], 2.5 * row["ns_per_pair"])

    def test_what_options_mean_to_one_of_the_workloads_is_enough(self):
        rows = json.loads(self.sp3("lockbench", "--lock", "skiplist", "--workload", "W1,overlap,height",
                                   "--slots", "64", "--max-height", "3", "--pairs", "20", "--repeat",
                                   "1", "--json", "-").stdout)
        self.assertEqual([(row["slots"], row["max_height"]) for row in rows if row["workload"] == "W1"],
                         [(64, 3)])
        self.assertEqual(len(rows), 1 + 4 + 16)

    def test_what_bare_cannot_hold_is_said_and_left_out(self):
        arguments = ["--workload", "uncontended", "--held", "65536", "--pairs", "20", "--repeat", "1"]
        shown = self.sp3("lockbench", "--lock", "bare,segments", *arguments).stdout
        self.assertIn("skipped: bare cannot hold 65536 ranges in 65536 buckets\n", shown)
        self.assertIn("segments ", shown)
        self.assertIn("cannot hold", self.complaint("lockbench", "--lock", "bare", *arguments, code=USAGE))

    def test_a_thread_that_cannot_be_started_ends_a_run(self):
        limited = ["sh", "-c", 'ulimit -s 8192; ulimit -v 2500000; exec "$0" "$@"', self.SP3]
        alone = subprocess.run([*limited, "--version"], capture_output=True, check=False)
        if alone.returncode != OK:
            self.skipTest("a sanitizer wants more address space")
        for command in (["bench", "--workload", "queue", "--entries", "1000", "--system", "dram-tx"],
                        ["lockbench"]):
            result = subprocess.run([*limited, *command, "--threads", "300", "--seconds", "0.1",
                                     "--repeat", "1"], capture_output=True, text=True, timeout=240,
                                    check=False)
            self.assertEqual(result.returncode, ERROR, result.stderr)
            self.assertRegex(result.stderr, "thread [0-9]+ of 300 could not be started")

    def test_what_a_system_cannot_run_with_so_many_threads_is_said_and_left_out(self):
        arguments = ["--workload", "sps", "--entries", "500", "--operations", "700", "--repeat", "1",
                     "--threads", "2,65", "--system", "sp3,mnemosyne"]
        for command in (["bench"], ["compare", "--section", "emulated"]):
            shown = self.sp3(*command, *arguments).stdout
            self.assertIn("skipped: mnemosyne on sps: mnemosyne serves at most 64 threads", shown)
            rows = [line for line in shown.splitlines() if line.startswith("sps ")]
            self.assertEqual(len(rows), 3)
        self.assertIn("at most 64", self.complaint(
            "bench", "--system", "mnemosyne", "--threads", "65", code=USAGE))

    def test_lockbench_runs_with_just_enough_ranges_and_as_many_threads_as_may_be(self):
        for arguments in (["--lock", "all", "--workload", "W2", "--slots", "32", "--threads", "2"],
                          ["--lock", "combiner,published", "--threads", "1024"]):
            rows = json.loads(self.sp3("lockbench", *arguments, "--pairs", "20", "--repeat", "1",
                                       "--json", "-").stdout)
            for row in rows:
                self.assertGreaterEqual(row["pairs"], 20 * row["threads"])
                # Not measured, as it would cost time.
                self.assertIsNone(row["latency_p50_ns"])
                self.assertIsNone(row["latency_p99_ns"])

    def test_instructions_that_cannot_be_counted_are_an_error(self):
        said = self.complaint("lockbench", "--instructions", "--lock", "grid", "--held", "0", "--json",
                              "rows.json", code=ERROR, env=os.environ | {"PATH": "/nowhere"})
        self.assertIn("valgrind", said)

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind here; './dev sp3 lockbench --instructions' installs it")
    def test_what_surrounds_a_pair_is_not_counted_as_its_instructions(self):
        self.sp3("compare", "--section", "emulated", "--workload", "sps", "--system", "sp3", "--entries",
                 "100", "--operations", "10", "--repeat", "1", "--results", "plan.json")
        with open(os.path.join(self.directory.name, "plan.json"), encoding="utf-8") as file:
            program = json.load(file)["plan"]["program"]
        if (program["build_type"], program["sanitizers"]) != ("Release", "none"):
            self.skipTest("counted in optimised programs alone")
        rows = json.loads(self.sp3("lockbench", "--instructions", "--lock", "bare,grid", "--held", "0",
                                   "--slots", "64", "--json", "-").stdout)
        counts = {row["lock"]: row["instructions_per_pair"] for row in rows}
        # An exchange and a store on a hashed line. With registers that a function saves beside it
        # there were 21 to 25, as the compiler liked.
        self.assertLess(counts["bare"], 16)
        self.assertGreater(counts["bare"], 4)
        self.assertGreater(counts["grid"], 2 * counts["bare"])

    def test_valgrind_ends_with_the_command_that_started_it(self):
        valgrind, note = (os.path.join(self.directory.name, name) for name in ("valgrind", "note"))
        with open(valgrind, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n[ $1 = --version ] && echo valgrind-3 && exit\n"
                       f"echo $$ > '{note}'; exec sleep 60\n")
        os.chmod(valgrind, 0o755)
        where = {"PATH": f"{self.directory.name}:{os.environ['PATH']}"}
        with subprocess.Popen([self.SP3, "lockbench", "--instructions", "--lock", "grid", "--held", "0"],
                              env=os.environ | where) as process:
            pid = self.noted_by_child(process, note)
            process.terminate()
        self.assert_ends(pid)


if __name__ == "__main__":
    main(sys.argv)
