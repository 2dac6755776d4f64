"""Groups of recoveries and of locks: what rows must share to stand in one picture, and how a report
tells them apart. What settings.py is to transactions.
"""

import json

from digits import number
from results import distances, workload_title
from settings import duration, machine_told

RECOVERY = (
    "workload memory latency_ns latency_line_ns latency_model durability entries entry_size zipf "
    "insert_ratio fill warehouses range_least range_most range_zipf range_mix range_chunk range_lock "
    "writers flush locks group checkpoint_threads file_system machine commit"
).split()
OF_ONE_WORKLOAD = ("warehouses", "range_")
LOCKS = "buckets machine commit".split()

# What has a word of its own; of the others a report tells the name.
WORDS = {
    "workload": workload_title,
    "memory": lambda value: f"{value} memory",
    "latency_ns": lambda value: f"+{duration(value)}",
    "latency_line_ns": lambda value: f"+{duration(value)} for each line",
    "durability": lambda value: {"sync": "synchronous", "async": "asynchronous"}.get(value, value),
    "entries": lambda value: f"{value:,} entries",
    "entry_size": lambda value: f"entries of {value:,} bytes",
    "insert_ratio": lambda value: f"{number(100 * value, 6)} % inserts",
    "fill": lambda value: f"filled to {number(100 * value, 6)} %",
    "locks": lambda value: f"locks at {value}",
    "group": lambda value: f"groups of {value}",
    "pool_size": lambda value: f"pool of {number(value / 2**20, 6)} MiB",
    "writes_percent": lambda value: f"{value} % writes",
}


def member(row, name):
    """As a value that can be a key."""
    if name == "machine":
        return json.dumps(row.get(name) or {}, sort_keys=True)
    value = row.get(name)
    return json.dumps(value) if isinstance(value, list) else value


def words(name, values, value):
    """What tells this value of the member from the others."""
    if name == "machine":
        return machine_told(value, values)
    if value is None and name.startswith(OF_ONE_WORKLOAD):  # of another, which is told
        return []
    if value is None:
        return [f"{name.replace('_', ' ')} ?"]
    return [WORDS[name](value) if name in WORDS else f"{name.replace('_', ' ')} {value}"]


def grouped(rows, names):
    """[([what tells the group from the others], rows)]: rows that agree in all these members, in
    the order of the file."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(member(row, name) for name in names), []).append(row)
    several = {name: list(values) for name, values in zip(names, map(set, zip(*groups)))
               if len(values) > 1}  # fmt: skip
    return [
        ([word for name, value in zip(names, key) if name in several
          for word in words(name, several[name], value)], found)
        for key, found in groups.items()
    ]  # fmt: skip


def last_of_each(rows, cell, title):
    """The rows, of several of one cell only the last, and a sentence about those cells, or none."""
    found = {}
    for row in rows:
        found.setdefault(cell(row), []).append(row)
    several = [f"{title(alike[-1])} ({len(alike)} rows)" for alike in found.values()
               if len(alike) > 1]  # fmt: skip
    said = [f"Measured more than once, of which the last row is shown: {', '.join(several)}."]
    return [alike[-1] for alike in found.values()], said if several else []


def strategy(row):
    return row.get("strategy") or "stamp"


def log(row):
    """Which log was recovered, of those of one group: after how much time or how many bytes, if the
    row knows, its writers were killed."""
    return row["checkpoint_ms"], row.get("log_limit_bytes") or row["log_bytes"]


def log_names(rows):
    """{log: its name}; different logs have different names."""
    logs = sorted({log(row) for row in rows})
    every = [milliseconds for milliseconds, _ in logs]
    for digits in range(2, 18):
        names = {}
        for milliseconds, size in logs:
            name = f"{number(size / 2**30, digits)} GiB of log"
            if milliseconds:
                at_most = f", at most {name}" if every.count(milliseconds) > 1 else ""
                name = f"checkpoint every {number(milliseconds / 1000, digits + 4)} s{at_most}"
            names[milliseconds, size] = name
        if len(set(names.values())) == len(names):
            break
    return names


def recoveries(rows):
    """[([details], rows, [sentence])] for each group of recoveries."""
    result = []
    for details, found in grouped(rows, RECOVERY):
        names = log_names(found)
        kept, said = last_of_each(
            found, lambda row: (strategy(row), log(row), row["threads"]),
            lambda row: f"{names[log(row)]}, {strategy(row)} ×{row['threads']}",
        )  # fmt: skip
        result.append((details, kept, said))
    return result


LOCK_CELL = "lock workload threads max_height held slots writes_percent".split()


def locks(rows):
    """The same for locks."""
    result = []
    for details, found in grouped(rows, LOCKS):
        # Instructions are counted by runs of their own.
        kept, said = last_of_each(
            found,
            lambda row: (*(row.get(name) for name in LOCK_CELL), "pairs_per_s" in row),
            lambda row: f"{row['lock']} on {row['workload']} ×{row['threads']}",
        )
        result.append((details, kept, distances(kept) + said))
    return result
