"""What processes use, as /proc tells."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Fields of /proc/PID/stat behind the command: user and system time, its own and that of the children that it
# has waited for, so that the time of a child which ends stays in the sum.
_TIMES = slice(11, 15)


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time and memory of some processes together."""

    cpu_s: float
    resident_bytes: int


def usage(pids: Iterable[int]) -> Usage:
    """What `pids`, all their threads and all processes below them have used up to now."""
    cpu_s, resident = 0.0, 0
    for pid in family(pids):
        try:
            fields = stat_fields(Path(f"/proc/{pid}/stat").read_text())
            resident += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        cpu_s += sum(int(ticks) for ticks in fields[_TIMES]) / TICKS_PER_S
    return Usage(cpu_s, resident)


def family(pids: Iterable[int]) -> set[int]:
    """`pids` and every process below them."""
    found: set[int] = set()
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += _children(pid)
    return found


def stat_fields(stat: str) -> list[str]:
    """The fields of /proc/PID/stat behind the command, which may itself hold spaces and brackets."""
    return stat.rpartition(")")[2].split()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += [int(child) for child in listing.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread ended meanwhile
    return children
