#!/usr/bin/env python3
"""Where the time of a transaction goes, by phases of the protocol.

usage: phases.py [--sp3 PROGRAM] [--workload LIST] [--system LIST] [--threads LIST]
                 [--latency-ns N] [--seconds S] [--repeat R]

Samples `sp3 bench` with perf while it runs, sorts the samples by the function they hit, and prints
nanoseconds of one transaction for each phase: its share of all samples, times threads over
throughput. So the checkpointer's and the kernel's time is part of the transaction it was taken
from. Without latency and with system dram-tx it is what the same transaction takes without a log.

Needs Linux perf; a clock is sampled, so virtual machines will do. Inlined functions count for
those they were inlined into: in a release build, whose folders are compiled as one, the fence of a
commit that meets nobody is part of "access".
"""

import argparse
import collections
import json
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

# The first that matches counts.
PHASES = [
    ("fence", r"Persister::fence_last|Latency"),
    ("flush", r"start_flush|Persister::flush|Memory::log_flush|flush_lines"),
    ("record", r"RecordBuilder|crc|SessionCore::seal|push_item|OwnerSide::(?:put|seal)|"
               r"reserve_log|record_bound|SessionLog|SegmentPool"),
    ("order", r"is_committed|track_|commit_last|Persister::(?:advance|wait|help)|announce|"
              r"take_stamp|look_ahead|uncommitted_predecessor"),
    ("checkpoint", r"Checkpointer|SlabTable::store|emu::Memory::(?:store|flush)\b|superblock"),
    ("versions", r"Version(?:Pool|Depot)"),
    ("client", r"OperationStream|Zipf|pow|Run::|Histogram"),
    ("kernel", r"^\[k\]"),
]
REST = "access"  # finding, reading, copying, locking, publishing
ORDER = [REST, "versions", "record", "order", "flush", "fence", "checkpoint", "kernel", "client"]

WARMUP_SECONDS = 0.5
SAMPLE = re.compile(r"^\s+([\d.]+)%\s+(\[.\].*)")


def phase_of(symbol):
    return next((name for name, pattern in PHASES if re.search(pattern, symbol)), REST)


def measure(arguments, workload, system, threads):
    """Nanoseconds of one transaction, by phase."""
    with tempfile.TemporaryDirectory() as folder:
        data, result = Path(folder, "perf.data"), Path(folder, "bench.json")
        bench = [arguments.sp3, "bench", "--workload", workload, "--system", system,
                 "--threads", threads, "--latency-ns",
                 "0" if system == "dram-tx" else str(arguments.latency_ns),
                 "--repeat", "1", "--seconds", str(arguments.seconds),
                 "--warmup", str(WARMUP_SECONDS), "--no-latency", "--json", str(result)]
        subprocess.run(["perf", "record", "-e", "cpu-clock", "-F", "5000", "-o", str(data)] + bench,
                       check=True, capture_output=True)
        row = json.loads(result.read_text())[0]
        # Leaves out making and filling the pool, warming up, and removing the pool.
        report = subprocess.run(["perf", "report", "-i", str(data), "--no-children", "--stdio",
                                 "--time", "40%-95%", "-s", "sym"],
                                check=True, capture_output=True, text=True).stdout
    shares = collections.Counter()
    for line in report.splitlines():
        if found := SAMPLE.match(line):
            shares[phase_of(found[2])] += float(found[1])
    whole = 1e9 * int(threads) / row["throughput_tx_per_s"]
    total = sum(shares.values())
    return {phase: whole * share / total for phase, share in shares.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sp3", default="build/release/tools/sp3", help="the program to sample")
    parser.add_argument("--workload", default="sps,queue,hashtable,rbtree,bptree")
    parser.add_argument("--system", default="dram-tx,sp3")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--latency-ns", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--repeat", type=int, default=3, help="the median of so many counts")
    arguments = parser.parse_args()

    print(f"{'workload':10} {'threads':>7} {'system':9} {'ns':>6}",
          " ".join(f"{phase:>10}" for phase in ORDER))
    for workload in arguments.workload.split(","):
        for threads in arguments.threads.split(","):
            runs = collections.defaultdict(list)
            for _ in range(arguments.repeat):  # in turn, so that a change of pace meets all
                for system in arguments.system.split(","):
                    runs[system].append(measure(arguments, workload, system, threads))
            for system, measured in runs.items():
                median = sorted(measured, key=lambda phases: sum(phases.values()))[len(measured) // 2]
                print(f"{workload:10} {threads:>7} {system:9} {sum(median.values()):6.0f}",
                      " ".join(f"{median.get(phase, 0):10.0f}" for phase in ORDER), flush=True)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads no more ends it, without a word
    try:
        sys.exit(main())
    except FileNotFoundError as error:
        sys.exit(f"phases.py: {error.filename} not found")
    except subprocess.CalledProcessError as error:
        sys.exit(f"phases.py: {' '.join(error.cmd)}\n{error.stderr}")
