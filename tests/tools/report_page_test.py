#!/usr/bin/env python3
"""Tests of the page that tools/report writes: what it shows, and what it leaves as it is.

usage: report_page_test.py REPORT_FOLDER
"""

import html.parser
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from report_rows import lock_row, recovery, row, some_rows

REPORT = ""


class Page(html.parser.HTMLParser):
    """Collects what the page refers to, and checks that its tags match."""

    VOID = {"meta", "img", "br"}

    def __init__(self, text):
        super().__init__()
        self.references, self.open_tags, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.references += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open_tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


def python_with_matplotlib():
    python = "/usr/bin/python3" if pathlib.Path("/usr/bin/python3").exists() else sys.executable
    command = [python, "-c", "import matplotlib"]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        return python
    return None


PYTHON = python_with_matplotlib()


def is_installed(package):
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    try:
        return subprocess.run(query, capture_output=True, check=False).stdout == b"installed"
    except FileNotFoundError:
        return False


@unittest.skipUnless(PYTHON, "no matplotlib here; './dev report' installs it")
class PageTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.directory.name)

    def tearDown(self):
        self.directory.cleanup()

    def report(self, content, code=0, title="results", out="out", env=None, more=(), **where):
        """`where`: as for subprocess.run; `env` is beside what is there, `more` are arguments."""
        (self.folder / "results.json").write_text(json.dumps(content))
        where = {"stdout": subprocess.PIPE} | where
        result = subprocess.run(
            [PYTHON, "-B", REPORT, "results.json", "--out", out, "--title", title, *more],
            stderr=subprocess.PIPE, text=True, timeout=240, cwd=self.folder, check=False,
            env=os.environ | {"PYTHONIOENCODING": "utf-8:strict"} | (env or {}), **where,
        )  # fmt: skip
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_one_page_holds_every_figure_and_fetches_nothing(self):
        locks = [
            {"lock": lock, "workload": workload, "threads": threads, "max_height": height,
             "pairs_per_s": 1e6, "ns_per_pair": 100.0}
            for lock in ("skiplist", "grid")
            for workload, threads, height in (("W1", 1, 8), ("W1", 2, 8), ("W2", 1, 8),
                                              ("W2", 2, 8), ("height", 1, 4), ("height", 1, 8))
        ]  # fmt: skip
        recoveries = [
            {"recovery_seconds": 0.1 * t, "threads": t, "checkpoint_ms": c, "log_bytes": size,
             "workload": "sps", "strategy": "stamp", "replayed": 2750123, "bytes_per_s": 1.5e9,
             "memory_peak_bytes": 2**27, "scan_seconds": 0.5, "cut_seconds": 0.01,
             "order_seconds": 0.2, "replay_seconds": 0.25, "flush_seconds": 0.0625}
            for t in (1, 24)
            for c, size in ((1000, 2**30), (5000, 2**30), (0, 10 * 2**30))
        ]  # fmt: skip
        about_the_simulator = [
            {"workload": "sps", "system": "sp3", "cores": 1, "native_mean_ns": 123.4,
             "simulated_mean_ns": 100.2, "ratio": 1.231},
            {"workload": "sps", "system": "sp3", "cores": 2, "native_mean_ns": 140.0,
             "simulated_mean_ns": 100.0, "ratio": 1.4},
        ] + [
            {"workload": "sps", "systems": ["sp3", "nvm-tx"], "cores": [1, 16], "cost": cost,
             "factor": factor, "gain": gain, "speedup": 10.0, "same_order": gain > 1}
            for cost, factor, gain in (("", 1, 2.0), ("fetch", 0.5, 0.875), ("fetch", 1.5, 2.625))
        ]  # fmt: skip
        content = some_rows() + some_rows(simulated=True) + locks + recoveries
        content += about_the_simulator
        self.report({"rows": content, "skipped": ["lmdb on sps: it has no arrays"]})
        pictures = {path.name for path in (self.folder / "out").glob("*.png")}
        for figure in ("figure-2", "figure-5", "figure-6", "figure-7", "latency"):
            for environment in ("native", "simulated"):
                name = f"{figure}-{environment}"
                self.assertTrue(any(p.startswith(name) for p in pictures), name)
        self.assertIn("figure-8-stamp.png", pictures)
        self.assertIn("range-locks-w1-w2.png", pictures)
        self.assertIn("range-locks-height.png", pictures)
        text = (self.folder / "out" / "index.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open_tags, [])
        images = [r for r in page.references if r.startswith("data:image/png;base64,")]
        self.assertEqual(len(images), len(pictures))
        self.assertTrue(all(r.startswith(("data:", "#")) for r in page.references))
        shown = " ".join(page.text)
        for words in ("17.23 ×", "around 30 s", "it has no arrays", "12.3 µs", "abc<1>",
                      "2,750,123", "0.062", "1 of 2 within 30 %", "0.88 to 2.62", "fetch × 0.5"):
            self.assertIn(words, shown)

    def test_results_of_one_thread_and_one_system_make_a_page_too(self):
        self.report([row("sp3", "sps", 1, 10.0, latency_p50_ns=None, latency_p99_ns=None,
                         latency_p999_ns=None)])  # fmt: skip
        self.assertEqual(list((self.folder / "out").glob("*.png")), [])

    def test_what_was_not_measured_is_not_drawn(self):
        self.report([row("sp3", "sps", 1, 10.0, latency_p99_ns=None),
                     lock_row("grid", "W1", 1, pairs_per_s=None, ns_per_pair=None),
                     lock_row("grid", "height", 1, pairs_per_s=None, ns_per_pair=None)])  # fmt: skip
        self.assertEqual(list((self.folder / "out").glob("*.png")), [])
        self.report([recovery(1, 1.0, strategy=None), recovery(1, 2.0, strategy="dag")])
        names = sorted(path.name for path in (self.folder / "out").glob("*.png"))
        self.assertEqual(names, ["figure-8-dag.png", "figure-8-stamp.png"])

    def test_each_group_of_recoveries_and_locks_has_a_picture(self):
        self.report([recovery(1, 1.0), recovery(1, 2.0, memory="file"), lock_row("grid", "W1", 1),
                     lock_row("grid", "W1", 1, slots=64), lock_row("grid", "W1", 1, commit="def")])
        names = sorted(path.name for path in (self.folder / "out").glob("*.png"))
        self.assertEqual(names, [
            "figure-8-stamp-emulated-memory.png", "figure-8-stamp-file-memory.png",
            "range-locks-w1-w2-commit-abc-slots-64.png",
            "range-locks-w1-w2-commit-abc-slots-65536.png",
            "range-locks-w1-w2-commit-def.png"])  # fmt: skip
        text = (self.folder / "out" / "index.html").read_text(encoding="utf-8")
        self.assertIn("Recovery, file memory</h2>", text)
        self.assertIn("Range locks: W1 and W2, slots 64</h3>", text)

    def shown(self):
        return " ".join(Page((self.folder / "out" / "index.html").read_text("utf-8")).text)

    def figures(self):
        """The page without what it says of itself."""
        return self.shown().partition("its machine was another.")[2]

    def test_every_row_of_a_lock_is_shown(self):
        sweeps = [lock_row("grid", "shared", 2, writes_percent=share, pairs_per_s=pairs)
                  for share, pairs in ((0, 7.531e6), (20, 8.642e6))]
        sweeps += [lock_row("grid", "overlap", 2, slots=slots, pairs_per_s=3e6) for slots in (8, 64)]
        measured = {"fairness": 1.375, "latency_p50_ns": 987.0, "latency_p99_ns": 4321.0, "spread": 0.07}
        self.report([*sweeps, lock_row("grid", "W1", 1, **measured)])
        names = sorted(path.name for path in (self.folder / "out").glob("*.png"))
        self.assertEqual(names, ["range-locks-overlap.png", "range-locks-shared.png",
                                 "range-locks-w1-w2.png"])  # fmt: skip
        for words in ("7531", "8642", "1.38", "987 ns", "4321 ns", "7 %"):
            self.assertIn(words, self.shown())

    def test_instructions_stand_beside_the_time_of_a_pair(self):
        counted = lock_row("grid", "uncontended", 1, held=256, instructions_per_pair=156.4)
        del counted["pairs_per_s"], counted["ns_per_pair"]
        timed = lock_row("grid", "uncontended", 1, held=256, ns_per_pair=31.4)
        self.report([timed, counted, timed | {"max_height": 4, "ns_per_pair": 28.9}])
        self.assertIn("grid 256 65536 12 31.4 156.4 –", self.shown())
        self.assertIn("grid 256 65536 4 28.9 – –", self.shown())
        self.report([timed, counted | {"slots": 1024}])
        self.assertIn("grid 256 65536 12 31.4 – – grid 256 1024 12 – 156.4 –", self.shown())

    def test_what_probes_counted_is_shown_and_why_not(self):
        self.report([row("sp3", "sps", 1, 10.0, instructions_per_tx=2441.0, page_faults_per_tx=0.25,
                         probes={"perf": "available", "pcm": "unavailable: no MSR access"})])
        for words in ("instructions page faults", "2441 0.25", "pcm unavailable: no MSR access."):
            self.assertIn(words, self.shown())
        self.report([row("sp3", "sps", 1, 10.0)])
        self.assertNotIn("Counted by the machine", self.shown())

    def test_the_paper_scales_from_one_core(self):
        workloads = ("sps", "queue", "hashtable", "rbtree", "bptree")
        self.report([row("sp3", workload, threads, 10.0) for workload in workloads for threads in (2, 16)])
        self.assertIn("16 threads over 2", self.shown())
        self.assertNotIn("10.11", self.shown())
        self.report([row("sp3", workload, threads, 10.0) for workload in workloads for threads in (1, 16)])
        self.assertIn("10.11", self.shown())

    def test_captions_quote_the_paper_only_of_what_it_measured(self):
        quoted = ("the paper", "The paper:", "two Xeons")
        self.report(some_rows())
        for words in ("ratios beside those that the paper states", "scales almost linearly", *quoted):
            self.assertIn(words, self.figures())
        self.report([row(system, workload, threads, 10.0, memory="file", latency_ns=0)
                     for system in ("sp3", "lmdb") for workload in ("hashtable", "bptree")
                     for threads in (1, 2)])  # fmt: skip
        self.assertIn("sp3 over the others", self.figures())
        for words in quoted:
            self.assertNotIn(words, self.figures())

    def test_what_hardly_waits_is_left_out_where_waits_are_yielded(self):
        said = "Left out, as by sp3 compare: dram-tx;"
        self.report(some_rows(latency_model="yield", latency_ns=20000))
        self.assertIn(said, self.figures())
        self.report(some_rows())
        self.assertNotIn(said, self.figures())

    def test_what_is_about_the_simulator_alone_makes_a_page(self):
        self.report([{"workload": "sps", "system": "sp3", "cores": 1, "native_mean_ns": 123.4,
                      "simulated_mean_ns": 100.2, "ratio": 1.231}])
        self.assertIn("1 of 1 within 30 %", self.shown())

    def test_a_report_takes_the_place_of_the_one_before(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "mine.png").write_bytes(b"a picture")
        self.report([lock_row("grid", "W1", 1), lock_row("grid", "height", 1)])
        self.report([lock_row("grid", "W1", 1)])
        names = sorted(path.name for path in (self.folder / "out").glob("*.png"))
        self.assertEqual(names, ["mine.png", "range-locks-w1-w2.png"])

    def test_a_page_that_is_no_reports_is_left_as_it_is(self):
        (self.folder / "out").mkdir()
        index, picture = self.folder / "out" / "index.html", self.folder / "out" / "album.png"
        foreign = '<html><figure id="album"><img src="album.png"></figure></html>'
        index.write_text(foreign)
        picture.write_bytes(b"a picture")
        said = self.report([lock_row("grid", "W1", 1)], code=2).stderr
        self.assertRegex(said, "^report: out/index.html: not a page of sp3 report, .*\n$")
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()}, {"index.html", "album.png"})
        self.assertEqual((index.read_text(), picture.read_bytes()), (foreign, b"a picture"))

    def test_results_of_ranges_alone_make_a_page(self):
        self.report([row(system, "ranges", 1, 10.0, range_least=64) for system in ("sp3", "nvm-tx")])
        self.assertIn("Ranges", (self.folder / "out" / "index.html").read_text(encoding="utf-8"))

    def test_results_of_bank_and_tpcc_alone_make_a_page(self):
        self.report([row(system, workload, threads, 10.0, warehouses=1)
                     for system in ("sp3", "lmdb") for workload in ("bank", "tpcc")
                     for threads in (1, 2)])  # fmt: skip
        text = (self.folder / "out" / "index.html").read_text(encoding="utf-8")
        self.assertIn("TPC-C, reduced", text)
        self.assertIn("Bank", text)

    def test_names_are_drawn_and_stored_whatever_they_hold(self):
        names = [row(r"$\foo$", "$x", threads, 10.0, memory="a/../b") for threads in (1, 2)]
        names += [row("_$", "$x", threads, 10.0, memory="a/../b") for threads in (1, 2)]
        recoveries = [{"recovery_seconds": 3, "threads": 1, "checkpoint_ms": 0, "log_bytes": 2**30,
                       "strategy": "/" * 300}]  # fmt: skip
        self.report(names + recoveries)
        self.assertIn(r"$\foo$", (self.folder / "out" / "index.html").read_text(encoding="utf-8"))
        self.assertEqual(len(list((self.folder / "out").glob("*.png"))), 4)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"out", "results.json"})

    def test_a_title_and_a_directory_may_be_any_bytes(self):
        directory = os.fsdecode(b"out \xff")
        self.report(some_rows()[:1], title=os.fsdecode(b"a < \xff"), out=directory)
        self.assertIn("<h1>a &lt; ?</h1>", (self.folder / directory / "index.html").read_text(encoding="utf-8"))

    def test_an_axis_from_zero_has_room_for_a_flat_curve(self):
        program = ("import sys; sys.path.insert(0, sys.argv[1]); import style; axes = style.plt.subplots()[1]; "
                   "axes.plot([1, 2], [10, 10.1]); style.from_zero(axes); print(axes.get_ylim()[1] > 10.5)")
        said = subprocess.run([PYTHON, "-B", "-c", program, REPORT], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "True\n")

    def pictures(self):
        return {path.name: path.read_bytes() for path in (self.folder / "out").glob("*.png")}

    def test_pictures_do_not_hang_on_how_the_caller_draws_his_own(self):
        self.report(some_rows()[:1])
        before = self.pictures()
        (self.folder / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\naxes.facecolor: black\n")
        self.report(some_rows()[:1], env={"MPLBACKEND": "unknown"})
        self.assertEqual(self.pictures(), before)

    def test_python_without_texts_of_its_programs_draws_too(self):
        self.report(some_rows()[:1], env={"PYTHONOPTIMIZE": "2"})

    def test_a_mistake_on_the_command_line_is_one_line(self):
        for option in ({"out": ""}, {"title": ""}, {"title": "a", "more": ["--paint"]}):
            said = self.report(some_rows()[:1], code=2, **option).stderr
            self.assertRegex(said, "^report: .*(wanted some text, found nothing|--paint).*\n$")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["results.json"])

    def test_a_signal_ends_it_without_a_word(self):
        """Also while numpy is imported, which makes an ImportError of what is raised meanwhile."""
        (self.folder / "results.json").write_text(json.dumps(some_rows()))
        for number, later in ((signal.SIGINT, 0), (signal.SIGINT, 0.04), (signal.SIGINT, 0.08),
                              (signal.SIGINT, 0.12), (signal.SIGTERM, 0.2), (signal.SIGHUP, 0.3)):
            with self.subTest(number=number, later=later), subprocess.Popen(
                    [PYTHON, "-B", REPORT, "results.json"], stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, cwd=self.folder) as process:  # fmt: skip
                while process.poll() is None and not (self.folder / "report").exists():
                    time.sleep(0.01)
                time.sleep(later)
                process.send_signal(number)
                said = process.communicate(timeout=240)
                self.assertEqual((said, process.returncode), ((b"", b""), -number))
            left = [path.name for path in (self.folder / "report").iterdir()]
            self.assertFalse([name for name in left if not name.endswith(".png")])
            for name in left:
                (self.folder / "report" / name).unlink()
            (self.folder / "report").rmdir()

    @unittest.skipUnless(is_installed("python3-matplotlib"), "./dev would install it")
    def test_dev_takes_paths_as_its_caller_means_them(self):
        (self.folder / "results.json").write_text(json.dumps(some_rows()))
        # Through a link, as from a directory of programs.
        dev = self.folder / "linked"
        dev.symlink_to(pathlib.Path(REPORT).resolve().parent.parent / "dev")
        subprocess.run([dev, "report", "results.json", "--out", "out"], capture_output=True,
                       timeout=240, cwd=self.folder, check=True)  # fmt: skip
        self.assertTrue((self.folder / "out" / "index.html").exists())

    def test_a_page_that_cannot_be_written_is_one_line(self):
        (self.folder / "out").write_text("a file")
        self.assertEqual(self.report(some_rows(), code=3).stderr, "report: out: File exists\n")
        (self.folder / "out").unlink()
        (self.folder / "out" / "index.html").mkdir(parents=True)
        said = self.report(some_rows(), code=3).stderr
        self.assertRegex(said, "^report: out/index.html: .*\n$")

    def test_a_report_without_space_leaves_the_one_before(self):
        self.report(some_rows()[:1])
        before = {path: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.assertIn(self.folder / "out" / "index.html", before)
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
        self.assertEqual(self.report(some_rows()[:1], code=3, **few).stderr, "report: out: File too large\n")
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "out").iterdir()}, before)

    def test_a_link_to_a_page_stays_one(self):
        self.report(some_rows()[:1])
        index, page = self.folder / "out" / "index.html", self.folder / "page.html"
        index.rename(page)
        index.symlink_to(page)
        self.report(some_rows()[:1], title="another")
        self.assertTrue(index.is_symlink())
        self.assertIn("<h1>another</h1>", page.read_text(encoding="utf-8"))

    def test_what_is_printed_and_lost_is_one_line(self):
        for unbuffered in (True, False):
            with open("/dev/full", "wb", buffering=0) as full, unittest.mock.patch.dict(os.environ):
                os.environ.pop("PYTHONUNBUFFERED", None)
                if unbuffered:
                    os.environ["PYTHONUNBUFFERED"] = "1"
                said = self.report(some_rows()[:1], code=3, stdout=full).stderr
            self.assertEqual(said, "report: standard output could not be written\n")
        closed = {"preexec_fn": lambda: os.close(1)}
        said = self.report(some_rows()[:1], code=3, **closed).stderr
        self.assertEqual(said, "report: standard output could not be written\n")

    def test_lost_errors_change_no_code(self):
        full = os.open("/dev/full", os.O_WRONLY)
        for rows, code in ((some_rows()[:1], 3), ([], 2)):
            for lose in (os.close, lambda descriptor: os.dup2(full, descriptor)):
                lost = {"preexec_fn": lambda lose=lose: (lose(1), lose(2))}
                with self.subTest(code=code, closed=lose is os.close):
                    self.report(rows, code=code, **lost)
        os.close(full)

    def test_where_no_thread_can_be_had_that_is_one_line(self):
        few = {"preexec_fn": lambda: (os.setgroups([]), os.setgid(65534), os.setuid(65534),
                                      resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)))}
        help_ = [PYTHON, "-B", REPORT, "--help"]
        if os.getuid() != 0 or subprocess.run(help_, capture_output=True, check=False, **few).returncode:
            self.skipTest("the limit concerns other users than root, who cannot read everything")
        self.folder.chmod(0o777)
        # Where matplotlib has yet to look for fonts, for which it wants a thread.
        with unittest.mock.patch.dict(os.environ, MPLCONFIGDIR=str(self.folder / "fonts")):
            said = self.report(some_rows()[:1], code=3, **few).stderr
        self.assertEqual(said, "report: can't start new thread\n")

    def test_a_bad_file_is_one_line(self):
        result = self.report({"rows": [{}]}, code=2)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("results.json: row 0", result.stderr)


if __name__ == "__main__":
    REPORT = sys.argv.pop(1)
    unittest.main(verbosity=1)
