"""Reads the metadata file and rebuilds the metadata from it.

A torn end loses nothing, since nothing of it was answered. The high-water mark, which says how far the log
was synced, distinguishes a torn end from a lost one: if the log ends before it, is missing, or is another log
than the mark describes, something was lost.
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
from warren.journal.parameter_cipher import Cipher
from warren.limits import JOURNAL_SKIPPED_NUMBERS
from warren.metadata.commands import CommandContext, DoubtNumbers, Outcome
from warren.metadata.machine import Metadata
from warren.store.disk import Disk
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.record import encode, is_intact

# The first format whose writer keeps a high-water mark.
_MARKED_SINCE = 5


class JournalLossError(JournalError):
    """A part of the log is missing; says where the log ends and what is missing."""

    def __init__(self, at: int, reason: str, *, is_end: bool = False) -> None:
        super().__init__(at, reason)
        # True if the file is the right one, and only its end is lost.
        self.is_end = is_end


@dataclass(kw_only=True)
class RecoveredLog:
    """What was found of the log."""

    # The file of the high-water mark, which the journal continues.
    mark: HighWaterMarkFile
    # None if there is no file, or if it does not contain the id.
    log_id: bytes | None = None
    generation: int = 0
    version: int = 0
    # Whether there is a file, the end of its last intact record, and the index of the last change in it.
    is_there: bool = False
    end: int = 0
    index: int = 0
    # Records before the end that cannot be read.
    damage: list[JournalError] = field(default_factory=list)
    # What is missing; None if the log is complete.
    loss: JournalLossError | None = None


def recover(disk: Disk, metadata: Metadata, cipher: Cipher | None = None) -> RecoveredLog:
    """Rebuild `metadata`, which must be empty, from `disk`; damaged records are left out and reported.

    Raises JournalError for a newer format or a file of another kind; OSError from the disk.
    """
    found = RecoveredLog(mark=HighWaterMarkFile.read(disk))
    size = disk.names().get(NAME)
    if size is not None:
        read_log(disk.read(NAME, 0, size), metadata, found, cipher)
    found.loss = find_loss(found, is_mark_there=MARK_NAME in disk.names())
    return found


def read_log(data: bytes, metadata: Metadata, found: RecoveredLog, cipher: Cipher | None = None) -> None:
    """Rebuild `metadata` from the file with the content `data`, and fill in `found`.

    Without a `cipher` secrets stay encrypted, and can be written again as they are.
    """
    metadata.is_replaying = True
    try:
        _JournalReader(data, metadata, found, cipher).read()
    finally:
        metadata.is_replaying = False


def doubt_numbers(metadata: Metadata, found: RecoveredLog, number_max: int = 0) -> None:
    """Continue despite a loss: mark numbers that may have been assigned, up to `number_max` or more, as in
    doubt.
    """
    mark = found.mark.found
    until = max(metadata.index, mark.index if mark is not None else 0, number_max) + JOURNAL_SKIPPED_NUMBERS
    metadata.apply(DoubtNumbers(until=until), CommandContext(index=metadata.index, now=0))


def find_loss(found: RecoveredLog, *, is_mark_there: bool) -> JournalLossError | None:
    """The loss of the log that was `found`, according to the mark; None if it is complete."""
    mark = found.mark.found
    if mark is None:
        if not found.is_there or (found.version < _MARKED_SINCE and not is_mark_there):
            return None
        what = "is damaged" if is_mark_there else "is missing"
        return JournalLossError(
            found.end, f"it cannot be verified that the log is complete: {MARK_NAME} {what}"
        )
    if not mark.generation:
        # The mark was made before the first file of the log, so it says nothing about an existing file.
        return None
    reach = f"byte {mark.end} (change {mark.index})"
    if not found.is_there:
        return JournalLossError(0, f"the file is missing; it had reached {reach}")
    return _lost_end(found, mark, reach)


def _lost_end(found: RecoveredLog, mark: HighWaterMark, reach: str) -> JournalLossError | None:
    if found.log_id is None and found.version >= _MARKED_SINCE:
        # The file cannot be identified, which is reported as damage already.
        return JournalLossError(found.end, f"the log ends here; it had reached {reach}", is_end=True)
    if found.log_id is not None and found.log_id != mark.log_id:
        return JournalLossError(found.end, "the file belongs to another log than the high-water mark")
    if found.generation < mark.generation:
        older = f"generation {found.generation} of the log, up to change {found.index}"
        return JournalLossError(
            found.end, f"this is an older file, {older}: generation {mark.generation} reached {reach}"
        )
    if found.generation == mark.generation and found.end < mark.end:
        return JournalLossError(found.end, f"the log ends here; it had reached {reach}", is_end=True)
    return None


class _JournalReader:
    """One pass over the file."""

    def __init__(self, data: bytes, metadata: Metadata, found: RecoveredLog, cipher: Cipher | None) -> None:
        self._cipher = cipher
        self._data = data
        self._metadata = metadata
        self._found = found
        found.is_there = True
        self._seed = seed_of(data[:HEAD_SIZE])
        found.version = version_of(data)
        # The highest index in the log so far.
        self._index = 0
        self._is_whole = False

    def read(self) -> None:
        """Apply every entry in order."""
        data, seed = self._data, self._seed
        batch = encode(BATCH, b"", seed)
        at = HEAD_SIZE
        while True:
            size = is_intact(data, at, seed)
            if size:
                self._take(at, size)
                at += size
                continue
            # Everything before a BATCH was synced, and so was the snapshot before the file was renamed.
            synced = data.find(batch, at + 1)
            if synced >= 0 or not self._is_whole:
                self._found.damage.append(JournalError(at, "a record is damaged"))
            if synced < 0:
                break
            at = synced
        self._metadata.index = self._found.index = self._index
        self._found.end = at

    def _take(self, at: int, size: int) -> None:
        kind = self._data[at + RECORD_HEAD_SIZE - 1]
        body = self._data[at + RECORD_HEAD_SIZE : at + size]
        if kind == STATE_END:
            self._is_whole = True
            self._index = max(self._index, int.from_bytes(body, "big"))
        elif kind == ORIGIN:
            self._found.log_id = body[:LOG_ID_SIZE]
            self._found.generation = int.from_bytes(body[LOG_ID_SIZE:], "big")
        elif kind == ENTRY:
            try:
                index, commands = decode_entry(body, self._cipher)
            except CodecError as error:
                self._found.damage.append(JournalError(at, str(error)))
                return
            self._index = max(self._index, index)
            for command in commands:
                reply = self._metadata.apply(command, CommandContext(index=index, now=0))
                # A command can take more than one index.
                self._index = max(self._index, self._metadata.index)
                # The log may contain commands that were refused when they were first applied.
                if reply.outcome is Outcome.REFUSED and not self._is_whole:
                    refused = f"{type(command).__name__} is refused: {reply.text}"
                    self._found.damage.append(JournalError(at, refused))
