"""Runs the checks and the tests on both builds, and ends with one line that counts them all.

Each suite runs as a process of its own, so that one that hangs or crashes affects no other, and several run
at the same time, because most of them wait more than they compute. The output of a suite is shown at once,
preceded by its name. A table follows: results, seeds, seconds and seconds of CPU time of each suite.
The last line of all is `N passed, N failed, N skipped`.

The suite `oracle` compares Warren's answers about quorum queues with recorded ones of RabbitMQ 3.10.8, and
needs no RabbitMQ; `make oracle` runs one beside Warren, and compares everything.

Tests that take long are left out unless `--long` selects them: `all`, or a part of them such as `2/4`. The
table contains how many were left out.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from tests.long import checked, chosen, numbers  # noqa: E402

SOURCE, INTEGRATION = ROOT / "src" / "warren", ROOT / "tests" / "integration"
RESULTS = ROOT / "build" / "test"
ENVIRONMENTS = {"interpreted": ROOT / ".venv", "compiled": ROOT / ".venv-compiled"}
# One suite for each older version of Spark that is supported, by its list of packages.
SPARK_VERSIONS = sorted(path.stem for path in (ROOT / "requirements").glob("spark-*.txt"))
# Suites with an environment of their own, which runs Warren from src/.
OWN_ENVIRONMENTS = {name: ROOT / f".venv-{name}" for name in ("spark", *SPARK_VERSIONS)}
# The arguments of pytest for suites that are not a directory.
CHOSEN = {
    **dict.fromkeys(SPARK_VERSIONS, ("tests/spark", "-m", "versions")),
    # Warren's answers are compared with recorded ones. `make oracle` runs RabbitMQ, too.
    "oracle": ("tests/oracle", "-k", "not rabbitmq"),
}
# The conditions of optional tests; each suite skips its own where the program is not installed.
OPTIONAL = {
    "rabbitmq-server": "comparisons with a real RabbitMQ",
    "node": "tests that drive amqplib, and the web interface",
    "chromium": "the web interface in a browser",
}
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
# The text at the end of pytest's output about tests that were deselected.
LEFT_OUT = re.compile(r"\b(\d+) deselected\b")
# The beginning of a line that names a failed test, also of a program, and how much of its reason is shown.
FAILED, REASON_LENGTH_MAX = "FAILED ", 400
# The commands of `lint`.
CHECKS = {
    "mypy --strict": ["mypy"],
    "ruff check": ["ruff", "check", "--quiet", "."],
    "ruff format": ["ruff", "format", "--quiet", "--check", "."],
    "import contracts": ["lint-imports", "--no-logo"],
}
PYTEST_SUITES = [
    "unit", "tidy", "sim", "raft", "conformance", "integration", "browser", "openapi", "oracle",
    "spark", *SPARK_VERSIONS,
]  # fmt: skip
# Programs that print the line of counts themselves; the arguments bound their duration.
PROGRAMS = {
    "mutation": ["tests/mutation/run.py"],
    "kill": ["tests/crash/kill.py"],
    "power": ["tests/crash/power.py"],
    "fuzz": ["tests/fuzz/run.py", "--seconds", "100"],
    "clients": ["tests/clients/run.py", "--jobs", "3"],
    "clients-extra": ["tests/clients/run.py", "--extra", "--jobs", "2"],
    "sanitize": ["tests/fuzz/run.py", "--sanitize", "--seconds", "60"],
}
# Suites that run on one build, if it is there, and why the other one cannot give another result. All others
# run on both: they test the compiled modules.
ONCE_ON = {
    "tidy": "interpreted",  # reads the sources
    "mutation": "interpreted",  # changes the sources
    "spark": "interpreted",  # the connector is not compiled
    **dict.fromkeys(SPARK_VERSIONS, "interpreted"),  # the connector is not compiled
    "browser": "compiled",  # the web interface shows what the HTTP API answers
    "openapi": "compiled",  # no module of the HTTP API is compiled
    "oracle": "compiled",  # as for clients
    "kill": "compiled",  # what a kill leaves is tested on both by sim and by integration
    "power": "compiled",  # what a power cut leaves is tested on both by sim
    "fuzz": "compiled",  # runs its targets on both builds by itself
    "clients": "compiled",  # conformance compares both builds byte by byte
    "clients-extra": "compiled",  # as for clients
    "sanitize": "compiled",  # tests the C alone, which it compiles itself
}
# A run on both builds runs all of `unit` and `integration` compiled. Interpreted it runs the unit tests of
# packages with compiled modules or C, and these integration tests, which reach such modules in a way that no
# other suite does, by sockets, files and kills. All other integration tests count interpreted as tests that
# take long: what they test is not compiled, or is tested on both builds by unit, sim and conformance.
INTEGRATION_ON_BOTH = [
    "dead_letters", "durability", "formats", "retain", "return", "slow_disk", "staged", "stream_protocol",
    "streams", "transient_messages", "transport", "unacknowledged",
]  # fmt: skip
# Suites of which all tests take long: older Sparks, three suites of clients that take ten minutes, and the C
# under AddressSanitizer. In this order they are divided into parts.
LONG_SUITES = [*SPARK_VERSIONS, "clients-extra", "sanitize"]
SUITES = ["lint", *PYTEST_SUITES, *PROGRAMS]
SUITE_SECONDS_MAX = 3600
# The time limit of a test with Spark, which starts JVMs beside other suites, unless it has its own.
SPARK_TEST_SECONDS_MAX = 300
# Suites that run at a time: there are more than processors, because many of them wait for timers and disks.
# With four, two processors were busy throughout, and single tests waited for one until their time limits.
LANES = 3
# Those that take longest are begun first, so that none is left alone at the end.
LONGEST = [
    "integration", "spark", "clients-extra", "clients", *SPARK_VERSIONS, "browser", "unit", "mutation",
    "sanitize",
]  # fmt: skip
# Suites of many small programs, and how many parts they have, of which each commit runs another one.
ROTATED_PARTS = {"mutation": 16, "fuzz": 8}
# Number of seeds of each simulation: `make test-all` runs the first ones, a part others than earlier parts.
SEEDS_OF_ALL, SEEDS_OF_PART = 1_000, 200
# Examples of each property that a quick run tries, instead of Hypothesis' hundred.
QUICK_EXAMPLES = 20
# Number of processes among which the modules of a suite are divided that would otherwise end last.
WORKERS = {"unit": 2, "integration": 2, "oracle": 2}

# The processes of the running suites, which are ended with this one.
running: set[subprocess.Popen[str]] = set()


class Job(NamedTuple):
    """A suite on a build, and the selection of its tests that take long.

    A partial one runs only what can have another result on this build, since all runs on the other one. A
    quick one leaves out tests marked `slow`, and tries fewer examples of each property.
    """

    suite: str
    build: str
    long: str = "all"
    is_partial: bool = False
    is_quick: bool = False


@dataclass
class SuiteResult:
    """The results of one suite."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seeds: int = 0
    left_out: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    skip_reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def main() -> int:
    """Run the selected suites, by default all; returns 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "suites",
        nargs="*",
        choices=[*SUITES, []],
        help="all, if none is named; oracle: recorded answers of "
        "RabbitMQ about quorum queues, without a RabbitMQ",
    )
    parser.add_argument("--build", choices=[*ENVIRONMENTS, "both"], default="both")
    parser.add_argument(
        "--long", type=checked, metavar="WHICH",
        help="which of the tests that take long: none, all, or a part such as 2/4; "
        "none by default, and all of the suites that are named",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true",
        help=f"without tests marked `slow`, and with {QUICK_EXAMPLES} examples of each property",
    )  # fmt: skip
    options = parser.parse_args()
    suites = options.suites or SUITES
    long = options.long or ("all" if options.suites else "none")
    builds = list(ENVIRONMENTS) if options.build == "both" else [options.build]
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Ending this process also ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for program, use in OPTIONAL.items():
        if shutil.which(program) is None:
            _say(f"{program} is not installed: {use} are skipped")
    jobs = [job._replace(is_quick=options.quick) for job in due_jobs(suites, builds, long)]
    return summarise(run_lanes(jobs), sorted(set(suites) & set(LONG_SUITES) - {job.suite for job in jobs}))


def due_jobs(suites: list[str], builds: list[str], long: str) -> list[Job]:
    """Return the suites to run with their builds, in the order of the table."""
    checks = CHECKS if "lint" in suites and "interpreted" in builds else []
    left_out = set(LONG_SUITES) - set(chosen(LONG_SUITES, long))
    is_partial = len(builds) > 1 and not why_missing("compiled")
    return [Job(name, "interpreted", long) for name in checks] + [
        Job(suite, build, "all" if suite in LONG_SUITES else long, is_partial and build == "interpreted")
        for build in builds
        for suite in suites
        if suite != "lint" and suite not in left_out and (len(builds) == 1 or is_due(suite, build))
    ]


def run_lanes(jobs: Sequence[Job]) -> list[SuiteResult]:
    """Run LANES jobs at a time; returns their results in the order of `jobs`."""
    with ThreadPoolExecutor(LANES) as lanes:
        begun = {job: lanes.submit(run_suite, job) for job in sorted(jobs, key=_turn)}
        try:
            return [begun[job].result() for job in jobs]
        except BaseException:
            lanes.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                _end(process)
            raise


def _turn(job: Job) -> int:
    return LONGEST.index(job.suite) if job.suite in LONGEST else len(LONGEST)


def run_suite(job: Job) -> SuiteResult:
    """Run one suite, or return why it cannot be run."""
    if job.suite in CHECKS:
        return _run_check(job.suite, CHECKS[job.suite])
    name = f"{job.suite} ({job.build})"
    if missing := why_missing(job.suite if job.suite in OWN_ENVIRONMENTS else job.build):
        return SuiteResult(name, skipped=1, skip_reasons=Counter([missing]))
    if job.suite in PROGRAMS:
        return run_program(name, job.build, [*PROGRAMS[job.suite], *_arguments(job)])
    return _run_pytest(name, job)


def _arguments(job: Job) -> list[str]:
    """Return the arguments of a program that select its tests that take long."""
    return ["--part", _part(job)] if job.suite in ROTATED_PARTS else []


def _part(job: Job) -> str:
    """Return the part of a rotated suite to run: by default another eighth or sixteenth for each commit."""
    if job.long != "none":
        return "1/1" if job.long == "all" else job.long
    parts = ROTATED_PARTS[job.suite]
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return f"{int(counted.stdout or 0) % parts + 1}/{parts}"


def is_due(suite: str, build: str) -> bool:
    """True if a run on both builds runs `suite` on this one."""
    chosen = ONCE_ON.get(suite)
    if chosen is None:
        return True
    return build == ("interpreted" if why_missing(chosen) else chosen)


def why_missing(build: str) -> str:
    """Return why this build, or the environment of a suite, is missing; empty if it is there."""
    is_own = build in OWN_ENVIRONMENTS
    marker = (OWN_ENVIRONMENTS[build] if is_own else ENVIRONMENTS[build]) / "warren-build"
    found = marker.read_text().strip() if marker.exists() else "not made: run `make setup`"
    if is_own:
        return "" if found == "interpreted" else f"the environment of {build} is missing: {found}"
    return "" if found == build else f"the {build} build is missing: {found}"


def _run_check(name: str, command: list[str]) -> SuiteResult:
    outcome = SuiteResult(name)
    scripts = ENVIRONMENTS["interpreted"] / "bin"
    status, lines = _stream(outcome, [str(scripts / command[0]), *command[1:]], {})
    _count_exit(outcome, status, lines)
    return outcome


def run_program(name: str, build: str, command: list[str]) -> SuiteResult:
    """Run a program that prints its own counts; without counts, its exit status counts as one test."""
    outcome = SuiteResult(name)
    status, lines = _stream(outcome, [_python(build), *command], _variables(build))
    counts = [found for line in lines if (found := COUNTS.match(line))]
    if counts:
        outcome.passed, outcome.failed, outcome.skipped = map(int, counts[-1].groups())
    outcome.failures += [f"{name}: {line.removeprefix(FAILED)}" for line in lines if line.startswith(FAILED)]
    if (status and not outcome.failed) or not counts:
        _count_exit(outcome, status, lines)
    return outcome


def _run_pytest(name: str, job: Job) -> SuiteResult:
    outcome = SuiteResult(name)
    report = RESULTS / f"{job.suite}-{job.build}.xml"
    report.unlink(missing_ok=True)
    command = [_python(job.build, job.suite), "-m", "pytest", *what_of(job), f"--junitxml={report}"]
    command += ["--long", job.long, "--durations=10", "--durations-min=5"]
    if job.suite in OWN_ENVIRONMENTS:
        command.append(f"--timeout={SPARK_TEST_SECONDS_MAX}")
    if job.suite in WORKERS:
        command += ["-n", str(WORKERS[job.suite]), "--dist", "loadfile"]
    variables = _variables(job.build) | _seeds(job.long)
    if job.is_quick:
        command += ["-m", "not slow"]
        variables |= {"EXAMPLES": str(QUICK_EXAMPLES)}
    status, lines = _stream(outcome, command, variables)
    outcome.left_out += sum(int(found[1]) for line in lines[-1:] if (found := LEFT_OUT.search(line)))
    if report.exists():
        count_report(outcome, report)
    if status and not outcome.failed:
        _count_exit(outcome, status, lines)
    return outcome


def what_of(job: Job) -> tuple[str, ...]:
    """Return the arguments of pytest for a suite on a build."""
    if job.is_partial and job.suite == "unit":
        return tuple(f"tests/unit/{name}" for name in compiled_packages())
    if job.is_partial and job.suite == "integration":
        others = [path.stem.removeprefix("test_") for path in sorted(INTEGRATION.glob("test_*.py"))]
        others = [name for name in others if name not in INTEGRATION_ON_BOTH]
        names = sorted([*INTEGRATION_ON_BOTH, *chosen(others, job.long)])
        return tuple(f"tests/integration/test_{name}.py" for name in names)
    return CHOSEN.get(job.suite, (f"tests/{job.suite}",))


def compiled_packages() -> list[str]:
    """Return the packages of Warren with a compiled module or with C."""
    found = [path for pattern in ("*.pxd", "*.c") for path in SOURCE.rglob(pattern)]
    return sorted({path.relative_to(SOURCE).parts[0] for path in found})


def _seeds(long: str) -> dict[str, str]:
    """Return the variables that select the seeds of each simulation, unless the caller has set them."""
    if "SEEDS" in os.environ or long == "none":
        return {}
    if long == "all":
        return {"SEEDS": str(SEEDS_OF_ALL)}
    return {"SEEDS_FROM": str(numbers(long)[0] * SEEDS_OF_PART)}


def _count_exit(outcome: SuiteResult, status: int, lines: Sequence[str]) -> None:
    if status == 0:
        outcome.passed += 1
    else:
        outcome.failed += 1
        last = lines[-1][:REASON_LENGTH_MAX] if lines else "it printed nothing"
        outcome.failures.append(f"{outcome.name} ended with status {status}: {last}")


def count_report(outcome: SuiteResult, report: Path) -> None:
    """Add the results in the report of pytest, test by test."""
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        failures = [*case.findall("failure"), *case.findall("error")]
        seeds = case.find("properties/property[@name='seeds']")
        outcome.seeds += 0 if seeds is None else int(seeds.get("value") or 0)
        if failures:
            outcome.failed += 1
            reason = " ".join((failures[0].get("message") or "").split())[:REASON_LENGTH_MAX]
            outcome.failures.append(f"{case.get('classname')}.{case.get('name')} ({outcome.name}): {reason}")
        elif skip is not None:
            outcome.skipped += 1
            outcome.skip_reasons[skip.get("message") or "no reason given"] += 1
        else:
            outcome.passed += 1


def _python(build: str, suite: str = "") -> str:
    return str(OWN_ENVIRONMENTS.get(suite, ENVIRONMENTS[build]) / "bin" / "python")


def _variables(build: str) -> dict[str, str]:
    return {"WARREN_COMPILED": "1"} if build == "compiled" else {"WARREN_PURE": "1"}


def _stream(outcome: SuiteResult, command: list[str], variables: dict[str, str]) -> tuple[int, list[str]]:
    """Run `command` in a process group of its own, echo it line by line, and end it after its time limit.

    Its duration and CPU time are added to `outcome`.
    """
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)  # each environment has its own Warren, which src/ must not shadow
    # Without bytecode on disk, each interpreted broker compiles all of src/ again: half of its start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    _say(outcome.name)
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    timer = threading.Timer(SUITE_SECONDS_MAX, _end, [process])
    timer.start()
    running.add(process)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            _show(f"{outcome.name} | {lines[-1]}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        outcome.processor_seconds = used.ru_utime + used.ru_stime
        return process.returncode, lines
    finally:
        outcome.seconds = time.monotonic() - started
        timer.cancel()
        _end(process)
        running.discard(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process group, with any process that the suite has left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _say(text: str) -> None:
    _show(f"== {text}")


def _show(line: str) -> None:
    """Print in one write, so that lines of two suites are never mixed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def summarise(outcomes: list[SuiteResult], left_out: Sequence[str] = ()) -> int:
    """Print the table, the tests left out, skipped and failed, and last the line of counts.

    Returns 0 if nothing failed; `left_out` contains whole suites.
    """
    width = max(len(outcome.name) for outcome in outcomes)
    print(f"\n{'':{width}}  passed  failed  skipped  left out  seeds  seconds  processor")
    for one in outcomes:
        counts = f"{one.passed:6}  {one.failed:6}  {one.skipped:7}  {one.left_out:8}  {one.seeds:5}"
        print(f"{one.name:{width}}  {counts}  {one.seconds:7.1f}  {one.processor_seconds:9.1f}")
    if left_out or any(one.left_out for one in outcomes):
        print(f"`make test-all` runs what was left out, also the suites {', '.join(left_out) or '(none)'}")
    reasons: Counter[str] = sum((one.skip_reasons for one in outcomes), Counter())
    for reason, count in reasons.most_common():
        print(f"skipped {count}: {reason}")
    for failure in [failure for one in outcomes for failure in one.failures]:
        print(f"{FAILED}{failure}")
    passed, failed, skipped = (
        sum(getattr(one, kind) for one in outcomes) for kind in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
