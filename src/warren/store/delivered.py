"""A file beside the segments that says how much of each lane may have been handed out.

    file   │ head │ entry │ entry │ …                16 octets each
    head   │ "WRNDLV" │ version u16 │ 4 zeros │ checksum u32 │
    entry  │ queue u32 │ position u64 │ checksum u32 │

All before `position`, which has the priority level in its highest octet as in a record, may have been handed
out. An entry is written before the first delivery that it speaks of reaches a socket, and is not synced: so
it is there when the process alone has ended, in whatever way. After a power cut it may say less, or what it
said before, and what REACHED records say counts.

One write for each delivery would cost as much as the delivery, so an entry goes ahead of a lane that is busy:
by twice as many positions each time, and a quarter of that after each batch, if that was more than a few,
which makes two writes for each batch at most. What it is ahead is taken back when nothing is under way, so
that of an idle lane it is exact.
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


class Delivered:
    """The entries of one store."""

    __slots__ = ("_ahead", "_count", "_disk", "_found", "_free", "_places", "damage")

    def __init__(self, disk: Disk) -> None:
        """What stands in the file, which is made if it is not there, or cannot be read."""
        self._disk = disk
        # What was wrong with it.
        self.damage: list[StoreFileError] = []
        # (number of a queue, priority level) -> the place of its entry; and places that nobody has.
        self._places: dict[tuple[int, int], int] = {}
        self._free: list[int] = []
        # What was found, of lanes that are not back yet.
        self._found: dict[tuple[int, int], int] = {}
        # Lanes whose entries say more than was handed out; an ordered set.
        self._ahead: dict[QueueCursor, None] = {}
        octets = self._read()
        self._count = max(len(octets) // _ENTRY_SIZE, 1)
        for place in range(1, self._count):
            entry = octets[place * _ENTRY_SIZE : (place + 1) * _ENTRY_SIZE]
            if not _is_whole(entry):
                self._free.append(place)
                continue
            queue, position = _ENTRY.unpack_from(entry)
            key = queue, position >> _LEVEL_SHIFT
            position -= key[1] << _LEVEL_SHIFT
            if key in self._found:
                # One of the two was to be emptied, and that is not on the disk.
                self._free.append(place)
            else:
                self._places[key] = place
            self._found[key] = max(position, self._found.get(key, 0))
        self._free.reverse()

    def restore(self, cursor: QueueCursor, end: int) -> int:
        """`cursor` is back, in which no position from `end` on was used; answers what it has reached.

        Also what comes now has positions from `end` on, and was never handed out.
        """
        noted = self._found.pop((cursor.queue, cursor.level), 0)
        if min(noted, end) > cursor.delivered_up_to:
            cursor.delivered_up_to = min(noted, end)
            # To be in the log, too, from the next batch on.
            cursor.is_delivered_dirty = True
        cursor.reserved = cursor.delivered_up_to
        if noted > end:
            self._note(cursor, cursor.delivered_up_to)
        return cursor.delivered_up_to

    def forget_rest(self) -> None:
        """What was found of lanes that are not back is of nobody."""
        for key in self._found:
            place = self._places.pop(key)
            self._free.append(place)
            with suppress(OSError):
                self._disk.note(NAME, place * _ENTRY_SIZE, _EMPTY)
        self._found.clear()

    def reserve(self, cursor: QueueCursor) -> None:
        """What `cursor` has reached is about to be handed out: have it noted, and some more.

        If that fails nobody is told, and the next delivery tries again: then less is known.
        """
        if cursor.is_dropped:
            return
        ahead = cursor.ahead
        if not self._note(cursor, cursor.delivered_up_to + ahead - 1):
            return
        if ahead > 1:
            self._ahead[cursor] = None
        cursor.ahead = min(2 * ahead, DELIVERED_AHEAD_MAX)

    def take_back(self) -> None:
        """No batch is under way: no entry need be ahead."""
        while self._ahead:
            cursor, _ = self._ahead.popitem()
            cursor.ahead = 1
            if cursor.reserved > cursor.delivered_up_to and not cursor.is_dropped:
                self._note(cursor, cursor.delivered_up_to)

    def drop(self, cursor: QueueCursor) -> None:
        """The queue of `cursor` is gone: another may have the place of its entry."""
        place = self._places.pop((cursor.queue, cursor.level), None)
        if place is not None:
            self._free.append(place)

    def _note(self, cursor: QueueCursor, position: int) -> bool:
        """Write that all of `cursor` before `position` may have been handed out; False if that failed."""
        place = self._places.get((cursor.queue, cursor.level))
        if place is None:
            place = self._places[cursor.queue, cursor.level] = (
                self._free.pop() if self._free else self._added()
            )
        octets = _with_checksum(_ENTRY.pack(cursor.queue, cursor.key | position))
        try:
            self._disk.note(NAME, place * _ENTRY_SIZE, octets)
        except OSError:
            return False
        cursor.reserved = position
        return True

    def _added(self) -> int:
        self._count += 1
        return self._count - 1

    def _read(self) -> bytes:
        """The octets of the file, which has a head then."""
        head = _with_checksum(_HEAD.pack(_MAGIC, VERSION))
        size = self._disk.names().get(NAME)
        octets = b""
        try:
            if size:
                octets = self._disk.read(NAME, 0, size)
        except OSError as error:
            if not is_damage(error):
                raise
            reason = f"what was handed out cannot be read: {error.strerror}"
            self.damage.append(StoreFileError(NAME, 0, reason, messages=0))
        found = octets[:_ENTRY_SIZE]
        if found == head:
            return octets
        if _is_whole(found):
            magic, version = _HEAD.unpack_from(found)
            if magic == _MAGIC and version > VERSION:
                text = f"format {version} is newer than {VERSION}, the newest that this version reads"
                raise NewerFormatError(NAME, 0, text)
        # Torn when the file was made, or damaged: each entry stands for itself.
        steps = [] if octets else [CreateFile(NAME, _FILE_SIZE)]
        self._disk.perform([*steps, WriteFile(NAME, 0, [head]), SyncFile(NAME), SyncDirectory()])
        return octets or bytes(_FILE_SIZE)


def _with_checksum(octets: bytes) -> bytes:
    return octets + int(checksum_of(octets)).to_bytes(_CHECKSUM_SIZE, "big")


def _is_whole(entry: bytes) -> bool:
    """Whether the checksum behind `entry`, the last of its octets, is right."""
    return len(entry) == _ENTRY_SIZE and entry == _with_checksum(entry[: _ENTRY.size])
