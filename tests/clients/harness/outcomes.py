"""Compares the JUnit report of a suite with the excuses."""

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.clients.harness.catalogue import Excuse


@dataclasses.dataclass(slots=True, kw_only=True)
class Verdict:
    """The outcome of one suite; `failed` and `surprises` require attention."""

    suite: str
    seconds: float = 0.0
    passed: list[str] = dataclasses.field(default_factory=list)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    excused: dict[str, str] = dataclasses.field(default_factory=dict)
    skipped: list[str] = dataclasses.field(default_factory=list)
    surprises: list[str] = dataclasses.field(default_factory=list)
    trouble: str = ""

    def is_good(self) -> bool:
        """True if every failure is excused, and at least one test ran or was skipped with a reason."""
        return not self.failed and not self.trouble


def case_of(test: str) -> str:
    """Return the name of a test without the separator that ends a name where a failure is printed."""
    return test.replace(": ", ":")


def judge(verdict: Verdict, report: Path, excuses: list[Excuse], case: str = "") -> None:
    """Fill `verdict` from the report of the suite, or from what it says of one case."""
    for test, outcome, text in outcomes(report):
        if case and case_of(test) != case:
            continue
        excuse = next((one for one in excuses if one.covers(verdict.suite, test)), None)
        if outcome == "skipped":
            verdict.skipped.append(test)
        elif outcome == "passed":
            verdict.passed.append(test)
            if excuse is not None and not excuse.is_race:
                verdict.surprises.append(test)
        elif excuse is not None:
            verdict.excused[test] = excuse.reason
        else:
            verdict.failed[test] = text


def outcomes(report: Path) -> list[tuple[str, str, str]]:
    """Return each test of the report once: its name, `passed`, `failed` or `skipped`, and its text."""
    found: dict[str, tuple[str, str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname', '')}::{case.get('name', '')}"
        outcome, text = outcome_of(case)
        # A test whose teardown fails too has two entries: the worse one counts.
        if test not in found or outcome == "failed":
            found[test] = outcome, text
    return [(test, outcome, text) for test, (outcome, text) in found.items()]


def outcome_of(case: ElementTree.Element) -> tuple[str, str]:
    """Return the outcome of one `testcase`."""
    for tag in ("failure", "error"):
        element = case.find(tag)
        if element is not None:
            return "failed", element.text or element.get("message", "")
    if case.find("skipped") is not None:
        return "skipped", ""
    return "passed", ""
