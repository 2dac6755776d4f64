"""Tables: counts of each transaction, latencies, and our ratios beside those the paper states."""

from dataclasses import dataclass

import paper
import results as data
from digits import number
from schema import PROBED


@dataclass
class Table:
    title: str
    head: list
    rows: list  # of cells, as text
    note: str = ""


def known(value, digits=3):
    return "–" if value is None else number(value, digits)


def ratio(value):
    return "–" if value is None else f"{value:.2f} ×"


def duration(ns):
    if ns is None:
        return "–"
    if ns >= 1e6:
        return f"{number(ns / 1e6)} ms"
    return f"{number(ns / 1e3)} µs" if ns >= 1e4 else f"{ns:.0f} ns"


def lines(row):
    """Of stores that sync a file nobody counts lines: what is fenced has some."""
    unknown = row["lines_per_tx"] == 0 and row["fences_per_tx"] > 0
    return "–" if unknown else f"{row['lines_per_tx']:.2f}"


def counts(setting, rows):
    """Fences, lines and throughput with the fewest threads, where nobody helps anybody."""
    threads = data.thread_counts(rows)[0]
    body = []
    for workload in data.workloads_in(rows):
        for system in data.systems_in(rows):
            row = data.find(rows, system, workload, threads)
            if row is None:
                continue
            body.append([
                data.workload_title(workload), system, number(row["throughput_tx_per_s"] / 1000, 4),
                f"{row['spread'] * 100:.0f} %", f"{row['fences_per_tx']:.3f}",
                lines(row), duration(row.get("latency_p50_ns")),
                duration(row.get("latency_p99_ns")), duration(row.get("latency_p999_ns")),
            ])  # fmt: skip
    head = ["workload", "system", "thousand tx/s", "spread", "fences/tx", "lines/tx", "p50", "p99",
            "p99.9"]  # fmt: skip
    return Table(
        f"Counts and latencies, {setting.several(threads)}", head, body,
        "Fences and lines per writing transaction, on the commit path; what a store's own thread syncs in "
        "the background is not among them. The spread is that of the runs, highest less lowest over the "
        "median.",
    )  # fmt: skip


def probes(setting, rows):
    """What the probes counted, of each transaction; of those that could not, why."""
    probed = [row for row in rows if row.get("probes")]
    members = [name for name in PROBED if any(row.get(name) is not None for row in probed)]
    reasons = {f"{name} {said}" for row in probed for name, said in row["probes"].items()
               if said != "available"}  # fmt: skip
    if not probed:
        return None
    body = []
    for row in probed:
        body.append(
            [data.workload_title(row["workload"]), row["system"], str(row["threads"])]
            + [known(row.get(name)) for name in members]
        )
    head = ["workload", "system", setting.unit, *(PROBED[name] for name in members)]
    note = "Of the whole process, or with pcm of the whole machine, by transactions."
    return Table("Counted by the machine, for each transaction", head, body,
                 " ".join([note, *(f"{reason}." for reason in sorted(reasons))]))  # fmt: skip


def of_all_five(ours):
    return set(ours) == set(data.WORKLOADS)


def stated(setting, ours, statement):
    """What the paper states of its five workloads, as cells beside our ratios of them; None if it
    states nothing, or not all of them ran."""
    if statement is None or not setting.is_the_papers or not of_all_five(ours):
        return None
    low, high, average = statement
    return [f"{low:.2f} to {high:.2f} ×", f"{average:.2f} ×"]


def ratio_table(title, head, workloads, lines, note=""):
    """A line for each (cells before, our ratios by workload, what stated() says), or None without
    lines. The paper's averages are arithmetic, so where it states any our arithmetic means stand
    beside them; else nothing is said of it."""
    if not lines:
        return None
    quoted = any(said for _, _, said in lines)
    body = []
    for before, ours, said in lines:
        cells = [ratio(ours.get(workload)) for workload in workloads]
        cells.append(ratio(data.geometric_mean(ours.values())))
        if quoted:
            mean = sum(ours.values()) / len(ours) if of_all_five(ours) else None
            cells += [ratio(mean), *(said or ["–", "–"])]
        body.append(before + cells)
    head = head + [data.workload_title(workload) for workload in workloads] + ["geometric mean"]
    head += ["arithmetic mean", "the paper: range", "average"] if quoted else []
    return Table(title, head, body, note if quoted else "")


