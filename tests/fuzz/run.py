"""Feeds random bytes to every fuzz target for a while, and ends with one line that counts them.

Each target runs in its own process, bounded in time and memory. Where atheris is installed, coverage of the
interpreted source guides the inputs; without it, and for the compiled build, they are random mutations from
a seed number. With --inputs so many of these are tried on the installed build, the same ones each time. A
finding is stored in build/fuzz, and --replay runs it again.

With --sanitize the target that calls C code runs with that code compiled by gcc with AddressSanitizer.
"""

import argparse
import mmap
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FINDINGS = ROOT / "build" / "fuzz"
sys.path.insert(0, str(ROOT))

from tests.fuzz import sanitized  # noqa: E402
from tests.fuzz.mutator import inputs  # noqa: E402
from tests.fuzz.targets import TARGETS, load  # noqa: E402
from tests.part import ALL, GATE, parsed  # noqa: E402
from tests.patience import patient  # noqa: E402

RSS_MB_MAX = 1024
# For imports and their instrumentation, on a machine that may be busy.
GRACE_SECONDS = 120
# The input tried last, in the directory of the process: a crash leaves nothing else.
CURRENT = "current"
SANITIZED = "sanitized"
# The memory of every so many inputs is measured: its bound is a constant and an amount per byte.
MEASURE_EVERY = 97
PEAK_BYTES_MAX = 2_000_000
PEAK_PER_BYTE_MAX = 100
COUNT = re.compile(r"stat::number_of_executed_units: *(\d+)")
PEAK = re.compile(r"stat::peak_rss_mb: *(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One target on one build."""

    target: str
    build: str
    engine: str
    seconds: int
    seed: int
    inputs: int = 0

    @property
    def name(self) -> str:
        """The name of the case, which runs it alone."""
        return f"{self.target} ({self.build})"


def main() -> int:
    """Run every target, or the one that was named."""
    options = arguments()
    if options.replay:
        return replay(options.target, Path(options.replay))
    if options.child:
        return child(options)
    if options.begin:
        return begin()
    if find_spec("atheris") is None:
        print("atheris is not installed: inputs are changed by chance, not guided by what they reach")
    tasks = plan(options)
    if options.case:
        tasks = [task for task in tasks if task.name == options.case]
    elif options.part not in (GATE, ALL):
        tasks = options.part.chosen(tasks)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    failed = sum(not run(task) for task in tasks)
    print(f"{len(tasks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--target", help="only this one")
    parser.add_argument("--inputs", type=int, default=0, help="try so many inputs by chance for each target")
    parser.add_argument("--part", type=parsed, default=ALL, help="a part of the targets, such as 2/8")
    parser.add_argument("--case", help="one target on one build, by the name that a failure has")
    parser.add_argument("--seed", type=int, default=1, help="for inputs by chance")
    parser.add_argument("--replay", metavar="FILE", help="try one input again, with --target")
    parser.add_argument("--begin", action="store_true", help="only the inputs from which targets begin, once")
    parser.add_argument("--sanitize", action="store_true", help="the C alone, with AddressSanitizer (gcc)")
    parser.add_argument("--child", choices=["atheris", "chance"], help=argparse.SUPPRESS)
    return parser.parse_args()


def plan(options: argparse.Namespace) -> list[Task]:
    """Each target guided, or random, on the source; and random as installed, if that is compiled."""
    if options.sanitize:
        chance = {"engine": "chance", "seconds": options.seconds, "seed": options.seed}
        return [Task(target=sanitized.TARGET, build=SANITIZED, **chance)]
    guided = "atheris" if find_spec("atheris") else "chance"
    ways = [("interpreted", guided)]
    if installed_is_compiled():
        ways.append(("compiled", "chance"))
    if options.inputs:
        ways = [(ways[-1][0], "chance")]
    names = [name for name in TARGETS if options.target in (None, name)]
    if not names:
        raise SystemExit(f"there is no target {options.target!r}")
    seconds = max(1, options.seconds // (len(names) * len(ways)))
    return [
        Task(
            target=name, build=build, engine=engine, seconds=seconds, seed=options.seed, inputs=options.inputs
        )
        for name in names
        for build, engine in ways
    ]


def installed_is_compiled() -> bool:
    import warren.wire.table

    return not str(warren.wire.table.__file__).endswith(".py")


def run(task: Task) -> bool:
    """Run one task in its own process, and print its result."""
    environment = dict(os.environ)
    if task.build != "compiled":
        environment = {name: value for name, value in environment.items() if not name.startswith("WARREN_")}
        environment["PYTHONPATH"] = str(SOURCE)
    if task.build == SANITIZED:
        environment |= sanitized.compiled(SOURCE, FINDINGS / SANITIZED)
    command = [sys.executable, __file__, "--child", task.engine, "--target", task.target]
    command += ["--seconds", str(task.seconds), "--seed", str(task.seed), "--inputs", str(task.inputs)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                timeout=patient(task.seconds + GRACE_SECONDS), check=False,
            )  # fmt: skip
            # An exception is on stdout, and of what was said the end is shown.
            status, said = done.returncode, done.stderr + done.stdout
        except subprocess.TimeoutExpired as hung:
            status, said = -1, f"hung; it said: {hung.stderr!r}"
        current = Path(folder, CURRENT)
        if status and current.exists():
            kept = FINDINGS / f"{task.target}-{task.seed}-{CURRENT}"
            with current.open("rb") as file:
                kept.write_bytes(file.read(int.from_bytes(file.read(8), "big")))
            said += f"\nwhat was tried last is kept as {kept}"
    count, peak = COUNT.search(said), PEAK.search(said)
    way = (
        f"{task.build}, {'guided by atheris' if task.engine == 'atheris' else f'by chance from {task.seed}'}"
    )
    if status or count is None:
        last = said.rstrip().rpartition("\n")[2]
        print(f"FAILED {task.name}: status {status} ({way}): {last}\n{said[-6000:]}")
        return False
    inputs = f"{int(count[1]):,} inputs in {time.monotonic() - started:.0f} s"
    print(f"{task.target} ({way}): {inputs}, at most {peak[1] if peak else '?'} MB", flush=True)
    return True


def child(options: argparse.Namespace) -> int:
    """Feed inputs to one target until the time is over."""
    names = {"target": options.target, "engine": options.child, "build": ""}
    task = Task(**names, seconds=options.seconds, seed=options.seed, inputs=options.inputs)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return guided(task) if task.engine == "atheris" else by_chance(task)


def guided(task: Task) -> int:
    """Run libFuzzer, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["warren", "pyspark_warren"]):
        target = load(task.target)
    for number, seed in enumerate(target.seeds()):
        Path(f"seed-{number}").write_bytes(seed)
    settings = {
        "max_total_time": task.seconds, "rss_limit_mb": RSS_MB_MAX, "timeout": 10, "max_len": 4096,
        "print_final_stats": 1, "verbosity": 0, "artifact_prefix": f"{FINDINGS}/{task.target}-",
        "seed": task.seed,
    }  # fmt: skip
    flags = [f"-{name}={value}" for name, value in settings.items()]
    atheris.Setup([sys.argv[0], *flags, "."], measured(target.check))
    atheris.Fuzz()
    return 0


def by_chance(task: Task) -> int:
    """Run the mutator of this project, with equal inputs for equal seed numbers."""
    if not sanitized.load():
        # AddressSanitizer reserves far more than it uses.
        resource.setrlimit(resource.RLIMIT_AS, (RSS_MB_MAX << 20, RSS_MB_MAX << 20))
    target = load(task.target)
    check = measured(target.check)
    until = time.monotonic() + task.seconds
    count = 0
    tried = current_input()
    for data in inputs(target.seeds(), task.seed):
        tried[: 8 + len(data)] = len(data).to_bytes(8, "big") + data
        try:
            check(data)
        except BaseException:
            place = FINDINGS / f"{task.target}-{task.seed}-{count}"
            place.write_bytes(data)
            print(f"kept as {place}: {data!r}")
            raise
        count += 1
        if count == task.inputs or (not task.inputs and time.monotonic() > until):
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"stat::number_of_executed_units: {count}\nstat::peak_rss_mb: {peak}")
    return 0


def current_input() -> mmap.mmap:
    """A file with the current input, which remains when the process crashes."""
    with Path(CURRENT).open("w+b") as file:
        file.truncate(1 << 20)
        return mmap.mmap(file.fileno(), 0)


def measured(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """`check`, which also measures the memory of some inputs."""
    turn = 0

    def checked(data: bytes) -> None:
        nonlocal turn
        turn += 1
        if turn % MEASURE_EVERY:
            check(data)
            return
        tracemalloc.start()
        try:
            check(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < PEAK_BYTES_MAX + PEAK_PER_BYTE_MAX * len(data), f"{len(data)} bytes took {peak}"

    return checked


def replay(name: str, path: Path) -> int:
    """Run one input."""
    load(name).check(path.read_bytes())
    print("passes")
    return 0


def begin() -> int:
    """Run every target with an empty input and with its seeds, in this process."""
    for name in TARGETS:
        target = load(name)
        seeds = target.seeds()
        for data in (b"", *seeds):
            try:
                target.check(data)
            except BaseException:
                print(f"FAILED {name}: {data!r}", flush=True)
                raise
        print(f"{name}: {len(seeds)} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
