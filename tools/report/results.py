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

WORKLOADS = ["sps", "queue", "hashtable", "rbtree", "bptree"]
WORKLOAD_TITLES = {
    "sps": "SPS",
    "queue": "Queue",
    "hashtable": "Hash table",
    "rbtree": "Red-black tree",
    "bptree": "B+ tree",
}
SYSTEMS = [
    "sp3", "sp3-async", "nvm-tx", "nvm-ideal", "dram-tx",
    "pmdk", "mnemosyne", "quadra", "lmdb", "rocksdb", "sqlite",
]  # fmt: skip


class BadInput(Exception):
    """A file that is no result, with its name and what is wrong."""


@dataclass(frozen=True, order=True)
class Setting:
    """What rows must share to stand in one picture."""

    environment: str  # native, yield, simulated
    memory: str
    latency_ns: int
    model: str
    durability: str
    entries: int
    entry_size: int
    zipf: float
    insert_ratio: float
    fill: float

    @property
    def latency(self):
        if self.memory != "emulated":
            return f"{self.memory} memory"
        if self.latency_ns == 0:
            return "no added latency"
        each = {"line": "each flushed line", "fence": "each fence", "yield": "each fence"}
        micro = self.latency_ns >= 1000
        added = f"{self.latency_ns / 1000:g} µs" if micro else f"{self.latency_ns} ns"
        return f"+{added} for {each[self.model]}"

    @property
    def title(self):
        names = {
            "native": "native",
            "yield": "native, yielded waits",
            "simulated": "simulated cores",
        }
        parts = [names[self.environment], self.latency]
        if self.durability != "sync":
            parts.append("asynchronous")
        return ", ".join(parts)

    @property
    def slug(self):
        parts = [self.environment, self.memory, f"{self.latency_ns}ns", self.model, self.durability]
        return "-".join(parts)

    @property
    def unit(self):
        return "cores" if self.environment == "simulated" else "threads"

    @property
    def explanation(self):
        """What kind of evidence this is, in one sentence."""
        if self.environment == "simulated":
            return (
                "Simulated: the same source runs on virtual cores in virtual time; what "
                "instructions, flushes and transfers of cache lines cost was measured "
                "(docs/SIMULATOR.md)."
            )
        if self.environment == "yield":
            return (
                "Native with yielded waits: real threads; while one waits for the emulated memory, "
                "others have its core. Only waits overlap, so more threads than cores mean "
                "something only while waiting dominates."
            )
        if self.memory == "emulated":
            return (
                "Native: real threads on real cores; flushes and fences of a file in DRAM take the "
                "added latency. More threads than cores measure the scheduler."
            )
        return "Native: real threads; commits wait for the disk."


@dataclass
class Results:
    rows: list = field(default_factory=list)  # transactions
    locks: list = field(default_factory=list)
    recoveries: list = field(default_factory=list)
    validations: list = field(default_factory=list)
    sensitivities: list = field(default_factory=list)
    skipped: list = field(default_factory=list)  # reasons, as the files give them
    files: list = field(default_factory=list)

    def settings(self):
        """All settings, natives first, each with its rows."""
        order = {"native": 0, "yield": 1, "simulated": 2}
        grouped = {}
        for row in self.rows:
            grouped.setdefault(setting_of(row), []).append(row)
        keys = sorted(grouped, key=lambda s: (order[s.environment], s.memory != "emulated", s))
        return [(key, grouped[key]) for key in keys]


def environment_of(row):
    if row.get("simulated"):
        return "simulated"
    return "yield" if row["latency_model"] == "yield" and row["latency_ns"] else "native"


def setting_of(row):
    # Asynchronous runs of a system stand beside its synchronous ones only by their name.
    durability = "sync" if row["system"] == "sp3-async" else row["durability"]
    if row["memory"] == "file" and row["durability"] == "async":
        durability = "async"
    model = row["latency_model"] if row["latency_ns"] else "fence"
    return Setting(
        environment_of(row), row["memory"], row["latency_ns"], model, durability, row["entries"],
        row["entry_size"], row["zipf"], row["insert_ratio"], row["fill"],
    )  # fmt: skip


def load(paths):
    """All rows of all files. Raises BadInput."""
    results = Results()
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError) as error:
            raise BadInput(f"{path}: {error}") from error
        rows = content.get("rows") if isinstance(content, dict) else content
        if not isinstance(rows, list):
            raise BadInput(f"{path}: wanted a list of rows or an object with 'rows'")
        if isinstance(content, dict):
            results.skipped += content.get("skipped", [])
        for number, row in enumerate(rows):
            sort_row(results, row, f"{path}: row {number}")
        results.files.append(str(path))
    return results


def sort_row(results, row, where):
    if not isinstance(row, dict):
        raise BadInput(f"{where}: wanted an object")
    if "throughput_tx_per_s" in row:
        needed = ["system", "workload", "threads", "memory", "latency_ns", "latency_model"]
        needed += ["durability", "entries", "entry_size", "zipf", "insert_ratio", "fill"]
        target = results.rows
    elif "recovery_seconds" in row:
        needed = ["threads", "checkpoint_ms", "log_bytes"]
        target = results.recoveries
    elif "native_mean_ns" in row:
        needed = ["workload", "system", "cores", "simulated_mean_ns", "ratio"]
        target = results.validations
    elif "factor" in row:
        needed = ["workload", "cost", "gain", "speedup", "same_order", "systems", "cores"]
        target = results.sensitivities
    elif "lock" in row:
        needed = ["workload", "threads", "max_height"]
        target = results.locks
    else:
        raise BadInput(f"{where}: neither transactions, locks, recovery nor about the simulator")
    missing = [name for name in needed if name not in row]
    if missing:
        raise BadInput(f"{where}: without {', '.join(missing)}")
    target.append(row)


def systems_in(rows):
    """In the order of SYSTEMS, unknown ones last."""
    names = {row["system"] for row in rows}
    known = [name for name in SYSTEMS if name in names]
    return known + sorted(names - set(known))


def thread_counts(rows):
    return sorted({row["threads"] for row in rows})


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
    for workload in WORKLOADS:
        a = find(rows, cell[0], workload, cell[1])
        b = find(rows, base[0], workload, base[1])
        if a and b and b["throughput_tx_per_s"] > 0:
            result[workload] = a["throughput_tx_per_s"] / b["throughput_tx_per_s"]
    return result


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None
