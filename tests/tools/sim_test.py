#!/usr/bin/env python3
"""Tests of `sp3 sim` from outside: timed runs, campaigns, replays, histories, and what it refuses.

usage: sim_test.py SP3
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from command_line import ERROR, FOUND, USAGE, CommandTest, main

CAMPAIGN_COUNTS = ("first_seed", "next_seed", "seeds", "images", "recoveries", "nested", "killed",
                   "programs", "continued", "failed_disks", "structures")
COSTS = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "sim", "costs.json")
# Loses what was acknowledged, so a few seeds are enough to find it.
MUTANT = "no_fence_own_record"


class SimTest(CommandTest):
    def sim(self, *arguments, code=0):
        return self.sp3("sim", *arguments, code=code)

    def rows(self, *arguments):
        return json.loads(self.sim("--operations", "2000", "--entries", "300", "--json", "-",
                                   *arguments).stdout)

    def campaign(self, *arguments, code=0):
        return json.loads(self.sim("--explore", "--json", "-", *arguments, code=code).stdout)

    def test_rows_are_those_of_bench_and_more(self):
        rows = self.rows("--workload", "all", "--system", "sp3,nvm-tx", "--cores", "1,3", "--seed", "9",
                         "--repeat", "2", "--check")
        self.assertEqual(len(rows), 5 * 2 * 2)
        for row in rows:
            self.assert_bench_fields(row)
            self.assertIs(row["simulated"], True)
            self.assertEqual(row["cores"], row["threads"])
            self.assertRegex(row["trace_hash"], "^[0-9a-f]{16}$")
            self.assertGreater(row["costs_ns"]["fence"], 0)
            self.assertEqual((row["seed"], row["entries"], row["repeat"]), (9, 300, 2))
            self.assertIsNone(row["file_system"])  # of this machine it uses none

    def test_rows_tell_what_the_simulated_memory_flushes_with(self):
        for asked, found in ((["--flush", "automatic"], "non_temporal"), (["--flush", "clflush"], "clflush"),
                             (["--memory", "file"], "none")):
            rows = self.rows("--workload", "sps", "--system", "sp3", "--cores", "1", *asked)
            self.assertEqual([row["flush"] for row in rows], [found])

    def test_a_cell_that_fails_takes_no_other_with_it(self):
        # The array fits into so small a pool, the tree's larger nodes do not.
        result = self.sim("--workload", "sps,rbtree", "--system", "sp3", "--cores", "1",
                          "--pool-size", "22M", "--operations", "100", "--json", "rows.json", code=3)
        with open(os.path.join(self.directory.name, "rows.json"), encoding="utf-8") as file:
            self.assertEqual([row["workload"] for row in json.load(file)], ["sps"])
        self.assertIn("failed: sp3 on rbtree with 1 threads: ", result.stdout)
        self.assertRegex(result.stderr, "^sp3: 1 of 2 could not be measured: .*\n$")

    def test_compare_takes_over_simulated_rows(self):
        command = ("compare", "--full", "--section", "simulated", "--workload", "sps,queue", "--system",
                   "sp3,nvm-tx", "--threads", "1,3", "--operations", "300", "--entries", "200",
                   "--repeat", "2", "--results", "results.json")
        of = re.compile(r"\((.*)\)")
        if of.search(self.sp3("--version").stdout)[1] != of.search(self.sim("--version").stdout)[1]:
            self.assertIn("build both", self.complaint(*command, code=ERROR))
            return
        printed = self.sp3(*command).stdout
        self.assertIn("Simulated cores", printed)
        path = os.path.join(self.directory.name, "results.json")
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual(found["runs"], {"simulated/sps": {"rows": 4}, "simulated/queue": {"rows": 4}})
        self.assertIsNotNone(found["finished"])
        self.assertEqual({(row["workload"], row["system"], row["cores"]) for row in found["rows"]},
                         {(workload, system, cores) for workload in ("sps", "queue")
                          for system in ("sp3", "nvm-tx") for cores in (1, 3)})
        for row in found["rows"]:
            self.assert_bench_fields(row)
            self.assertEqual((row["section"], row["simulated"]), ("simulated", True))
            self.assertEqual((row["repeat"], len(set(row["throughputs"]))), (2, 2))
            self.assertEqual((row["entries"], row["latency_ns"], row["latency_model"]),
                             (200, 500, "line"))
        self.sp3(*command)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file), found)
        self.assertEqual(os.listdir(self.directory.name), ["results.json"])

    def test_the_seed_gives_the_trace(self):
        run = ("--workload", "queue,rbtree", "--system", "sp3", "--cores", "4")
        first, again, other = (self.rows(*run, "--seed", seed) for seed in ("1", "1", "2"))
        self.assertEqual(first, again)
        for one, two in zip(first, other):
            self.assertNotEqual(one["trace_hash"], two["trace_hash"])

    def test_more_expensive_fences_take_time(self):
        run = ("--workload", "sps", "--system", "sp3", "--cores", "1")
        usual, slow = (self.rows(*run, "--cost", f"fence={factor}")[0] for factor in (1, 100))
        self.assertGreater(usual["throughput_tx_per_s"], 2 * slow["throughput_tx_per_s"])
        self.assertAlmostEqual(slow["costs_ns"]["fence"], 100 * usual["costs_ns"]["fence"], places=3)
        file = os.path.join(self.directory.name, "costs.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"costs_ns": slow["costs_ns"]}, out)
        self.assertEqual(self.rows(*run, "--costs", file)[0]["trace_hash"], slow["trace_hash"])

    def test_what_is_wrong_with_costs_is_told_by_its_name(self):
        file = os.path.join(self.directory.name, "costs.json")
        for content in ("[]", "5", "{}", '{"costs_ns": 5}', '{"costs_ns": {"fence": "much"}}',
                        '{"machine": ' + "[" * 200_000 + "]" * 200_000 + "}",
                        '{"costs_ns": {"fence": -1}}', '{"costs_ns": {"fences": 1}}', "{"):
            with open(file, "w", encoding="utf-8") as out:
                out.write(content)
            with self.subTest(content=content):
                said = self.complaint("sim", "--costs", file, code=USAGE)
                self.assertIn(f"--costs: {file}: ", said)
                self.assertEqual("fence" in content, "fence" in said)
        for option in ("--costs", "--calibrate"):
            for nothing in (".", "missing"):
                self.assertIn(f"{option}: {nothing}: cannot be read",
                              self.complaint("sim", option, nothing, code=USAGE))
        for factor, said in (("fence=1e30", "cost fence times 1e+30: wanted 0 to 4 million"),
                             ("fences=2", "--cost: wanted one of ")):
            self.assertIn(said, self.complaint("sim", "--cost", factor, code=USAGE))

    def test_changed_files_of_costs_are_taken_or_refused(self):
        with open(COSTS, encoding="utf-8") as file:
            known = json.load(file)
        self.assert_taken_or_refused(
            {"costs_ns": known["costs_ns"], "machine": known["machine"]}, 20, "costs.json", "sim",
            "--workload", "sps", "--system", "sp3", "--cores", "1", "--operations", "20",
            "--entries", "50", "--costs", "costs.json")  # fmt: skip
        self.assert_taken_or_refused(self.measurements(known), 15, "micro.json", "sim",
                                     "--calibrate", "micro.json")

    def measurements(self, known):
        """As `sp3 micro --calibrate --json` writes those that these costs were made of."""
        return [{"micro": name, "value": ns, "machine": known["machine"]}
                for name, ns in known["measured_ns"].items()]

    def test_what_no_costs_can_be_made_of_is_refused_by_the_files_name(self):
        with open(COSTS, encoding="utf-8") as file:
            measured = self.measurements(json.load(file))
        path = os.path.join(self.directory.name, "micro.json")
        for change, said in ((lambda row: row.update(micro="fences"), "nobody measured wake"),
                             (lambda row: row.update(value=1e18), "at most 4 million ns, found 1e+18"),
                             (lambda row: row.pop("value"), "'value'")):
            changed = [dict(row) for row in measured]
            change(next(row for row in changed if row["micro"] == "wake"))
            with open(path, "w", encoding="utf-8") as out:
                json.dump(changed, out)
            with self.subTest(said=said):
                told = self.complaint("sim", "--calibrate", path, code=USAGE)
                self.assertIn(f"--calibrate: {path}: ", told)
                self.assertIn(said, told)

    def test_an_error_is_one_line_whatever_it_quotes(self):
        path = os.path.join(self.directory.name, "costs.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"costs_ns": {"fen\nce\r\t": 1}}, out)
        self.assertIn("found 'fen?ce??'", self.complaint("sim", "--costs", path, code=USAGE))
        self.assertIn("found 'a?b'", self.complaint("sim", "--cost", "a\nb=1", code=USAGE))
        self.complaint("sim", "--cores", "1\n2", code=USAGE)

    def test_a_path_means_something_to_native_runs_only(self):
        for mode in ([], ["--sensitivity"]):
            self.assertIn("--path requires --validate", self.complaint(
                "sim", *mode, "--workload", "sps", "--path", "x.pool", code=USAGE))

    def test_many_cores_that_meet_do_not_do_less_than_few(self):
        # They would if all asked for the lines of what is locked as writers (the first), or if each
        # that fails a few times made the others wait (the second).
        for least, run in ((1.5, ("--workload", "hashtable", "--latency-ns", "500", "--model", "line")),
                           (0.8, ("--workload", "sps", "--latency-ns", "0"))):
            few, many = json.loads(self.sim(*run, "--system", "sp3", "--cores", "24,64", "--operations",
                                            "50000", "--json", "-").stdout)
            self.assertGreater(many["throughput_tx_per_s"], least * few["throughput_tx_per_s"])

    def test_each_cost_is_varied_and_what_follows_is_told(self):
        rows = self.rows("--sensitivity", "--workload", "sps", "--cores", "1,2")
        self.assertEqual((rows[0]["cost"], rows[0]["factor"], rows[0]["same_order"]), ("", 1, True))
        self.assertEqual({row["factor"] for row in rows[1:]}, {0.5, 1.5})
        for row in rows:
            self.assertEqual((row["systems"], row["cores"]), (["sp3", "nvm-tx"], [1, 2]))
            self.assertGreater(row["gain"], 0)
            self.assertGreater(row["speedup"], 0)

    def test_systems_that_cannot_run_a_workload_are_no_part_of_conclusions(self):
        result = self.sim("--sensitivity", "--workload", "sps,queue,hashtable", "--system",
                          "nvm-ideal,sp3,quadra,nvm-tx", "--cores", "1", "--operations", "200",
                          "--entries", "100", "--json", "-")
        rows = json.loads(result.stdout)
        systems = {row["workload"]: row["systems"] for row in rows}
        self.assertEqual(systems, {"sps": ["nvm-ideal", "sp3", "nvm-tx"], "queue": ["sp3", "nvm-tx"],
                                   "hashtable": ["nvm-ideal", "sp3", "nvm-tx"]})
        for row in rows:
            self.assertEqual(set(row["throughputs"]), set(row["systems"]))
            self.assertGreater(min(row["throughputs"].values()), 0)
            self.assertGreater(row["gain"], 0)
        for said in ("skipped: nvm-ideal on queue: ", "skipped: quadra on sps: "):
            self.assertIn(said, result.stderr)
        result = self.sim("--sensitivity", "--workload", "sps,queue", "--system", "nvm-ideal,sp3",
                          "--cores", "1", "--operations", "200", "--entries", "100")
        self.assertIn("skipped: queue: of the systems only sp3 can run it\n", result.stdout)
        for systems in ("sp3", "sp3,sp3"):
            self.assertIn("two or more", self.complaint("sim", "--sensitivity", "--workload", "sps",
                                                        "--system", systems, code=USAGE))
        self.assertIn("quadra on sps", self.complaint("sim", "--sensitivity", "--workload", "sps",
                                                      "--system", "quadra,sp3", code=USAGE))

    def test_native_and_simulated_runs_stand_side_by_side(self):
        costs = os.path.join(self.directory.name, "costs.json")
        with open(costs, "w", encoding="utf-8") as file:
            json.dump({"costs_ns": {"fence": 1e6}}, file)
        rows = self.rows("--validate", "--workload", "sps", "--system", "sp3", "--costs", costs)
        self.assertEqual([row["cores"] for row in rows], [1, 2])
        for row in rows:
            self.assertGreater(row["simulated_mean_ns"], 1e6)  # no native fence takes a millisecond
            self.assertLess(row["ratio"], 1)
            self.assertEqual(len(row["native_rounds_ns"]), 3)

    def simulator_beside(self, script):
        """The path of a simulator whose native `sp3` is this shell script."""
        simulator, native = (os.path.join(self.directory.name, name) for name in ("sp3-sim", "sp3"))
        shutil.copy(os.path.join(os.path.dirname(self.SP3), "sp3-sim"), simulator)
        with open(native, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(native, 0o755)
        return simulator

    def validation(self, script, *arguments, workload="sps"):
        """What --validate says of one workload, with this script as the native side."""
        costs = os.path.join(self.directory.name, "costs.json")
        with open(costs, "w", encoding="utf-8") as file:
            json.dump({"costs_ns": {}}, file)
        command = [self.simulator_beside(script), "--validate", "--workload", workload, "--system", "sp3",
                   "--operations", "100", "--entries", "100", "--costs", costs, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False,
                              cwd=self.directory.name)

    # Its arguments, one a line, into a file; then one row.
    NATIVE_RUN = """printf '%s\\n' "$@" >> arguments
                    echo '[{"system": "sp3", "workload": "sps", "latency_undisturbed_mean_ns": 1000,
                            "throughput_tx_per_s": 1e6}]' > rows
                    while [ $# -gt 1 ]; do shift; done
                    if [ "$1" = - ]; then cat rows; else cat rows > "$1"; fi
                    """

    def words_of_the_first_native_run(self):
        with open(os.path.join(self.directory.name, "arguments"), encoding="utf-8") as file:
            words = file.read().split()
        return words[:words.index("bench", 1)]

    def test_native_runs_have_the_memory_and_durability_of_the_simulated_ones(self):
        asked = {"--memory": "dax", "--line-ns": "0", "--model": "line", "--flush": "clwb",
                 "--durability": "async", "--group": "3", "--locks": "encounter",
                 "--range-lock": "grid", "--entry-size": "256", "--seed": "7"}
        result = self.validation(self.NATIVE_RUN, *(word for pair in asked.items() for word in pair),
                                 workload="ranges")
        self.assertEqual(result.returncode, 0, result.stderr)
        first = self.words_of_the_first_native_run()
        for option, value in asked.items():
            self.assertEqual(first.count(option), 1, option)
            self.assertEqual(first[first.index(option) + 1], value, option)

    def test_native_runs_are_not_asked_for_what_they_would_refuse(self):
        self.assertEqual(self.validation(self.NATIVE_RUN).returncode, 0)
        first = self.words_of_the_first_native_run()
        for option in ("--range-most", "--range-lock", "--warehouses", "--insert-ratio", "--group"):
            self.assertNotIn(option, first)
        self.sp3("bench", *first[1:first.index("--seconds")], *first[first.index("--seconds") + 2:],
                 "--operations", "50", "--repeat", "1")
        for option, value in (("--range-least", "5"), ("--warehouses", "2"), ("--group", "5")):
            for mode in ([], ["--validate"], ["--sensitivity"]):
                self.assertIn(f"{option} means nothing to ", self.complaint(
                    "sim", *mode, "--workload", "sps", option, value, code=USAGE))

    def test_rows_arrive_where_the_table_cannot(self):
        result = self.redirected("2>/dev/full", "sim", "--workload", "sps", "--system", "sp3", "--cores", "1",
                                 "--operations", "100", "--entries", "100", "--json", "-")
        self.assertEqual((result.returncode, len(json.loads(result.stdout))), (0, 1))

    def test_a_validation_follows_no_link_and_leaves_no_file(self):
        there = set(glob.glob("/tmp/sp3-sim-*"))
        # A link of the name that the native program's parent could choose leads to a file of ours.
        script = """ln -sf "$PWD/mine" "/tmp/sp3-sim-$PPID.json"
                    """ + self.NATIVE_RUN
        with open(os.path.join(self.directory.name, "mine"), "w", encoding="utf-8") as file:
            file.write("mine")
        result = self.validation(script)
        links = set(glob.glob("/tmp/sp3-sim-*")) - there
        for link in links:
            os.remove(link)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.directory.name, "mine"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        failed = self.validation("echo >&2 'sp3: out of luck'; exit 3")
        self.assertEqual(failed.returncode, ERROR)
        self.assertRegex(failed.stderr, r"^sp3: 'sp3 bench [^']*' ended with 3: sp3: out of luck\n$")
        self.assertEqual(set(glob.glob("/tmp/sp3-sim-*")) - there, set())

    def test_a_native_run_ends_with_the_validation(self):
        note = os.path.join(self.directory.name, "note")
        simulator = self.simulator_beside(f"echo $$ > '{note}'; exec sleep 60\n")
        with subprocess.Popen([simulator, "--validate", "--workload", "sps", "--system", "sp3"],
                              cwd=self.directory.name) as process:
            pid = self.noted_by_child(process, note)
            process.kill()
        self.assert_ends(pid)

    def test_a_campaign_counts_what_it_checked(self):
        found = self.campaign("--crash", "--seeds", "2-3", "--case-transactions", "2")
        for count in CAMPAIGN_COUNTS:
            self.assertIs(type(found[count]), int, count)
        self.assertEqual((found["first_seed"], found["next_seed"], found["seeds"]), (2, 4, 2))
        self.assertGreater(found["images"], 100)
        self.assertGreaterEqual(found["recoveries"], found["images"])
        self.assertNotIn("violation", found)
        again = self.campaign("--crash", "--seeds", "2-3", "--case-transactions", "2")
        for count in CAMPAIGN_COUNTS:
            self.assertEqual(found[count], again[count], count)

    def test_without_crashes_only_interleavings_are_tried(self):
        result = self.sim("--explore", "--seeds", "1-20")
        self.assertIn("20 seeds", result.stdout)
        self.assertIn("0 distinct images", result.stdout)
        self.assertIn("0 violations", result.stdout)

    def test_a_number_of_images_ends_a_campaign_which_can_go_on(self):
        arguments = ("--crash", "--case-transactions", "1", "--case-cores", "1")
        found = self.campaign(*arguments, "--images", "100")
        self.assertEqual(found["first_seed"], 1_000_000)  # seeds that also choose structures
        self.assertGreaterEqual(found["images"], 100)
        stopped = self.sim("--explore", *arguments, "--images", "1000000", "--seconds", "1e-9")
        go_on = re.search(r"to go on: --seeds (\d+)- --images (\d+)", stopped.stdout)
        self.assertIsNotNone(go_on, stopped.stdout)
        self.assertGreater(int(go_on.group(1)), 1_000_000)
        self.assertLess(int(go_on.group(2)), 1_000_000)
        self.assertNotIn("to go on", self.sim("--explore", "--seeds", "5").stdout)

    def test_seeds_may_begin_at_zero_and_have_no_end(self):
        arguments = ("--crash", "--case-transactions", "1", "--case-cores", "1", "--images", "10000")
        for seeds in ("0-", f"0-{2**64 - 1}"):
            with self.subTest(seeds=seeds):
                found = self.campaign(*arguments, "--seeds", seeds)
                self.assertGreaterEqual(found["images"], 10000)
                self.assertGreater(found["seeds"], 1)
        found = self.campaign("--case-transactions", "1", "--seeds", f"{2**64 - 3}-")
        self.assertEqual((found["seeds"], found["next_seed"]), (3, 0))

    def test_an_interrupt_ends_a_campaign_with_its_summary(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            # Whoever started the tests may ignore it.
            with subprocess.Popen([self.SP3, "sim", "--explore", "--seeds", "1-"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  preexec_fn=lambda n=number: signal.signal(n, signal.SIG_DFL)) as campaign:
                self.wait_until_caught(campaign.pid, number)
                campaign.send_signal(number)
                out, err = campaign.communicate(timeout=240)
            self.assertEqual(campaign.returncode, 0, err)
            self.assertIn("0 violations", out)
            self.assertRegex(out, r"to go on: --seeds \d+-\n")

    def test_a_signal_that_is_ignored_ends_no_campaign(self):
        with subprocess.Popen([self.SP3, "sim", "--explore", "--seconds", "1", "--seeds", "1-", "--json", "-"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
            self.wait_until_caught(process.pid, signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            found = json.loads(process.communicate(timeout=60)[0])
        self.assertGreaterEqual(found["seconds"], 1)

    @staticmethod
    def wait_until_caught(pid, number):
        """Returns once the process has a handler for the signal, and so is running its campaign."""
        while True:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status.read())
            if caught and int(caught.group(1), 16) >> (number - 1) & 1:
                return
            time.sleep(0.01)

    def test_a_violation_names_its_seed_which_replays_it(self):
        found = self.sim("--explore", "--crash", "--seeds", "1-30", "--case-transactions", "2",
                         "--mutant", MUTANT, code=FOUND)
        what = re.search(r"VIOLATION at seed (\d+): (.*)", found.stdout)
        self.assertIsNotNone(what, found.stdout)
        command = re.search(r"to replay it: ./dev crash (.*)", found.stdout).group(1).split()
        self.assertEqual(command[0], what.group(1))
        replayed = self.sim("--replay", *command, code=FOUND)
        self.assertIn("VIOLATION: " + what.group(2), replayed.stdout)
        # The events lead up to the one that the violation names, and no further.
        last = re.findall(r"^ *(\d+) +\d+ ns  core \d+ +(.*)$", replayed.stdout, re.MULTILINE)[-1]
        self.assertIn(f"at event {last[0]}, before {last[1]}", replayed.stdout)
        # The same seed is clean without the fault.
        self.sim("--replay", command[0], "--case-transactions", "2")

    def test_a_violation_is_in_the_json(self):
        found = self.campaign("--crash", "--seeds", "1-30", "--case-transactions", "2", "--mutant",
                              MUTANT, code=FOUND)
        self.assertEqual(found["violation"]["seed"] + 1, found["next_seed"])
        self.assertTrue(found["violation"]["what"])
        self.assertIn("event", found["violation"]["where"])

    def test_media_rot_if_asked_to(self):
        clean = self.campaign("--crash", "--rot", "--seeds", "1", "--case-transactions", "2")
        self.assertGreater(clean["rotten"], 0)
        self.assertGreater(clean["rotten"], clean["refused"])
        self.assertEqual(self.campaign("--crash", "--seeds", "1", "--case-transactions",
                                       "2")["rotten"], 0)
        found = self.sim("--explore", "--crash", "--rot", "--seeds", "1-30", "--case-transactions",
                         "2", "--mutant", "recovery_does_not_mend", code=FOUND)
        command = re.search(r"to replay it: ./dev crash (.*)", found.stdout).group(1).split()
        self.assertIn("--rot", command)
        self.assertIn("VIOLATION", self.sim("--replay", *command, code=FOUND).stdout)

    def test_a_memory_order_that_is_weakened_is_missed(self):
        weak = ("--weak-memory", "--seeds", "2000001-2000040")
        self.assertGreater(self.campaign(*weak)["stale_loads"], 0)
        self.assertEqual(self.campaign("--seeds", "2000000")["stale_loads"], 0)
        listed = self.sim("--explore", *weak, "--orders").stdout
        self.assertRegex(listed, r"(?m)^index/entry\.h:\d+ acquire load \d+$")
        self.assertNotIn("relaxed", listed)
        found = self.sim("--explore", *weak, "--weaken", "index/entry.h=relaxed", code=FOUND)
        command = re.search(r"to replay it: ./dev crash (.*)", found.stdout).group(1).split()
        self.assertIn("VIOLATION", self.sim("--replay", *command, code=FOUND).stdout)

    def test_a_weakened_order_that_is_nowhere_is_a_mistake(self):
        small = ("--case-cores", "2", "--case-transactions", "1", "--weak-memory", "--weaken", "index/entry.h:1=relaxed")
        for what in (["--explore", "--seeds", "1"], ["--replay", "1"]):
            self.assertIn("--weaken: met no access with an order to weaken at index/entry.h:1",
                          self.complaint("sim", *what, *small, code=USAGE))

    def test_a_clean_replay_says_what_it_checked(self):
        arguments = ("--replay", "7", "--case-transactions", "1", "--case-cores", "1")
        brief = self.sim(*arguments).stdout
        self.assertRegex(brief, r"^seed 7: 1 cores, 1 transactions each")
        self.assertRegex(brief, r"clean: no violation at \d+ points; \d+ distinct images")
        self.assertNotIn("store to", brief)
        self.assertIn("store to superblock A", self.sim(*arguments, "--trace").stdout)

    def test_histories_are_json_that_other_checkers_read(self):
        result = self.sim("--replay", "11", "--history", "-")
        entries = json.loads(result.stdout)
        transactions = sum(entry["type"] == "invoke" for entry in entries)
        self.assertIn(" 25 transactions each", result.stderr)
        self.assertIn(f"clean: a strict serial order explains all {transactions} transactions\n", result.stderr)
        self.assertEqual([entry["index"] for entry in entries], list(range(len(entries))))
        running = {}
        appended = {}
        ends = 0
        for entry in entries:
            self.assertEqual(set(entry), {"index", "process", "type", "value"})
            process = entry["process"]
            self.assertIn(entry["type"], ("invoke", "ok", "fail", "info"))
            # A process does one thing at a time: invoke, then one end.
            self.assertEqual(entry["type"] == "invoke", process not in running)
            if entry["type"] == "invoke":
                running[process] = entry
                continue
            ends += 1
            self.assertEqual(len(running.pop(process)["value"]), len(entry["value"]))
            for name, key, value in entry["value"]:
                self.assertIn(name, ("append", "r"))
                if name == "append":
                    self.assertNotIn((key, value), appended)  # values are unique
                    appended[key, value] = entry
        self.assertGreater(ends, 20)
        self.assertFalse(running)
        for entry in entries:
            for name, key, value in entry["value"]:
                if entry["type"] == "ok" and name == "r":
                    for one in value:
                        self.assertIn((key, one), appended)

    def test_bad_arguments_are_usage_errors(self):
        for arguments in (
            ["--nonsense"], ["--workload", "heap"], ["--system", "oracle"], ["--cores", "0"],
            ["--cores", "many"], ["--repeat", "0"], ["--cost", "fence"], ["--cost", "luck=2"],
            ["--cost", "fence=-1"], ["--costs", "missing.json"], ["--operations", "0"],
            ["--crash"], ["--rot"], ["--explore", "--rot"], ["--explore", "--seeds", "9-1"], ["--explore", "--seeds", "x"],
            ["--explore", "--seeds", "-"], ["--explore", "--images", "5"],
            ["--explore", "--seconds", "-1"], ["--explore", "--seconds", "nan"], ["--explore", "--mutant", "gremlin"],
            ["--explore", "--case-cores", "9"], ["--explore", "--case-cores", "0"], ["--explore", "--replay", "1"], ["--replay"],
            ["--replay", "3", "--seeds", "1-2"], ["--replay", "3", "--json", "-"], ["--seeds", "1-5"],
            ["--seconds", "1"], ["--mutant", "no_flush_own_record"], ["--case-cores", "2"],
            ["--explore", "--workload", "sps"], ["--explore", "--cores", "2"], ["--replay", "3", "--system", "sp3"],
            ["--validate", "--explore"], ["--sensitivity", "--validate"], ["--calibrate", "x", "--entries", "5"],
            ["--validate", "--cores", "4"], ["--validate", "--check"], ["--validate", "--pool-size", "1G"],
            ["--validate", "--checkpoint-ms", "5"], ["--validate", "--checkpoint-threads", "2"],
            ["--validate", "--durability", "maybe"], ["--sensitivity", "--repeat", "3"], ["--sensitivity", "--check"],
            ["--explore", "--seeds", ""], ["--costs", ""], ["--explore", "--mutant", ""], ["--calibrate", ""], ["--cost", ""],
            ["--explore", "--orders"], ["--replay", "3", "--weak-memory", "--orders"], ["--explore", "--weaken", "index/entry.h=relaxed"], ["--weak-memory"],
            *(["--explore", "--weak-memory", "--weaken", place] for place in
              ("index/entry.h", "=relaxed", "entry.h:0=relaxed", "entry.h:x=relaxed", "entry.h=seq_cst")),
            ["--replay", "x"], ["--trace"], ["--history", "-"], ["--calibrate", "missing.json"],
        ):
            with self.subTest(arguments=arguments):
                self.complaint("sim", *arguments, code=USAGE)

    def test_a_time_below_zero_is_told_as_it_was_given(self):
        self.assertIn("--seconds: wanted a number from 0 on, found -1",
                      self.complaint("sim", "--explore", "--seconds", "-1", code=USAGE))

    def test_help_and_version(self):
        shown = self.sim("--help").stdout
        self.assertIn("--explore", shown)
        # What no workload runs on here is not offered, but says why.
        self.assertIn("sp3-async", shown)
        self.assertNotIn("quadra", shown)
        self.assertIn("quadra: the simulated machine", self.complaint("sim", "--system", "quadra", code=USAGE))
        self.assertRegex(self.sim("--version").stdout, "^sp3 sim ")


if __name__ == "__main__":
    main(sys.argv)
