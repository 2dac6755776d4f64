"""Draws results: one HTML page that needs no network, and its pictures as PNG files.

usage: ./dev report RESULTS... [--out DIRECTORY] [--title TITLE]
"""

import argparse
import io
import os
import pathlib
import signal
import sys

# Debian's own interpreter sees Debian's packages, whatever python3 comes first in the path.
DEBIANS_PYTHON = "/usr/bin/python3"
if __name__ == "__main__" and sys.executable != DEBIANS_PYTHON and os.access(DEBIANS_PYTHON, os.X_OK):
    os.execv(DEBIANS_PYTHON, [DEBIANS_PYTHON, "-B", *sys.argv])

# Files that are being written.
UNFINISHED = set()


def end_without_a_word(number, _frame):
    """As a signal ends the other commands. Not by an exception: numpy, if it is being imported, makes
    another one of it."""
    for path in UNFINISHED:
        path.unlink(missing_ok=True)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, end_without_a_word)

# OpenBLAS has nothing to compute here, and where it gets no threads numpy cannot be imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# What the caller's own programs draw on may not be known to this matplotlib.
os.environ["MPLBACKEND"] = "Agg"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import results as data  # noqa: E402
from settings import slug_of  # noqa: E402

INTRODUCTION = [
    "One operation is one transaction. Medians of the runs of each cell; a curve joins medians. "
    "Each section has one setting, and says whether it is native, native with yielded waits, or "
    "simulated: compare within a section only.",
    "mnemosyne and quadra are re-implementations from their papers (docs/PEERS.md). Numbers that "
    "the paper states stand beside ours as a comparison, not as a reproduction: its machine was "
    "another.",
]


def sections_of(results):
    """(title, [introducing sentence], [Figure], [Table or None]) in the page's order."""
    import aims
    import figures
    import groups
    import lock_figures
    import tables

    sections = []
    for setting, rows in results.settings():
        drawn = []
        for draw in (figures.figure_2, figures.figure_5, figures.figure_6, figures.figure_7,
                     figures.latencies):  # fmt: skip
            drawn += draw(setting, rows)
        listed = [aims.transactions(setting, rows), tables.comparison(setting, rows),
                  tables.scaling(setting, rows), tables.counts(setting, rows),
                  tables.probes(setting, rows)]  # fmt: skip
        explained = [setting.explanation, *data.distances(rows), *data.measured_twice(rows)]
        sections.append((setting.title, explained, drawn, listed))
    for details, rows, sentences in groups.recoveries(results.recoveries):
        listed = [aims.recoveries(rows), tables.recoveries(rows)]
        drawn = figures.figure_8(rows, details)
        title = ", ".join(["Recovery", *details])
        sections.append((title, sentences, drawn, listed))
    for details, rows, sentences in groups.locks(results.locks):
        drawn = lock_figures.over_threads(rows, details) + lock_figures.sweeps(rows, details)
        listed = [aims.locks(rows), tables.lock_counts(rows), tables.lock_runs(rows)]
        title = ", ".join(["Range locks", *details])
        sections.append((title, sentences, drawn, listed))
    listed = [tables.validation(results.validations), tables.sensitivity(results.sensitivities)]
    if any(listed):
        title = "The simulator beside the machine"
        sections.append((title, [], [], listed))
    sections.append(("Sources", [], [], [tables.machines(results)]))
    return sections


def unique(slug, used):
    """A file name that no picture has yet: others may differ in what no file name can hold."""
    slug = slug_of(slug)
    name, n = slug, 2
    while name in used:
        name, n = f"{slug}-{n}", n + 1
    used.add(name)
    return name


