"""The range locks' figures, from rows of `sp3 lockbench --json`."""

import paper
from figures import Figure, counts_axis, panels, thousands
from results import thread_counts
from style import draw_line, legend_below


def lock_names(rows):
    """In the order of the file, which is the order of the command line."""
    return list(dict.fromkeys(row["lock"] for row in rows))


def over_threads(rows):
    """Pairs a second over threads for W1 and W2."""
    shown = [r for r in rows if r["workload"] in ("W1", "W2") and "pairs_per_s" in r]
    workloads = sorted({r["workload"] for r in shown})
    if not workloads:
        return []
    names = lock_names(shown)
    plot, axes_list = panels(len(workloads), 4.6, 3.4)
    handles = {}
    for axes, workload in zip(axes_list, workloads):
        for name in names:
            points = sorted(
                (r["threads"], r["pairs_per_s"])
                for r in shown
                if r["workload"] == workload and r["lock"] == name
            )
            if points:
                handles.setdefault(name, draw_line(axes, *zip(*points), name, names))
        axes.set_title({"W1": "W1: one range at a time", "W2": "W2: 16 ranges at a time"}[workload])
        axes.set_ylabel("thousand lock+unlock pairs/s")
        axes.set_ylim(bottom=0)
        thousands(axes)
        counts_axis(axes, thread_counts(shown), "threads")
    legend_below(plot, handles)
    return [Figure("range-locks-w1-w2", "Range locks: W1 and W2", plot,
                   [paper.LOCKS_W1, paper.LOCKS_W2])]  # fmt: skip


def over_height(rows):
    """What a pair takes over the skip list's greatest height."""
    shown = [r for r in rows if r["workload"] == "height" and "ns_per_pair" in r]
    if not shown:
        return []
    names = lock_names(shown)
    plot, axes = panels(1, 4.6, 3.2)
    handles = {}
    for name in names:
        points = sorted((r["max_height"], r["ns_per_pair"]) for r in shown if r["lock"] == name)
        handles[name] = draw_line(axes[0], *zip(*points), name, names)
    axes[0].set_xlabel("greatest height")
    axes[0].set_ylabel("ns per pair")
    axes[0].set_ylim(bottom=0)
    legend_below(plot, handles)
    return [Figure("range-locks-height", "Range locks: height of the skip list", plot,
                   [paper.LOCKS_HEIGHT])]  # fmt: skip
