#!/usr/bin/env python3
"""Tests of sp3 crash-test from outside.

usage: crash_test.py SP3
"""

import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

from command_line import ERROR, FOUND, OK, CommandTest, main, process_state


def children(parent, argument, threads):
    """The children of a process that have this argument and so many threads."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                if int(file.read().rpartition(")")[2].split()[1]) != parent:
                    continue
            with open(f"/proc/{name}/cmdline", encoding="utf-8") as file:
                if argument in file.read().split("\0") and len(os.listdir(f"/proc/{name}/task")) >= threads:
                    yield int(name)
        except (OSError, ValueError):
            continue  # no process, or gone


class Record:
    """One of a log: as a line of `sp3 log` tells it, and as docs/DATA_LAYOUT.md has it in the pool."""

    def __init__(self, line, content):
        self.line = line
        found = re.fullmatch(
            r" *(\d+) +(\d+) +(\d+)  (replayable|dropped|unreachable) *(?:at +(\d+) +(\d+) B  durable to +(\d+)  "
            r"(?:(watermark)|(\d+) images, (\d+) deltas, (\d+) made, (\d+) destroyed)((?: <\d+@\d+>)*))?", line)
        self.session, self.lsn, self.stamp = map(int, found.group(1, 2, 3))
        self.state, self.watermark = found[4], found[8] is not None
        self.length = int(found[6] or 0)
        self.dependencies = [tuple(map(int, pair))
                             for pair in re.findall(r"<(\d+)@(\d+)>", found[13] or "")]
        self.node = f"{self.session}:{self.lsn}"
        self.told = self.held = None
        if self.state == "unreachable":
            return
        kinds = [0] * 4 if self.watermark else list(map(int, found.group(9, 10, 11, 12)))
        self.told = (self.length, self.lsn, self.stamp, int(found[7]), kinds, self.dependencies)
        at = int(found[5])
        length, lsn, stamp, durable, writes, dependencies = struct.unpack_from("<IQQQIH", content, at + 4)
        at += 40
        kinds = [0] * 4
        for _ in range(writes):
            _, count, kind = struct.unpack_from("<QIH", content, at)
            kinds[kind - 1] += 1
            at += 16 + count
        held = [struct.unpack_from("<QH", content, at + 16 * n)[::-1] for n in range(dependencies)]
        self.held = (length, lsn, stamp, durable, kinds, held)


def size_text(count):
    """As the command writes sizes."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    unit = 0
    while count >= 1024 and unit + 1 < len(units):
        count, unit = count / 1024, unit + 1
    return f"{count:.4g} {units[unit]}" if unit else f"{count} B"


def size_of(text):
    number, unit = text.split()
    return float(number) * 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)


