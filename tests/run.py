"""Runs the checks and the tests on both builds, and ends with one line that counts them all.

Each suite runs as a process of its own, so that one that hangs or crashes costs only itself, and two at a
time, as most of them wait more than they compute. What a suite prints is shown as it comes, behind its name;
the last line of the whole is `N passed, N failed, N skipped`.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test"
ENVIRONMENTS = {"interpreted": ROOT / ".venv", "compiled": ROOT / ".venv-compiled"}
# One for each older version of Spark that is supported, named by its list of packages.
SPARK_VERSIONS = sorted(path.stem for path in (ROOT / "requirements").glob("spark-*.txt"))
# Suites with an environment of their own, which runs Warren from src/.
OWN_ENVIRONMENTS = {name: ROOT / f".venv-{name}" for name in ("spark", *SPARK_VERSIONS)}
# What pytest is told of a suite that is no folder.
CHOSEN = dict.fromkeys(SPARK_VERSIONS, ("tests/spark", "-m", "versions"))
# What optional tests want; each is skipped, by its own suite, where the program is not installed.
OPTIONAL = {
    "rabbitmq-server": "comparisons with a real RabbitMQ",
    "node": "tests that drive amqplib, and the web interface",
    "chromium": "the web interface in a browser",
}
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
# How a line begins that names a test that failed, also of a program, and how much of its reason is shown.
FAILED, REASON_LENGTH_MAX = "FAILED ", 400
CHECKS = [
    ("ruff check", ["ruff", "check", "--quiet", "."]),
    ("ruff format", ["ruff", "format", "--quiet", "--check", "."]),
    ("mypy --strict", ["mypy"]),
    ("import contracts", ["lint-imports", "--no-logo"]),
]
PYTEST_SUITES = [
    "unit", "tidy", "sim", "conformance", "integration", "browser", "openapi", "spark", *SPARK_VERSIONS,
]  # fmt: skip
# A program that prints the line of counts itself; the arguments bound how long it takes.
PROGRAMS = {
    "mutation": ["tests/mutation/run.py"],
    "kill": ["tests/crash/kill.py"],
    "power": ["tests/crash/power.py"],
    "fuzz": ["tests/fuzz/run.py", "--seconds", "20"],
    "clients": ["tests/clients/run.py"],
}
# Suites that run once, and on which build if it is there: tidy reads sources and mutation changes them, fuzz
# covers both by itself; what a browser sees is the same on both, and so are the document of the API and what
# Spark reads.
ONCE_ON = {
    "tidy": "interpreted", "browser": "interpreted", "openapi": "interpreted", "spark": "interpreted",
    **dict.fromkeys(SPARK_VERSIONS, "interpreted"), "mutation": "interpreted",
    "kill": "compiled", "power": "compiled", "fuzz": "compiled", "clients": "compiled",
}  # fmt: skip
SUITES = ["lint", *PYTEST_SUITES, *PROGRAMS]
SUITE_SECONDS_MAX = 3000
# Suites that run at a time, and those that take longest: begun first, so that none is left alone at the end.
LANES = 2
LONGEST = ["spark", "integration", "clients", *SPARK_VERSIONS, "mutation", "browser"]

# The processes of the suites that are running, for an end before theirs.
running: set[subprocess.Popen[str]] = set()


@dataclass
class Outcome:
    """What one suite came to."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    skip_reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def main() -> int:
    """Run what was asked for, everything by default; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="all, if none is named")
    parser.add_argument("--build", choices=[*ENVIRONMENTS, "both"], default="both")
    chosen = parser.parse_args()
    suites = chosen.suites or SUITES
    builds = list(ENVIRONMENTS) if chosen.build == "both" else [chosen.build]
    RESULTS.mkdir(parents=True, exist_ok=True)
    # Whoever ends this ends what it started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for program, use in OPTIONAL.items():
        if shutil.which(program) is None:
            _say(f"{program} is not installed: {use} are skipped")
    outcomes = [_run_check(name, command) for name, command in CHECKS] if checks_due(suites, builds) else []
    outcomes += run_lanes(due_jobs(suites, builds))
    return summarise(outcomes)


def checks_due(suites: list[str], builds: list[str]) -> bool:
    """Whether the sources are looked at, which is the same for both builds."""
    return "lint" in suites and "interpreted" in builds


def due_jobs(suites: list[str], builds: list[str]) -> list[tuple[str, str]]:
    """Which suites run on which build, in the order in which they are shown."""
    return [
        (suite, build)
        for build in builds
        for suite in suites
        if suite != "lint" and (len(builds) == 1 or is_due(suite, build))
    ]


def run_lanes(jobs: list[tuple[str, str]]) -> list[Outcome]:
    """Run them LANES at a time; their outcomes in the order of `jobs`."""
    with ThreadPoolExecutor(LANES) as lanes:
        begun = {job: lanes.submit(run_suite, *job) for job in sorted(jobs, key=_turn)}
        try:
            return [begun[job].result() for job in jobs]
        except BaseException:
            lanes.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                _end(process)
            raise


def _turn(job: tuple[str, str]) -> int:
    return LONGEST.index(job[0]) if job[0] in LONGEST else len(LONGEST)


def run_suite(suite: str, build: str) -> Outcome:
    """Run one, or say why it cannot be run."""
    name = f"{suite} ({build})"
    if missing := why_missing(suite if suite in OWN_ENVIRONMENTS else build):
        return Outcome(name, skipped=1, skip_reasons=Counter([missing]))
    if suite in PROGRAMS:
        return run_program(name, build, PROGRAMS[suite])
    return _run_pytest(name, build, suite)


def is_due(suite: str, build: str) -> bool:
    """Whether a run on both builds runs `suite` on this one."""
    chosen = ONCE_ON.get(suite)
    if chosen is None:
        return True
    return build == ("interpreted" if why_missing(chosen) else chosen)


def why_missing(build: str) -> str:
    """Why this build, or what a suite has of its own, cannot be tested here; empty if it can."""
    is_own = build in OWN_ENVIRONMENTS
    marker = (OWN_ENVIRONMENTS[build] if is_own else ENVIRONMENTS[build]) / "warren-build"
    found = marker.read_text().strip() if marker.exists() else "not made: run `make setup`"
    if is_own:
        return "" if found == "interpreted" else f"the environment of {build} is missing: {found}"
    return "" if found == build else f"the {build} build is missing: {found}"


def _run_check(name: str, command: list[str]) -> Outcome:
    outcome = Outcome(name)
    started = time.monotonic()
    scripts = ENVIRONMENTS["interpreted"] / "bin"
    _say(name)
    status, _ = _stream(name, [str(scripts / command[0]), *command[1:]], {})
    outcome.seconds = time.monotonic() - started
    _count_exit(outcome, status)
    return outcome


def run_program(name: str, build: str, command: list[str]) -> Outcome:
    """A program that counts for itself; one that does not counts as one, by its status."""
    outcome = Outcome(name)
    started = time.monotonic()
    _say(name)
    status, lines = _stream(name, [_python(build), *command], _variables(build))
    outcome.seconds = time.monotonic() - started
    counts = [found for line in lines if (found := COUNTS.match(line))]
    if counts:
        outcome.passed, outcome.failed, outcome.skipped = map(int, counts[-1].groups())
    outcome.failures += [f"{name}: {line.removeprefix(FAILED)}" for line in lines if line.startswith(FAILED)]
    if (status and not outcome.failed) or not counts:
        _count_exit(outcome, status)
    return outcome


def _run_pytest(name: str, build: str, suite: str) -> Outcome:
    outcome = Outcome(name)
    started = time.monotonic()
    report = RESULTS / f"{suite}-{build}.xml"
    report.unlink(missing_ok=True)
    _say(name)
    chosen = CHOSEN.get(suite, (f"tests/{suite}",))
    command = [_python(build, suite), "-m", "pytest", *chosen, f"--junitxml={report}"]
    status, _ = _stream(name, command, _variables(build))
    outcome.seconds = time.monotonic() - started
    if report.exists():
        count_report(outcome, report)
    if status and not outcome.failed:
        _count_exit(outcome, status)
    return outcome


def _count_exit(outcome: Outcome, status: int) -> None:
    if status == 0:
        outcome.passed += 1
    else:
        outcome.failed += 1
        outcome.failures.append(f"{outcome.name} ended with status {status}")


def count_report(outcome: Outcome, report: Path) -> None:
    """Add what pytest wrote down, test by test."""
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        failures = [*case.findall("failure"), *case.findall("error")]
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


def _stream(name: str, command: list[str], variables: dict[str, str]) -> tuple[int, list[str]]:
    """Run `command` in a process group of its own, echo it line by line, and end it if it takes too long."""
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)  # each environment has its own Warren; src/ must not shadow it
    # Without bytecode on disk, each interpreted broker compiles all of src/ again: half of its start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
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
            _show(f"{name} | {lines[-1]}")
        return process.wait(), lines
    finally:
        timer.cancel()
        _end(process)
        running.discard(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process group; what the suite started and forgot goes with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _say(text: str) -> None:
    _show(f"== {text}")


def _show(line: str) -> None:
    """One write, so that lines of two suites never share one."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def summarise(outcomes: list[Outcome]) -> int:
    """Print the table, what was skipped and what failed, and last the line of counts; 0 if nothing failed."""
    width = max(len(outcome.name) for outcome in outcomes)
    print(f"\n{'':{width}}  passed  failed  skipped  seconds")
    for one in outcomes:
        print(f"{one.name:{width}}  {one.passed:6}  {one.failed:6}  {one.skipped:7}  {one.seconds:7.1f}")
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