def pictures_before(index):
    """Those of the report that has this page already. Raises BadInput if the page is no report's,
    since writing one would replace it."""
    import page

    try:
        slugs = page.slugs_in(index.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return []
    if slugs is None:
        raise data.BadInput(f"{index}: not a page of sp3 report, so it is left as it is: remove it, or see --out")
    return [index.with_name(f"{slug}.png") for slug in slugs]


def replace(path, content):
    """In the place of the file before, which stays as it is where this one cannot be written: what is
    left of a page would pass for another's."""
    path = pathlib.Path(os.path.realpath(path))  # a link stays one
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    UNFINISHED.add(fresh)
    try:
        fresh.write_bytes(content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
        UNFINISHED.remove(fresh)


def write_report(results, directory, title):
    """Returns the paths written, the page first."""
    import page

    directory.mkdir(parents=True, exist_ok=True)
    index = directory / "index.html"
    before = pictures_before(index)
    written = []
    sections = []
    used = set()
    for name, sentences, drawn, listed in sections_of(results):
        parts = [f"<p>{page.escape(sentence)}</p>" for sentence in sentences]
        for figure in drawn:
            figure.slug = unique(figure.slug, used)
            png = page.png_bytes(figure.plot)
            path = directory / f"{figure.slug}.png"
            replace(path, png)
            written.append(path)
            parts.append(page.figure_html(figure, png))
        parts += [page.table_html(table) for table in listed if table]
        sections.append((name, parts))
    if results.skipped:
        items = "".join(f"<li>{page.escape(reason)}</li>" for reason in results.skipped)
        sections.append(("Not run", [f"<ul>{items}</ul>"]))
    replace(index, page.page_html(title, INTRODUCTION, sections).encode("utf-8"))
    for picture in set(before) - set(written):
        picture.unlink(missing_ok=True)
    return [index] + written


class Parser(argparse.ArgumentParser):
    """Whose errors are one line, as those of the other commands."""

    def error(self, message):
        print(f"report: {message} (see --help)", file=sys.stderr)
        sys.exit(2)


def some_text(text):
    """An argument that may not be empty, as a script's variable without a value is."""
    if not text:
        raise argparse.ArgumentTypeError("wanted some text, found nothing")
    return text


def main(arguments):
    parser = Parser(prog="sp3 report", description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument(
        "results", nargs="+", type=some_text, metavar="RESULTS",
        help="JSON of sp3 compare, bench, sim, lockbench or recovery-bench",
    )  # fmt: skip
    parser.add_argument("--out", default="report", type=some_text, help="the directory to write to: report")
    parser.add_argument("--title", default="sp3: results", type=some_text, help="of the page")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: a path may be any bytes
    try:
        results = data.load(options.results)
        if not (results.cells() or results.skipped):
            raise data.BadInput(f"{', '.join(options.results)}: no rows, so there is nothing to draw")
        written = write_report(results, pathlib.Path(options.out), options.title)
    except data.BadInput as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"report: {error.filename or options.out}: {error.strerror}", file=sys.stderr)
        return 3
    except ModuleNotFoundError as error:
        print(f"report: {error}: wanted Debian's python3-matplotlib, which ./dev report installs", file=sys.stderr)
        return 3
    except (ImportError, MemoryError) as error:  # a part of it that finds no memory
        print(f"report: {str(error) or 'no memory'}".replace("\n", " "), file=sys.stderr)
        return 3
    except RuntimeError as error:
        if "thread" not in str(error):  # matplotlib starts one while it looks for fonts
            raise
        print(f"report: {error}", file=sys.stderr)
        return 3
    print(f"{written[0]}: {results.cells()} cells, {len(written) - 1} pictures")
    return 0


class Aside(io.TextIOBase):
    """Standard error. What is lost of it changes no exit code."""

    def __init__(self, to):
        self.to = to

    def write(self, text):
        try:
            self.to.write(text)
            self.to.flush()
        except OSError:
            pass
        return len(text)


def run(arguments):
    """main(), and 3 where what it prints is lost, as the other commands have it."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # takes nothing
    sys.stderr = Aside(sys.stderr or open(os.devnull, "w", encoding="utf-8"))
    try:
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse's: after the help, or for what it refuses
            code = end.code
        sys.stdout.flush()
        return code
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where the rest may go at the end
        print("report: standard output could not be written", file=sys.stderr)
        return 3


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads no more ends it, without a word
    sys.exit(run(sys.argv[1:]))
