"""A file beside the segments with an upper bound of the delivered positions of each queue and priority level.

    file   │ head │ entry │ entry │ …                16 bytes each
    head   │ "WRNDLV" │ version u16 │ 4 zeros │ checksum u32 │
    entry  │ queue u32 │ position u64 │ checksum u32 │

All messages before `position`, whose highest byte is the priority level as in a record, may have been
delivered. An entry is written, but not synced, before the first delivery that it covers is sent: it survives
the end of the process in every case. After a power cut it may be missing or old; then the DELIVERED records
in the log apply.

A write for each delivery would cost as much as the delivery itself, so the entry of a busy queue is written
ahead: each time by twice as many positions, reduced to a quarter with each batch if it was large, which makes
two writes per batch at most. When no batch is in progress the entry is written back to the exact position, so
that it is exact for an idle queue.
"""

from contextlib import suppress
from struct import Struct

from google_crc32c import value as checksum_of

from warren.limits import DELIVERED_AHEAD_MAX
from warren.store.cursor import QueueCursor
from warren.store.disk import CreateFile, Disk, SyncDirectory, SyncFile, WriteFile
from warren.store.salvage import is_damage
from warren.store.segment import NewerFormatError, StoreFileError

NAME = "delivered"
VERSION = 1

_MAGIC = b"WRNDLV"
_HEAD = Struct(">6sH4x")
_ENTRY = Struct(">IQ")
_CHECKSUM_SIZE = 4
_ENTRY_SIZE = _ENTRY.size + _CHECKSUM_SIZE
_EMPTY = bytes(_ENTRY_SIZE)
_FILE_SIZE = 4096
_LEVEL_SHIFT = 56
_AHEAD_MAX = DELIVERED_AHEAD_MAX


class Delivered:
    """The delivered positions of one store, by queue and priority level."""

    __slots__ = ("_ahead", "_count", "_disk", "_found", "_free", "_places", "damage")

    def __init__(self, disk: Disk) -> None:
        """Read the file; create it if it does not exist or cannot be read."""
        self._disk = disk
        # Errors found while reading.
        self.damage: list[StoreFileError] = []
        # (number of the queue, priority level) -> the place of its entry; and places that are free.
        self._places: dict[tuple[int, int], int] = {}
        self._free: list[int] = []
        # Positions read from the file, of queues that are not restored yet.
        self._found: dict[tuple[int, int], int] = {}
        # Cursors whose entries are ahead of what was delivered; an ordered set.
        self._ahead: dict[QueueCursor, None] = {}
        data = self._read()
        self._count = max(len(data) // _ENTRY_SIZE, 1)
        for place in range(1, self._count):
            entry = data[place * _ENTRY_SIZE : (place + 1) * _ENTRY_SIZE]
            if not _is_whole(entry):
                self._free.append(place)
                continue
            queue, position = _ENTRY.unpack_from(entry)
            key = queue, position >> _LEVEL_SHIFT
            position -= key[1] << _LEVEL_SHIFT
            if key in self._found:
                # One of the two was to be cleared, and the write was lost.
                self._free.append(place)
            else:
                self._places[key] = place
            self._found[key] = max(position, self._found.get(key, 0))
        self._free.reverse()

    def restore(self, cursor: QueueCursor, end: int) -> int:
        """Restore and return the delivered position of `cursor`, in which no position from `end` on was used.

        New messages get positions from `end` on, and were never delivered.
        """
        noted = self._found.pop((cursor.queue, cursor.level), 0)
        if min(noted, end) > cursor.delivered_up_to:
            cursor.delivered_up_to = min(noted, end)
            # Written to the log as well with the next batch.
            cursor.is_delivered_dirty = True
        cursor.reserved = cursor.delivered_up_to
        if noted > end:
            self._note(cursor, cursor.delivered_up_to)
        return cursor.delivered_up_to

    def forget_rest(self) -> None:
        """Clear the entries of queues that were not restored."""
        for key in self._found:
            place = self._places.pop(key)
            self._free.append(place)
            with suppress(OSError):
                self._disk.note(NAME, place * _ENTRY_SIZE, _EMPTY)
        self._found.clear()

    def reserve(self, cursor: QueueCursor) -> None:
        """Write an entry for `cursor` that covers its delivered position, and some more if it is busy.

        Errors are ignored; the next delivery tries again. Until then fewer messages are known as delivered.
        """
        if cursor.is_dropped:
            return
        ahead = cursor.ahead
        if not self._note(cursor, cursor.delivered_up_to + ahead - 1):
            return
        if ahead > 1:
            self._ahead[cursor] = None
        cursor.ahead = min(2 * ahead, _AHEAD_MAX)

    def take_back(self) -> None:
        """Write exact entries for all cursors that are ahead; called when no batch is in progress."""
        while self._ahead:
            cursor = self._ahead.popitem()[0]
            cursor.ahead = 1
            if cursor.reserved > cursor.delivered_up_to and not cursor.is_dropped:
                self._note(cursor, cursor.delivered_up_to)

    def drop(self, cursor: QueueCursor) -> None:
        """Free the entry of `cursor`, whose queue was deleted."""
        place = self._places.pop((cursor.queue, cursor.level), None)
        if place is not None:
            self._free.append(place)

    def _note(self, cursor: QueueCursor, position: int) -> bool:
        """Write that positions of `cursor` before `position` may have been delivered; False on failure."""
        place = self._places.get((cursor.queue, cursor.level))
        if place is None:
            place = self._places[cursor.queue, cursor.level] = (
                self._free.pop() if self._free else self._added()
            )
        data = _with_checksum(_ENTRY.pack(cursor.queue, cursor.key | position))
        try:
            self._disk.note(NAME, place * _ENTRY_SIZE, data)
        except OSError:
            return False
        cursor.reserved = position
        return True

    def _added(self) -> int:
        self._count += 1
        return self._count - 1

    def _read(self) -> bytes:
        """The bytes of the file, whose head is valid afterwards."""
        head = _with_checksum(_HEAD.pack(_MAGIC, VERSION))
        size = self._disk.names().get(NAME)
        data = b""
        try:
            if size:
                data = self._disk.read(NAME, 0, size)
        except OSError as error:
            if not is_damage(error):
                raise
            reason = f"the delivered positions cannot be read: {error.strerror}"
            self.damage.append(StoreFileError(NAME, 0, reason, messages=0))
        found = data[:_ENTRY_SIZE]
        if found == head:
            return data
        if _is_whole(found):
            magic, version = _HEAD.unpack_from(found)
            if magic == _MAGIC and version > VERSION:
                raise NewerFormatError(
                    NAME,
                    0,
                    f"format {version} is newer than {VERSION}, the newest this version of Warren reads",
                )
        # Torn when the file was created, or damaged: each entry is valid by itself.
        steps = [] if data else [CreateFile(NAME, _FILE_SIZE)]
        self._disk.perform([*steps, WriteFile(NAME, 0, [head]), SyncFile(NAME), SyncDirectory()])
        return data or bytes(_FILE_SIZE)


def _with_checksum(data: bytes) -> bytes:
    return data + int(checksum_of(data)).to_bytes(_CHECKSUM_SIZE, "big")


def _is_whole(entry: bytes) -> bool:
    """True if the checksum at the end of `entry` is right."""
    return len(entry) == _ENTRY_SIZE and entry == _with_checksum(entry[: _ENTRY.size])
