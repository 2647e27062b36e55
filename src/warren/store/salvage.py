"""Reads a file of which the device does not give back every sector."""

import errno

from warren.limits import SALVAGE_FAILURES_MAX
from warren.store.disk import Disk
from warren.store.segment import SegmentError

# What a device answers, or a file system that checks what it reads: asking again gives the same.
_DAMAGED = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
_SECTOR = 4_096
# What stands for an octet that cannot be read: no zero, as there are messages of zeros, which would pass for
# intact.
_UNREADABLE = b"\xbd"


def is_damage(error: OSError) -> bool:
    """Whether `error` says that a place on the device is damaged."""
    return error.errno in _DAMAGED


def salvaged(disk: Disk, name: str, size: int) -> tuple[bytes, list[SegmentError]]:
    """The `size` octets of `name`, with a filling for what the device does not give back, and where."""
    try:
        return disk.read(name, 0, size), []
    except OSError as error:
        if not is_damage(error):
            raise
    octets = bytearray(_UNREADABLE * size)
    holes: list[tuple[int, int, OSError]] = []
    # What is to be read, the first at the end; what fails is halved, so most of it is read in large pieces.
    waiting = [(0, size)]
    failures = 0
    while waiting:
        at, end = waiting.pop()
        try:
            octets[at:end] = disk.read(name, at, end - at)
        except OSError as error:
            if not is_damage(error):
                raise
            failures += 1
            if end - at > _SECTOR and failures < SALVAGE_FAILURES_MAX:
                middle = (at + end) // 2 // _SECTOR * _SECTOR
                waiting += [(middle, end), (at, middle)]
            elif holes and holes[-1][1] == at:
                holes[-1] = (holes[-1][0], end, error)
            else:
                holes.append((at, end, error))
    return bytes(octets), [
        SegmentError(name, at, f"{end - at} octets cannot be read: {error.strerror}")
        for at, end, error in holes
    ]
