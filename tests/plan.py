"""What is run: each suite on a build, as one command, in the gate of every commit or among the long tests.

The gate is a function of the tree: equal files give equal commands, with equal variables, on every commit and
every day. All that it leaves out are the long tests, which are divided into parts. Needs only the standard
library.
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.part import ALL, GATE, Part

ROOT = Path(__file__).resolve().parent.parent
SOURCE, INTEGRATION = ROOT / "src" / "warren", ROOT / "tests" / "integration"
RESULTS = ROOT / "build" / "test"
INTERPRETED, COMPILED = "interpreted", "compiled"
ENVIRONMENTS = {INTERPRETED: ROOT / ".venv", COMPILED: ROOT / ".venv-compiled"}
# One suite for each older version of Spark that is supported, by its list of packages.
SPARK_VERSIONS = sorted(path.stem for path in (ROOT / "requirements").glob("spark-*.txt"))
# Suites with an environment of their own, which runs Warren from src/.
OWN_ENVIRONMENTS = {name: ROOT / f".venv-{name}" for name in ("spark", *SPARK_VERSIONS)}
# The commands of `lint`, in the interpreted environment.
CHECKS = {
    "mypy --strict": ("mypy",),
    "ruff check": ("ruff", "check", "--quiet", "."),
    "ruff format": ("ruff", "format", "--quiet", "--check", "."),
    "import contracts": ("lint-imports", "--no-logo"),
}
PYTEST_SUITES = [
    "unit", "tidy", "sim", "raft", "conformance", "integration", "cluster", "browser", "openapi", "oracle",
    "spark", *SPARK_VERSIONS,
]  # fmt: skip
# Programs that print the line of counts themselves.
PROGRAMS = {
    "mutation": "tests/mutation/run.py",
    "kill": "tests/crash/kill.py",
    "power": "tests/crash/power.py",
    "fuzz": "tests/fuzz/run.py",
    "clients": "tests/clients/run.py",
    "clients-away": "tests/clients/run.py",
    "sanitize": "tests/fuzz/run.py",
}
SUITES = ["lint", *PYTEST_SUITES, *PROGRAMS]
# Suites that run on one build, if it is there, and why the other one cannot give another result. All others
# run on both: they test the compiled modules.
ONCE_ON = {
    "tidy": INTERPRETED,  # reads the sources
    "mutation": INTERPRETED,  # changes the sources
    "spark": INTERPRETED,  # the connector is not compiled
    **dict.fromkeys(SPARK_VERSIONS, INTERPRETED),  # the connector is not compiled
    "browser": COMPILED,  # the web interface shows what the HTTP API answers
    "openapi": COMPILED,  # no module of the HTTP API is compiled
    "oracle": COMPILED,  # as for clients
    "cluster": COMPILED,  # what is compiled of a cluster is tested on both by unit and sim
    "kill": COMPILED,  # what a kill leaves is tested on both by sim and by integration
    "power": COMPILED,  # what a power cut leaves is tested on both by sim
    "fuzz": COMPILED,  # runs its targets on both builds by itself
    "clients": COMPILED,  # conformance compares both builds byte by byte
    "clients-away": COMPILED,  # as for cluster
    "sanitize": COMPILED,  # tests the C alone, which it compiles itself
}
# The integration tests that reach compiled modules or C in a way that no other suite does, by sockets, files
# and kills. The gate runs them on both builds, and all others compiled; interpreted those are long tests.
INTEGRATION_ON_BOTH = [
    "dead_letters", "durability", "formats", "retain", "return", "slow_disk", "staged", "stream_protocol",
    "streams", "transient_messages", "transport", "unacknowledged",
]  # fmt: skip
# Suites that the gate leaves out whole: older Sparks, the C under AddressSanitizer, and clients of a cluster.
LONG_SUITES = [*SPARK_VERSIONS, "sanitize", "clients-away"]
# The arguments of programs, in the gate and among the long tests, of which the latter have fresh seeds.
GATE_ARGUMENTS = {
    "kill": ("--seed", "1"),
    "power": ("--seed", "1"),
    "fuzz": ("--inputs", "1000"),
    "clients": ("--jobs", "2"),
}
LONG_ARGUMENTS = {
    "kill": ("--kills", "40"),
    "power": (),
    "fuzz": ("--seconds", "600"),
    "clients": ("--jobs", "2"),
    "clients-away": ("--away", "--jobs", "2"),
    "sanitize": ("--sanitize", "--seconds", "60"),
}
# Programs that run one test by its name with `--case`.
WITH_CASES = ("clients", "clients-away", "fuzz")
# Programs that select a part of their tests, and those that are given a seed number.
DIVIDED, SEEDED = ("mutation", "clients", "clients-away", "fuzz"), ("kill", "power", "fuzz", "sanitize")
# The arguments of pytest for suites that are not a directory.
CHOSEN = dict.fromkeys(SPARK_VERSIONS, ("tests/spark", "-m", "versions"))
# Number of processes among which the modules of a suite are divided that would otherwise end last.
WORKERS = {"unit": 2, "integration": 3, "oracle": 2}
# The time limit of a test, and of one with Spark, which starts JVMs, unless it has its own.
TEST_SECONDS_MAX, SPARK_TEST_SECONDS_MAX = 120, 300
# The seeds of each simulation, and the examples of each property, that the gate tries on a build; the second
# build, on which the same decisions are tested, tries fewer.
GATE_SEEDS = {COMPILED: 60, INTERPRETED: 20}
GATE_EXAMPLES = {COMPILED: 50, INTERPRETED: 20}
LONG_SEEDS = 1_000
# Examples of each property that a quick run tries, instead of Hypothesis' hundred.
QUICK_EXAMPLES = 20


class Job(NamedTuple):
    """A suite on a build: the command, without the directory of the environment, and its variables."""

    suite: str
    build: str
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name in the table; a check has only one build."""
        return self.suite if self.suite in CHECKS else f"{self.suite} ({self.build})"

    @property
    def report(self) -> Path:
        """The report that pytest writes."""
        return RESULTS / f"{self.suite}-{self.build}.xml"

    @property
    def program(self) -> Path:
        """The program of the environment that runs it."""
        return OWN_ENVIRONMENTS.get(self.suite, ENVIRONMENTS[self.build]) / "bin" / self.command[0]

    def shown(self) -> str:
        """Return the command as it is typed in the root of the project."""
        variables = [f"{name}={value}" for name, value in self.variables]
        quoted = map(shlex.quote, self.command[1:])
        return " ".join([*variables, os.path.relpath(self.program, ROOT), *quoted])


