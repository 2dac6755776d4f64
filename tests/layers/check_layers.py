#!/usr/bin/env python3
"""Checks the rules about where code may live.

usage: check_layers.py [ROOT]

  1. Folders are layers: a file includes only its own folder and folders below it.
  2. A flush, a fence or a sync of persistent memory is written in emu/ only, so that latency
     emulation and the crash simulator see each one.
  3. The runtime keeps no thread-local state: under simulated cores many sessions share a thread.
  4. Atomic operations spell their memory order, but for those of tests.
  5. No source file is longer than 600 lines.

Prints one "file:line: what and why" for each violation and exits with 1 if there is any.
"""

import re
import signal
import sys
from pathlib import Path, PurePosixPath

# Low to high. Folders in one group do not include each other.
LAYERS = [
    ["include/sp3"],
    ["base"],
    ["emu"],
    ["pool"],
    ["log"],
    ["index"],
    ["rangelock"],
    ["recovery"],
    ["runtime"],
    ["oracle"],
    ["workloads"],
    ["sim"],
    ["bench", "tools", "examples"],
    ["tests"],
]
RANK = {folder: rank for rank, group in enumerate(LAYERS) for folder in group}

NO_THREAD_LOCAL = {"log", "index", "recovery", "runtime"}
# tests/emu tests the seam itself, so it may go behind it.
MAY_FLUSH = ("emu/", "tests/emu/")
MAX_LINES = 600

CPP_SUFFIXES = {".h", ".hpp", ".cc", ".cpp"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
# Folders without C++ of ours.
SKIPPED = {"build", "docs", "cmake"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
THREAD_LOCAL = re.compile(r"\b(?:thread_local|__thread)\b")
# Not fsync: making a new pool file and its name durable comes before there is a pool to emulate.
PERSIST = re.compile(
    r"""\b(?:
        (?:_mm|__builtin_ia32)_(?:clwb|clflush|clflushopt|sfence|mfence|stream\w*|movnt\w*)\b
      | (?:msync|fdatasync|sync_file_range)\s*\(
      | pmem2?_(?:persist|msync|flush|drain|deep_\w+|mem(?:cpy|move|set)\w*)\b
      | pmem2_get_(?:persist|flush|drain|mem(?:cpy|move|set))_fn\b
      | asm\b[^;]*\b(?:clwb|clflush|clflushopt|sfence|movnt\w*)\b
    )""",
    re.VERBOSE,
)
ATOMIC = re.compile(
    r"(?:\.|->)(load|store|exchange|fetch_\w+|compare_exchange_(?:weak|strong))(?=\()"
)
# Comments, raw strings, strings and character literals, in the order the compiler would see them.
# A quote between digits is a separator, not the start of a literal.
NOT_CODE = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"
      | "(?:\\.|[^"\\\n])*"
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""",
    re.VERBOSE | re.DOTALL,
)


def blank(text, keep_strings):
    """`text` with comments (and strings, unless kept) blanked; line numbers stay the same."""

    def replace(match):
        token = match.group(0)
        if keep_strings and not token.startswith("/"):
            return token
        return re.sub(r"[^\n]", " ", token)

    return NOT_CODE.sub(replace, text)


def layer_of(path):
    """The layer that a path relative to the root belongs to, or None."""
    parts = PurePosixPath(path).parts
    if not parts:
        return None
    if parts[0] == "include":
        return "include/sp3"
    return parts[0] if parts[0] in RANK else None


def normalise(path):
    parts = []
    for part in PurePosixPath(path).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def included_layer(root, file, quote, name):
    """The layer of the header that `file` includes as `name`; None for a system header."""
    if quote == '"':
        beside = normalise(file.parent / name)
        if (root / beside).is_file():
            return layer_of(beside)
    path = normalise(name)
    if path.parts and path.parts[0] == "sp3":
        return "include/sp3"
    if quote == "<" and not (root / path).is_file():
        return None
    return layer_of(path)


def check_includes(root, file, text):
    own = layer_of(file)
    for number, line in enumerate(blank(text, keep_strings=True).splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        other = included_layer(root, file, quote, name)
        if other is None or other == own or RANK[other] < RANK[own]:
            continue
        yield number, f"{own} must not include {name}: {other} is not below it"


def check_words(file, text):
    flush_allowed = str(file).startswith(MAY_FLUSH)
    in_runtime = file.parts[0] in NO_THREAD_LOCAL
    # Inline assembly names its instruction in a string, so those lines are searched whole.
    with_strings = blank(text, keep_strings=True).splitlines()
    for number, code in enumerate(blank(text, keep_strings=False).splitlines(), 1):
        line = with_strings[number - 1] if re.search(r"\basm\b|\b__asm__\b", code) else code
        persist = None if flush_allowed else PERSIST.search(line.replace("__asm__", "asm"))
        if persist:
            word = persist.group(0).rstrip("( ")
            yield number, f"{word} outside emu/: flushes and fences go through the seam"
        if in_runtime and THREAD_LOCAL.search(code):
            yield number, f"thread-local state in {file.parts[0]}/: many sessions share a thread"


def arguments_at(code, start):
    """What stands between the parenthesis at `start` and the one that closes it."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return code[start + 1 : at]
    return code[start + 1 :]


def check_atomics(file, text):
    if file.parts[0] == "tests":
        return
    code = blank(text, keep_strings=False)
    for match in ATOMIC.finditer(code):
        arguments = arguments_at(code, match.end()).strip()
        # Those of other things say where to load from, and what to store where, or nothing at all.
        is_other = {"load": arguments != "", "store": arguments == "" or "," in arguments}
        if "order" in arguments or is_other.get(match.group(1), False):
            continue
        number = code.count("\n", 0, match.start()) + 1
        yield number, f"{match.group(1)} without a memory order: atomic operations spell theirs"


def check_file(root, file):
    text = (root / file).read_text(encoding="utf-8", errors="replace")
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield MAX_LINES + 1, f"{lines} lines; a source file has at most {MAX_LINES}"
    if file.suffix not in CPP_SUFFIXES:
        return
    if layer_of(file) is None:
        yield 1, f"folder {file.parts[0]} is not a layer; add it to LAYERS in check_layers.py"
        return
    yield from check_includes(root, file, text)
    yield from check_words(file, text)
    yield from check_atomics(file, text)


def source_files(root):
    for path in sorted(root.rglob("*")):
        file = path.relative_to(root)
        hidden = any(part.startswith(".") for part in file.parts)
        if hidden or file.parts[0] in SKIPPED or not path.is_file():
            continue
        if path.suffix in CPP_SUFFIXES | SCRIPT_SUFFIXES:
            yield file


def violations(root):
    for file in source_files(root):
        for number, message in check_file(root, file):
            yield f"{file}:{number}: {message}"


def main(arguments):
    root = Path(arguments[0] if arguments else ".").resolve()
    files = sum(1 for _ in source_files(root))
    found = list(violations(root))
    for violation in found:
        print(violation)
    if files == 0:
        print(f"{root}: no source files found")
    print(f"{files} files checked, {len(found)} violations")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads no more ends it, without a word
    sys.exit(main(sys.argv[1:]))
