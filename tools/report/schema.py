"""What a row must hold to be drawn: its kind, known by one member, and what type each has."""

import math
from dataclasses import dataclass

# Beyond these nothing was measured, and neither arithmetic nor pictures can be relied on.
MOST = 2**64
MOST_THREADS = 2**20
LONGEST_TEXT = 500


class BadInput(Exception):
    """A file that is no result, with its name and what is wrong."""


def is_number(value):
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    # A whole number can be too large for isfinite.
    return -MOST <= value <= MOST and math.isfinite(value)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and -MOST <= value <= MOST


def is_list(value, of):
    return isinstance(value, list) and value != [] and all(of(each) for each in value)


def is_unicode(value):
    """A text that can be written: JSON can also name halves of characters."""
    return isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)


def is_text(value):
    return is_unicode(value) and len(value) <= LONGEST_TEXT


def is_count(value):
    return is_whole(value) and value >= 1


def is_machine(value):
    def holds(each):
        return is_text(each) or is_number(each)

    def are_flags(each):
        return each == [] or is_list(each, is_text)

    return isinstance(value, dict) and all(
        is_text(name) and (each is None or (are_flags if name == "flags" else holds)(each))
        for name, each in value.items()
    )


# (what is wanted, whether a value is one)
TEXT = (f"a text of at most {LONGEST_TEXT} characters", is_text)
NUMBER = ("a number of at most 2^64", is_number)
AMOUNT = ("a number from 0 to 2^64", lambda value: is_number(value) and value >= 0)
COUNT = ("a whole number from 1 to 2^64", is_count)
THREADS = (f"1 to {MOST_THREADS}", lambda value: is_count(value) and value <= MOST_THREADS)
WHOLE = ("a whole number from 0 to 2^64", lambda value: is_whole(value) and value >= 0)
FLAG = ("true or false", lambda value: isinstance(value, bool))
MODEL = ("line, fence or yield", lambda value: value in ("line", "fence", "yield"))
DURABILITY = ("sync or async", lambda value: value in ("sync", "async"))
MACHINE = ("an object of texts, numbers and lists of texts", is_machine)
PROBES = (
    "an object of texts",
    lambda value: isinstance(value, dict) and all(map(is_text, [*value, *value.values()])),
)
TEXTS = ("a list of texts", lambda value: is_list(value, is_text))
COUNTS = ("a list of whole numbers", lambda value: is_list(value, is_count))
DISTANCES = (
    "a list of numbers from 0 to 2^64, or null for what was not measured",
    lambda value: is_list(value, lambda each: each is None or AMOUNT[1](each)),
)
SHARES = ("a list of whole numbers from 0 to 2^64", lambda value: is_list(value, WHOLE[1]))


def each(names, kind):
    return dict.fromkeys(names.split(), kind)


# What `sp3 bench --probe` adds to a row: {member: what a table calls it}.
PROBED = {
    "instructions_per_tx": "instructions",
    "cycles_per_tx": "cycles",
    "llc_misses_per_tx": "last-level misses",
    "cpu_ns_per_tx": "CPU ns",
    "page_faults_per_tx": "page faults",
    "context_switches_per_tx": "context switches",
    "media_read_bytes_per_tx": "media bytes read",
    "media_write_bytes_per_tx": "media bytes written",
    "dram_read_bytes_per_tx": "DRAM bytes read",
    "dram_write_bytes_per_tx": "DRAM bytes written",
}


@dataclass(frozen=True)
class Kind:
    sign: str  # the member that only rows of this kind have
    target: str  # of Results
    needed: dict
    used: dict  # if it is there, and not null


# The first whose sign a row has is its kind.
KINDS = [
    Kind(
        "throughput_tx_per_s",
        "rows",
        each("system workload memory", TEXT)
        | each("latency_ns zipf insert_ratio fill throughput_tx_per_s spread fences_per_tx "
               "lines_per_tx aborts abort_ratio", AMOUNT)
        | each("entries entry_size", COUNT)
        | each("threads", THREADS)
        | each("latency_model", MODEL)
        | each("durability", DURABILITY),
        each("latency_line_ns latency_p50_ns latency_p99_ns latency_p999_ns flush_cost_ns", AMOUNT)
        | each("commits writing_commits warmup_seconds", AMOUNT)
        | each("line_transfers_ns", DISTANCES)
        | each(" ".join(PROBED), AMOUNT)
        | each("mix flush locks commit file_system", TEXT)
        | each("group checkpoint_ms checkpoint_threads pool_size", WHOLE)
        | each("probes", PROBES)
        | each("simulated", FLAG)
        | each("machine", MACHINE),
    ),
    Kind(
        "recovery_seconds",
        "recoveries",
        each("recovery_seconds checkpoint_ms log_bytes", AMOUNT) | each("threads", THREADS),
        each("scan_seconds cut_seconds order_seconds replay_seconds flush_seconds bytes_per_s "
             "memory_peak_bytes latency_ns latency_line_ns zipf insert_ratio fill range_zipf", AMOUNT)
        | each("replayed log_limit_bytes entries entry_size writers group pool_size "
               "checkpoint_threads warehouses range_least range_most range_chunk", WHOLE)
        | each("range_mix", SHARES)
        | each("strategy workload memory latency_model durability flush locks range_lock commit "
               "file_system", TEXT)
        | each("machine", MACHINE),
    ),
    Kind(
        "native_mean_ns",
        "validations",
        each("workload system", TEXT)
        | each("native_mean_ns simulated_mean_ns ratio", AMOUNT)
        | each("cores", COUNT),
        {},
    ),
    Kind(
        "factor",
        "sensitivities",
        each("workload cost", TEXT)
        | each("factor gain speedup", AMOUNT)
        | each("same_order", FLAG)
        | each("systems", TEXTS)
        | each("cores", COUNTS),
        {},
    ),
    Kind(
        "lock",
        "locks",
        each("lock workload", TEXT) | each("threads", THREADS) | each("max_height", WHOLE),
        each("pairs_per_s ns_per_pair instructions_per_pair memory_per_held_bytes", NUMBER)
        | each("spread latency_p50_ns latency_p99_ns fairness", AMOUNT)
        | each("held slots writes_percent buckets", WHOLE)
        | each("line_transfers_ns", DISTANCES)
        | each("commit", TEXT)
        | each("machine", MACHINE),
    ),
]  # fmt: skip


def shortened(value, most=80):
    text = ascii(value) if not is_unicode(value) else repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def kind_of(row, where):
    """The kind of a row, all of whose members that anybody reads are what they should be. Raises
    BadInput."""
    if not isinstance(row, dict):
        raise BadInput(f"{where}: wanted an object")
    kind = next((kind for kind in KINDS if kind.sign in row), None)
    if kind is None:
        raise BadInput(f"{where}: neither transactions, locks, recovery nor about the simulator")
    missing = [name for name in kind.needed if name not in row]
    if missing:
        raise BadInput(f"{where}: without {', '.join(missing)}")
    for name, (wanted, holds) in (kind.needed | kind.used).items():
        if name in kind.used and row.get(name) is None:
            continue
        if not holds(row[name]):
            raise BadInput(f"{where}: {name}: wanted {wanted}, found {shortened(row[name])}")
    return kind
