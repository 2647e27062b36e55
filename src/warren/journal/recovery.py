"""Reads the file of the metadata, and makes what it says exist.

A torn end is no loss: nothing of it was answered. Whether the end is torn or lost is told by the high-water
mark, which says how far the log was synced: a log that ends before it, or is not there, or is another one
than it speaks of, has lost something.
"""

from dataclasses import dataclass, field

from warren.journal.codec import CodecError, decode_entry
from warren.journal.file_format import (
    BATCH,
    ENTRY,
    HEAD_SIZE,
    NAME,
    ORIGIN,
    STATE_END,
    JournalError,
    seed_of,
    version_of,
)
from warren.journal.high_water_mark import LOG_ID_SIZE, HighWaterMark, HighWaterMarkFile
from warren.journal.high_water_mark import NAME as MARK_NAME
from warren.limits import JOURNAL_SKIPPED_NUMBERS
from warren.metadata.commands import CommandContext, DoubtNumbers, Outcome
from warren.metadata.machine import Metadata
from warren.store.disk import Disk
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.record import encode, is_intact

# The first format whose writer keeps a high-water mark.
_MARKED_SINCE = 5


class JournalLossError(JournalError):
    """The log is not all there: where it ends, and what is missing."""

    def __init__(self, at: int, reason: str, *, is_end: bool = False) -> None:
        super().__init__(at, reason)
        # True if the right file is there, and only its end is lost.
        self.is_end = is_end


@dataclass(kw_only=True)
class RecoveredLog:
    """What was found of the log."""

    # The file of the mark, from which the journal goes on.
    mark: HighWaterMarkFile
    # None: there is no file, or one that does not say.
    log_id: bytes | None = None
    generation: int = 0
    version: int = 0
    # Whether there is a file, where its last intact record ends, and the last change in it.
    is_there: bool = False
    end: int = 0
    index: int = 0
    # What cannot be read before its end.
    damage: list[JournalError] = field(default_factory=list)
    # What is missing of it; None if it is all there.
    loss: JournalLossError | None = None


def recover(disk: Disk, metadata: Metadata) -> RecoveredLog:
    """Have in `metadata`, which is empty, what `disk` knows of; what is damaged is left out and told.

    PageError for a newer format, or a file that is none of ours; OSError from the disk.
    """
    found = RecoveredLog(mark=HighWaterMarkFile.read(disk))
    size = disk.names().get(NAME)
    if size is not None:
        read_log(disk.read(NAME, 0, size), metadata, found)
    found.loss = find_loss(found, is_mark_there=MARK_NAME in disk.names())
    return found


def read_log(octets: bytes, metadata: Metadata, found: RecoveredLog) -> None:
    """Have in `metadata` what the file with these `octets` says; `found` is told what it is."""
    metadata.is_replaying = True
    try:
        _JournalReader(octets, metadata, found).read()
    finally:
        metadata.is_replaying = False


def doubt_numbers(metadata: Metadata, found: RecoveredLog, number_max: int = 0) -> None:
    """Go on without what is missing: what had a number up to there, or up to `number_max`, is in doubt."""
    mark = found.mark.found
    until = max(metadata.index, mark.index if mark is not None else 0, number_max) + JOURNAL_SKIPPED_NUMBERS
    metadata.apply(DoubtNumbers(until=until), CommandContext(index=metadata.index, now=0))


def find_loss(found: RecoveredLog, *, is_mark_there: bool) -> JournalLossError | None:
    """What is missing of the log that was `found`, as the mark knows it."""
    mark = found.mark.found
    if mark is None:
        if not found.is_there or (found.version < _MARKED_SINCE and not is_mark_there):
            return None
        what = "is damaged" if is_mark_there else "is missing"
        return JournalLossError(found.end, f"nobody knows whether this is its end: {MARK_NAME} {what}")
    if not mark.generation:
        # It was made before the first file of the log, which may have been made since, or be an older one's.
        return None
    reach = f"byte {mark.end} (change {mark.index})"
    if not found.is_there:
        return JournalLossError(0, f"the file is missing, and reached {reach}")
    return _lost_end(found, mark, reach)


def _lost_end(found: RecoveredLog, mark: HighWaterMark, reach: str) -> JournalLossError | None:
    if found.log_id is None and found.version >= _MARKED_SINCE:
        # Which file it is cannot be read, and is damage already.
        return JournalLossError(found.end, f"the log ends here, and reached {reach}", is_end=True)
    if found.log_id is not None and found.log_id != mark.log_id:
        return JournalLossError(found.end, "this is the file of another log than the one that was here")
    if found.generation < mark.generation:
        older = f"generation {found.generation} of the log, up to change {found.index}"
        return JournalLossError(
            found.end, f"this is an older file, {older}: generation {mark.generation} reached {reach}"
        )
    if found.generation == mark.generation and found.end < mark.end:
        return JournalLossError(found.end, f"the log ends here, and reached {reach}", is_end=True)
    return None


class _JournalReader:
    """One pass over the file."""

    def __init__(self, octets: bytes, metadata: Metadata, found: RecoveredLog) -> None:
        self._octets = octets
        self._metadata = metadata
        self._found = found
        found.is_there = True
        self._seed = seed_of(octets[:HEAD_SIZE])
        found.version = version_of(octets)
        # The highest place in the log that was seen.
        self._index = 0
        self._is_whole = False

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
                self._found.damage.append(JournalError(at, "a record is damaged"))
            if synced < 0:
                break
            at = synced
        self._metadata.index = self._found.index = self._index
        self._found.end = at

    def _take(self, at: int, size: int) -> None:
        kind = self._octets[at + RECORD_HEAD_SIZE - 1]
        body = self._octets[at + RECORD_HEAD_SIZE : at + size]
        if kind == STATE_END:
            self._is_whole = True
            self._index = max(self._index, int.from_bytes(body, "big"))
        elif kind == ORIGIN:
            self._found.log_id = body[:LOG_ID_SIZE]
            self._found.generation = int.from_bytes(body[LOG_ID_SIZE:], "big")
        elif kind == ENTRY:
            try:
                index, commands = decode_entry(body)
            except CodecError as error:
                self._found.damage.append(JournalError(at, str(error)))
                return
            self._index = max(self._index, index)
            for command in commands:
                reply = self._metadata.apply(command, CommandContext(index=index, now=0))
                # One may take more places than its own.
                self._index = max(self._index, self._metadata.index)
                # In the log there may be what was refused at the time as well.
                if reply.outcome is Outcome.REFUSED and not self._is_whole:
                    refused = f"{type(command).__name__} is refused: {reply.text}"
                    self._found.damage.append(JournalError(at, refused))
