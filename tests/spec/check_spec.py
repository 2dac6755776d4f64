#!/usr/bin/env python3
"""Checks that the parts of the TLA+ specification agree, without running it.

usage: check_spec.py DIRECTORY

  1. Each configuration names an existing module, gives each of its constants once, mutates nothing,
     and asks for invariants and properties that are defined. Each module has a configuration.
  2. Each mutant undoes a rule of its instance's module, and names something the instance checks.
  3. Each rule that a module can undo has a mutant.
  4. The quick subset has an instance and a mutant of each module.
  5. README.md names each module, instance and mutant.

Prints one line for each violation and exits with 1 if there is any.
"""

import importlib.util
import pathlib
import re
import signal
import sys


def load_runner(directory):
    spec = importlib.util.spec_from_file_location("run", directory / "run.py")
    runner = importlib.util.module_from_spec(spec)
    sys.modules["run"] = runner  # dataclasses look their module up
    spec.loader.exec_module(runner)
    return runner


def base_of(instance):
    return "Sp3" + instance.name.split("-")[0]


class Modules:
    """The .tla files, by name. A module of constants counts with the one it extends."""

    def __init__(self, directory):
        files = sorted(directory.glob("*.tla"))
        self.texts = {file.stem: file.read_text(encoding="utf-8") for file in files}

    def bases(self):
        return [name for name in self.texts if not name.endswith("MC")]

    def text_of(self, base):
        return self.texts[base] + self.texts.get(base + "MC", "")

    def defined(self, base):
        return set(re.findall(r"^(\w+)\s*(?:\([^)]*\))?\s*==", self.text_of(base), re.M))

    def constants(self, base):
        section = re.search(r"^CONSTANTS?\b(.*?)^VARIABLES?\b", self.texts[base], re.M | re.S)[1]
        return set(re.findall(r"\w+", re.sub(r"\\\*.*", "", section)))

    def rules(self, base):
        return set(re.findall(r'\bm\("(\w+)"\)', self.texts[base]))


def check_instances(modules, instances):
    for base in modules.bases():
        if not any(base_of(i) == base for i in instances):
            yield f"{base}.tla: no configuration runs it"
    for name in modules.texts:
        if name.endswith("MC") and name[:-2] not in modules.texts:
            yield f"{name}.tla: there is no {name[:-2]}.tla"
    for instance in instances:
        base = base_of(instance)
        if base not in modules.texts:
            yield f"{instance.name}: there is no {base}.tla"
            continue
        given = re.findall(r"^\s+(\w+) (?:=|<-)", instance.text, re.M)
        if sorted(given) != sorted(modules.constants(base)):
            wanted = sorted(modules.constants(base))
            yield f"{instance.name}: gives {sorted(given)}, {base} has {wanted}"
        wanted = instance.invariants + instance.properties + re.findall(r"<-(\w+)", instance.text)
        for name in wanted:
            if name not in modules.defined(base):
                yield f"{instance.name}: {base} does not define {name}"
        if not instance.invariants + instance.properties:
            yield f"{instance.name}: checks nothing"
        if not instance.purpose:
            yield f"{instance.name}: does not say what it is for"
        if not re.search(r"^\s+Mut = \{\}$", instance.text, re.M):
            yield f"{instance.name}: is a mutant itself"


def module_of(mutant):
    return "Sp3" + mutant.instance.split("-")[0]


def check_mutants(runner, modules, instances, mutants):
    by_name = {i.name: i for i in instances}
    for mutant in mutants:
        instance = by_name.get(mutant.instance)
        if instance is None:
            yield f"{mutant.name}: there is no instance {mutant.instance}"
            continue
        base = base_of(instance)
        if mutant.name not in modules.rules(base):
            yield f"{mutant.name}: {base} has no such rule"
        deadlock = mutant.violates == runner.DEADLOCK and "CHECK_DEADLOCK TRUE" in instance.text
        if not deadlock and mutant.violates not in instance.invariants + instance.properties:
            yield f"{mutant.name}: {instance.name} does not check {mutant.violates}"
        if not mutant.rule:
            yield f"{mutant.name}: does not say what it undoes"
        for constant in mutant.constants:
            name, _, value = constant.partition("=")
            if name not in modules.constants(base):
                yield f"{mutant.name}: {base} has no constant {name}"
            if value.startswith("<-") and value[2:] not in modules.defined(base):
                yield f"{mutant.name}: {base} does not define {value[2:]}"
    names = [m.name for m in mutants]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"{name}: two mutants of one name"
    for base in modules.bases():
        for rule in sorted(modules.rules(base)):
            if not any(m.name == rule and module_of(m) == base for m in mutants):
                yield f"{base}.tla: nothing shows what {rule} does"


def check_quick(modules, instances, mutants):
    for base in modules.bases():
        if not any(i.quick and base_of(i) == base for i in instances):
            yield f"{base}.tla: no quick instance"
        if not any(m.quick and module_of(m) == base for m in mutants):
            yield f"{base}.tla: no quick mutant"


def check_readme(directory, modules, instances, mutants):
    text = (directory / "README.md").read_text(encoding="utf-8")
    names = [f"{m}.tla" for m in modules.bases()] + [x.name for x in instances + mutants]
    for name in names:
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            yield f"README.md: does not name {name}"


def problems(directory):
    runner = load_runner(directory)
    modules = Modules(directory)
    instances, mutants = runner.load_instances(), runner.load_mutants()
    return [
        *check_instances(modules, instances),
        *check_mutants(runner, modules, instances, mutants),
        *check_quick(modules, instances, mutants),
        *check_readme(directory, modules, instances, mutants),
    ]


def main():
    found = problems(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found) or "the specification's parts agree")
    return 1 if found else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # who reads no more ends it, without a word
    sys.exit(main())
