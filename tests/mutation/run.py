"""Applies mutations to copies of the source, one at a time, and runs the tests that must detect them.

A mutation is detected when a test fails that passes on the unchanged source. Each runs in its own process,
several at the same time; the last line counts them.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from tests.part import ALL, GATE, Part, parsed  # noqa: E402
from tests.patience import patient  # noqa: E402

MUTATIONS = Path(__file__).with_name("mutations.toml")
# The bound on the seeds of each simulation, which ends with the first seed that fails.
SEEDS = 200
# A mutation may make the code hang; its test is ended then, and counts as failed. No test takes as long with
# all its seeds, or it would seem to detect everything.
TEST_SECONDS_MAX = patient(300)
# Before that, the tests of all mutations run once on the unchanged source.
SOURCE_SECONDS_MAX = patient(600)
WORKERS = 2
# Bytecode files record whole seconds: a change within one second would be taken for no change.
_CHANGES = itertools.count(int(time.time()))
FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
TESTS_FAILED = 1


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old`, which occurs in `file` of src/warren exactly once, becomes `new`.

    Those of the gate are tried on every commit, all others with the long tests.
    """

    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    is_in_gate: bool = False


def main() -> int:
    """Apply all mutations, or those whose name contains a word; 0 if each was detected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("word", nargs="?", default="", help="only mutations with this in their name")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--part", type=parsed, default=ALL, help="gate, long, or a part such as 2/8")
    options = parser.parse_args()
    listed = tomllib.loads(MUTATIONS.read_text(encoding="utf-8"))["mutation"]
    named = [mutation for entry in listed if options.word in (mutation := Mutation(**entry)).name]
    mutations = chosen(named, options.part)
    print(f"{len(mutations)} of {len(listed)} mutations: {options.part}", flush=True)
    with tempfile.TemporaryDirectory(prefix="warren-mutation-") as folder:
        trees = [copied(Path(folder) / str(number)) for number in range(WORKERS)]
        if complaint := complaint_of_the_source(trees[0], mutations):
            print(f"FAILED {complaint}")
            print("0 passed, 1 failed, 0 skipped")
            return 1
        with ThreadPoolExecutor(WORKERS) as workers:
            results = list(workers.map(lambda mutation: tried(mutation, trees, options.seeds), mutations))
    caught = sum(results)
    print(f"{caught} passed, {len(mutations) - caught} failed, 0 skipped")
    return 0 if caught == len(mutations) else 1


def chosen(mutations: list[Mutation], part: Part) -> list[Mutation]:
    """Those of the gate, others by part, or all."""
    if part == ALL:
        return mutations
    if part == GATE:
        return [mutation for mutation in mutations if mutation.is_in_gate]
    return part.chosen([mutation for mutation in mutations if not mutation.is_in_gate])


def copied(tree: Path) -> Path:
    """A copy of the files that the tests need."""
    for name in ("src", "tests"):
        shutil.copytree(
            ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "clients")
        )
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def complaint_of_the_source(tree: Path, mutations: list[Mutation]) -> str:
    """The failure of the unchanged source; empty if there is none."""
    rotten = [
        f"{mutation.name}: its old text stands {count} times in {mutation.file}, not once"
        for mutation in mutations
        if (count := (tree / "src/warren" / mutation.file).read_text(encoding="utf-8").count(mutation.old))
        != 1
    ]
    if rotten:
        return "\n".join(rotten)
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    status, output = asked(tree, tests, seeds=10, seconds_max=SOURCE_SECONDS_MAX)
    if status is None:
        return f"the tests take more than {SOURCE_SECONDS_MAX} s without any mutation"
    return "" if status == 0 else f"the tests fail without any mutation:\n{output}"


def tried(mutation: Mutation, trees: list[Path], seeds: int) -> bool:
    """Whether a test detects `mutation`, applied in a copy that is free now."""
    tree = trees.pop()
    path = tree / "src" / "warren" / mutation.file
    original = path.read_text(encoding="utf-8")
    _write(path, original.replace(mutation.old, mutation.new))
    try:
        status, output = asked(tree, mutation.tests, seeds)
    finally:
        _write(path, original)
        trees.append(tree)
    if status is None:
        print(f"caught  {mutation.name}: it hangs", flush=True)
        return True
    found = FAILED.search(output)
    if status == TESTS_FAILED and found:
        print(f"caught  {mutation.name}: {found[1]}", flush=True)
        return True
    print(f"FAILED missed: {mutation.name} ({mutation.file}), status {status}", flush=True)
    print("".join(f"        {line}\n" for line in output.splitlines()[-3:]), end="", flush=True)
    return False


def _write(path: Path, text: str) -> None:
    """Write the file with a modification time that no file had before: Python compares it with that of the
    bytecode.
    """
    path.write_text(text, encoding="utf-8")
    changed = next(_CHANGES)
    os.utime(path, (changed, changed))


def asked(
    tree: Path, tests: list[str], seeds: int, *, seconds_max: int = TEST_SECONDS_MAX
) -> tuple[int | None, str]:
    """Status and output of the tests in `tree`; no status if they hang."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "SEEDS": str(seeds), "WARREN_PURE": "1"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SEEDS_FROM": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, timeout=seconds_max, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main())
