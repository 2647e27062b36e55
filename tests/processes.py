"""Runs commands in process groups of their own, shows their output line by line, and ends them in time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# The time limit of a suite on a quiet machine, beyond which it hangs.
SUITE_SECONDS_MAX = 3600
# The processes of the running suites, which are ended with this one.
running: set[subprocess.Popen[str]] = set()


class Ended(NamedTuple):
    """An ended process: its status, its output, its duration and the CPU time of all that it waited for."""

    status: int
    lines: list[str]
    seconds: float
    processor_seconds: float


def run(command: Sequence[str], variables: Mapping[str, str], name: str) -> Ended:
    """Run `command`, echo its output after `name`, and end all that it started, at its time limit."""
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)  # each environment has its own Warren, which src/ must not shadow
    # Without bytecode on disk, each interpreted broker compiles all of src/ again: half of its start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    patience = float(os.environ.get("PATIENCE", "1"))
    timer = threading.Timer(SUITE_SECONDS_MAX * patience, _end, [process])
    timer.start()
    running.add(process)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            _show(f"{name} | {lines[-1]}")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Ended(process.returncode, lines, time.monotonic() - started, used.ru_utime + used.ru_stime)
    finally:
        timer.cancel()
        _end(process)
        running.discard(process)


def end_all() -> None:
    """Kill all that runs."""
    for process in list(running):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process group, with any process that the suite has left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def say(text: str) -> None:
    """Print a line about the run itself."""
    _show(f"== {text}")


def _show(line: str) -> None:
    """Print in one write, so that lines of two suites are never mixed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
