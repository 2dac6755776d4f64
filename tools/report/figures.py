"""The paper's figures, from rows of transactions and recoveries.

Every function returns a list of Figure; one without the rows it needs returns none.
"""

from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

import groups
import paper
import results as data
import tables
from digits import number
from style import draw_bar, draw_line, from_zero, legend_below, plain, plt

# What `sp3 compare --full` does not run in its section `yield`.
NOT_YIELDING = ("sp3-async", "nvm-ideal", "dram-tx")


@dataclass
class Figure:
    slug: str  # of the PNG
    title: str
    plot: object  # a matplotlib figure
    caption: list  # sentences


def beside(setting, sentence):
    """What the paper says, where what it measured was."""
    return [sentence] if setting.is_the_papers else []


class PlainLog(LogFormatter):
    """Labels the same ticks, with plain numbers."""

    def __call__(self, value, position=None):
        return number(value, 6) if super().__call__(value, position) else ""


def thousands(axes):
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value / 1000, 6)))


def counts_axis(axes, counts, unit):
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value, 6)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(unit)


def panels(count, width=3.0, height=2.9):
    """So many panels side by side, at most three in a row."""
    columns = min(3, count)
    lines = (count + columns - 1) // columns
    size = (width * columns, height * lines)
    plot, grid = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    flat = list(grid.flat)
    for axes in flat[count:]:
        axes.set_visible(False)
    return plot, flat[:count]


def curves(setting, rows, workloads, systems, value, label):
    """A panel for each workload, a curve for each system."""
    plot, axes_list = panels(len(workloads))
    handles = {}
    counts = data.thread_counts(rows)
    for axes, workload in zip(axes_list, workloads):
        for system in systems:
            x, y = data.curve(rows, system, workload, value)
            if x:
                handles.setdefault(system, draw_line(axes, x, y, system, systems))
        axes.set_title(plain(data.workload_title(workload)))
        axes.set_ylabel(label)
        from_zero(axes)
        counts_axis(axes, counts, setting.unit)
    legend_below(plot, handles)
    return plot, axes_list


def figure_2(setting, rows):
    """What latency and conflicts cost: the red-black tree on the same runtime."""
    systems = [s for s in ["dram-tx", "nvm-ideal", "nvm-tx"] if data.curve(rows, s, "rbtree")[0]]
    if len(systems) < 2:
        return []
    plot, axes = panels(1, 4.6, 3.2)
    handles = {}
    for system in systems:
        x, y = data.curve(rows, system, "rbtree")
        handles[system] = draw_line(axes[0], x, y, system, systems)
    counts_axis(axes[0], data.thread_counts(rows), setting.unit)
    from_zero(axes[0])
    axes[0].set_ylabel("thousand tx/s")
    axes[0].set_title("Red-black tree")
    thousands(axes[0])
    legend_below(plot, handles)
    caption = [
        "One runtime without persistence (dram-tx), with it (nvm-tx), and with it but without "
        "concurrency control (nvm-ideal).",
        *beside(setting, "The paper: the gap between nvm-tx and nvm-ideal widens with the number of "
                         "cores."),
    ]  # fmt: skip
    return [Figure(f"figure-2-{setting.slug}", "Figure 2: latency and concurrency", plot, caption)]


def figure_5(setting, rows):
    """Systems side by side, with one thread and with the most that was measured, 16 at best."""
    systems = [s for s in data.systems_in(rows) if s not in ("nvm-ideal", "dram-tx")]
    counts = data.thread_counts(rows)
    workloads = data.workloads_in(rows)
    if len(systems) < 2:
        return []
    most = 16 if 16 in counts else counts[-1]
    shown = [counts[0]] if most == counts[0] else [counts[0], most]
    plot, axes_list = panels(len(shown), 4.9 if len(shown) > 1 else 6.5, 3.2)
    handles = {}
    width = 0.84 / len(systems)
    for axes, threads in zip(axes_list, shown):
        for i, system in enumerate(systems):
            for position, workload in enumerate(workloads):
                row = data.find(rows, system, workload, threads)
                if row is None:
                    continue
                x = position + (i - (len(systems) - 1) / 2) * width
                bar = draw_bar(axes, x, row["throughput_tx_per_s"], width, system, systems)
                handles.setdefault(system, bar)
        axes.set_xticks(range(len(workloads)))
        axes.set_xticklabels([plain(data.workload_title(w)).replace(" ", "\n") for w in workloads])
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("thousand tx/s")
        unit = setting.unit[:-1] if threads == 1 else setting.unit
        axes.set_title(f"{threads} {unit}")
        thousands(axes)
    legend_below(plot, {name: handles[name] for name in systems if name in handles})
    caption = ["The table below sets our ratios beside those that the paper states."]
    caption = caption if tables.quotes_ratios(setting, rows) else []
    return [Figure(f"figure-5-{setting.slug}", "Figure 5: systems side by side", plot, caption)]


