"""What tests of tools/report share: rows of every kind, and reading them."""

import json
import pathlib
import sys
import tempfile
import unittest

REPORT = ""


def row(system, workload, threads, throughput, **other):
    base = {
        "system": system, "workload": workload, "threads": threads, "memory": "emulated",
        "latency_ns": 500, "latency_model": "fence", "durability": "sync", "entries": 100000,
        "entry_size": 128, "zipf": 0.99, "insert_ratio": 0.5, "fill": 1.0, "simulated": False,
        "throughput_tx_per_s": throughput, "spread": 0.1, "fences_per_tx": 1.0, "lines_per_tx": 6.0,
        "abort_ratio": 0.01, "aborts": 10, "latency_p50_ns": 700.0, "latency_p99_ns": 2500.0,
        "latency_p999_ns": 12345.0, "flush": "clwb", "commit": "abc<1>",
        "machine": {"cpu": "A CPU", "cores": 2, "kernel": "6"},
    }  # fmt: skip
    base.update(other)
    return base


def recovery(threads, seconds, **other):
    base = {
        "recovery_seconds": seconds, "threads": threads, "checkpoint_ms": 0, "log_bytes": 2**30 + 7,
        "log_limit_bytes": 2**30, "workload": "sps", "strategy": "stamp", "memory": "emulated",
        "latency_ns": 500, "entries": 1000, "commit": "abc", "replayed": 1000, "bytes_per_s": 1.5e9,
        "memory_peak_bytes": 2**27, "scan_seconds": 0.5, "cut_seconds": 0.01, "order_seconds": 0.2,
        "replay_seconds": 0.25, "flush_seconds": 0.0625, "machine": {"cpu": "A CPU", "kernel": "6"},
    }  # fmt: skip
    base.update(other)
    return base


def lock_row(lock, workload, threads, **other):
    base = {
        "lock": lock, "workload": workload, "threads": threads, "max_height": 12, "held": 0,
        "slots": 65536, "writes_percent": 100, "buckets": 64, "pairs_per_s": 1e6,
        "ns_per_pair": 100.0, "commit": "abc", "machine": {"cpu": "A CPU", "kernel": "6"},
    }  # fmt: skip
    base.update(other)
    return base


def some_rows(**other):
    workloads = ["sps", "queue", "hashtable", "rbtree", "bptree"]
    systems = {"sp3": 4.0, "nvm-tx": 3.0, "dram-tx": 8.0, "pmdk": 1.0, "mnemosyne": 2.0}
    return [
        row(system, workload, threads, 1e5 * speed * threads**0.5, **other)
        for workload in workloads
        for system, speed in systems.items()
        for threads in (1, 4, 16)
    ]


class ReadingTest(unittest.TestCase):
    """Of tests that let the report read rows: its modules are loaded from the folder REPORT."""

    def setUp(self):
        sys.path.insert(0, REPORT)
        import results

        self.results = results
        self.directory = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.directory.cleanup()

    def load(self, content):
        path = pathlib.Path(self.directory.name) / "results.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return self.results.load([path])
