"""The memory used by this process, its limit, and free disk space."""

import ctypes
import os
from pathlib import Path

_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# The memory limits of control groups: version 2, and version 1.
_LIMITS = ("memory.max", "memory.limit_in_bytes")
# Parameters of glibc's `mallopt`, and their values: blocks of this size are returned to the kernel when they
# are freed, and what is free at the end of a heap when it is larger than that.
_MMAP_THRESHOLD, _LARGE_BLOCK = -3, 16 << 20
_TRIM_THRESHOLD, _HEAP_END = -1, 32 << 20


def return_large_blocks() -> None:
    """Let the allocator return large blocks to the kernel as soon as they are freed.

    By itself it keeps blocks of a size that was freed before, for each thread: six threads that have hashed
    passwords would keep 117 MiB, which `trim_memory` does not reach.
    """
    # Only in glibc.
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, _LARGE_BLOCK)
        set_option(_TRIM_THRESHOLD, _HEAP_END)


class Machine:
    """The machine as described by the kernel; `root` is the root of its files."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._process = root / "proc" / "self"
        self._groups = root / "sys" / "fs" / "cgroup"
        # Only in glibc; other libraries release memory by themselves, or not at all.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def memory_used(self) -> int | None:
        """The resident memory of this process in bytes; None if it is not known."""
        try:
            return int((self._process / "statm").read_bytes().split()[1]) * _PAGE_SIZE
        except OSError:
            return None

    def memory_total(self) -> int:
        """The memory of the machine in bytes, or the limit of the control group if that is lower."""
        total = os.sysconf("SC_PHYS_PAGES") * _PAGE_SIZE
        return min([total, *self._group_limits()])

    def trim_memory(self) -> None:
        """Return free memory inside this process to the kernel."""
        if self._trim is not None:
            self._trim(0)

    def disk_free(self, path: Path) -> int:
        """The free bytes for this user on the disk of `path`. OSError if they are not known."""
        disk = os.statvfs(path)
        return disk.f_bavail * disk.f_frsize

    def _group_limits(self) -> list[int]:
        """The limits of this process's control group and of its parents."""
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
            # In a container its own group is mounted as the root, whatever the path is.
            group = folder / path.lstrip("/")
            for place in (group, *group.parents):
                limits += [limit for name in _LIMITS if (limit := _limit(place / name)) is not None]
                if place == folder:
                    break
        return limits


def _limit(file: Path) -> int | None:
    """The number in `file`; None if there is none, as for "max"."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