def figure_6(setting, rows):
    """Throughput over threads."""
    every = data.systems_in(rows)
    out = [s for s in every if s in NOT_YIELDING] if setting.environment == "yield" else []
    systems = [s for s in every if s not in out]
    if len(data.thread_counts(rows)) < 2 or not systems:
        return []
    plot, axes_list = curves(
        setting, rows, data.workloads_in(rows), systems, "throughput_tx_per_s", "thousand tx/s"
    )
    for axes in axes_list:
        thousands(axes)
    caption = []
    if out:
        caption = [f"Left out, as by sp3 compare: {', '.join(out)}; beside them the others lie on the axis."]
    caption += beside(
        setting, "The paper: sp3 scales almost linearly but on SPS and queue, mnemosyne does not."
    )
    return [Figure(f"figure-6-{setting.slug}", "Figure 6: scaling", plot, caption)]


def figure_7(setting, rows):
    """Aborts over threads."""
    systems = [
        s for s in data.systems_in(rows)
        if s in ("sp3", "nvm-tx") or any(r["aborts"] for r in rows if r["system"] == s)
    ]  # fmt: skip
    if len(data.thread_counts(rows)) < 2 or not {"sp3", "nvm-tx"} & set(systems):
        return []
    plot, axes_list = curves(
        setting, rows, data.workloads_in(rows), systems, "abort_ratio",
        "aborted attempts per commit",
    )  # fmt: skip
    for axes in axes_list:
        if axes.get_ylim()[1] < 1e-3:
            axes.set_ylim(0, 1e-3)  # an axis of noise would look like a result
    caption = [
        "Systems that never throw an attempt away are left out.",
        *beside(setting, "The paper: sp3 aborts far less than nvm-tx; SPS and queue abort most."),
    ]
    return [Figure(f"figure-7-{setting.slug}", "Figure 7: aborts", plot, caption)]


def figure_8(recoveries, details):
    """Recovery time over the threads that recover, by checkpoint interval or size of the log: of
    one group, each cell once."""
    figures = []
    logs = groups.log_names(recoveries)
    for strategy in sorted({groups.strategy(row) for row in recoveries}):
        rows = [row for row in recoveries if groups.strategy(row) == strategy]
        names = [name for log, name in logs.items() if any(groups.log(row) == log for row in rows)]
        plot, axes = panels(1, 4.9, 3.3)
        handles = {}
        for name in names:
            points = sorted(
                (row["threads"], row["recovery_seconds"])
                for row in rows
                if logs[groups.log(row)] == name
            )
            handles[name] = draw_line(axes[0], *zip(*points), name, names)
        counts_axis(axes[0], data.thread_counts(rows), "threads that recover")
        axes[0].set_ylabel("recovery, seconds")
        from_zero(axes[0])
        legend_below(plot, handles, 2)
        sizes = sorted({row["log_bytes"] / 2**30 for row in rows})
        caption = [
            f"Strategy {strategy}; logs of {number(sizes[0])} to {number(sizes[-1])} GiB.",
            f"The paper: around {paper.RECOVERY_SECONDS} s for {paper.RECOVERY_THREADS} threads "
            f"and a checkpoint every {number(paper.RECOVERY_CHECKPOINT_MS / 1000, 6)} s, after 10 GB of logs.",
        ]
        slug = "-".join(["figure-8", strategy, *details])
        figures.append(Figure(slug, "Figure 8: recovery", plot, caption))
    return figures


def latencies(setting, rows):
    """p50, p99 and p99.9 of each system with the most threads that were measured."""
    marks = {"p50": ("o", "latency_p50_ns"), "p99": ("|", "latency_p99_ns"),
             "p99.9": ("x", "latency_p999_ns")}  # fmt: skip
    timed = [row for row in rows
             if all(row.get(member) is not None for _, member in marks.values())]  # fmt: skip
    if not timed:
        return []
    threads = data.thread_counts(timed)[-1]
    systems = [s for s in data.systems_in(timed) if any(
        r["system"] == s and r["threads"] == threads for r in timed)]  # fmt: skip
    workloads = data.workloads_in(timed)
    plot, axes_list = panels(len(workloads), 3.0, 0.9 + 0.26 * len(systems))
    handles = {}
    for axes, workload in zip(axes_list, workloads):
        for position, system in enumerate(systems):
            row = data.find(timed, system, workload, threads)
            if row is None:
                continue
            values = [row[member] / 1000 for _, member in marks.values()]
            axes.plot(values, [position] * 3, color="#999999", linewidth=1, zorder=1)
            for (name, (marker, _)), value in zip(marks.items(), values):
                point = axes.plot(value, position, marker, color="black", markersize=7, zorder=2)[0]
                handles.setdefault(name, point)
        axes.set_yticks(range(len(systems)))
        axes.set_yticklabels([plain(system) for system in systems])
        axes.set_ylim(len(systems) - 0.4, -0.6)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(PlainLog())
        axes.xaxis.set_minor_formatter(PlainLog(labelOnlyBase=False))
        axes.set_xlabel("µs")
        axes.set_title(plain(data.workload_title(workload)))
    legend_below(plot, handles)
    caption = [f"Latency of a transaction with {setting.several(threads)}."]
    return [Figure(f"latency-{setting.slug}", "Latency percentiles", plot, caption)]
