#!/usr/bin/env python3
"""Tests of `sp3 compare`: what it writes, what it goes on with, and what it never mixes.

usage: compare_test.py SP3
"""

import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys

from command_line import ERROR, USAGE, CommandTest, main


class CompareTest(CommandTest):
    COMPARE = ("compare", "--results", "results.json", "--section", "emulated,file",
               "--system", "sp3,nvm-tx", "--workload", "sps,hashtable", "--threads", "1",
               "--operations", "400", "--entries", "300", "--repeat", "2")

    def results(self):
        path = os.path.join(self.directory.name, "results.json")
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def change_results(self, change):
        found = self.results()
        change(found)
        path = os.path.join(self.directory.name, "results.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found, file)

    def test_compare_writes_a_row_for_every_cell(self):
        printed = self.sp3(*self.COMPARE).stdout
        found = self.results()
        self.assertEqual(found["format"], "sp3-compare")
        self.assertIsNotNone(found["finished"])
        self.assertEqual(found["plan"]["repeat"], 2)
        cells = [(row["section"], row["workload"], row["system"]) for row in found["rows"]]
        self.assertEqual(cells, [
            ("emulated", "sps", "sp3"), ("emulated", "sps", "nvm-tx"),
            ("emulated", "hashtable", "sp3"), ("emulated", "hashtable", "nvm-tx"),
            ("file", "hashtable", "sp3")])
        self.assertEqual(len(found["runs"]), 10)
        for row in found["rows"]:
            self.assert_bench_fields(row)
            self.assertEqual(row["operations"], 400)
            self.assertEqual((row["seed"], row["repeat"], len(row["throughputs"])), (1, 2, 2))
            self.assertEqual(row["throughput_tx_per_s"], row["throughputs"][0])
        self.assertEqual(printed.count("nvm-tx"), 2)
        left = [name for name in os.listdir(self.directory.name) if name != "results.json"]
        self.assertEqual(left, [])

    def test_what_is_named_twice_is_measured_once(self):
        self.sp3("compare", "--results", "results.json", "--section", "emulated,emulated", "--system",
                 "sp3,sp3", "--workload", "sps,sps", "--threads", "1,1", "--operations", "50",
                 "--entries", "100", "--repeat", "2")
        self.assertEqual((len(self.results()["rows"]), len(self.results()["runs"])), (1, 2))

    def test_compare_goes_on_where_it_was(self):
        self.sp3(*self.COMPARE)
        complete = self.results()

        def lose_the_last(found):
            lost = "file/hashtable/+0 fence/x1/sp3"
            del found["runs"][lost + "#1"]
            found["rows"] = [row for row in found["rows"]
                             if (row["section"], row["workload"]) != ("file", "hashtable")]
            found["finished"] = None

        self.change_results(lose_the_last)
        self.sp3(*self.COMPARE)
        again = self.results()
        self.assertEqual(again["started"], complete["started"])
        self.assertIsNotNone(again["finished"])
        self.assertEqual(again["rows"][:4], complete["rows"][:4])
        self.assertEqual(len(again["rows"]), 5)
        self.assertEqual(again["runs"].keys(), complete["runs"].keys())
        self.sp3(*self.COMPARE)
        self.assertEqual(self.results(), again)

    def test_compare_never_mixes(self):
        self.sp3(*self.COMPARE)
        self.assertIn("plan.entries is 301 here and 300 there",
                      self.complaint(*self.COMPARE[:-3], "301", "--repeat", "2", code=USAGE))
        self.assertIn("but not tpcc", self.complaint(*self.COMPARE[:1], "--workload", "sps,tpcc",
                                                     code=USAGE))
        # What none of its workloads looks at is not taken.
        for option in ("--warehouses", "--range-most"):
            self.assertIn(option, self.complaint(*self.COMPARE, option, "2", code=USAGE))
        self.complaint(*self.COMPARE[:-5], "0", "--entries", "300", "--repeat", "2", code=USAGE)

        def on_another_machine(found):
            found["machine"]["cpu"] = "abacus"

        def of_another_commit(found):
            found["commit"] = "0000000"

        def of_other_libraries(found):
            found["plan"]["program"]["libraries"] = "00000000"

        before = self.results()
        for change, named in ((on_another_machine, "machine.cpu"), (of_another_commit, "commit"),
                              (of_other_libraries, "plan.program.libraries")):
            self.change_results(change)
            unmixed = self.results()
            self.assertIn(named, self.complaint(*self.COMPARE, code=USAGE))
            self.assertEqual(self.results(), unmixed)
            self.change_results(lambda found: found.update(before))

    def test_a_damaged_file_is_refused_by_its_name(self):
        run = "file/hashtable/+0 fence/x1/sp3#1"

        def no_seed(found):
            del found["runs"][run]["seed"]

        def a_text(found):
            found["runs"][run]["throughput_tx_per_s"] = "much"

        def below_0(found):
            found["runs"][run]["throughput_tx_per_s"] = -1.5

        def no_run(found):
            found["runs"][run] = {"rows": 3}

        self.sp3(*self.COMPARE)
        before = self.results()
        for change, named in ((lambda found: found.update(rows=[1]), "row 0 is no object"),
                              (lambda found: found.update(rows=[{}]), "row 0 has no section"),
                              (lambda found: found["rows"][3].pop("spread"), "row 3 has no spread"),
                              (lambda found: found["runs"].update({run: 1}), "is no object"),
                              (lambda found: found.update(finished=5), "finished is neither"),
                              (no_seed, "has no seed"), (no_run, "has no section"),
                              (a_text, "has throughput_tx_per_s of another type"),
                              (below_0, "has throughput_tx_per_s below 0")):
            self.change_results(change)
            damaged = self.results()
            said = self.complaint(*self.COMPARE, code=USAGE)
            self.assertIn("results.json: is damaged", said)
            self.assertIn(named, said)
            self.assertEqual(self.results(), damaged)
            self.change_results(lambda found: (found.clear(), found.update(before)))

    def test_a_file_that_is_nested_too_deeply_is_refused(self):
        with open(os.path.join(self.directory.name, "results.json"), "w", encoding="ascii") as out:
            out.write('{"format":' + "[" * 200_000 + "]" * 200_000 + "}")
        said = self.complaint(*self.COMPARE, code=USAGE)
        self.assertIn("results.json: is nested deeper than 64 levels", said)

    def test_every_member_that_rows_are_made_of_has_its_type(self):
        command = ("compare", "--results", "results.json", "--section", "emulated", "--system",
                   "sp3", "--workload", "sps", "--threads", "1", "--operations", "100",
                   "--entries", "100", "--repeat", "1")
        self.sp3(*command)
        before = self.results()
        run, = before["runs"]

        def refuses(change, what, member):
            self.change_results(change)
            said = self.complaint(*command, code=USAGE)
            self.assertIn(f"results.json: is damaged: {what} has ", said)
            self.assertIn(f" {member}", said)
            self.change_results(lambda found: found.update(before))

        for member, value in before["runs"][run].items():
            # Where emulated memory is on a disk, this one says which.
            may_be_null = value is None or member == "file_system"
            others = [1.5 if isinstance(value, (str, bool)) else "x", None]
            for other in others if not may_be_null else [{}]:
                with self.subTest(member=member, other=other):
                    refuses(lambda found: found["runs"][run].update({member: other}),
                            f"the run '{run}'", member)
        for member in ("throughputs", "repeat", "spread", "commit", "machine"):
            refuses(lambda found: found["rows"][0].update({member: None}), "row 0", member)
        self.sp3(*command)
        self.assertEqual(self.results(), before)

    def test_rows_are_made_of_the_runs(self):
        self.sp3(*self.COMPARE)
        complete = self.results()

        def lose_a_run(found):
            del found["runs"]["emulated/sps/+500 fence/x1/nvm-tx#0"]
            found["rows"] = [found["rows"][3], *found["rows"][:3], *found["rows"][3:]]

        self.change_results(lose_a_run)
        self.sp3(*self.COMPARE)
        cells = [[(row["section"], row["workload"], row["system"]) for row in found["rows"]]
                 for found in (complete, self.results())]
        self.assertEqual(sorted(cells[1]), sorted(cells[0]))

    def test_results_are_finished_only_while_all_runs_are_there(self):
        self.sp3(*self.COMPARE)
        self.change_results(lambda found: found["runs"].pop("file/hashtable/+0 fence/x1/sp3#1"))
        # No file may be as long as a pool.
        self.sp3(*self.COMPARE, code=ERROR,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 27, 1 << 27)))
        self.assertIsNone(self.results()["finished"])
        self.sp3(*self.COMPARE)
        self.assertIsNotNone(self.results()["finished"])

    def test_a_row_has_the_first_seed_also_where_others_wrap_around(self):
        last = str(2**64 - 1)
        self.sp3("compare", "--results", "results.json", "--section", "emulated", "--system", "sp3",
                 "--workload", "sps", "--threads", "1", "--operations", "100", "--entries", "100",
                 "--repeat", "2", "--seed", last)  # fmt: skip
        found = self.results()
        self.assertEqual([row["seed"] for row in found["rows"]], [int(last)])
        self.assertEqual({run["seed"] for run in found["runs"].values()}, {int(last), 0})

    def test_compare_leaves_other_files_alone(self):
        path = os.path.join(self.directory.name, "results.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write("no json")
        self.assertIn("results.json", self.complaint(*self.COMPARE, code=USAGE))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "no json")

    def test_compare_never_mixes_programs(self):
        self.sp3(*self.COMPARE)
        # The same commit, another file: what is behind its end nobody reads.
        other = os.path.join(self.directory.name, "other")
        shutil.copy(self.SP3, other)
        with open(other, "ab") as file:
            file.write(b"built otherwise")
        result = subprocess.run([other, *self.COMPARE], cwd=self.directory.name, capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, USAGE, result.stderr)
        self.assertIn("plan.program.sp3", result.stderr)

    def test_a_simulator_that_came_later_is_another_program(self):
        alone = os.path.join(self.directory.name, "sp3")
        shutil.copy(self.SP3, alone)
        command = [alone, "compare", "--full", "--results", "results.json", "--section",
                   "emulated,simulated", "--system", "sp3", "--workload", "sps", "--threads", "1",
                   "--operations", "50", "--entries", "100", "--repeat", "1"]

        def run():
            return subprocess.run(command, cwd=self.directory.name, capture_output=True, text=True,
                                  check=False)

        self.assertIn("sp3-sim is not in this build", run().stdout)
        before = self.results()
        self.assertEqual([section["name"] for section in before["sections"]], ["emulated"])
        shutil.copy(self.SP3, os.path.join(self.directory.name, "sp3-sim"))
        result = run()
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("plan.program.sp3-sim is ", result.stderr)
        self.assertEqual(self.results(), before)

    # No file can be made there, whoever tries.
    NO_DISK = ("--directory", "/proc")

    def test_what_cannot_be_measured_does_not_stop_the_rest(self):
        said = self.complaint(*self.COMPARE, *self.NO_DISK, code=ERROR)
        self.assertIn("1 of 5 could not be measured, file/hashtable/+0 fence/x1/sp3: ", said)
        found = self.results()
        self.assertIsNone(found["finished"])
        self.assertEqual({row["section"] for row in found["rows"]}, {"emulated"})
        self.assertEqual(len(found["rows"]), 4)
        # It is tried again, and told of once; the others are not.
        printed = self.sp3(*self.COMPARE, *self.NO_DISK, code=ERROR).stdout
        again = self.results()
        self.assertEqual(again["runs"], found["runs"])
        failed = [reason for reason in again["skipped"] if reason.startswith("file/hashtable")]
        self.assertEqual(len(failed), 1)
        self.assertIn("skipped: " + failed[0], printed)
        self.assertEqual(printed.count("nvm-tx"), 2)

    def test_a_program_that_fails_does_not_stop_the_tables(self):
        # No file may be as long as a pool with 4 GiB of log.
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

        result = self.sp3("compare", "--full", "--results", "results.json", "--section",
                          "emulated,recovery", "--system", "sp3", "--workload", "sps", "--threads",
                          "1", "--operations", "100", "--entries", "100", "--repeat", "1", code=ERROR,
                          preexec_fn=limit)
        self.assertIn("4 of 7 could not be measured", result.stderr)
        self.assertIn("Emulated persistent memory, +500 ns (fence)", result.stdout)
        found = self.results()
        self.assertEqual(len(found["rows"]), 3)
        self.assertEqual([reason.split(":")[0] for reason in found["skipped"]],
                         [f"recovery/{ms} ms" for ms in (1000, 2000, 5000, 10000)])

    def test_files_beside_the_results_are_left_alone(self):
        for name in ("results.json.new", "results.json.part"):
            with open(os.path.join(self.directory.name, name), "w", encoding="utf-8") as file:
                file.write(name)
        self.sp3(*self.COMPARE)
        for name in ("results.json.new", "results.json.part"):
            with open(os.path.join(self.directory.name, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), name)
        self.assertEqual(len(os.listdir(self.directory.name)), 3)

    def test_a_link_leads_to_the_results(self):
        link = os.path.join(self.directory.name, "results.json")
        os.mkdir(os.path.join(self.directory.name, "there"))
        os.symlink("there/found.json", link)
        self.sp3(*self.COMPARE)
        self.sp3(*self.COMPARE)
        self.assertTrue(os.path.islink(link))
        self.assertIsNotNone(self.results()["finished"])

    def test_a_directory_may_be_any_bytes(self):
        directory = os.path.join(self.directory.name, os.fsdecode(b"\xff"))
        os.mkdir(directory)
        command = ("compare", "--results", "results.json", "--section", "file", "--system", "sp3",
                   "--workload", "hashtable", "--threads", "1", "--operations", "10", "--entries",
                   "100", "--repeat", "1", "--directory", directory)
        self.sp3(*command)
        self.sp3(*command)  # goes on

    def test_results_that_another_process_writes_are_refused(self):
        self.sp3(*self.COMPARE)
        before = self.results()
        with open(os.path.join(self.directory.name, "results.json"), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            said = self.complaint(*self.COMPARE, code=ERROR)
        self.assertIn("results.json: another process writes it", said)
        self.assertEqual(self.results(), before)

    def test_results_are_locked_from_the_first_run_to_the_last(self):
        path = os.path.join(self.directory.name, "results.json")
        endless = ("compare", "--results", path, "--section", "emulated", "--system", "sp3",
                   "--workload", "sps", "--threads", "1", "--operations", "10", "--entries", "100",
                   "--repeat", "1000")
        with subprocess.Popen([self.SP3, *endless], cwd=self.directory.name,
                              stdout=subprocess.DEVNULL) as process:
            try:
                seen = set()
                while len(seen) < 3:  # replaced again and again
                    if os.path.exists(path) and os.stat(path).st_size > 0:
                        seen.add(os.stat(path).st_mtime_ns)
                        self.assertIn("another process", self.complaint(*endless, code=ERROR))
            finally:
                process.terminate()
        self.assertEqual(os.listdir(self.directory.name), ["results.json"])

    def test_what_cannot_be_results_is_said_before_anything_is_run(self):
        path = os.path.join(self.directory.name, "results.json")
        for content in ('{"format": 5}', '{"format": "sp3-compare"}', "[]", "no json"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            self.assertEqual(self.complaint(*self.COMPARE, code=USAGE),
                             "sp3: results.json: exists, and is no result of sp3 compare")
        for results in (".", "missing/results.json", "-", "/dev/null"):
            said = self.complaint("compare", "--results", results, *self.COMPARE[3:], code=USAGE)
            self.assertNotIn("basic_", said)

    def test_compare_never_mixes_disks(self):
        command = ("compare", "--results", "../results.json", "--section", "file", "--system", "sp3",
                   "--workload", "hashtable", "--threads", "1", "--operations", "100", "--entries",
                   "100", "--repeat", "1")
        here, there = (os.path.join(self.directory.name, name) for name in ("here", "there"))
        os.mkdir(here)
        os.mkdir(there)
        self.sp3(*command, cwd=here)
        plan = self.results()["plan"]
        self.assertEqual(plan["file_directory"], os.path.realpath(here))
        self.assertRegex(plan["file_system"], "^[^ ]+ on .+")
        self.assertIn("plan.file_directory", self.complaint(*command, code=USAGE, cwd=there))
        # However it is called, it is the same.
        self.sp3(*command, "--directory", "../here/.", cwd=there)
        self.assertIn("nowhere", self.complaint(*command, "--directory", "nowhere", code=USAGE, cwd=here))

    def test_what_is_in_memory_does_not_depend_on_the_directory(self):
        command = ("compare", "--results", os.path.join(self.directory.name, "results.json"),
                   "--section", "emulated", "--system", "sp3", "--workload", "sps", "--threads", "1",
                   "--operations", "100", "--entries", "100", "--repeat", "1")
        self.sp3(*command)
        self.assertIsNone(self.results()["plan"]["file_directory"])
        self.sp3(*command, cwd="/")


if __name__ == "__main__":
    main(sys.argv)