class CrashTest(CommandTest):
    def test_a_victim_that_hangs_is_a_violation(self):
        """In each kind of round, whose victims are stopped until one was not about to die anyhow:
        when the pool is made, when transactions run, when what was recovered is told, and when it
        is closed."""
        # As victim.h numbers them; who runs transactions in four threads has more than five.
        for mode, threads, where in ((0, 1, "making the pool"), (1, 6, "running, its threads 0, 1, 2, 3"),
                                     (2, 1, ""), (3, 1, "")):
            with self.subTest(mode=mode), subprocess.Popen(
                    [self.SP3, "crash-test", "--rounds", "400", "--seed", "5", "--workload", "sps",
                     "--durability", "sync", "--threads", "4", "--deadline", "3", "--path", ".",
                     "--quiet"],
                    stdout=subprocess.PIPE, text=True, cwd=self.directory.name) as process:
                stopped = set()
                try:
                    while process.poll() is None:
                        for victim in children(process.pid, f"--mode={mode}", threads):
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(victim, signal.SIGSTOP)
                                stopped.add(victim)
                finally:
                    process.kill()
                said = process.stdout.read()
                self.assertEqual(process.returncode, FOUND, said)
                self.assertRegex(said, r"(?m)^round +\d+ .* VIOLATION$")
                found = re.search(rf"(?m)^  The victim hangs {where}.*: nothing for 3 s; seed \d+, "
                                  r"process (\d+) with .* T", said)
                self.assertIsNotNone(found, said)
                self.assertIn(int(found[1]), stopped)
                self.assertIsNone(process_state(found[1]))

    def test_a_crash_test_that_nobody_reads_leaves_no_pool(self):
        with subprocess.Popen([self.SP3, "crash-test", "--rounds", "10000", "--path", "."],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.directory.name) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertIn(b"standard output", process.stderr.read())
            self.assertEqual(process.wait(timeout=60), ERROR)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_an_interrupt_from_the_terminal_is_no_violation(self):
        """It goes to all processes of the group. A victim's end of it is not to be judged, and
        keeps no pool, even if the victim is the quicker one."""

        def interrupt(pid, signal_number):
            os.kill(pid, signal.SIGSTOP)
            os.killpg(pid, signal_number)
            time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)

        for _ in range(10):
            self.assertEqual(self.end_while_it_has_a_pool(
                signal.SIGINT, "crash-test", "--rounds", "10000", send=interrupt), [])

    def test_an_interrupt_ends_a_victim_that_would_make_its_pool(self):
        """Stopped before it has, it would make it when nobody removes it any more."""
        for _ in range(10):
            with subprocess.Popen([self.SP3, "crash-test", "--rounds", "1", "--path", "."],
                                  stdout=subprocess.DEVNULL, cwd=self.directory.name) as process:
                try:
                    victim = None
                    while process.poll() is None and victim is None:
                        victim = next(children(process.pid, "--mode=0", 1), None)
                    os.kill(victim, signal.SIGSTOP)
                    process.send_signal(signal.SIGINT)
                    self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
                    self.assertIn(process_state(victim), (None, "Z"))
                finally:
                    process.kill()
                    if victim is not None:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(victim, signal.SIGKILL)
            self.assertEqual(os.listdir(self.directory.name), [])

    def test_a_pool_that_cannot_be_made_is_no_violation(self):
        said = self.sp3("crash-test", "--rounds", "1", "--memory", "dax", "--path", ".", code=ERROR)
        self.assertIn("not on persistent memory", said.stderr)
        self.assertNotIn("VIOLATION", said.stdout)

    def test_a_crash_test_without_room_kills_nobody(self):
        result = self.on_tmpfs(self.directory.name, "20m", self.SP3, "crash-test", "--rounds", "1",
                               "--path", ".")
        self.assertEqual(result.returncode, ERROR, result.stdout)
        self.assertRegex(result.stderr, "^sp3: there is no room .*, wanted 32 MiB, found 20 MiB\n$")
        self.assertNotIn("round", result.stdout)

    def kept_pools(self, *arguments, seed=3):
        """What is printed, and the pools that victims left, as they were when these died."""
        directory = os.path.join(self.directory.name, str(seed))
        os.makedirs(directory, exist_ok=True)
        said = self.sp3("crash-test", "--seed", str(seed), "--keep", "--path", directory, *arguments).stdout
        return said, [os.path.join(directory, name)
                      for name in sorted(os.listdir(directory)) if name.endswith(".crashed")]

    def test_what_is_told_of_a_log_is_what_it_holds_and_what_recovery_finds(self):
        """How much it holds hangs on when the process was killed, so others are."""
        for seed in range(3, 40):
            _, pools = self.kept_pools("--rounds", "3", "--workload", "queue,rbtree,bank", "--threads", "3",
                                       "--durability", "async", seed=seed)
            if max([self.check_log(pool) for pool in pools]) > 5:
                return
        self.fail("no process was killed in time")

    def check_log(self, pool):
        """Returns how many records it has."""
        with open(pool, "rb") as file:
            content = file.read()
        told = self.sp3("log", pool).stdout.splitlines()
        records = [Record(line, content) for line in told[1:-1]]
        transactions = [record for record in records if not record.watermark]
        replayable = [r for r in records if r.state == "replayable"]
        is_clean = struct.unpack_from("<I", content, 96)[0] == 1
        self.assertEqual(told[-1], f"{len(transactions)} records, {len(records) - len(transactions)} "
                         f"watermarks, {len(records)} shown; the pool was "
                         + ("closed: none will be replayed" if is_clean else "not closed"))
        for record in records:
            self.assertEqual(record.told, record.held, record.line)
        for limit in (1, 5):
            some = self.sp3("log", pool, "--limit", str(limit)).stdout.splitlines()
            self.assertEqual(some[:-1], told[:-1][:1 + limit])
            self.assertIn(f", {min(limit, len(records))} shown;", some[-1])
        self.check_graph(self.sp3("log", pool, "--dot", "-").stdout, transactions)

        check = json.loads(self.sp3("pool", "check", pool, "--json").stdout)
        self.assertEqual(check["records"], sum(r.state != "unreachable" for r in transactions))
        self.assertIn(f": sound, {'closed cleanly' if is_clean else 'not closed'}; {check['slabs']} slabs, "
                      f"{check['objects']} objects, {check['records']} log records\n",
                      self.sp3("pool", "check", pool).stdout)
        recovered = self.sp3("pool", "recover", pool, "--strategy", "dag", "--threads", "2").stdout
        if not is_clean:
            self.check_recovery(recovered, transactions, replayable)
        return len(transactions)

    def check_graph(self, graph, transactions):
        """A box for each record, red where it is dropped, and arrows to it from those it follows."""
        boxes = re.findall(r'^  "(\d+):(\d+)" \[label="session \1 record \2\\nstamp (\d+)"(, color=red)?\];$',
                           graph, re.M)
        self.assertEqual(len(boxes), len(transactions))
        for box, r in zip(boxes, transactions):  # of the whole lists unittest would look long for differences
            self.assertEqual(box, (str(r.session), str(r.lsn), str(r.stamp),
                                   "" if r.state == "replayable" else ", color=red"))
        by_stamp = {(r.session, r.stamp): r for r in transactions}
        lines, others = set(), set()
        for before, record in zip([None, *transactions], transactions):
            if before is not None and before.session == record.session:
                lines.add((before.node, record.node))
            for session, stamp in record.dependencies:
                if (session, stamp) in by_stamp:
                    others.add((by_stamp[session, stamp].node, record.node))
        arrows = re.findall(r'^  "(\d+:\d+)" -> "(\d+:\d+)"( \[style=bold\])?;$', graph, re.M)
        self.assertEqual({(a, b) for a, b, bold in arrows if bold}, lines)
        self.assertEqual({(a, b) for a, b, bold in arrows if not bold}, others)

    def check_recovery(self, told, transactions, replayable):
        replayed = sum(not record.watermark for record in replayable)
        self.assertIn(f"records            {len(transactions)} found, {replayed} replayed, "
                      f"{len(transactions) - replayed} dropped\n", told)
        sessions = {r.session for r in transactions if r.state != "unreachable"}
        self.assertIn(f"logs               {len(sessions)} with records, ", told)
        [(scanned, of_replayed)] = re.findall(r"^bytes +(.+) scanned, (.+) replayed$", told, re.M)
        self.assertEqual(of_replayed, size_text(sum(r.length for r in replayable)))
        self.assertGreater(size_of(scanned) * 1.001, sum(-(-r.length // 64) * 64 for r in replayable))
        self.assertIn("strategy           dag, 2 threads\n", told)
        [times] = re.findall(r"^seconds +(\S+): scan (\S+), cut (\S+), order (\S+), replay (\S+), flush (\S+)$",
                             told, re.M)
        total, *phases = map(float, times)
        self.assertGreaterEqual(total + 0.0005, sum(phases))

    def test_what_is_told_of_a_pool_is_what_it_holds(self):
        _, pools = self.kept_pools("--rounds", "1", "--workload", "rbtree", "--durability", "sync")
        for pool in pools:
            self.sp3("pool", "recover", pool)
            with open(pool, "rb") as file:
                content = file.read()
            generation, checkpoint, floor = struct.unpack_from("<3Q", content, 64)
            state, sessions, segment_size, slab_size = struct.unpack_from("<4I", content, 96)
            extents = [struct.unpack_from("<QQ", content, 112 + 24 * n + 8) for n in range(4)]
            slabs = [struct.unpack_from("<Q8xI", content, extents[1][0] + 32 * n)
                     for n in range(extents[3][1] // slab_size)]
            carved, objects = sum(kind != 0 for kind, _ in slabs), sum(live for _, live in slabs)
            held = {"size": len(content), "log_size": extents[2][1], "segment_size": segment_size,
                    "slab_size": slab_size, "max_sessions": sessions - 1, "generation": generation,
                    "checkpoint_number": checkpoint, "checkpoint_floor": floor, "clean": state == 1,
                    "slabs_total": len(slabs), "slabs_carved": carved, "objects": objects}
            info = json.loads(self.sp3("pool", "info", pool, "--json").stdout)
            self.assertEqual({name: info[name] for name in held}, held)
            for line in (f"size               {size_text(len(content))} ({len(content)} bytes)",
                         f"log                {size_text(extents[2][1])} in segments of {size_text(segment_size)}",
                         f"sessions           at most {sessions - 1}",
                         f"slabs              {carved} of {len(slabs)} in use, {size_text(slab_size)} each",
                         f"objects            {objects} as of the last checkpoint",
                         f"generation         {generation}",
                         f"checkpoint         number {checkpoint}, floor {floor}",
                         "state              closed cleanly"):
                self.assertIn(line + "\n", self.sp3("pool", "info", pool).stdout)
            self.assertIn(f": sound, closed cleanly; {carved} slabs, {objects} objects, 0 log records\n",
                          self.sp3("pool", "check", pool).stdout)

    def test_rounds_are_told_and_added_up(self):
        for durability, strategy in (("sync", "dag"), ("async", "stamp")):
            said, _ = self.kept_pools("--rounds", "6", "--workload", "queue", "--durability", durability,
                                      "--strategy", strategy)
            rounds = re.findall(r"^round +(\d+)  queue +(\w+) +(\w+) +(\d) threads  killed .* acked +(\d+) "
                                r"\+(\d+) +recovered +(\d+) dropped +(\d+)  ok$", said, re.M)
            self.assertEqual([int(told[0]) for told in rounds], [1, 2, 3, 4, 5, 6])
            self.assertEqual({told[1:3] for told in rounds}, {(durability, strategy)})
            acknowledged, survivors = (sum(int(told[i]) for told in rounds) for i in (4, 5))
            [kills] = re.findall(rf"^(\d+) kills, {acknowledged} acknowledged transactions, {survivors} "
                                 "unacknowledged survivors, 0 violations$", said, re.M)
            self.assertLessEqual(int(kills), 2 * 6)
            # Of what a synchronous session has in flight a crash takes one transaction at most.
            if durability == "sync":
                self.assertTrue(all(int(told[7]) <= int(told[3]) for told in rounds), said)
        quiet = self.sp3("crash-test", "--rounds", "1", "--workload", "queue", "--quiet").stdout
        self.assertEqual(len(quiet.splitlines()), 2)

    def test_crash_test_kills_recovers_and_leaves_a_log_to_look_at(self):
        result = self.sp3("crash-test", "--rounds", "4", "--seed", "3", "--workload", "rbtree,queue",
                          "--durability", "async", "--keep", "--path", self.directory.name)
        self.assertIn("0 violations", result.stdout)
        self.assertIn("--seed 3", result.stdout)
        crashed = [f for f in os.listdir(self.directory.name) if f.endswith(".crashed")]
        self.assertEqual(len(crashed), 2)
        for name in crashed:
            pool = os.path.join(self.directory.name, name)
            self.assertIn("records", self.sp3("log", pool, "--limit", "5").stdout)
            records = [line for line in self.sp3("log", pool).stdout.splitlines()[1:-1]
                       if "watermark" not in line]
            graph = self.sp3("log", pool, "--dot", "-").stdout
            self.assertTrue(graph.startswith("digraph"))
            self.assertEqual(graph.count("[label="), len(records))
            if len({line.split()[0] for line in records}) < len(records):
                self.assertIn("->", graph)  # from a session's record to its next
            self.sp3("pool", "check", pool)
            self.sp3("pool", "recover", pool, "--strategy", "dag", "--threads", "2")
            self.assertTrue(json.loads(self.sp3("pool", "info", pool, "--json").stdout)["clean"])


if __name__ == "__main__":
    main(sys.argv)
