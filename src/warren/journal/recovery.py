"""Reads the file of the metadata, and makes what it says exist."""

from warren.journal.codec import CodecError, decode_entry
from warren.journal.page import BATCH, ENTRY, HEAD_SIZE, NAME, STATE_END, PageError, seed_of
from warren.metadata.commands import Meta, Outcome
from warren.metadata.machine import Metadata
from warren.store.disk import Disk
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.record import encode, is_intact


def recover(disk: Disk, metadata: Metadata) -> list[PageError]:
    """Have in `metadata`, which is empty, what `disk` knows of; what is damaged is left out and returned.

    PageError for a newer format, or a file that is none of ours; OSError from the disk.
    """
    size = disk.names().get(NAME)
    if size is None:
        return []
    octets = disk.read(NAME, 0, size)
    reading = _Reading(octets, metadata)
    metadata.is_replaying = True
    try:
        reading.read()
    finally:
        metadata.is_replaying = False
    return reading.damage


class _Reading:
    """One pass over the file."""

    def __init__(self, octets: bytes, metadata: Metadata) -> None:
        self._octets = octets
        self._metadata = metadata
        self._seed = seed_of(octets[:HEAD_SIZE])
        # The highest place in the log that was seen.
        self._index = 0
        self._is_whole = False
        self.damage: list[PageError] = []

    def read(self) -> None:
        """Apply every entry in order."""
        octets, seed = self._octets, self._seed
        batch = encode(BATCH, b"", seed)
        at = HEAD_SIZE
        while True:
            size = is_intact(octets, at, seed)
            if size:
                self._take(at, size)
                at += size
                continue
            # All before a BATCH was synced, and so was the state before the file had its name.
            synced = octets.find(batch, at + 1)
            if synced >= 0 or not self._is_whole:
                self.damage.append(PageError(at, "a record is damaged"))
            if synced < 0:
                break
            at = synced
        self._metadata.index = self._index

    def _take(self, at: int, size: int) -> None:
        kind = self._octets[at + RECORD_HEAD_SIZE - 1]
        body = self._octets[at + RECORD_HEAD_SIZE : at + size]
        if kind == STATE_END:
            self._is_whole = True
            self._index = max(self._index, int.from_bytes(body, "big"))
        elif kind == ENTRY:
            try:
                index, commands = decode_entry(body)
            except CodecError as error:
                self.damage.append(PageError(at, str(error)))
                return
            self._index = max(self._index, index)
            for command in commands:
                reply = self._metadata.apply(command, Meta(index=index, now=0))
                # In the log there may be what was refused at the time as well.
                if reply.outcome is Outcome.REFUSED and not self._is_whole:
                    self.damage.append(PageError(at, f"{type(command).__name__} is refused: {reply.text}"))
