"""Reads a segment of which something is damaged: around sectors, and records, that are not what they were."""

import errno
import re

from warren.limits import SALVAGE_FAILURES_MAX, SALVAGE_SEARCH_SIZE_MAX
from warren.store.disk import Disk
from warren.store.record import (
    BATCH,
    DELIVERED,
    GROUP,
    HEAD_SIZE,
    KIND_AT,
    MESSAGE,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    SEAL,
    content_size,
    first_reference,
    is_intact,
    reference_count,
    uint32,
)
from warren.store.segment import StoreFileError

# What a record may begin with: none is so large that its size has a fourth octet.
_CANDIDATE = re.compile(rb"\x00[\x00-\xff]{7}[\x01-\x06]")
# What a MESSAGE has before its references, with its head.
_MESSAGE_SIZE_MIN = first_reference(0)

# What a device answers, or a file system that checks what it reads: asking again gives the same.
_DAMAGED = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
_SECTOR = 4_096
# What stands for an octet that cannot be read: no zero, as there are messages of zeros, which would pass for
# intact.
_UNREADABLE = b"\xbd"


def is_damage(error: OSError) -> bool:
    """Whether `error` says that a place on the device is damaged."""
    return error.errno in _DAMAGED


def read_around_damage(disk: Disk, name: str, size: int) -> tuple[bytes, list[StoreFileError]]:
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
        StoreFileError(name, at, f"{end - at} octets cannot be read: {error.strerror}")
        for at, end, error in holes
    ]


def next_intact_record(octets: bytes, at: int, seed: int, end: int) -> int:
    """Where the first whole record behind the damaged one at `at` begins, not behind `end`; 0 if none does.

    None does either if that takes too long, as where bodies were made for it.
    """
    behind = at + HEAD_SIZE + uint32(octets, at) if at + HEAD_SIZE <= len(octets) else 0
    if at < behind <= end and is_intact(octets, behind, seed):
        # Most often only one record is damaged, and its size is not.
        return behind
    checked = 0
    place = at + 1
    while checked < SALVAGE_SEARCH_SIZE_MAX:
        found = _CANDIDATE.search(octets, place, min(end + HEAD_SIZE, len(octets)))
        if found is None:
            return 0
        place = found.start()
        if _is_plausible(octets, place):
            checked += uint32(octets, place)
            if is_intact(octets, place, seed):
                return place
        place += 1
    return 0


def damaged_record(name: str, octets: bytes, at: int, behind: int) -> StoreFileError:
    """What is known of the record at `at` of `name`, which is damaged; the next whole one is at `behind`."""
    reason = f"a record is damaged ({behind - at} octets)"
    if at + HEAD_SIZE + uint32(octets, at) != behind:
        return StoreFileError(name, at, reason)
    if octets[at + KIND_AT] != MESSAGE:
        return StoreFileError(name, at, reason, messages=0)
    if not _is_plausible(octets, at):
        return StoreFileError(name, at, reason, messages=1)
    first = first_reference(at)
    end = first + reference_count(octets, at) * REFERENCE_SIZE
    queues = {uint32(octets, place) for place in range(first, end, REFERENCE_SIZE)}
    return StoreFileError(name, at, reason, messages=1, queues=tuple(sorted(queues)))


def distribute_losses(damage: list[StoreFileError], messages: int) -> None:
    """Of one file `messages` are lost by all of `damage`: those whose share is not known have the rest."""
    left = max(messages - sum(error.messages or 0 for error in damage), 0)
    for error in reversed(damage):
        if error.messages is None:
            error.messages = left
            left = 0


def messages_between(octets: bytes, at: int, end: int, seed: int) -> int:
    """How many messages there are among the whole records from `at` up to `end`."""
    count = 0
    while at < end:
        size = is_intact(octets, at, seed)
        if not size:
            break
        count += octets[at + KIND_AT] == MESSAGE
        at += size
    return count


def _is_plausible(octets: bytes, at: int) -> bool:
    """Whether there may be a record at `at`, by what its head says."""
    size = uint32(octets, at)
    if at + HEAD_SIZE + size > len(octets):
        return False
    match octets[at + KIND_AT]:
        case k if k == MESSAGE:
            return size + HEAD_SIZE > _MESSAGE_SIZE_MIN and content_size(octets, at, HEAD_SIZE + size) > 0
        case k if k == RELEASE:
            return size % RUN_SIZE == 0
        case k if k == DELIVERED:
            return size % REFERENCE_SIZE == 0
        case k if k in (BATCH, SEAL):
            return size == 0
        case k:
            return k == GROUP
