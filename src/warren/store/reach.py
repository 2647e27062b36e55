"""How far a store and the metadata have come, each recorded beside the other, to detect an older copy of one.

    vhosts/<digits>/reach      beside the store:    the last change of the metadata
    metadata/reached/<digits>  beside the metadata: the end of the store

    file │ slot at 0 │ slot at 4096 │ slot at 8192
    slot │ "WRNRCH" │ version u16 │ start u64 │ reached u64 │ checksum u32

`start` counts how often the store was opened. The slots at 0 and 4096 belong to even and odd starts: one is
written and synced by each, so that the other is intact whatever becomes of it. The last slot is written
without a sync while the store is open. Of those that are intact the one that got furthest is valid.

Invariants: what a file says was synced on the other side before. When a store is opened, the file beside it
is written first, before anything in the store is changed, and the one beside the metadata last. So

    beside the store  beside the metadata
    nothing           nothing              never opened by a version with these files
    start n           start n              opened; the store reaches as far as is said here, or it is older
    start n + 1       start n              a crash came between the two writes
    start n or none   start n + 1          the store is an older copy

and the metadata are an older copy if they end before what any store says.
"""

from collections.abc import Callable
from contextlib import suppress
from struct import Struct

import msgspec
from google_crc32c import value as checksum_of

from warren.store.disk import CreateFile, DeleteFile, Disk, DiskStep, SyncDirectory, SyncFile, WriteFile
from warren.store.salvage import is_damage
from warren.store.segment import NewerFormatError, StoreFileError

# The file beside a store, and the directory of the others in that of the metadata.
NAME = "reach"
FOLDER = "reached"

_MAGIC = b"WRNRCH"
_VERSION = 1
_SLOT = Struct(">6sHQQ")
_CHECKSUM_SIZE = 4
_SLOT_STEP = 4096
_NOTED_AT = 2 * _SLOT_STEP
_FILE_SIZE = 3 * _SLOT_STEP


class OlderCopyError(StoreFileError):
    """The store is older than what the metadata have seen of it."""


class StartReach(msgspec.Struct, frozen=True, order=True):
    """A start, and how far the other side had come in it."""

    start: int = 0
    reached: int = 0


