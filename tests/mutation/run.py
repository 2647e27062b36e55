"""Plants mistakes in copies of the source, one at a time, and asks the tests: one that nobody sees is a hole.

A mistake counts as caught when a test fails that passes on the source as it is. Each runs in a process of its
own, some at the same time; the last line counts them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTATIONS = Path(__file__).with_name("mutations.toml")
# So many seeds of each simulation at most: it ends with the first that fails.
SEEDS = 200
# One mutation may hang the code; its test is ended then, and has caught it.
TEST_SECONDS_MAX = 60
WORKERS = 2
FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
TESTS_FAILED = 1


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old`, which stands in `file` of src/warren exactly once, becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    tests: list[str]


def main() -> int:
    """Plant all, or those whose name contains a word; 0 if each was caught."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("word", nargs="?", default="", help="only mutations with this in their name")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    listed = tomllib.loads(MUTATIONS.read_text(encoding="utf-8"))["mutation"]
    chosen = [mutation for entry in listed if options.word in (mutation := Mutation(**entry)).name]
    with tempfile.TemporaryDirectory(prefix="warren-mutation-") as folder:
        trees = [copied(Path(folder) / str(number)) for number in range(WORKERS)]
        if complaint := complaint_of_the_source(trees[0], chosen):
            print(f"FAILED {complaint}")
            print("0 passed, 1 failed, 0 skipped")
            return 1
        with ThreadPoolExecutor(WORKERS) as workers:
            results = list(workers.map(lambda mutation: tried(mutation, trees, options.seeds), chosen))
    caught = sum(results)
    print(f"{caught} passed, {len(chosen) - caught} failed, 0 skipped")
    return 0 if caught == len(chosen) else 1


def copied(tree: Path) -> Path:
    """A copy of what the tests need."""
    for name in ("src", "tests"):
        shutil.copytree(
            ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "clients")
        )
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def complaint_of_the_source(tree: Path, chosen: list[Mutation]) -> str:
    """What is wrong before anything is planted; empty if nothing is."""
    rotten = [
        f"{mutation.name}: its old text stands {count} times in {mutation.file}, not once"
        for mutation in chosen
        if (count := (tree / "src/warren" / mutation.file).read_text(encoding="utf-8").count(mutation.old))
        != 1
    ]
    if rotten:
        return "\n".join(rotten)
    status, output = asked(tree, sorted({test for mutation in chosen for test in mutation.tests}), seeds=10)
    return "" if status == 0 else f"the tests fail without any mutation:\n{output}"


def tried(mutation: Mutation, trees: list[Path], seeds: int) -> bool:
    """Whether a test sees `mutation`, planted in a tree that is free just now."""
    tree = trees.pop()
    path = tree / "src" / "warren" / mutation.file
    original = path.read_text(encoding="utf-8")
    path.write_text(original.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        status, output = asked(tree, mutation.tests, seeds)
    finally:
        path.write_text(original, encoding="utf-8")
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


def asked(tree: Path, tests: list[str], seeds: int) -> tuple[int | None, str]:
    """Status and output of the tests in `tree`; no status if they hang."""
    # No bytecode: what is planted and taken away within a second would be taken for unchanged.
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "SEEDS": str(seeds), "WARREN_PURE": "1"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, timeout=TEST_SECONDS_MAX, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main())
