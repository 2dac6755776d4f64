"""What sp3 is meant to reach (docs/PERFORMANCE.md, "Targets"), where the rows at hand can tell, and
what bounds it.

The bound of a ratio is what it would be if the log, or the lock, cost as little as it can:

  transactions  dram-tx, which is sp3 without a log, with the lines that sp3 flushes and one fence for
                each writing transaction; for groups of commits dram-tx alone
  range locks   no lock at all

It is measured like everything else. On the red-black tree dram-tx may be slower than sp3, whose
checkpoints bring small nodes home side by side.
"""

from dataclasses import dataclass, replace

import groups
import paper
import results as data
from digits import number
from settings import DEFAULTS, PAPER
from tables import Table, of_all_five

OVER_PUBLISHED = {  # (threads, added ns): by workload; over quadra
    (1, 0): {"sps": 1.1, "queue": 1.0, "hashtable": 1.2, "rbtree": 1.0, "bptree": 1.0},
    (2, 0): {"sps": 1.8, "queue": 1.0, "hashtable": 1.5, "rbtree": 1.5, "bptree": 1.5},
    (2, 500): {"sps": 2.0, "queue": 1.3, "hashtable": 2.0, "rbtree": 1.6, "bptree": 1.6},
}
ENTRIES, FILL = 100_000, 1.0  # of the published figures
OVER_PMDK = {"sps": 6, "queue": 6, "hashtable": 3, "rbtree": 6, "bptree": 6}  # 2 threads, 500 ns
GROUPS_OVER_SYNC = 2.5  # 500 ns
STORES = ("lmdb", "rocksdb", "sqlite")
DURABLE_OVER_BEST = {1: 0.95, 2: 1.3}
DURABLE_OVER_ROCKSDB = {16: 1.0}
IN_GROUPS_OVER = {"lmdb": 1.5, "rocksdb": 5, "sqlite": 5}
FENCES = {"sync": 1.0, "async": 0.05}  # at most, for each writing transaction
LINES_OF_A_SWAP = 6.1  # at most: six, and now and then the header of a segment
QUEUE_OVER_CONSERVATIVE = 1.5  # 500 ns a line, two threads or cores
ABORTS_OVER_CONSERVATIVE = 0.1  # at most; of SPS, the same
# 16 threads or cores, in the mean: {environment: (added ns, model, over whom)}
OVER_THE_PAPERS = {"yield": (20_000, "yield", "pmdk"), "simulated": (500, "line", "mnemosyne")}
RECOVERY_SECONDS = paper.RECOVERY_SECONDS / 3  # at most, for 10 GiB of log
LOCK_OVER_PUBLISHED = 4  # W1, W2, two threads and more
GRID_OVER_BARE = 0.95  # W1, W2
INSTRUCTIONS_OVER_PUBLISHED = {"skiplist": 0.25, "grid": 0.1}  # at most
FULL_GRID_OVER_EMPTY = 1.15  # at most; instructions

DIGITS = 3  # of what was reached, as it is shown and as it is judged


@dataclass
class Aim:
    what: str
    wanted: float
    reached: float
    bound: float | None = None
    at_most: bool = False

    @property
    def met(self):
        reached = round(self.reached, DIGITS)
        return reached <= self.wanted if self.at_most else reached >= self.wanted

    def cells(self):
        """As a table has them."""
        least = "at most" if self.at_most else "at least"
        bound = "–" if self.bound is None else f"{self.bound:.2f}"
        reached = f"{self.reached:.{DIGITS}f}"
        return [self.what, f"{least} {number(self.wanted, 6)}", reached, bound, "yes" if self.met else "no"]


def table(aims, bounded=""):
    """None without aims. `bounded` says what a bound is, if there is any."""
    if not aims:
        return None
    met = sum(aim.met for aim in aims)
    head = ["what", "wanted", "reached", "bound", "met"]
    note = bounded if any(aim.bound is not None for aim in aims) else ""
    return Table(f"Aims: {met} of {len(aims)} met", head, [aim.cells() for aim in aims], note)


def throughput(rows, system, workload, threads):
    row = data.find(rows, system, workload, threads)
    return row["throughput_tx_per_s"] if row and row["throughput_tx_per_s"] > 0 else None


def fence_ns(setting, row):
    """What the lines of one of the row's writing transactions and their fence take, added latency
    included."""
    first = row.get("flush_cost_ns") or setting.latency_ns
    each = setting.latency_ns if setting.model == "line" else setting.latency_line_ns
    return first + max(row["lines_per_tx"] - 1, 0) * each


