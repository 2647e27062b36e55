"""Ports for tests: suites that run side by side start brokers without port conflicts."""

import subprocess
import sys
from pathlib import Path

from tests.warren_process import free_port

ROOT = Path(__file__).resolve().parents[2]
# Of 12,000 random ports, more than a hundred would be equal.
COUNT = 1_000
PROGRAM = f"from tests.warren_process import free_port; print(*[free_port() for _ in range({COUNT})])"


def test_no_port_is_given_twice_to_one_process_or_to_two() -> None:
    ours = [free_port() for _ in range(COUNT)]
    reported = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    theirs = [int(port) for port in reported.stdout.split()]
    assert len({*ours, *theirs}) == len(ours) + len(theirs) == 2 * COUNT
