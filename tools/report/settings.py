"""Settings: what rows must share to stand in one picture, and how a report tells them apart.

A title says where the rows ran and what latency was added. Of everything else it says what is not
the default, and what differs between settings of the same environment and memory.
"""

import dataclasses
import json
import re
from dataclasses import dataclass

from digits import number

# As include/sp3/options.h has them; a row without such a member comes from before it was there.
DEFAULTS = {"locks": "commit", "group": 32, "checkpoint_ms": 1000, "checkpoint_threads": 0}

# Workloads that are no part of a comparison of the five, each with how the names of the members that
# only its rows have begin.
OWN_MEMBERS = {"ranges": "range_", "bank": (), "tpcc": "warehouses"}

PAPER = "paper"  # the mix of rows that do not say

LONGEST_SLUG = 200  # file names end at 255


@dataclass(frozen=True, order=True)
class Setting:
    environment: str  # native, yield, simulated
    memory: str
    latency_ns: int
    model: str
    latency_line_ns: int
    durability: str
    entries: int
    entry_size: int
    zipf: float
    insert_ratio: float
    fill: float
    flush: str
    locks: str
    group: int
    checkpoint_ms: int
    checkpoint_threads: int  # 0: chosen by the library
    warmup_seconds: float  # -1: by a tenth of the operations
    pool_size: int  # 0: from before rows had it, as an empty file system
    file_system: str
    mix: str
    own: str  # JSON of a workload of OWN_MEMBERS and what only it has; empty for others
    machine: str  # JSON
    commit: str
    details: tuple = dataclasses.field(default=(), compare=False)  # what the title says besides

    @property
    def latency(self):
        if self.memory != "emulated":
            return f"{self.memory} memory"
        each = {"line": "each flushed line", "fence": "each fence", "yield": "each fence"}
        added = []
        if self.latency_ns:
            added.append(f"+{duration(self.latency_ns)} for {each[self.model]}")
        if self.latency_line_ns:
            added.append(f"+{duration(self.latency_line_ns)} for each line at a fence")
        return ", ".join(added) or "no added latency"

    @property
    def title(self):
        names = {
            "native": "native",
            "yield": "native, yielded waits",
            "simulated": "simulated cores",
        }
        parts = [names[self.environment], self.latency]
        if self.durability != "sync":
            parts.append("asynchronous")
        return ", ".join(parts + list(self.details))

    @property
    def slug(self):
        parts = [self.environment, self.memory, f"{self.latency_ns}ns", self.model, self.durability]
        if self.latency_line_ns:
            parts.insert(4, f"{self.latency_line_ns}ns-a-line")
        return "-".join(slug_of(part) for part in [*parts, *self.details])

    @property
    def is_the_papers(self):
        """Whether the paper measured such: its mix, on its workloads, in persistent memory."""
        return self.mix == PAPER and not self.own and self.memory != "file"

    @property
    def unit(self):
        return "cores" if self.environment == "simulated" else "threads"

    def several(self, count):
        """So many threads or cores."""
        return f"{count} {self.unit[:-1] if count == 1 else self.unit}"

    @property
    def explanation(self):
        """What kind of evidence this is, in one sentence."""
        if self.environment == "simulated":
            return (
                "Simulated: the same source runs on virtual cores in virtual time; what "
                "instructions, flushes and transfers of cache lines cost was measured "
                "(docs/SIMULATOR.md)."
            )
        if self.environment == "yield":
            return (
                "Native with yielded waits: real threads; while one waits for the emulated memory, "
                "others have its core. Only waits overlap, so more threads than cores mean "
                "something only while waiting dominates."
            )
        if self.memory == "emulated":
            return (
                "Native: real threads on real cores; flushes and fences of a file in DRAM take the "
                "added latency. More threads than cores measure the scheduler."
            )
        media = "persistent memory" if self.memory == "dax" else "the disk"
        if self.durability == "async":
            return f"Native: real threads; groups of commits wait for {media}, most commits for nothing."
        return f"Native: real threads; commits wait for {media}."


def duration(ns):
    return f"{number(ns / 1000, 6)} µs" if ns >= 1000 else f"{number(ns, 6)} ns"


