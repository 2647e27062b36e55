"""Reads CPU time and memory of processes, of Linux."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat after the command: user and system time of children it has waited for, so that the
# time of an ended child stays in the sum.
_TIMES_OF_ENDED = slice(13, 15)
# The kind of the clock of a process that counts nanoseconds (CPUCLOCK_SCHED of the kernel).
_SCHEDULED = 2


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU time and memory of several processes together."""

    cpu_s: float
    resident_bytes: int


def usage(pids: Iterable[int]) -> Usage:
    """Return the usage of `pids` and all their descendants up to now."""
    cpu_s, resident = 0.0, 0
    for pid in family(pids):
        try:
            fields = stat_fields(Path(f"/proc/{pid}/stat").read_text())
            resident += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
            own_s = own_cpu_s(pid)
        except OSError:
            continue  # the process has ended
        cpu_s += own_s + sum(int(ticks) for ticks in fields[_TIMES_OF_ENDED]) / _TICKS_PER_S
    return Usage(cpu_s, resident)


def own_cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process, in seconds; OSError if it has ended.

    It is read from the clock of the process (clock_getcpuclockid(3)): /proc/PID/stat has ticks of 10 ms.
    """
    return time.clock_gettime(~pid << 3 | _SCHEDULED)


def family(pids: Iterable[int]) -> set[int]:
    """Return `pids` and all their descendants."""
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += _children(pid)
    return found


def stat_fields(stat: str) -> list[str]:
    """Return the fields of /proc/PID/stat after the command, which can contain spaces and brackets."""
    return stat.rpartition(")")[2].split()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += [int(child) for child in listing.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended
    return children