def plan(suites: Sequence[str], builds: Sequence[str], part: Part, seed: int = 0) -> list[Job]:
    """Return the jobs of the suites on the builds, in the order of the table.

    Long tests are run with fresh inputs, from `seed`, besides those of the gate.
    """
    jobs = [
        Job(name, INTERPRETED, command)
        for name, command in CHECKS.items()
        if "lint" in suites and INTERPRETED in builds and part.has_gate
    ]
    for build in builds:
        for suite in suites:
            if suite == "lint" or (len(builds) > 1 and ONCE_ON.get(suite, build) != build):
                continue
            if suite in LONG_SUITES and not _has_long_suite(part, suite):
                continue
            if suite in PROGRAMS:
                jobs.append(_program(suite, build, part, seed))
            elif what := _what(suite, part, is_second=len(builds) > 1 and build == INTERPRETED):
                jobs.append(_pytest(suite, build, what, part, seed=seed))
    return jobs


def _has_long_suite(part: Part, suite: str) -> bool:
    """True if the part has a suite of long tests, or, if the suite itself is divided, a part of it."""
    return part.has_long if suite in DIVIDED else part.takes(LONG_SUITES.index(suite))


def _program(suite: str, build: str, part: Part, seed: int) -> Job:
    command = (
        "python",
        PROGRAMS[suite],
        *(LONG_ARGUMENTS if part.has_long else GATE_ARGUMENTS).get(suite, ()),
    )
    if suite in DIVIDED:
        command += ("--part", str(part))
    if suite in SEEDED and part.has_long:
        command += ("--seed", str(seed))
    return Job(suite, build, command, _build_variables(build))


def _what(suite: str, part: Part, *, is_second: bool) -> tuple[str, ...]:
    """Return the tests of a suite for pytest; of a second build only what can differ from the first one."""
    selected = ("--part", str(part))
    if is_second and suite == "unit":
        return (*(f"tests/unit/{name}" for name in compiled_packages()), *selected)
    if is_second and suite == "integration":
        others = [path.stem.removeprefix("test_") for path in sorted(INTEGRATION.glob("test_*.py"))]
        others = [name for name in others if name not in INTEGRATION_ON_BOTH]
        names = INTEGRATION_ON_BOTH if part == GATE else part.chosen(others)
        return (
            *(f"tests/integration/test_{name}.py" for name in sorted(names)),
            *(selected if part == GATE else ()),
        )
    if suite in LONG_SUITES:
        return CHOSEN[suite]
    return (*CHOSEN.get(suite, (f"tests/{suite}",)), *selected)


def _pytest(suite: str, build: str, what: tuple[str, ...], part: Part, *, seed: int) -> Job:
    command = ("python", "-m", "pytest", *what, "--durations=10", "--durations-min=5")
    if suite in WORKERS:
        command += ("-n", str(WORKERS[suite]), "--dist", "loadfile")
    seconds = SPARK_TEST_SECONDS_MAX if suite in OWN_ENVIRONMENTS else TEST_SECONDS_MAX
    command += (f"--timeout={seconds}", f"--junitxml=build/test/{suite}-{build}.xml")
    if part == GATE:
        chance = {"SEEDS": GATE_SEEDS[build], "SEEDS_FROM": 0, "EXAMPLES": GATE_EXAMPLES[build]}
        chance["PYTHONHASHSEED"] = 0
    elif part == ALL:
        chance = {"SEEDS": LONG_SEEDS, "SEEDS_FROM": 0}
    else:
        chance = {"SEEDS": max(LONG_SEEDS // part.of, 1), "SEEDS_FROM": seed, "FRESH": 1}
    return Job(
        suite,
        build,
        command,
        (*_build_variables(build), *((name, str(value)) for name, value in chance.items())),
    )


def _build_variables(build: str) -> tuple[tuple[str, str], ...]:
    return (("WARREN_COMPILED" if build == COMPILED else "WARREN_PURE", "1"),)


def compiled_packages() -> list[str]:
    """Return the packages of Warren with a compiled module or with C."""
    found = [path for pattern in ("*.pxd", "*.c") for path in SOURCE.rglob(pattern)]
    return sorted({path.relative_to(SOURCE).parts[0] for path in found})
