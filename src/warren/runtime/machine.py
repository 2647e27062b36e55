"""How much memory this process uses, how much it may use, and how much of a disk is free."""

import ctypes
import os
from pathlib import Path

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# Files of control groups with a limit of memory: version 2, and 1.
_LIMITS = ("memory.max", "memory.limit_in_bytes")


class Machine:
    """The machine as the kernel describes it; `root` is where its files are found."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._process = root / "proc" / "self"
        self._groups = root / "sys" / "fs" / "cgroup"
        # Only in the GNU library; others give memory back by themselves, or not at all.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def memory_used(self) -> int | None:
        """Octets of this process that are in memory; None where nobody says."""
        try:
            return int((self._process / "statm").read_bytes().split()[1]) * _PAGE_SIZE
        except OSError:
            return None

    def memory_total(self) -> int:
        """Octets of memory that this process could use: the machine's, or its control group's if less."""
        total = os.sysconf("SC_PHYS_PAGES") * _PAGE_SIZE
        return min([total, *self._group_limits()])

    def trim_memory(self) -> None:
        """Give the kernel back what is free inside of this process, between other things."""
        if self._trim is not None:
            self._trim(0)

    def disk_free(self, path: Path) -> int:
        """Octets free for this user on the disk of `path`. OSError if nobody says."""
        disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize

    def _group_limits(self) -> list[int]:
        """The limits of this process's control group and of those that it is in."""
        try:
            lines = (self._process / "cgroup").read_text().splitlines()
        except OSError:
            return []
        limits = []
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            folder = self._groups / "memory" if controllers else self._groups
            # In a container, its own group is mounted as the root, whatever the path says.
            group = folder / path.lstrip("/")
            for place in (group, *group.parents):
                limits += [limit for name in _LIMITS if (limit := _limit(place / name)) is not None]
                if place == folder:
                    break
        return limits


def _limit(file: Path) -> int | None:
    """The number in `file`; None without one, as for "max"."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
