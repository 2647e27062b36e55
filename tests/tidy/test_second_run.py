"""Tests that a test with Spark has a second run only if a worker of Spark was late."""

import subprocess
import sys
from pathlib import Path

from tests.spark.second_run import WORKER_IS_LATE

PROGRAM = """
import pytest

runs = []

@pytest.fixture
def number():
    runs.append("set up")
    yield len(runs)
    runs.append("torn down")

def test_a(number):
    assert number == {passes_with}, {reason!r}

def test_b():
    assert runs == {expected}
"""


def outcome(folder: Path, **values: object) -> str:
    (folder / "test_program.py").write_text(PROGRAM.format(**values))
    command = [sys.executable, "-m", "pytest", "-p", "tests.spark.second_run", "-p", "no:cacheprovider", "-q"]
    command += ["-c", "/dev/null", f"--rootdir={folder}", str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.splitlines()[-1]


def test_a_test_whose_worker_was_late_runs_again_with_new_fixtures(tmp_path: Path) -> None:
    runs = ["set up", "torn down"] * 2
    found = outcome(tmp_path, passes_with=3, reason=f"at first: {WORKER_IS_LATE}. SQLSTATE", expected=runs)
    assert found.startswith("2 passed in")


def test_a_worker_that_is_late_twice_fails_the_test(tmp_path: Path) -> None:
    runs = ["set up", "torn down"] * 2
    found = outcome(tmp_path, passes_with=9, reason=WORKER_IS_LATE, expected=runs)
    assert found.startswith("1 failed, 1 passed in")


def test_a_test_that_fails_for_another_reason_runs_once(tmp_path: Path) -> None:
    found = outcome(tmp_path, passes_with=3, reason="wrong", expected=["set up", "torn down"])
    assert found.startswith("1 failed, 1 passed in")