class ReachFile:
    """One file that says how far the other side has come."""

    __slots__ = ("_disk", "_is_usable", "_name", "found", "is_damaged", "is_there")

    def __init__(self, disk: Disk, name: str) -> None:
        """Read the file `name`. NewerFormatError for a newer format; OSError from the disk."""
        self._disk = disk
        self._name = name
        data = b""
        self.is_there = name in disk.names()
        if self.is_there:
            try:
                data = disk.read(name, 0, _FILE_SIZE)
            except OSError as error:
                # It is written anew; what it has said is not known any more.
                if not is_damage(error):
                    raise
        self._is_usable = len(data) == _FILE_SIZE
        slots = [_decoded(name, data, at) for at in range(0, len(data), _SLOT_STEP)]
        # True if what it said of the last start may be lost.
        self.is_damaged = self.is_there and (
            not self._is_usable
            or any(slots[at // _SLOT_STEP] is None and any(_slot(data, at)) for at in (0, _SLOT_STEP))
        )
        # What it says; start 0 if there is nothing that can be read.
        self.found = max((slot for slot in slots if slot is not None), default=StartReach())

    def begin(self, reach: StartReach) -> None:
        """Record what is true at the beginning of a start, and sync it. OSError from the disk."""
        name, steps = self._name, list[DiskStep]()
        if not self._is_usable:
            steps += [DeleteFile(name), CreateFile(name, _FILE_SIZE)]
        steps += [WriteFile(name, reach.start % 2 * _SLOT_STEP, [_encoded(reach)]), SyncFile(name)]
        if not self._is_usable:
            steps.append(SyncDirectory())
        self._disk.perform(steps)
        self._is_usable = self.is_there = True
        self.found = reach

    def note(self, reached: int) -> None:
        """Record that the other side has synced more. Errors are ignored: what was recorded stays true."""
        if reached > self.found.reached:
            self.found = StartReach(self.found.start, reached)
            with suppress(OSError):
                self._disk.note(self._name, _NOTED_AT, _encoded(self.found))

    def forget(self) -> None:
        """Record that nothing is known of the other side, in the next start. OSError from the disk."""
        if self.found.reached:
            self.begin(StartReach(self.found.start + 1))


class StoreReach:
    """The two files of one store, while it is opened and used."""

    __slots__ = ("_beside_metadata", "_beside_store", "_index", "_is_known", "_is_older_accepted")

    def __init__(
        self,
        beside_store: ReachFile,
        beside_metadata: ReachFile,
        index: Callable[[], int],
        *,
        is_known: bool = True,
        is_older_accepted: bool = False,
    ) -> None:
        """`index` returns the last change that is synced in the metadata.

        `is_known` is False if the metadata say that there was no such store before.
        """
        self._beside_store = beside_store
        self._beside_metadata = beside_metadata
        self._index = index
        self._is_known = is_known
        self._is_older_accepted = is_older_accepted

    def begin(self, end: int, *, is_damaged: bool) -> list[StoreFileError]:
        """Begin to open the store that was found to reach to `end`, before anything in it is changed.

        Raises OlderCopyError, or returns it if an operator has accepted it. OSError from the disk. If
        `is_damaged`, what is missing is reported already.
        """
        own, other = self._beside_store.found, self._beside_metadata.found
        error = self._fault(end, is_damaged=is_damaged) if self._is_known else None
        if error is not None and not self._is_older_accepted:
            raise error
        self._beside_store.begin(StartReach(max(own.start, other.start) + 1, self._index()))
        return [] if error is None else [error]

    def opened(self, end: int) -> None:
        """Record that the store is open and reaches to `end`, all of which is synced.

        Errors are ignored: the store is then one start ahead, as after a crash.
        """
        with suppress(OSError):
            self._beside_metadata.begin(StartReach(self._beside_store.found.start, end))

    def note(self, end: int) -> None:
        """Record that the store was synced up to `end`, and if that is more, how far the metadata are."""
        if end > self._beside_metadata.found.reached:
            self._beside_metadata.note(end)
            self._beside_store.note(self._index())

    def _fault(self, end: int, *, is_damaged: bool) -> OlderCopyError | None:
        own, other = self._beside_store.found, self._beside_metadata.found
        # An empty store is no copy: it is lost, which is reported as such.
        if not end or is_damaged or self._beside_store.is_damaged:
            return None
        if own.start < other.start:
            what = f"it was opened {own.start} times, and the metadata know of {other.start} times"
        elif own.start == other.start and end < other.reached:
            what = f"it ends at {_place(end)}, and has reached {_place(other.reached)}"
        else:
            return None
        return OlderCopyError(
            NAME, 0,
            f"the directory is an older copy: {what}; restore the newest one, or set stores.accept_older = "
            "true for one start, which continues with what the copy has",
        )  # fmt: skip


def _place(location: int) -> str:
    return f"byte {location & 0xFFFFFFFF} of segment {location >> 32}"


def _encoded(reach: StartReach) -> bytes:
    slot = _SLOT.pack(_MAGIC, _VERSION, reach.start, reach.reached)
    return slot + int(checksum_of(slot)).to_bytes(_CHECKSUM_SIZE, "big")


def _slot(data: bytes, at: int) -> bytes:
    return data[at : at + _SLOT.size + _CHECKSUM_SIZE]


def _decoded(name: str, data: bytes, at: int) -> StartReach | None:
    """What the slot at `at` says; None if it is empty or damaged. NewerFormatError for a newer format."""
    slot = _slot(data, at)
    if len(slot) < _SLOT.size + _CHECKSUM_SIZE or slot[: len(_MAGIC)] != _MAGIC:
        return None
    if checksum_of(slot[: _SLOT.size]) != int.from_bytes(slot[_SLOT.size :], "big"):
        return None
    _, version, start, reached = _SLOT.unpack_from(slot)
    if version > _VERSION:
        text = f"format {version} is newer than {_VERSION}, the newest this version of Warren reads"
        raise NewerFormatError(name, at, text)
    return StartReach(start, reached)
