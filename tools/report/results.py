"""Reads result files and sorts their rows by what they are.

Accepted: the files of `sp3 compare` (an object with "rows") and the lists of rows that `sp3 bench
--json`, `sp3 sim --json`, `sp3 lockbench --json` and `sp3 recovery-bench --json` write. A row is
known by its members:

  transactions  "system" and "throughput_tx_per_s"
  locks         "lock" and "pairs_per_s" (or "instructions_per_pair")
  recovery      "recovery_seconds", with "threads", "checkpoint_ms" and "log_bytes"
  validation    "native_mean_ns" beside "simulated_mean_ns" (`sp3 sim --validate`)
  sensitivity   "cost", with its "factor" and the "gain" and "speedup" found (`sp3 sim --sensitivity`)
"""

import json
import math
from dataclasses import dataclass, field

from digits import number
from schema import BadInput, is_unicode, kind_of  # noqa: F401  (callers catch it)
from settings import setting_of, with_details

VERSION = 1  # of the files of `sp3 compare` (docs/RESULTS.md)
WORKLOADS = ["sps", "queue", "hashtable", "rbtree", "bptree"]
WORKLOAD_TITLES = {
    "sps": "SPS",
    "queue": "Queue",
    "hashtable": "Hash table",
    "rbtree": "Red-black tree",
    "bptree": "B+ tree",
    "ranges": "Ranges",
    "bank": "Bank",
    "tpcc": "TPC-C, reduced",
}
SYSTEMS = [
    "sp3", "sp3-async", "nvm-tx", "nvm-ideal", "dram-tx",
    "pmdk", "mnemosyne", "quadra", "lmdb", "rocksdb", "sqlite",
]  # fmt: skip


@dataclass
class Results:
    rows: list = field(default_factory=list)  # transactions
    locks: list = field(default_factory=list)
    recoveries: list = field(default_factory=list)
    validations: list = field(default_factory=list)
    sensitivities: list = field(default_factory=list)
    skipped: list = field(default_factory=list)  # reasons, as the files give them
    files: list = field(default_factory=list)

    def cells(self):
        kinds = [self.rows, self.locks, self.recoveries, self.validations, self.sensitivities]
        return sum(map(len, kinds))

    def settings(self):
        """All settings, natives first, each with its rows."""
        order = {"native": 0, "yield": 1, "simulated": 2}
        grouped = {}
        for row in self.rows:
            grouped.setdefault(setting_of(row), []).append(row)
        keys = sorted(grouped, key=lambda s: (order[s.environment], s.memory != "emulated", s))
        return [(setting, grouped[setting]) for setting in with_details(keys)]


def load(paths):
    """All rows of all files. Raises BadInput."""
    results = Results()
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}: {error}") from error
        rows = content.get("rows") if isinstance(content, dict) else content
        if not isinstance(rows, list):
            raise BadInput(f"{path}: wanted a list of rows or an object with 'rows'")
        if isinstance(content, dict):
            if content.get("version", VERSION) != VERSION:
                raise BadInput(f"{path}: version: wanted {VERSION}, found {str(content['version'])[:40]!r}")
            results.skipped += reasons(content.get("skipped"), path)
        for number, row in enumerate(rows):
            kind = kind_of(row, f"{path}: row {number}")
            getattr(results, kind.target).append(row)
        results.files.append(str(path))
    return results


def reasons(skipped, path):
    if skipped is None:
        return []
    if isinstance(skipped, list) and all(is_unicode(reason) for reason in skipped):
        return skipped
    raise BadInput(f"{path}: skipped: wanted a list of sentences")


def workload_title(name):
    return WORKLOAD_TITLES.get(name, name)


def workloads_in(rows):
    """In the order of WORKLOADS, others last."""
    names = {row["workload"] for row in rows}
    known = [name for name in WORKLOADS if name in names]
    return known + sorted(names - set(known))


def systems_in(rows):
    """In the order of SYSTEMS, unknown ones last."""
    names = {row["system"] for row in rows}
    known = [name for name in SYSTEMS if name in names]
    return known + sorted(names - set(known))


def thread_counts(rows):
    return sorted({row["threads"] for row in rows})


def measured_twice(rows):
    """Of rows of one setting, a sentence about the cells that have several, or none."""
    counts = {}
    for row in rows:
        cell = (row["system"], row["workload"], row["threads"])
        counts[cell] = counts.get(cell, 0) + 1
    several = [
        f"{system} on {workload} ×{threads} ({count} rows)"
        for (system, workload, threads), count in counts.items()
        if count > 1
    ]
    if not several:
        return []
    return [f"Measured more than once, of which the last row is shown: {', '.join(several)}."]


FAR_APART = 3  # times as far, and it is not the same two cores; tools/distance_rows.cc has it too


def distances(rows):
    """A sentence about how far apart the cores were that several threads had, or none."""
    known = [ns for row in rows for ns in row.get("line_transfers_ns") or [] if ns is not None]
    if not known:
        return []
    least, most = min(known), max(known)
    sentence = f"A cache line took {number(least, 2)} to {number(most, 2)} ns from core to core where several threads ran"
    if most <= FAR_APART * least:
        return [f"{sentence}."]
    return [f"{sentence}: the cores moved, and what several threads did compares at one distance only."]


def find(rows, system, workload, threads):
    """The row, or None. The last one if a cell was measured twice."""
    found = None
    for row in rows:
        if (row["system"], row["workload"], row["threads"]) == (system, workload, threads):
            found = row
    return found


def curve(rows, system, workload, value="throughput_tx_per_s"):
    """([threads], [value]) by rising number of threads."""
    points = {
        row["threads"]: row[value]
        for row in rows
        if row["system"] == system and row["workload"] == workload and row.get(value) is not None
    }
    threads = sorted(points)
    return threads, [points[t] for t in threads]


def ratios(rows, system, other, threads):
    """{workload: throughput of `system` over that of `other`} where both were measured."""
    return quotients(rows, (system, threads), (other, threads))


def scaling(rows, system, low, high):
    """{workload: throughput at `high` threads over that at `low`}."""
    return quotients(rows, (system, high), (system, low))


def quotients(rows, cell, base):
    """{workload: throughput of `cell` over that of `base`}, each a (system, threads)."""
    result = {}
    for workload in workloads_in(rows):
        a = find(rows, cell[0], workload, cell[1])
        b = find(rows, base[0], workload, base[1])
        if a and b and b["throughput_tx_per_s"] > 0:
            result[workload] = a["throughput_tx_per_s"] / b["throughput_tx_per_s"]
    return result


def geometric_mean(values):
    values = list(values)
    if 0 in values:
        return 0.0
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None
