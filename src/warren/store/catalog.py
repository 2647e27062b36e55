"""The catalog of a store: a file that lists the other files and how far each of them was synced.

    file   │ slot │ slot │ …                      each entry has two slots of 128 bytes, written in turns
    slot   │ "WRNC" │ version u16 │ is kept u8 │ queue count u8 │ sequence u64 │ key u64 │ begin u64 │ end u64
           │ count u64 │ queues, 17 times u32 │ checksum u32 │

An entry describes one file, or the files of one stream, whose number is `key`: everything from `begin` to
`end` was synced, `count` messages of `queues`. Of the two slots the one with the higher sequence is valid; a
torn slot fails its checksum, so that the other one is used.

Invariants: an entry never describes more than was synced when it was written. Before a file is deleted, its
entry is removed and the removal synced in both slots. An entry that grows is not synced: after a power cut it
may describe less than there is, which is harmless; after the end of the process alone it is complete. So
whatever an entry describes and is not found was lost.
"""

from collections.abc import Iterable
from struct import Struct

import msgspec
from google_crc32c import value as checksum_of

from warren.limits import CATALOG_QUEUES_MAX
from warren.store.disk import CreateFile, DeleteFile, Disk, DiskStep, SyncDirectory, SyncFile, WriteFile
from warren.store.salvage import is_damage
from warren.store.segment import NewerFormatError, StoreFileError

VERSION = 1
_MAGIC = b"WRNC"
_FIELDS = Struct(f">4sHBBQQQQQ{CATALOG_QUEUES_MAX}I")
_CHECKSUM_SIZE = 4
_SLOT_SIZE = 128
_SLOTS = 2


class CatalogEntry(msgspec.Struct):
    """What the catalog knows of one segment, or of one stream."""

    begin: int = 0
    end: int = 0
    count: int = 0
    # The numbers of the queues with messages in it; at most as many as fit into a slot.
    queues: tuple[int, ...] = ()


class _SlotPair(msgspec.Struct):
    """The number of an entry's pair of slots, and which of the two is written next."""

    number: int
    next: int = 0


class Catalog:
    """The catalog of one store: an entry for each segment or stream, by key."""

    __slots__ = ("_count", "_disk", "_free", "_name", "_places", "_sequence", "damage", "entries")

    def __init__(self, disk: Disk, name: str) -> None:
        """Read the catalog from the file `name`; create the file if it does not exist or cannot be read."""
        self._disk = disk
        self._name = name
        self.entries: dict[int, CatalogEntry] = {}
        self._places: dict[int, _SlotPair] = {}
        # Pairs of slots that are not in use. The next one is written to first: the other says that the entry
        # was removed, and if the removal was torn it alone does.
        self._free: list[_SlotPair] = []
        self._sequence = 0
        # Errors found while reading.
        self.damage: list[StoreFileError] = []
        data = b""
        size = disk.names().get(name)
        try:
            if size:
                data = disk.read(name, 0, size)
        except OSError as error:
            if not is_damage(error):
                raise
            self.damage.append(
                StoreFileError(name, 0, f"the catalog cannot be used: {error.strerror}", messages=0)
            )
            size = None
        if data:
            # It may have been read from the page cache after a failed sync: pairs of slots whose removal is
            # not on the device must not be used for others. If that fails, the start does; the file stays.
            disk.perform([WriteFile(name, 0, [data]), SyncFile(name)])
        if size is None:
            disk.perform([DeleteFile(name), CreateFile(name, 0), SyncDirectory()])
        self._count = -(-len(data) // (_SLOT_SIZE * _SLOTS))
        self._read(data)

    def note(self, key: int, entry: CatalogEntry) -> None:
        """Record that what `entry` describes was synced. Errors are ignored: the old entry stays valid."""
        at, data = self._turn(key, entry, True)
        self.entries[key] = entry
        try:
            self._disk.note(self._name, at, data)
        except OSError:
            return

    def put(self, key: int, entry: CatalogEntry) -> list[DiskStep]:
        """The steps that replace the entry of `key`; the new entry may describe less than the old one."""
        self.entries[key] = entry
        return [*self._both(key, entry, is_kept=True), SyncFile(self._name)]

    def remove(self, keys: Iterable[int]) -> list[DiskStep]:
        """The steps that remove the entries of `keys`; their files may be deleted after these steps."""
        steps: list[DiskStep] = []
        for key in keys:
            if key in self._places:
                steps += self._both(key, self.entries.pop(key), is_kept=False)
                self._free.append(self._places.pop(key))
        return [*steps, SyncFile(self._name)] if steps else []

    def _both(self, key: int, entry: CatalogEntry, *, is_kept: bool) -> list[DiskStep]:
        """The steps that write both slots of `key`, so that a later torn write cannot reveal an old entry."""
        turns = [self._turn(key, entry, is_kept) for _ in range(_SLOTS)]
        return [WriteFile(self._name, at, [data]) for at, data in turns]

    def _turn(self, key: int, entry: CatalogEntry, is_kept: bool) -> tuple[int, bytes]:
        """The place of the next slot of `key` and its encoded content."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._free.pop() if self._free else _SlotPair(self._added())
        at = (place.number * _SLOTS + place.next) * _SLOT_SIZE
        place.next = 1 - place.next
        self._sequence += 1
        known = entry.queues[:CATALOG_QUEUES_MAX]
        fields = _FIELDS.pack(
            _MAGIC, VERSION, is_kept, len(known), self._sequence, key, entry.begin, entry.end, entry.count,
            *known, *(0,) * (CATALOG_QUEUES_MAX - len(known)),
        )  # fmt: skip
        data = fields.ljust(_SLOT_SIZE - _CHECKSUM_SIZE, b"\0")
        return at, data + int(checksum_of(data)).to_bytes(_CHECKSUM_SIZE, "big")

    def _added(self) -> int:
        self._count += 1
        return self._count - 1

    def _read(self, data: bytes) -> None:
        for number in range(self._count):
            latest: tuple[int, int, int, CatalogEntry | None] | None = None
            for turn in range(_SLOTS):
                at = (number * _SLOTS + turn) * _SLOT_SIZE
                slot = _decoded(self._name, at, data[at : at + _SLOT_SIZE])
                if slot is not None and (latest is None or slot[0] > latest[0]):
                    latest = (slot[0], turn, slot[1], slot[2])
            if latest is None:
                self._free.append(_SlotPair(number))
                continue
            sequence, turn, key, entry = latest
            self._sequence = max(self._sequence, sequence)
            if entry is None:
                self._free.append(_SlotPair(number, 1 - turn))
            else:
                self._places[key] = _SlotPair(number, 1 - turn)
                self.entries[key] = entry


def _decoded(name: str, at: int, data: bytes) -> tuple[int, int, CatalogEntry | None] | None:
    """Sequence, key and entry of a slot; the entry is None if it was removed. None if the slot is torn."""
    if len(data) < _SLOT_SIZE or data[: len(_MAGIC)] != _MAGIC:
        return None
    if checksum_of(data[:-_CHECKSUM_SIZE]) != int.from_bytes(data[-_CHECKSUM_SIZE:], "big"):
        return None
    _, version, is_kept, known, sequence, key, begin, end, count, *queues = _FIELDS.unpack_from(data)
    if version > VERSION:
        text = f"format {version} is newer than {VERSION}, the newest this version of Warren reads"
        raise NewerFormatError(name, at, text)
    return sequence, key, CatalogEntry(begin, end, count, tuple(queues[:known])) if is_kept else None
