"""Suspends processes, and returns when none of their threads runs any more.

SIGSTOP alone is only on its way when `kill` returns: on a busy machine a thread that was not scheduled since
may still answer a request.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.patience import patient

_STATE, _GROUP = 0, 2
_STOPPED = ("T", "t", "Z", "X")
_SUSPENDED_S = 10


def suspend(process: int) -> None:
    """Suspend a process."""
    os.kill(process, signal.SIGSTOP)
    _wait(lambda: [process])


def suspend_group(group: int) -> None:
    """Suspend all processes of a group."""
    os.killpg(group, signal.SIGSTOP)
    _wait(lambda: _members(group))


def _wait(processes: Callable[[], list[int]]) -> None:
    end = time.monotonic() + patient(_SUSPENDED_S)
    while running := [each for each in processes() if not _is_stopped(each)]:
        assert time.monotonic() < end, f"processes {running} run in spite of SIGSTOP"
        time.sleep(0.001)


def _members(group: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _fields(folder / "stat")
        if fields and int(fields[_GROUP]) == group:
            found.append(int(folder.name))
    return found


def _is_stopped(process: int) -> bool:
    return all(_states(process))


def _states(process: int) -> Iterator[bool]:
    for task in Path(f"/proc/{process}/task").glob("*"):
        fields = _fields(task / "stat")
        yield not fields or fields[_STATE] in _STOPPED


def _fields(stat: Path) -> list[str]:
    """What stands behind the name of the program, which may have spaces; nothing if it has ended."""
    with contextlib.suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()
    return []
