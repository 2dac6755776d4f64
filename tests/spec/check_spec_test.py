#!/usr/bin/env python3
"""Breaks a copy of the specification in one place at a time; check_spec.py must notice each.

usage: check_spec_test.py DIRECTORY
"""

import pathlib
import re
import shutil
import sys
import tempfile

from check_spec import problems

# (file, pattern, replacement, what the complaint must say); the pattern's first match is replaced.
FAULTS = [
    ("configs/Log-runs.cfg", r"  Segs = .*\n", "", "Log-runs: gives"),
    ("configs/Log-runs.cfg", r"  ExactPrefix", "  NoSuchThing", "does not define NoSuchThing"),
    ("configs/Log-runs.cfg", r"Budget <-\w+", "Budget <-Nothing", "does not define Nothing"),
    ("configs/Log-runs.cfg", r"Mut = \{\}", 'Mut = {"noLsn"}', "is a mutant itself"),
    ("configs/Log-runs.cfg", r"\A\\\*.*\n", "", "does not say what it is for"),
    ("mutants.txt", r"Log-runs ", "Log-walks ", "there is no instance Log-walks"),
    ("mutants.txt", r"(?m)^noLsn .*\n", "", "nothing shows what noLsn does"),
    ("mutants.txt", r"(?m)^noLsn ", "noLSN ", "has no such rule"),
    ("mutants.txt", r"(?m)^(noGate .*)$", r"\1\n\1", "two mutants of one name"),
    ("mutants.txt", r"(?m)^(noGate +\S+ +)Progress", r"\1Deadlocks", "does not check Deadlocks"),
    ("mutants.txt", r" quick( -- nobody heeds)", r" Doors=3\1", "has no constant Doors"),
    ("mutants.txt", r" -- nobody heeds the gate", "", "does not say what it undoes"),
    ("configs/Gate-contend.cfg", r"\\\* quick\n", "", "no quick instance"),
    ("README.md", r"(?m)^\| noPatience .*\n", "", "does not name noPatience"),
]


def complaints_after(directory, file, pattern, replacement):
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "spec"
        shutil.copytree(directory, copy)
        path = copy / file
        text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1)
        assert count == 1, f"{file}: nothing matches {pattern}"
        path.write_text(text, encoding="utf-8")
        return problems(copy)


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    missed = 0
    for file, pattern, replacement, wanted in FAULTS:
        found = complaints_after(directory, file, pattern, replacement)
        if not any(wanted in line for line in found):
            missed += 1
            print(f"{file}, {pattern}: expected '{wanted}', got {found}")
    print(f"{len(FAULTS) - missed} of {len(FAULTS)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
