"""Reads the metadata file and rebuilds the metadata from it.

A torn end loses nothing, since nothing of it was answered. The high-water mark, which says how far the log
was synced, distinguishes a torn end from a lost one: if the log ends before it, is missing, or is another log
than the mark describes, something was lost.
"""

from collections.abc import Mapping

from warren.journal.file_format import COMMANDS_SINCE, NAME
from warren.journal.high_water_mark import NAME as MARK_NAME
from warren.journal.high_water_mark import HighWaterMark, HighWaterMarkFile
from warren.journal.log_reader import JournalLossError, RecoveredLog, replay
from warren.journal.parameter_cipher import Cipher
from warren.limits import JOURNAL_SKIPPED_NUMBERS
from warren.limits_metadata import QUEUE_NUMBERS_MAX
from warren.metadata.commands import CommandContext, DeleteEphemeral, DoubtNumbers
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.store.disk import Disk

# Higher than any run of a node.
_ALL_RUNS = 1 << 62
# The first format whose writer keeps a high-water mark.
_MARKED_SINCE = 5


def recover(
    disk: Disk, metadata: Metadata, cipher: Cipher | None = None, *, node: int = NODE_ALONE
) -> RecoveredLog:
    """Rebuild `metadata` of `node`, which must be empty, from `disk`; damaged records are left out and
    reported.

    Raises JournalError for a newer format or a file of another kind; OSError from the disk.
    """
    found = RecoveredLog(mark=HighWaterMarkFile.read(disk))
    size = disk.names().get(NAME)
    if size is not None:
        read_log(disk.read(NAME, 0, size), metadata, found, cipher, node=node)
    found.loss = find_loss(found, is_mark_there=MARK_NAME in disk.names())
    return found


def read_log(
    data: bytes,
    metadata: Metadata,
    found: RecoveredLog,
    cipher: Cipher | None = None,
    *,
    node: int = NODE_ALONE,
) -> None:
    """Rebuild `metadata` from the file of `node` with the content `data`.

    Of a node alone it is without what ended with the last run: it has proposed all commands of its log. With
    other members that is proposed. Fills in `found`. Without a `cipher` secrets stay encrypted, and can be
    written again as they are.
    """
    replay(data, metadata, found, cipher, node=node)
    if found.version >= COMMANDS_SINCE and found.configuration.members == (node,):
        ended = DeleteEphemeral(node=node, incarnation=_ALL_RUNS, count_max=_ALL_RUNS)
        context = CommandContext(index=metadata.index + 1, now=found.now, is_accepted=True)
        metadata.apply(ended, context)
        if len(metadata.members.by_id) <= 1:
            # Nobody else can have a proposal of these runs, and nothing depends on the number of the next
            # one, which is lower if the file with the number was lost and the clock is wrong.
            metadata.applied_proposals.forget_runs()


def doubt_numbers(metadata: Metadata, found: RecoveredLog, number_max: int = 0) -> None:
    """Continue despite a loss: mark numbers that may have been given, up to `number_max` or more, as in
    doubt.
    """
    mark = found.mark.found
    last = max(metadata.next_number - 1, mark.number if mark is not None else 0, number_max)
    until = min(last + JOURNAL_SKIPPED_NUMBERS, QUEUE_NUMBERS_MAX)
    metadata.apply(DoubtNumbers(until=until), CommandContext(index=metadata.index + 1, now=found.now))


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


def find_older(found: RecoveredLog, reached: Mapping[str, int]) -> JournalLossError | None:
    """The loss if the log ends before the change that a store has seen of it; by virtual host."""
    end = found.tail[-1][0].index if found.tail else found.index
    vhost = max(reached, key=reached.__getitem__, default="")
    if not found.is_there or not vhost or reached[vhost] <= end:
        return None
    return JournalLossError(
        found.end,
        f"this is an older copy, up to change {end}: the store of the virtual host in {vhost} has seen "
        f"change {reached[vhost]}",
    )


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
