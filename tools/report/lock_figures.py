"""The range locks' figures, from rows of `sp3 lockbench --json`."""

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


def over_height(rows, details):
    """What a pair takes over the skip list's greatest height, the same way."""
    shown = [r for r in rows if r["workload"] == "height" and r.get("ns_per_pair") is not None]
    figures = []
    for more, alike in groups.grouped(shown, ["threads", "held", "slots", "writes_percent"]):
        names = lock_names(alike)
        plot, axes = panels(1, 4.6, 3.2)
        handles = {}
        for name in names:
            points = sorted((r["max_height"], r["ns_per_pair"]) for r in alike if r["lock"] == name)
            handles[name] = draw_line(axes[0], *zip(*points), name, names)
        axes[0].set_xlabel("greatest height")
        axes[0].set_ylabel("ns per pair")
        from_zero(axes[0])
        legend_below(plot, handles)
        figures.append(figure("range-locks-height", "Range locks: height of the skip list", plot,
                              [paper.LOCKS_HEIGHT], details, more))  # fmt: skip
    return figures