def comparison_lines(setting, rows):
    """sp3 over every other system, as ratio_table() has them."""
    lines = []
    for threads in data.thread_counts(rows):
        for other in data.systems_in(rows):
            ours = data.ratios(rows, "sp3", other, threads) if other != "sp3" else {}
            if ours:
                said = stated(setting, ours, paper.SP3_OVER.get((threads, other)))
                lines.append(([str(threads), other], ours, said))
    return lines


def quotes_ratios(setting, rows):
    """Whether comparison() has anything that the paper states."""
    return any(said for _, _, said in comparison_lines(setting, rows))


def comparison(setting, rows):
    """sp3 over every other system: by workload, the means, and what the paper states."""
    return ratio_table("sp3 over the others", [setting.unit, "sp3 over"], data.workloads_in(rows),
                       comparison_lines(setting, rows), paper.SETUP)  # fmt: skip


def scaling(setting, rows):
    """Throughput with 16 (or the most) threads over that with one, beside the paper's."""
    threads = data.thread_counts(rows)
    if len(threads) < 2:
        return None
    high = 16 if 16 in threads else threads[-1]
    lines = []
    for system in data.systems_in(rows):
        ours = data.scaling(rows, system, threads[0], high)
        if ours:
            statement = paper.SCALING_16.get(system) if (threads[0], high) == (1, 16) else None
            lines.append(([system], ours, stated(setting, ours, statement)))
    title = f"{setting.several(high)} over {threads[0]}"
    return ratio_table(title, ["system"], data.workloads_in(rows), lines)


def lock_counts(rows):
    """What a lock costs: time and instructions of a pair, which are rows of their own, by ranges
    held and ranges to choose from."""
    pairs = {}
    for row in rows:
        if row["workload"] == "uncontended":
            cell = row["lock"], row.get("held") or 0, row.get("slots"), row["max_height"]
            pairs.setdefault(cell, {}).update(
                {name: value for name, value in row.items() if value is not None}
            )
    if not pairs:
        return None
    body = []
    for (lock, held, slots, height), row in pairs.items():
        body.append([
            lock, str(held), "–" if slots is None else str(slots), str(height),
            known(row.get("ns_per_pair")), known(row.get("instructions_per_pair"), 4),
            known(row.get("memory_per_held_bytes")),
        ])  # fmt: skip
    head = ["lock", "ranges held", "to choose from", "greatest height", "ns", "instructions",
            "bytes per held"]  # fmt: skip
    return Table("An uncontended pair", head, body)


def lock_runs(rows):
    """Every run against others: how fast, how evenly, and how long a pair takes."""
    shown = [row for row in rows
             if row["workload"] != "uncontended" and row.get("pairs_per_s") is not None]  # fmt: skip
    if not shown:
        return None

    def text(row, name):
        return "–" if row.get(name) is None else str(row[name])

    body = []
    for row in shown:
        spread = "–" if row.get("spread") is None else f"{row['spread'] * 100:.0f} %"
        body.append([
            row["workload"], row["lock"], str(row["threads"]), text(row, "writes_percent"),
            text(row, "slots"), str(row["max_height"]), number(row["pairs_per_s"] / 1000, 4), spread,
            duration(row.get("latency_p50_ns")), duration(row.get("latency_p99_ns")),
            known(row.get("fairness")),
        ])  # fmt: skip
    head = ["workload", "lock", "threads", "% writes", "ranges", "greatest height",
            "thousand pairs/s", "spread", "p50", "p99", "fairness"]  # fmt: skip
    return Table(
        "Pairs of lock and unlock", head, body,
        "W2 locks 16 ranges at a time. The latency is of one pair with what is done to the range in "
        "between, of every sixteenth; in W2 a sixteenth of a batch. Fairness is the most pairs of a thread "
        "over the fewest.",
    )  # fmt: skip


