"""What tests of the sp3 command share: running it, and what its rows carry."""

import os
import re
import subprocess
import tempfile
import time
import unittest

from json_mutations import mutations

OK, FOUND, USAGE, ERROR = 0, 1, 2, 3

# Seconds for one command: under ThreadSanitizer a simulation takes minutes.
PATIENCE = 600

BENCH_FIELDS = {
    "system": str, "workload": str, "threads": int, "throughput_tx_per_s": float,
    "abort_ratio": float, "fences_per_tx": float, "lines_per_tx": float, "latency_p50_ns": float,
    "latency_p99_ns": float, "latency_p999_ns": float, "latency_max_ns": float, "memory": str,
    "latency_ns": int, "latency_model": str, "seed": int, "entries": int, "entry_size": int,
    "zipf": float, "insert_ratio": float, "durability": str, "group": int, "flush": str,
    "locks": str, "repeat": int, "spread": float, "commit": str, "machine": dict,
    "simulated": bool, "pool_size": int,
}


def process_state(pid):
    """As in /proc/PID/stat; None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None


def has_room(place):
    """As workloads/scratch_directory.h finds it: containers often have a /dev/shm of 64 MiB."""
    try:
        found = os.statvfs(place)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK) and found.f_bavail * found.f_frsize >= 1 << 30


class CommandTest(unittest.TestCase):
    SP3 = ""  # the program

    def setUp(self):
        scratch = "/dev/shm" if has_room("/dev/shm") else None
        self.directory = tempfile.TemporaryDirectory(dir=scratch)

    def tearDown(self):
        self.directory.cleanup()

    def sp3(self, *arguments, code=OK, **where):
        """`where`: as for subprocess.run; by default, in an empty directory."""
        where = {"cwd": self.directory.name} | where
        result = subprocess.run([self.SP3, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                                check=False, **where)
        self.assertEqual(result.returncode, code,
                         f"sp3 {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        return result

    def redirected(self, redirection, *arguments):
        """Runs it with that redirection of a shell's; what it has come to."""
        return subprocess.run(["sh", "-c", f'exec "$0" "$@" {redirection}', self.SP3, *arguments],
                              capture_output=True, text=True, timeout=PATIENCE, check=False,
                              cwd=self.directory.name)

    def on_tmpfs(self, place, size, *command, source="none", **where):
        """Runs a command that finds a file system of that size at `place`, where one can be mounted;
        the kernel lists it as of `source`. `where`: as for subprocess.run; by default, in an empty
        directory."""
        mount = f'mount -t tmpfs -o size={size} "$0" "$1" && shift && cd "$PWD" && exec "$@"'
        prefix = ["unshare", "-rm", "sh", "-c", mount, source, place]
        where = {"cwd": self.directory.name, "capture_output": True, "text": True, "timeout": 240,
                 "errors": "replace", "check": False} | where
        if subprocess.run([*prefix, "true"], **where).returncode != OK:
            self.skipTest("no file system can be mounted")
        return subprocess.run([*prefix, *command], **where)

    def end_while_it_has_a_pool(self, signal_number, *arguments, send=os.kill):
        """Ends a command by a signal once it has made a pool; what it leaves of its pools. It
        leads a process group, and gets the signal by `send`, which is called as os.kill."""

        def pools(process):
            return [os.path.join(place, name)
                    for place in {self.directory.name, "/dev/shm", tempfile.gettempdir()}
                    if os.path.isdir(place)
                    for name in os.listdir(place) if re.search(f"-{process.pid}[-.].*pool", name)]

        with subprocess.Popen([self.SP3, *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, cwd=self.directory.name,
                              start_new_session=True) as process:
            try:
                while process.poll() is None and not any(p.endswith(".pool") for p in pools(process)):
                    time.sleep(0.01)
                send(process.pid, signal_number)
                self.assertEqual(process.wait(timeout=60), -signal_number)
            finally:
                process.kill()
            return pools(process)

    def complaint(self, *arguments, code, **where):
        """The one line that `arguments` are answered with."""
        lines = self.sp3(*arguments, code=code, **where).stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("sp3: "), lines)
        return lines[0]

    def assert_taken_or_refused(self, document, count, file, *arguments):
        """Of so many changed documents in that file, some are taken and the others refused."""
        path = os.path.join(self.directory.name, file)
        codes = set()
        for number, text in enumerate(mutations(document, count, seed=1)):
            with open(path, "wb") as out:
                out.write(text)
            with self.subTest(number=number, text=text[:2000]):
                result = subprocess.run([self.SP3, *arguments], capture_output=True, text=True,
                                        errors="replace", timeout=PATIENCE, check=False,
                                        cwd=self.directory.name)
                self.assertIn(result.returncode, (OK, USAGE), result.stderr)
                codes.add(result.returncode)
                if result.returncode == USAGE:
                    self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                    self.assertRegex(result.stderr, f"^sp3: .*{file}")
        self.assertEqual(codes, {OK, USAGE})

    def noted_by_child(self, process, note):
        """The process id that a child of `process` writes into the file `note`, as a line."""
        pid = ""
        while process.poll() is None and not pid.endswith("\n"):
            time.sleep(0.01)
            if os.path.exists(note):
                with open(note, encoding="utf-8") as file:
                    pid = file.read()
        return int(pid)

    def assert_ends(self, pid):
        """Waits until the process, whose parent is gone, has ended too."""
        deadline = time.monotonic() + 30
        while (state := process_state(pid)) is not None and state != "Z":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def assert_bench_fields(self, row):
        for field, kind in BENCH_FIELDS.items():
            self.assertIn(field, row)
            self.assertIs(type(row[field]), kind, f"{field}: {row[field]!r}")
        self.assertGreater(row["throughput_tx_per_s"], 0)


def main(argv):
    """usage: TEST.py SP3 [UNITTEST ARGUMENTS]"""
    CommandTest.SP3 = os.path.abspath(argv.pop(1))
    unittest.main(module="__main__", argv=argv, verbosity=1)