def without_log(setting, rows, workload, threads, fenced):
    """Transactions a second of dram-tx, with sp3's lines and fences if `fenced`; None if the rows do
    not tell."""
    volatile = throughput(rows, "dram-tx", workload, threads)
    ours = data.find(rows, "sp3", workload, threads)
    if volatile is None or ours is None:
        return None
    seconds = threads / volatile
    if fenced:
        commits, writing = ours.get("commits"), ours.get("writing_commits")
        if not commits or writing is None:
            return None
        seconds += writing / commits * fence_ns(setting, ours) / 1e9
    return threads / seconds


def over(setting, rows, other, threads, wanted, system="sp3", fenced=True):
    """Of the workloads that both systems have run; `wanted`: {workload: least ratio}."""
    aims = []
    for workload, reached in data.quotients(rows, (system, threads), (other, threads)).items():
        if workload not in wanted:
            continue
        best = without_log(setting, rows, workload, threads, fenced)
        what = f"{data.workload_title(workload)}, ×{threads}: {system} over {other}"
        bound = best and best / throughput(rows, other, workload, threads)
        aims.append(Aim(what, wanted[workload], reached, bound))
    return aims


def cells_of(rows, system):
    """One row for each workload and number of threads."""
    found = [data.find(rows, system, workload, threads)
             for threads in data.thread_counts(rows) for workload in data.workloads_in(rows)]  # fmt: skip
    return [row for row in found if row]


def fences(rows):
    aims = []
    for system in ("sp3", "sp3-async"):
        fenced = [row for row in cells_of(rows, system) if row["fences_per_tx"] > 0]
        if fenced:
            what = f"{system}: fences of a writing transaction"
            if fenced[0]["memory"] == "file":
                what += ", each a wait for the disk"
            most = max(row["fences_per_tx"] for row in fenced)
            aims.append(Aim(what, FENCES[fenced[0]["durability"]], most, at_most=True))
    return aims


def lines_of_a_swap(rows):
    swaps = [row["lines_per_tx"] for row in cells_of(rows, "sp3") if row["workload"] == "sps"]
    return [Aim("sp3: lines of a swap", LINES_OF_A_SWAP, max(swaps), at_most=True)] if swaps else []


def over_conservative(setting, rows):
    """What publishing before persisting gains."""
    if (setting.model, setting.latency_ns, setting.latency_line_ns) != ("line", 500, 0):
        return []
    aims = over(setting, rows, "nvm-tx", 2, {"queue": QUEUE_OVER_CONSERVATIVE})
    ours, theirs = (data.find(rows, system, "sps", 2) for system in ("sp3", "nvm-tx"))
    if ours and theirs and theirs["abort_ratio"] > 0:
        reached = ours["abort_ratio"] / theirs["abort_ratio"]
        aims.append(Aim("aborts on SPS, ×2: sp3 over nvm-tx", ABORTS_OVER_CONSERVATIVE, reached, at_most=True))
    return aims


def over_published(setting, rows):
    if (setting.environment, setting.model, setting.latency_line_ns) != ("native", "fence", 0):
        return []
    aims = []
    for threads in data.thread_counts(rows):
        key = (threads, setting.latency_ns)
        aims += over(setting, rows, "quadra", threads, OVER_PUBLISHED.get(key, {}))
        if key == (2, 500):
            aims += over(setting, rows, "pmdk", threads, OVER_PMDK)
        if setting.latency_ns == 500:
            wanted = dict.fromkeys(data.WORKLOADS, GROUPS_OVER_SYNC)
            aims += over(setting, rows, "sp3", threads, wanted, system="sp3-async", fenced=False)
    return aims


def over_stores(setting, rows):
    aims = []
    for threads in data.thread_counts(rows):
        for workload in data.workloads_in(rows):
            ours = next((s for s in ("sp3", "sp3-async") if throughput(rows, s, workload, threads)), None)
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
                wanted = {max(stores, key=stores.get): DURABLE_OVER_BEST[threads]}
            for store, least in wanted.items():
                if store in stores:
                    what = f"{data.workload_title(workload)}, ×{threads}: {ours} over {store}"
                    reached = throughput(rows, ours, workload, threads) / stores[store]
                    aims.append(Aim(what, least, reached))
    return aims


def over_the_papers(setting, rows):
    """In the arithmetic mean of the five workloads, which is what the paper's averages are."""
    latency_ns, model, other = OVER_THE_PAPERS.get(setting.environment, (None, None, None))
    if (setting.latency_ns, setting.model, setting.latency_line_ns) != (latency_ns, model, 0):
        return []
    found = data.ratios(rows, "sp3", other, 16)
    if not of_all_five(found):
        return []
    bound = None
    if setting.environment == "simulated":  # natively 16 threads have not 16 cores
        best = {w: without_log(setting, rows, w, 16, fenced=True) for w in found}
        if all(best.values()):
            bound = sum(best[w] / throughput(rows, other, w, 16) for w in found) / len(found)
    geometric = data.geometric_mean(found.values())
    what = f"sp3 over {other}, ×16: mean of the five (geometric mean {geometric:.2f})"
    return [Aim(what, paper.SP3_OVER[16, other][2], sum(found.values()) / len(found), bound)]