def slug_of(text):
    """What a file may be called, whatever the text holds."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:LONGEST_SLUG] or "x"


def environment_of(row):
    if row.get("simulated"):
        return "simulated"
    return "yield" if row["latency_model"] == "yield" and has_latency(row) else "native"


def has_latency(row):
    return bool(row["latency_ns"] or row.get("latency_line_ns"))


def model_of(row):
    """Without a latency for each the models are one; who yields does so for any."""
    if row["latency_ns"] or environment_of(row) == "yield":
        return row["latency_model"]
    return "fence"


def setting_of(row):
    def member(name, default):
        return default if row.get(name) is None else row[name]

    # Asynchronous runs of a system stand beside its synchronous ones only by their name.
    durability = "sync" if row["system"] == "sp3-async" else row["durability"]
    if row["memory"] == "file" and row["durability"] == "async":
        durability = "async"
    return Setting(
        environment_of(row), row["memory"], row["latency_ns"], model_of(row), member("latency_line_ns", 0),
        durability, row["entries"], row["entry_size"], row["zipf"], row["insert_ratio"], row["fill"],
        member("flush", ""), *(member(name, default) for name, default in DEFAULTS.items()),
        member("warmup_seconds", -1), member("pool_size", 0), member("file_system", ""),
        member("mix", PAPER),
        own_of(row),
        json.dumps(member("machine", {}), sort_keys=True), member("commit", ""),
    )  # fmt: skip


def own_of(row):
    workload = row["workload"]
    if workload not in OWN_MEMBERS:
        return ""
    own = {name: row[name] for name in row if name.startswith(OWN_MEMBERS[workload])}
    return json.dumps(own | {"workload": workload}, sort_keys=True)


def own_workload(setting):
    """The workload that has the setting to itself, or None."""
    return json.loads(setting.own)["workload"] if setting.own else None


def members_that_differ(texts):
    """Of objects, given as JSON: the names of the members that are not the same in all."""
    objects = [json.loads(text) for text in texts if text]
    names = sorted({name for found in objects for name in found})
    return [n for n in names if len({json.dumps(found.get(n)) for found in objects}) > 1]


def told(text, names):
    """The named members of an object, given as JSON, in words."""
    found = json.loads(text)
    return [f"{name.replace('_', ' ')} {found.get(name, '?')}" for name in names]


def machine_told(text, texts):
    """A machine, given as JSON, in what tells it from the others. The flags of a CPU come with its
    name, so of them those are told that not all machines of the name have."""
    names = [name for name in members_that_differ(texts) if name != "flags"]
    found = json.loads(text)
    namesakes = [other for other in map(json.loads, texts) if other.get("cpu") == found.get("cpu")]
    each = [set(other.get("flags") or []) for other in namesakes]
    apart = set.union(*each) - set.intersection(*each)
    own = set(found.get("flags") or [])
    flags = {"with": apart & own, "without": apart - own}
    return told(text, names) + [f"{word} {' '.join(sorted(those))}" for word, those in flags.items() if those]


def details_of(setting, alike):
    """What a title has to say of a setting among those of the same environment and memory."""

    def differs(name):
        return len({getattr(other, name) for other in alike}) > 1

    def is_told(name):
        return differs(name) or getattr(setting, name) != DEFAULTS[name]

    every = setting.checkpoint_ms
    workload = own_workload(setting)
    details = [workload] if workload else []
    if workload:
        same = [other.own for other in alike if own_workload(other) == workload]
        details += told(setting.own, members_that_differ(same))
    details += [f"{setting.entries:,} entries"] if differs("entries") else []
    details += [f"entries of {setting.entry_size:,} bytes"] if differs("entry_size") else []
    details += [f"zipf {number(setting.zipf, 6)}"] if differs("zipf") else []
    details += [f"{number(100 * setting.insert_ratio, 6)} % inserts"] if differs("insert_ratio") else []
    details += [setting.mix] if setting.mix != PAPER else []
    details += [f"filled to {number(100 * setting.fill, 6)} %"] if differs("fill") else []
    details += [f"flush {setting.flush or '?'}"] if differs("flush") else []
    details += [f"locks at {setting.locks}"] if is_told("locks") else []
    details += [f"groups of {setting.group}"] if is_told("group") else []
    if is_told("checkpoint_ms"):
        details += [f"checkpoints every {number(every / 1000, 6)} s" if every else "no checkpoints by time"]
    if is_told("checkpoint_threads"):
        details += [f"checkpoint threads {setting.checkpoint_threads or 'by default'}"]
    if differs("warmup_seconds"):
        known = setting.warmup_seconds >= 0
        details += [f"{number(setting.warmup_seconds, 6)} s to warm up" if known else "warmed up by operations"]
    if differs("pool_size"):
        size = f"{number(setting.pool_size / 2**20, 6)} MiB" if setting.pool_size else "?"
        details += [f"pool of {size}"]
    details += [f"on {setting.file_system or '?'}"] if differs("file_system") else []
    if differs("machine"):
        details += machine_told(setting.machine, [s.machine for s in alike])
    details += [f"commit {setting.commit or '?'}"] if differs("commit") else []
    return tuple(details)


def with_details(settings):
    """The same settings, each with what its title has to say."""
    result = []
    for setting in settings:
        alike = [s for s in settings
                 if (s.environment, s.memory) == (setting.environment, setting.memory)]  # fmt: skip
        result.append(dataclasses.replace(setting, details=details_of(setting, alike)))
    return result
