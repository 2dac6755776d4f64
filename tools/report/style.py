"""How systems look: told apart by marker, line and hatch before colour, so in black and white too.
Colours differ in brightness.
"""

import matplotlib

matplotlib.use("Agg")  # no display

import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

#            colour, marker, line, hatch
LOOKS = {
    "sp3": ("#000000", "o", "-", ""),
    "sp3-async": ("#555555", "D", "--", "...."),
    "nvm-tx": ("#0072b2", "s", "-", "////"),
    "nvm-ideal": ("#56b4e9", "^", ":", "\\\\\\\\"),
    "dram-tx": ("#999999", "v", "-.", "xxxx"),
    "pmdk": ("#d55e00", "P", "-", "----"),
    "mnemosyne": ("#009e73", "X", "--", "++++"),
    "quadra": ("#cc79a7", "*", "-.", "oo"),
    "lmdb": ("#e69f00", "<", "-", "||||"),
    "rocksdb": ("#7f3f00", ">", "--", "**"),
    "sqlite": ("#f0c808", "h", ":", "OO"),
}
SPARE = [
    ("#000000", "o", "-", ""), ("#0072b2", "s", "--", "////"), ("#d55e00", "^", "-.", "----"),
    ("#009e73", "v", ":", "++++"), ("#cc79a7", "D", "-", "xxxx"), ("#e69f00", "P", "--", "||||"),
    ("#56b4e9", "X", "-.", "...."), ("#7f3f00", "*", ":", "oo"), ("#777777", "<", "-", "\\\\\\\\"),
    ("#444444", ">", "--", "**"), ("#aaaa00", "h", "-.", "OO"), ("#aa00aa", "p", ":", "/\\"),
]  # fmt: skip

matplotlib.rcdefaults()  # whatever the caller's own pictures look like
plt.rcParams.update(
    {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.dpi": 110,
        "figure.max_open_warning": 0,  # a page has them all before the first is drawn
        "savefig.bbox": "tight",
        "hatch.linewidth": 0.6,
    }
)


def plain(text):
    """Text that is drawn as it is: to matplotlib dollars are formulas."""
    return str(text).replace("$", r"\$")


def look(name, names):
    """(colour, marker, line, hatch) of a system, or of the n-th of other names."""
    return LOOKS.get(name) or SPARE[list(names).index(name) % len(SPARE)]


def draw_line(axes, x, y, name, names):
    colour, marker, line, _ = look(name, names)
    width = 2.2 if name == "sp3" else 1.3
    return axes.plot(
        x, y, color=colour, marker=marker, linestyle=line, linewidth=width, markersize=6,
        markerfacecolor=colour if name == "sp3" else "white",
    )[0]  # fmt: skip


def draw_bar(axes, x, height, width, name, names):
    colour, _, _, hatch = look(name, names)
    solid = name == "sp3"
    return axes.bar(
        x, height, width, color=colour if solid else "white", edgecolor=colour, hatch=hatch,
        linewidth=1,
    )  # fmt: skip


def from_zero(axes):
    """Begins the axis at zero, and leaves room for the marks of what is highest, however flat it is."""
    top = axes.dataLim.ymax
    axes.set_ylim(0, 1.05 * top if top > 0 else None)


def legend_below(figure, handles, columns=7):
    """One legend for all panels; `handles` is {label: handle}."""
    figure.legend(
        handles.values(), [plain(label) for label in handles], loc="upper center",
        bbox_to_anchor=(0.5, 0.0), ncol=min(columns, max(1, len(handles))), handlelength=3,
    )  # fmt: skip
