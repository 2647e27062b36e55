"""Runs each failed test again, by itself, when all suites have ended: one that passes then is unstable."""

from collections.abc import Sequence
from typing import NamedTuple

from tests import processes
from tests.results import Failure, SuiteResult

# More unstable tests than this are a fault of the run.
UNSTABLE_MAX = 10
# More failures than this are not looked at: the run has failed in any case.
LOOKED_AT_MAX = 2 * UNSTABLE_MAX
TRIES = 2
# Suites that prove durability or agreement: what fails there once is a finding.
FINAL = ("kill", "power", "sim", "raft", "mutation")


class Unstable(NamedTuple):
    """A test that failed and passed afterwards: its name, and the reason of the first failure."""

    name: str
    reason: str

    def shown(self) -> str:
        """Return the line about it."""
        return f"UNSTABLE {self.name}: {self.reason}"


def look(results: Sequence[SuiteResult]) -> list[Unstable]:
    """Run the failed tests of the suites again; counts those that pass as passed, and returns them."""
    failures = [
        (result, failure)
        for result in results
        for failure in result.failures
        if failure.alone and failure.alone.suite not in FINAL
    ]
    unstable = []
    for result, failure in failures[:LOOKED_AT_MAX]:
        if passes(failure):
            result.failures.remove(failure)
            result.failed -= 1
            result.passed += 1
            result.unstable += 1
            unstable.append(Unstable(f"{failure.name} ({result.name})", failure.reason))
    return unstable


def passes(failure: Failure) -> bool:
    """True if the test passes in one of the next processes."""
    job = failure.alone
    assert job
    processes.say(f"again: {failure.name}")
    command = [str(job.program), *job.command[1:]]
    return any(
        processes.run(command, dict(job.variables), f"again {job.name}").status == 0 for _ in range(TRIES)
    )
