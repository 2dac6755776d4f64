"""What sp3 is meant to reach (docs/PERFORMANCE.md, "Targets"), where the rows at hand can tell, and
what bounds it.

The bound of a ratio is what it would be if persistence, or the lock, cost as little as it can:

  transactions  dram-tx, sp3 without a log, with one line flushed and fenced for each writing
                transaction; for groups of commits dram-tx alone
  range locks   no lock at all

A bound below the aim says that no log, or no lock, however fast, would reach it on this machine with
the rest as it is. It is measured like everything else, so it may come out below what was reached.
"""

from dataclasses import dataclass

import paper
import results as data
from settings import PAPER
from tables import Table

OVER_PUBLISHED = {  # (threads, added ns): by workload; over quadra
    (1, 0): {"sps": 1.1, "queue": 1.0, "hashtable": 1.2, "rbtree": 1.0, "bptree": 1.0},
    (2, 0): {"sps": 1.8, "queue": 1.0, "hashtable": 1.5, "rbtree": 1.5, "bptree": 1.5},
    (2, 500): {"sps": 2.0, "queue": 1.3, "hashtable": 2.0, "rbtree": 1.6, "bptree": 1.6},
}
OVER_PMDK = {"sps": 6, "queue": 6, "hashtable": 3, "rbtree": 6, "bptree": 6}  # 2 threads, 500 ns
GROUPS_OVER_SYNC = 2.5  # 500 ns
STORES = ("lmdb", "rocksdb", "sqlite")
DURABLE_OVER_BEST = {1: 0.95, 2: 1.3}
DURABLE_OVER_ROCKSDB = {16: 1.0}
IN_GROUPS_OVER = {"lmdb": 1.5, "rocksdb": 5, "sqlite": 5}
FENCES = {"sp3": 1.0, "sp3-async": 0.05}  # at most, for each writing transaction
LINES_OF_A_SWAP = 6.1  # at most: six, and now and then the header of a segment
OVER_THE_PAPERS = {"yield": "pmdk", "simulated": "mnemosyne"}  # 16 threads or cores, in the mean
RECOVERY_SECONDS = 10  # at most, for 10 GiB of log
LOCK_OVER_PUBLISHED = 4  # W1, W2, two threads and more
GRID_OVER_BARE = 0.95  # W1, W2
INSTRUCTIONS_OVER_PUBLISHED = {"skiplist": 0.25, "grid": 0.1}  # at most
GRID_FULL_OVER_EMPTY = 1.15  # at most; instructions


@dataclass
class Aim:
    what: str
    wanted: float
    reached: float
    bound: float = None
    at_most: bool = False

    def cells(self):
        """As a table has them."""
        met = self.reached <= self.wanted if self.at_most else self.reached >= self.wanted
        least = "at most" if self.at_most else "at least"
        bound = "–" if self.bound is None else f"{self.bound:.2f}"
        return [self.what, f"{least} {self.wanted:g}", f"{self.reached:.2f}", bound, "yes" if met else "no"]


def table(title, aims, note):
    head = ["what", "wanted", "reached", "bound", "met"]
    met = sum(aim.cells()[-1] == "yes" for aim in aims)
    return Table(f"{title}: {met} of {len(aims)} met", head, [aim.cells() for aim in aims], note) if aims else None


def throughput(rows, system, workload, threads):
    row = data.find(rows, system, workload, threads)
    return row["throughput_tx_per_s"] if row and row["throughput_tx_per_s"] > 0 else None


def without_log(rows, workload, threads, fenced):
    """Transactions a second of dram-tx, each writing one with a flush and a fence if `fenced`; None
    if the rows do not tell."""
    volatile = data.find(rows, "dram-tx", workload, threads)
    if volatile is None or volatile["throughput_tx_per_s"] <= 0:
        return None
    seconds = threads / volatile["throughput_tx_per_s"]
    if fenced:
        cost, writing, commits = (volatile.get(name) for name in ("flush_cost_ns", "writing_commits", "commits"))
        if cost is None or writing is None or not commits:
            return None
        seconds += writing / commits * cost / 1e9
    return threads / seconds


def over(rows, other, threads, wanted, system="sp3", fenced=True):
    """Of the workloads that both systems have run; `wanted`: {workload: least ratio}."""
    aims = []
    for workload in data.workloads_in(rows):
        ours = throughput(rows, system, workload, threads)
        base = throughput(rows, other, workload, threads)
        if workload not in wanted or ours is None or base is None:
            continue
        best = without_log(rows, workload, threads, fenced)
        what = f"{data.workload_title(workload)}, ×{threads}: {system} over {other}"
        aims.append(Aim(what, wanted[workload], ours / base, best and best / base))
    return aims


def counts(rows):
    aims = []
    threads = data.thread_counts(rows)[0]
    for system, most in FENCES.items():
        found = [row for row in rows if row["system"] == system and row["fences_per_tx"] > 0]
        if found:
            largest = max(row["fences_per_tx"] for row in found)
            aims.append(Aim(f"{system}: fences of a writing transaction", most, round(largest, 3), at_most=True))
    swap = data.find(rows, "sp3", "sps", threads)
    if swap:
        aims.append(Aim("sp3: lines of a swap", LINES_OF_A_SWAP, swap["lines_per_tx"], at_most=True))
    return aims


