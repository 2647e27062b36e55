"""How many times longer tests wait than on a quiet machine: a time limit of a test is for what hangs."""

import os
import subprocess
import sys
import time

# What the work below takes on two quiet processors, and the bounds of the factor. A run of all suites keeps
# the processors busy itself, which the smallest factor allows for.
QUIET_SECONDS = 0.6
PATIENCE_MIN, PATIENCE_MAX = 2.0, 10.0
WORK = "total = 0\nfor number in range(4_000_000):\n    total += number & 7\n"
# Set by the test runner.
PATIENCE = float(os.environ.get("PATIENCE", "1"))


def patient(seconds: float) -> float:
    """Return the time limit in seconds for what takes at most `seconds` on a quiet machine."""
    return seconds * PATIENCE


def measured() -> float:
    """Return the factor by which this machine, with what else it does, is slower than a quiet one."""
    started = time.monotonic()
    working = [subprocess.Popen([sys.executable, "-c", WORK]) for _ in range(2)]
    for process in working:
        process.wait()
    slower = (time.monotonic() - started) / QUIET_SECONDS
    return min(max(PATIENCE_MIN * slower, PATIENCE_MIN), PATIENCE_MAX)