def are_set_for(setting):
    """Whether the aims are meant for such rows."""
    return (
        not setting.own
        and (setting.mix, setting.entry_size, setting.zipf, setting.insert_ratio) == (PAPER, 128, 0.99, 0.5)
        and (setting.entries, setting.fill) == (ENTRIES, FILL)
        and (setting.locks, setting.group) == (DEFAULTS["locks"], DEFAULTS["group"])
    )


def transactions(setting, rows):
    if not are_set_for(setting):
        return None
    aims = fences(rows)
    if setting.memory != "emulated":
        aims += over_stores(setting, rows)
    else:
        aims += lines_of_a_swap(rows)
        if setting.durability == "sync":
            for compare in (over_published, over_conservative, over_the_papers):
                aims += compare(setting, rows)
    return table(
        aims,
        "The bound is what dram-tx, sp3 without a log, would reach with the lines that sp3 flushes and a "
        "fence for each writing transaction (in groups: without). Where it is below the aim, the aim "
        "cannot be had by a cheaper log that fences once for each. It is measured like all else, and "
        "on the red-black tree dram-tx may be slower than sp3, whose checkpoints bring small nodes home "
        "side by side.",
    )  # fmt: skip


def recoveries(rows):
    aims = []
    names = groups.log_names(rows)
    for row in rows:
        if row["log_bytes"] >= 9.5 * 2**30:
            seconds = row["recovery_seconds"] * 10 * 2**30 / row["log_bytes"]
            what = f"{names[groups.log(row)]}, {groups.strategy(row)}, ×{row['threads']}: seconds for 10 GiB"
            aims.append(Aim(what, RECOVERY_SECONDS, seconds, at_most=True))
    return table(aims)


def beside(rows, row, lock):
    """The row of another lock that agrees with this one in all else, or None."""
    same = [name for name in groups.LOCK_CELL if name != "lock"]
    kind = "pairs_per_s" in row
    found = [other for other in rows if other["lock"] == lock and ("pairs_per_s" in other) == kind
             and all(other.get(name) == row.get(name) for name in same)]  # fmt: skip
    return found[-1] if found else None


def quotient(row, base, name):
    """None if either is not known."""
    if row is None or base is None or not row.get(name) or not base.get(name):
        return None
    return row[name] / base[name]


def pairs_over(rows, row, other, least):
    reached = quotient(row, beside(rows, row, other), "pairs_per_s")
    if reached is None:
        return []
    bound = quotient(beside(rows, row, "none"), beside(rows, row, other), "pairs_per_s")
    return [Aim(f"{row['workload']}, ×{row['threads']}: {row['lock']} over {other}", least, reached, bound)]


def instructions_of(rows, row):
    aims = []
    lock, held = row["lock"], row.get("held") or 0
    over_published = quotient(row, beside(rows, row, "published"), "instructions_per_pair")
    if lock in INSTRUCTIONS_OVER_PUBLISHED and over_published is not None:
        aims.append(Aim(f"instructions, {held} held: {lock} over published",
                        INSTRUCTIONS_OVER_PUBLISHED[lock], over_published, at_most=True))  # fmt: skip
    if lock == "grid" and held and held == row.get("buckets"):
        over_empty = quotient(row, beside(rows, row | {"held": 0}, "grid"), "instructions_per_pair")
        if over_empty is not None:
            aims.append(Aim("instructions of grid: as many held as buckets over 0 held",
                            FULL_GRID_OVER_EMPTY, over_empty, at_most=True))  # fmt: skip
    return aims


def of_lock(rows, row):
    if row["workload"] == "uncontended":
        return instructions_of(rows, row)
    if row["lock"] == "grid":
        return pairs_over(rows, row, "bare", GRID_OVER_BARE)
    if row["lock"] == "skiplist" and row["threads"] > 1:
        return pairs_over(rows, row, "published", LOCK_OVER_PUBLISHED)
    return []


def locks(rows):
    aims = []
    rows = [row for row in rows if row["workload"] in ("W1", "W2", "uncontended")]
    for more, alike in groups.grouped(rows, ["max_height", "slots", "writes_percent"]):
        found = [aim for row in alike for aim in of_lock(alike, row)]
        aims += [replace(aim, what=", ".join([aim.what, *more])) for aim in found]
    return table(
        aims,
        "The bound is what no lock at all does with the same ranges. Where it is below the aim, the aim "
        "cannot be had by a cheaper lock.",
    )  # fmt: skip
