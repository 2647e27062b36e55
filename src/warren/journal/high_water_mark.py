"""The high-water mark: how far the metadata log was synced, in a second file, to detect a lost end of the
log.

    file │ slot at 0 │ slot at 4096
    slot │ "WRNHWM" │ version u16 │ sequence u64 │ log id 8 │ generation u64 │ end u64 │ index u64
         │ last number u64 │ checksum u32 │

The slot with the highest sequence is valid. It states that the file of the log with this id and generation
was synced up to the byte `end`, where `index` was the last change and no queue had a number in the stores
above the last number; before version 2 there was none, and a number was the index of a change. The id never
changes during the life of the log; the generation increases each time a snapshot is written to a new file.

Invariants: a slot is written after the sync that it describes, so it is never ahead of the log, whatever a
power cut destroys. The slot that was synced last is not overwritten before the other one is synced, so one
slot is always intact. The mark is written with each batch, and synced once a second: whatever a killed
process had answered is covered; answers in the last second before a power cut need not be.
"""

from collections.abc import Callable, Iterator
from struct import Struct

import msgspec
from google_crc32c import value as checksum_of

from warren.store.disk import CreateFile, Disk, DiskStep, RenameFile, SyncDirectory, SyncFile, WriteFile

NAME = "high-water-mark"
UNFINISHED_NAME = "high-water-mark.new"
LOG_ID_SIZE = 8

_MAGIC = b"WRNHWM"
_VERSION = 2
_SLOT = Struct(">6sHQ8sQQQQ")
_SLOT_1 = Struct(">6sHQ8sQQQ")
_VERSION_AT = 6
_CHECKSUM_SIZE = 4
_SLOTS = (0, 4096)
_FILE_SIZE = 8192


class HighWaterMark(msgspec.Struct, frozen=True, kw_only=True):
    """A position that the log had certainly reached."""

    log_id: bytes
    # 0 before the log has its first file.
    generation: int = 0
    end: int = 0
    index: int = 0
    # No queue that survives a restart has a higher number.
    number: int = 0


class HighWaterMarkFile:
    """Writes the high-water mark to its file, so that one slot is always intact."""

    __slots__ = ("_is_made", "_sequence", "_slot", "found", "is_dirty")

    def __init__(self, data: bytes | None) -> None:
        """The file with the content `data`; None if there is no file."""
        slots = [] if data is None else [(_decoded(data, at), slot) for slot, at in enumerate(_SLOTS)]
        whole = [(*found, slot) for found, slot in slots if found is not None]
        # The mark that was read; None if there is none that can be read.
        self.found: HighWaterMark | None = None
        self._sequence = 0
        self._slot = 0
        if whole:
            self._sequence, self.found, newest = max(whole, key=lambda row: row[0])
            self._slot = 1 - newest
        self._is_made = bool(whole)
        # True if something was written that was not synced.
        self.is_dirty = False

    @classmethod
    def read(cls, disk: Disk) -> "HighWaterMarkFile":
        """Read the file from `disk`. OSError from the disk."""
        names = disk.names()
        return cls(disk.read(NAME, 0, _FILE_SIZE) if NAME in names else None)

    def begin(self, log_id: bytes) -> list[DiskStep]:
        """The steps that create the file, or sync an existing one.

        Performed before the log that it describes exists.
        """
        if self._is_made:
            return [SyncFile(NAME)]
        slot = _encoded(HighWaterMark(log_id=log_id), 0)
        new = UNFINISHED_NAME
        self._sequence, self._slot = 0, 1
        return [
            CreateFile(new, _FILE_SIZE),
            WriteFile(new, _SLOTS[0], [slot]),
            SyncFile(new),
            RenameFile(new, NAME),
            SyncDirectory(),
        ]

    def write(self, make: Callable[[], HighWaterMark]) -> DiskStep:
        """The step that writes the mark that `make` returns at that time, to the slot that was not synced
        last.
        """
        self._sequence += 1
        self.is_dirty = True
        return WriteFile(NAME, _SLOTS[self._slot], _Slot(make, self._sequence))

    def sync(self) -> DiskStep:
        """The step that syncs the file; `synced` must be called when it is done."""
        return SyncFile(NAME)

    def synced(self) -> None:
        """Record that everything written was synced: the next write goes to the other slot."""
        self._is_made = True
        if self.is_dirty:
            self._slot = 1 - self._slot
            self.is_dirty = False


class _Slot:
    """The bytes of a slot, made when they are written."""

    __slots__ = ("_make", "_sequence")

    def __init__(self, make: Callable[[], HighWaterMark], sequence: int) -> None:
        self._make = make
        self._sequence = sequence

    def __iter__(self) -> Iterator[bytes]:
        yield _encoded(self._make(), self._sequence)


def _encoded(mark: HighWaterMark, sequence: int) -> bytes:
    slot = _SLOT.pack(
        _MAGIC, _VERSION, sequence, mark.log_id, mark.generation, mark.end, mark.index, mark.number
    )
    checksum: int = checksum_of(slot)
    return slot + checksum.to_bytes(_CHECKSUM_SIZE, "big")


def _decoded(data: bytes, at: int) -> tuple[int, HighWaterMark] | None:
    """The sequence and the mark of the slot at `at`; None if it is damaged, or of another version."""
    version = int.from_bytes(data[at + _VERSION_AT : at + _VERSION_AT + 2], "big")
    form = _SLOT_1 if version == 1 else _SLOT
    slot = data[at : at + form.size + _CHECKSUM_SIZE]
    if len(slot) < form.size + _CHECKSUM_SIZE:
        return None
    if checksum_of(slot[: form.size]) != int.from_bytes(slot[form.size :], "big"):
        return None
    magic, version, sequence, log_id, generation, end, index, *number = form.unpack_from(slot)
    if magic != _MAGIC or version > _VERSION:
        return None
    return sequence, HighWaterMark(
        log_id=log_id, generation=generation, end=end, index=index, number=number[0] if number else index
    )