def recoveries(rows):
    """Where the time of a recovery goes."""
    phases = ["scan", "cut", "order", "replay", "flush"]
    used = [f"{phase}_seconds" for phase in phases]
    used += ["workload", "strategy", "bytes_per_s", "memory_peak_bytes", "replayed"]
    timed = [row for row in rows if all(row.get(name) is not None for name in used)]
    if not timed:
        return None
    body = []
    for row in timed:
        every = f"{number(row['checkpoint_ms'] / 1000, 6)} s" if row["checkpoint_ms"] else "–"
        body.append(
            [data.workload_title(row["workload"]), number(row["log_bytes"] / 2**30), every, row["strategy"],
             str(row["threads"]), f"{row['recovery_seconds']:.3f}"]
            + [f"{row[f'{phase}_seconds']:.3f}" for phase in phases]
            + [number(row["bytes_per_s"] / 1e9), f"{row['memory_peak_bytes'] / 2**20:.0f}",
               f"{row['replayed']:,}"]
        )  # fmt: skip
    head = ["workload", "log, GiB", "checkpoints", "strategy", "threads", "seconds", *phases,
            "GB/s", "MiB of memory", "transactions"]  # fmt: skip
    return Table("Time of a recovery, seconds by phase", head, body)


def validation(rows):
    """What the simulator says beside what the machine did."""
    if not rows:
        return None
    body = []
    for row in rows:
        body.append([
            data.workload_title(row["workload"]), row["system"],
            str(row["cores"]), f"{row['native_mean_ns']:.0f}", f"{row['simulated_mean_ns']:.0f}",
            ratio(row["ratio"]),
        ])  # fmt: skip
    within = sum(abs(row["ratio"] - 1) < 0.3 for row in rows)
    head = ["workload", "system", "cores", "native, ns", "simulated, ns", "native over simulated"]
    return Table(
        "Mean time of a transaction, native and simulated", head, body,
        f"{within} of {len(rows)} within 30 %. Costs were calibrated by microbenchmarks only. The "
        "slowest hundredth of the transactions, which are those that lost their core, is left out.",
    )  # fmt: skip


def sensitivity(rows):
    """What is left of the conclusions when each cost is halved, and increased by half."""
    if not rows:
        return None
    body = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        found = [row for row in rows if row["workload"] == workload]
        base = next((row for row in found if row["factor"] == 1), None)
        gains = [row["gain"] for row in found]
        speedups = [row["speedup"] for row in found]
        changed = [f"{row['cost']} × {number(row['factor'], 6)}" for row in found if not row["same_order"]]
        body.append([
            data.workload_title(workload), ratio(base and base["gain"]),
            f"{min(gains):.2f} to {max(gains):.2f}", ratio(base and base["speedup"]),
            f"{min(speedups):.2f} to {max(speedups):.2f}", ", ".join(changed) or "stays",
        ])  # fmt: skip
    systems, cores = rows[0]["systems"], rows[0]["cores"]
    over = " over ".join(systems[:2])
    head = ["workload", f"gain: {over}, {cores[-1]} cores", "between",
            f"speed-up: {systems[0]}, {cores[-1]} cores over {cores[0]}", "between",
            "order of the systems"]  # fmt: skip
    return Table(
        "What hangs on the costs", head, body,
        "Each cost halved, and increased by half, one at a time.",
    )  # fmt: skip


def machines(results):
    """Where the rows come from: one line for each different origin."""
    seen = {}
    for row in results.rows + results.locks + results.recoveries:
        machine = row.get("machine") or {}
        kind = "simulated" if row.get("simulated") else "native"
        key = (kind, machine.get("cpu", "?"), machine.get("cores", "?"), machine.get("kernel", "?"),
               row.get("commit", "?"), row.get("flush", "–"))  # fmt: skip
        seen[key] = seen.get(key, 0) + 1
    body = []
    for key, count in sorted(seen.items(), key=str):
        body.append([str(cell) for cell in key] + [str(count)])
    head = ["kind", "CPU (or that of the costs)", "cores", "kernel", "commit", "flush", "rows"]
    return Table("Where the figures come from", head, body)
