"""Reads damaged segments: skips unreadable sectors and damaged records."""

import errno
import re

from warren.limits import SALVAGE_FAILURES_MAX, SALVAGE_SEARCH_SIZE_MAX
from warren.store.disk import Disk
from warren.store.record import (
    BATCH,
    CUT,
    DELIVERED,
    ENTRY,
    GROUP,
    HARD,
    HEAD_SIZE,
    KIND_AT,
    MESSAGE,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    SEAL,
    STATE,
    content_size,
    first_reference,
    is_intact,
    reference_count,
    uint32,
)
from warren.store.segment import StoreFileError

# The beginning of a record: no record is so large that the highest byte of its size is not zero.
_CANDIDATE = re.compile(rb"\x00[\x00-\xff]{7}[\x01-\x0a]")
# The size of a MESSAGE record up to its references.
_MESSAGE_SIZE_MIN = first_reference(0)

# Errors of a damaged device, or of a file system with checksums: reading again gives the same error.
_DAMAGED = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
_SECTOR = 4_096
# The filling for unreadable bytes; not zero, since a message of zeros would pass for intact.
_UNREADABLE = b"\xbd"


def is_damage(error: OSError) -> bool:
    """True if `error` means that a part of the device is damaged."""
    return error.errno in _DAMAGED


def read_around_damage(disk: Disk, name: str, size: int) -> tuple[bytes, list[StoreFileError]]:
    """The `size` bytes of the file `name`, with a filling for unreadable parts, and an error for each of
    them.
    """
    try:
        return disk.read(name, 0, size), []
    except OSError as error:
        if not is_damage(error):
            raise
    data = bytearray(_UNREADABLE * size)
    holes: list[tuple[int, int, OSError]] = []
    # Ranges to be read, the first one last. A failed range is halved, so that most of the file is read in
    # large pieces.
    waiting = [(0, size)]
    failures = 0
    while waiting:
        at, end = waiting.pop()
        try:
            data[at:end] = disk.read(name, at, end - at)
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
    return bytes(data), [
        StoreFileError(name, at, f"{end - at} bytes cannot be read: {error.strerror}")
        for at, end, error in holes
    ]


def next_intact_record(data: bytes, at: int, seed: int, end: int) -> int:
    """The place of the first whole record behind the damaged one at `at`, up to `end`; 0 if there is none.

    The search is bounded, since message bodies can be crafted to make it slow; 0 if the bound is reached.
    """
    behind = at + HEAD_SIZE + uint32(data, at) if at + HEAD_SIZE <= len(data) else 0
    if at < behind <= end and is_intact(data, behind, seed):
        # Most often only one record is damaged, and not in its size.
        return behind
    checked = 0
    place = at + 1
    while checked < SALVAGE_SEARCH_SIZE_MAX:
        found = _CANDIDATE.search(data, place, min(end + HEAD_SIZE, len(data)))
        if found is None:
            return 0
        place = found.start()
        if _is_plausible(data, place):
            checked += uint32(data, place)
            if is_intact(data, place, seed):
                return place
        place += 1
    return 0


def damaged_record(name: str, data: bytes, at: int, behind: int) -> StoreFileError:
    """An error for the damaged record at `at` of the file `name`; the next whole record is at `behind`."""
    reason = f"a record is damaged ({behind - at} bytes)"
    if at + HEAD_SIZE + uint32(data, at) != behind:
        return StoreFileError(name, at, reason)
    if data[at + KIND_AT] != MESSAGE:
        return StoreFileError(name, at, reason, messages=0)
    if not _is_plausible(data, at):
        return StoreFileError(name, at, reason, messages=1)
    first = first_reference(at)
    end = first + reference_count(data, at) * REFERENCE_SIZE
    queues = {uint32(data, place) for place in range(first, end, REFERENCE_SIZE)}
    return StoreFileError(name, at, reason, messages=1, queues=tuple(sorted(queues)))


def distribute_losses(damage: list[StoreFileError], messages: int) -> None:
    """Spread the loss of `messages` messages of one file over the errors in `damage` that have no count."""
    left = max(messages - sum(error.messages or 0 for error in damage), 0)
    for error in reversed(damage):
        if error.messages is None:
            error.messages = left
            left = 0


def messages_between(data: bytes, at: int, end: int, seed: int) -> int:
    """The number of messages among the whole records from `at` up to `end`."""
    count = 0
    while at < end:
        size = is_intact(data, at, seed)
        if not size:
            break
        count += data[at + KIND_AT] == MESSAGE
        at += size
    return count


def _is_plausible(data: bytes, at: int) -> bool:
    """True if the head of a record at `at` is plausible."""
    size = uint32(data, at)
    if at + HEAD_SIZE + size > len(data):
        return False
    match data[at + KIND_AT]:
        case k if k == MESSAGE:
            return size + HEAD_SIZE > _MESSAGE_SIZE_MIN and content_size(data, at, HEAD_SIZE + size) > 0
        case k if k == RELEASE:
            return size % RUN_SIZE == 0
        case k if k == DELIVERED:
            return size % REFERENCE_SIZE == 0
        case k if k in (BATCH, SEAL):
            return size == 0
        case k:
            # Of these nothing but the checksum can be verified.
            return k in (GROUP, ENTRY, HARD, STATE, CUT)
