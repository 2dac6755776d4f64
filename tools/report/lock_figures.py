"""The range locks' figures, from rows of `sp3 lockbench --json`."""

from dataclasses import dataclass

import groups
import paper
from figures import Figure, counts_axis, panels, thousands
from results import thread_counts
from style import draw_line, from_zero, legend_below


def lock_names(rows):
    """In the order of the file, which is the order of the command line."""
    return list(dict.fromkeys(row["lock"] for row in rows))


def figure(slug, title, plot, caption, details, more):
    """`more`: what tells this figure from others of its group."""
    return Figure("-".join([slug, *details, *more]), ", ".join([title, *more]), plot, caption)


def over_threads(rows, details):
    """Pairs a second over threads for W1 and W2: of one group, each cell once."""
    shown = [r for r in rows if r["workload"] in ("W1", "W2") and r.get("pairs_per_s") is not None]
    figures = []
    for more, alike in groups.grouped(shown, ["max_height", "slots", "writes_percent"]):
        workloads = sorted({r["workload"] for r in alike})
        names = lock_names(alike)
        plot, axes_list = panels(len(workloads), 4.6, 3.4)
        handles = {}
        for axes, workload in zip(axes_list, workloads):
            for name in names:
                points = sorted(
                    (r["threads"], r["pairs_per_s"])
                    for r in alike
                    if r["workload"] == workload and r["lock"] == name
                )
                if points:
                    handles.setdefault(name, draw_line(axes, *zip(*points), name, names))
            text = {"W1": "W1: one range at a time", "W2": "W2: 16 ranges at a time"}[workload]
            axes.set_title(text)
            axes.set_ylabel("thousand lock+unlock pairs/s")
            from_zero(axes)
            thousands(axes)
            counts_axis(axes, thread_counts(alike), "threads")
        legend_below(plot, handles)
        figures.append(figure("range-locks-w1-w2", "Range locks: W1 and W2", plot,
                              [paper.LOCKS_W1, paper.LOCKS_W2], details, more))  # fmt: skip
    return figures


@dataclass(frozen=True)
class Sweep:
    """A workload of which one member goes up, and what is drawn over it."""

    workload: str
    over: str
    value: str
    slug: str
    title: str
    labels: tuple  # of the axes
    caption: str
    apart: tuple  # members that rows of one picture agree in, besides
    logarithmic: bool = False


SWEEPS = [
    Sweep("height", "max_height", "ns_per_pair", "range-locks-height",
          "Range locks: height of the skip list", ("greatest height", "ns per pair"),
          paper.LOCKS_HEIGHT, ("threads", "held", "slots", "writes_percent")),
    Sweep("shared", "writes_percent", "pairs_per_s", "range-locks-shared",
          "Range locks: readers and writers", ("% of the pairs that write", "thousand pairs/s"),
          "Readers share a range. Locks without a shared mode are measured with writers alone.",
          ("threads", "max_height", "slots")),
    Sweep("overlap", "slots", "pairs_per_s", "range-locks-overlap",
          "Range locks: ranges that meet", ("different ranges to choose from", "thousand pairs/s"),
          "All threads choose among so many ranges of 1 KiB: the fewer, the more often they meet.",
          ("threads", "max_height", "writes_percent"), logarithmic=True),
]  # fmt: skip


def sweeps(rows, details):
    """Each sweep of one group, each point once."""
    return [drawn for sweep in SWEEPS for drawn in over_member(sweep, rows, details)]


def over_member(sweep, rows, details):
    shown = [r for r in rows if r["workload"] == sweep.workload
             and None not in (r.get(sweep.value), r.get(sweep.over))]  # fmt: skip
    figures = []
    for more, alike in groups.grouped(shown, sweep.apart):
        names = lock_names(alike)
        plot, axes = panels(1, 4.6, 3.2)
        handles = {}
        for name in names:
            points = sorted((r[sweep.over], r[sweep.value]) for r in alike if r["lock"] == name)
            handles[name] = draw_line(axes[0], *zip(*points), name, names)
        if sweep.logarithmic:
            counts_axis(axes[0], sorted({r[sweep.over] for r in alike}), "")
        if sweep.value == "pairs_per_s":
            thousands(axes[0])
        axes[0].set_xlabel(sweep.labels[0])
        axes[0].set_ylabel(sweep.labels[1])
        from_zero(axes[0])
        legend_below(plot, handles)
        figures.append(figure(sweep.slug, sweep.title, plot, [sweep.caption], details, more))
    return figures