def on_emulated_memory(setting, rows):
    aims = counts(rows)
    if setting.model != "fence" or setting.latency_line_ns:
        return aims
    for threads in data.thread_counts(rows):
        key = (threads, setting.latency_ns)
        aims += over(rows, "quadra", threads, OVER_PUBLISHED.get(key, {}))
        if key == (2, 500):
            aims += over(rows, "pmdk", threads, OVER_PMDK)
        if setting.latency_ns == 500:
            wanted = dict.fromkeys(data.WORKLOADS, GROUPS_OVER_SYNC)
            aims += over(rows, "sp3", threads, wanted, system="sp3-async", fenced=False)
    return aims


def in_files(setting, rows):
    aims = []
    for threads in data.thread_counts(rows):
        for workload in data.workloads_in(rows):
            system = "sp3-async" if setting.durability == "async" else "sp3"
            ours = throughput(rows, system, workload, threads)
            stores = {store: throughput(rows, store, workload, threads) for store in STORES}
            stores = {store: value for store, value in stores.items() if value}
            if ours is None or not stores:
                continue
            wanted = {}
            if setting.durability == "async":
                wanted = IN_GROUPS_OVER
            elif threads in DURABLE_OVER_ROCKSDB:
                wanted = {"rocksdb": DURABLE_OVER_ROCKSDB[threads]}
            elif threads in DURABLE_OVER_BEST and len(stores) == len(STORES):
                best = max(stores, key=stores.get)
                wanted = {best: DURABLE_OVER_BEST[threads]}
            for store, least in wanted.items():
                if store in stores:
                    what = f"{data.workload_title(workload)}, ×{threads}: {system} over {store}"
                    aims.append(Aim(what, least, ours / stores[store]))
    return aims


def over_the_papers(setting, rows):
    """The paper's averages are arithmetic means of the five workloads; ours is given as both."""
    other = OVER_THE_PAPERS[setting.environment]
    found = data.ratios(rows, "sp3", other, 16)
    if set(found) != set(data.WORKLOADS):
        return []
    average = paper.SP3_OVER[16, other][2]
    mean, geometric = sum(found.values()) / len(found), data.geometric_mean(found.values())
    return [
        Aim(f"sp3 over {other}, ×16: mean of the five (the paper's)", average, mean),
        Aim(f"sp3 over {other}, ×16: geometric mean", average, geometric),
    ]


def transactions(setting, rows):
    if setting.own or setting.mix != PAPER:
        return None
    if setting.environment in OVER_THE_PAPERS:
        aims = over_the_papers(setting, rows)
    elif setting.memory == "emulated":
        aims = on_emulated_memory(setting, rows)
    else:
        aims = in_files(setting, rows)
    return table(
        "Aims", aims,
        "The bound is what dram-tx, sp3 without any persistence, would reach if each of its writing "
        "transactions flushed and fenced one line (in groups: none). Where it is below the aim, no log "
        "however fast would reach that here.",
    )  # fmt: skip


def recoveries(rows):
    aims = []
    for row in rows:
        if row["log_bytes"] >= 9.5 * 2**30:
            seconds = row["recovery_seconds"] * 10 * 2**30 / row["log_bytes"]
            what = f"{row.get('strategy') or 'stamp'}, ×{row['threads']}: seconds for 10 GiB of log"
            aims.append(Aim(what, RECOVERY_SECONDS, seconds, at_most=True))
    return table("Aims", aims, "A third of what the paper takes with 24 threads.")


def lock_pairs(rows):
    """Pairs a second by (workload, lock, threads), of W1 and W2."""
    return {
        (row["workload"], row["lock"], row["threads"]): row["pairs_per_s"]
        for row in rows
        if row["workload"] in ("W1", "W2") and row.get("pairs_per_s")
    }


def lock_instructions(rows):
    """By (lock, ranges held)."""
    return {
        (row["lock"], row.get("held") or 0): row["instructions_per_pair"]
        for row in rows
        if row["workload"] == "uncontended" and row.get("instructions_per_pair")
    }


def locks(rows):
    aims = []
    pairs = lock_pairs(rows)
    for (workload, lock, threads), value in pairs.items():
        published = pairs.get((workload, "published", threads))
        if lock == "skiplist" and threads > 1 and published:
            bound = pairs.get((workload, "none", threads))
            aims.append(Aim(f"{workload}, ×{threads}: skiplist over published", LOCK_OVER_PUBLISHED,
                            value / published, bound and bound / published))  # fmt: skip
        bare = pairs.get((workload, "bare", threads))
        if lock == "grid" and bare:
            bound = pairs.get((workload, "none", threads))
            aims.append(Aim(f"{workload}, ×{threads}: grid over bare", GRID_OVER_BARE, value / bare,
                            bound and bound / bare))  # fmt: skip
    found = lock_instructions(rows)
    for (lock, held), value in found.items():
        published = found.get(("published", held))
        if lock in INSTRUCTIONS_OVER_PUBLISHED and published:
            aims.append(Aim(f"instructions, {held} held: {lock} over published",
                            INSTRUCTIONS_OVER_PUBLISHED[lock], value / published, at_most=True))  # fmt: skip
    if found.get(("grid", 0)) and found.get(("grid", 65536)):
        aims.append(Aim("instructions of grid: 65536 held over none", GRID_FULL_OVER_EMPTY,
                        found["grid", 65536] / found["grid", 0], at_most=True))  # fmt: skip
    return table(
        "Aims", aims,
        "The bound is what no lock at all does with the same ranges. Where it is below the aim, no lock "
        "however fast would reach that here.",
    )  # fmt: skip
