"""The persistent messages of one virtual host: one log, shared by all queues.

    append ─▶ pending ─ commit ─▶ encoded into the last segment ─▶ one job ─▶ written and synced ─▶ confirmed
    release ─▶ still pending: never written │ written: a run of positions in the next batch

Everything is written in batches (`group_commit`). A message is written once for all its queues; settled
messages are recorded as runs of positions, a single run for a queue that is consumed in order.

Invariants: a release is written behind the message that it releases. A file is reused only after everything
in it that still matters (live messages, cursors, markers) was synced elsewhere. Queue numbers are never
reused. Messages appended between `begin_group` and `end_group` are present after a crash together with the
value of their marker, or not at all. The records of Raft groups are behind everything else in their batch;
if it has such groups of messages, the entries are a part of the first of them, so that no marker is there
without the entries that propose its messages.
"""

from collections.abc import Callable
from functools import partial

from warren.limits import (
    COMPACTION_GAIN_MIN,
    DELIVERED_AHEAD_KEPT,
    PENDING_MESSAGE_SIZE,
    PENDING_REFERENCE_SIZE,
)
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import StoredMessage
from warren.store.compaction import Compaction, segment_to_compact
from warren.store.cursor import QueueCursor
from warren.store.delivered import Delivered
from warren.store.disk import Disk, DiskStep
from warren.store.group_commit import GroupCommit
from warren.store.group_records import GroupRecords
from warren.store.markers import CommitGroup, CommitMarker
from warren.store.message_reader import MessageReader
from warren.store.record import (
    DELIVERED,
    MESSAGE_OVERHEAD,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    encode_reference,
    encode_run,
    group_record_size,
    message_record_size,
    uint32,
)
from warren.store.segment import Segment, StoreFileError, slot_of
from warren.store.segment_log import SegmentLog
from warren.store.store_port import StorePort

_SEGMENT_SHIFT = 32
_MESSAGE_SIZE = PENDING_MESSAGE_SIZE
_REFERENCE_SIZE = PENDING_REFERENCE_SIZE
_REFERENCE_SIZE_ON_DISK = REFERENCE_SIZE
_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD
_AHEAD_KEPT = DELIVERED_AHEAD_KEPT


class MessageStore:
    """An open store; `recovery.open_store` makes it."""

    __slots__ = (
        "_background_tasks", "_commits", "_compaction", "_dead", "_dead_seen", "_delivered", "_dirty_cursors",
        "_dirty_group_logs", "_disk", "_group_first", "_group_logs", "_groups", "_is_prepare_due", "_last",
        "_last_references", "_log", "_pending", "_pending_references", "_port", "_preparing", "_reader",
        "_runs", "cursors", "markers", "segments", "written",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, log: SegmentLog, port: StorePort, cursors: dict[tuple[int, int], QueueCursor]
    ) -> None:
        self._disk = disk
        self._log = log
        # None in a store that is not read at the next start.
        self._delivered: Delivered | None = None
        # Number -> segment, including those whose files are gone while queues still have locations in them.
        self.segments = log.segments
        self._port = port
        self._reader = MessageReader(disk, log.segments, port.unreadable)
        self._commits = GroupCommit(disk, port, self)
        # Messages that are not encoded yet, and for each its encoded references: one or more.
        self._pending: list[StoredMessage] = []
        self._pending_references: list[bytes | list[bytes]] = []
        # Commit groups among the pending messages, in order; and the start of the open one.
        self._groups: list[CommitGroup] = []
        self._group_first = 0
        self._last: StoredMessage | None = None
        self._last_references: list[bytes] | None = None
        # Cursors with unwritten changes, and runs that cannot grow any more.
        self._dirty_cursors: list[QueueCursor] = []
        self._runs: list[bytes] = []
        # The logs of Raft groups by number, and those with something to write.
        self._group_logs: dict[int, GroupRecords] = {}
        self._dirty_group_logs: list[GroupRecords] = []
        # Those that are called before the next batch; and True if a client waits for that.
        self._preparing: list[GroupRecords] = []
        self._is_prepare_due = False
        # Segments without live messages; the state of cursors in them may still matter.
        self._dead: list[Segment] = []
        # How many of them were there when rewriting that state was last found not to be worthwhile.
        self._dead_seen = 0
        self._compaction: Compaction | None = None
        # Work that is too long for one turn: a part of it is done with each batch.
        self._background_tasks: list[Callable[[], bool]] = []
        # (number of the queue, priority level) -> cursor.
        self.cursors = cursors
        # By key.
        self.markers: dict[bytes, CommitMarker] = {}
        # Everything before this location can be read back.
        self.written = log.location
        self._mark_dead([segment for segment in log.segments.values() if segment.is_dead])

    def note_in(self, delivered: Delivered) -> None:
        """Use `delivered` for delivered positions; positions read from it are written to the log as well."""
        self._delivered = delivered
        for cursor in self.cursors.values():
            if cursor.is_delivered_dirty:
                cursor.is_dirty = True
                self._dirty_cursors.append(cursor)

    def cursor(self, queue: int, level: int) -> QueueCursor:
        """The cursor of priority `level` of the queue with number `queue`; created if it does not exist."""
        cursor = self.cursors.get((queue, level))
        if cursor is None:
            cursor = self.cursors[(queue, level)] = QueueCursor(queue, level)
        return cursor

    def append(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Store `message` for `cursor` at `position`; all cursors of a message in a row."""
        reference = encode_reference(cursor.queue, cursor.key | position)
        if cursor.noted_in != self._log.last.number:
            self._note_queue(cursor)
        message.references += 1
        if message is self._last:
            if self._last_references is None:
                self._last_references = [self._pending_references.pop()]  # type: ignore[list-item]
                self._pending_references.append(self._last_references)
            self._last_references.append(reference)
            self._commits.add(_REFERENCE_SIZE)
            return
        self._last = message
        self._last_references = None
        self._pending.append(message)
        self._pending_references.append(reference)
        self._commits.add(_MESSAGE_SIZE + len(message.content))

    def begin_group(self) -> None:
        """Start a group of messages that are stored atomically; it ends with `end_group` in the same turn."""
        self._group_first = len(self._pending)
        self._last = None

    def end_group(self, key: bytes, value: bytes) -> None:
        """End the group started by `begin_group`, and set the marker `key` to `value` atomically with it."""
        marker = self.markers.get(key)
        if marker is None:
            marker = self.markers[key] = CommitMarker(key, value)
        marker.value = value
        self._groups.append(CommitGroup(self._group_first, len(self._pending), marker))
        self._last = None
        self._commits.announce()

    def forget(self, key: bytes) -> None:
        """Forget the marker `key`; an old value may reappear when the store is opened again."""
        del self.markers[key]

    def add_group_log(self, number: int, group_log: GroupRecords) -> None:
        """Keep the records of Raft group `number` when the segments that they are in are freed."""
        self._group_logs[number] = group_log

    def drop_group_log(self, number: int) -> None:
        """Forget the records of Raft group `number`, whose queue was deleted."""
        dropped = self._group_logs.pop(number)
        self._dirty_group_logs = [each for each in self._dirty_group_logs if each is not dropped]
        self._preparing = [each for each in self._preparing if each is not dropped]
        if not self._preparing:
            # Otherwise a batch would follow another one until a group has something to write.
            self._is_prepare_due = False

    def group_log(self, number: int) -> GroupRecords | None:
        """The log of Raft group `number`, made or recovered; `GroupLog.find` has its type."""
        return self._group_logs.get(number)

    def list_group_log(self, group_log: GroupRecords) -> None:
        """Write the records of `group_log` with the next batch."""
        self._dirty_group_logs.append(group_log)

    def prepare_group_log(self, group_log: GroupRecords) -> None:
        """Call `group_log.prepare` before the next batch is made; `announce_group` says when that is."""
        self._preparing.append(group_log)

    def announce_group(self) -> None:
        """Have a batch committed at the end of the turn."""
        self._is_prepare_due = True
        self._commits.announce()

    def announce_group_later(self) -> None:
        """Have a batch committed after a delay, since no client waits for it."""
        self._commits.announce_later()

    def group_changed(self, size: int) -> None:
        """Announce records of a group that take `size` bytes of memory."""
        self._commits.add(size)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything appended before is synced."""
        self._commits.confirm(confirmation, sequence)

    def release(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Settle `message` at `position` of `cursor`."""
        self.drop_message(message)
        self.finish(cursor, position, position + 1)

    def drop_message(self, message: StoredMessage) -> None:
        """Release what `message` takes for one cursor; `finish` settles its position."""
        message.references -= 1
        if message.location:
            self._drop_references(message.location, len(message.content) + _MESSAGE_OVERHEAD)

    def release_at(self, location: int, cursor: QueueCursor, position: int) -> None:
        """Settle the message at `position` of `cursor`, which is stored at `location` and not in memory."""
        self.drop_references(location)
        self.finish(cursor, position, position + 1)

    def finish(self, cursor: QueueCursor, first: int, end: int) -> None:
        """Mark the positions of `cursor` from `first` up to, not including, `end` as settled.

        The space in the segments is released separately, by `drop_references` for each message.
        """
        if cursor.is_dropped:
            return
        cursor.add(first, end)
        if cursor.run_count and first == cursor.run_first + cursor.run_count:
            cursor.run_count += end - first
            return
        if cursor.run_count:
            self._runs.append(encode_run(cursor.queue, cursor.key | cursor.run_first, cursor.run_count))
        cursor.run_first = first
        cursor.run_count = end - first
        if not cursor.is_dirty:
            self._mark_dirty(cursor)

    def finish_found(self, cursor: QueueCursor, first: int, end: int) -> None:
        """Mark positions as settled while the store is opened; that is written with the first batch.

        The port is not called: a store is opened in a thread, and the port belongs to the loop.
        """
        cursor.add(first, end)
        self._runs.append(encode_run(cursor.queue, cursor.key | first, end - first))
        if not cursor.is_dirty:
            cursor.is_dirty = True
            self._dirty_cursors.append(cursor)

    def drop_references(self, location: int) -> None:
        """Release one reference to the message at `location`, whose position is settled already."""
        segment = self.segments[location >> _SEGMENT_SHIFT]
        self._drop_references(location, segment.live_bytes // segment.live)

    def add_background_task(self, background_task: Callable[[], bool]) -> None:
        """Call `background_task` with each batch until it returns False, which means that it is finished."""
        self._background_tasks.append(background_task)
        self._commits.announce()

    def delivered_up_to(self, cursor: QueueCursor, position: int) -> None:
        """Record that `cursor` was delivered up to `position`: if requeued, these are redelivered."""
        if position > cursor.delivered_up_to:
            cursor.delivered_up_to = position
            cursor.is_delivered_dirty = True
            if position > cursor.reserved and self._delivered is not None:
                self._delivered.reserve(cursor)
            if not cursor.is_dirty:
                self._mark_dirty(cursor)

    def reader(self) -> MessageReader:
        """The reader for messages stored before `written`."""
        return self._reader

    def maintain(self) -> None:
        """Start a compaction if dead messages take much disk space; called periodically."""
        commits = self._commits
        if commits.is_closing:
            return
        is_dirty = self._dirty_cursors or self._dirty_group_logs
        is_new = is_dirty and not commits.is_announced_for_later
        if is_new or len(self._dead) != self._dead_seen:
            # State found when the store was opened, and nothing was written since.
            commits.announce()
        if self._compaction is None:
            segment = segment_to_compact(self.segments.values())
            if segment is not None:
                self._compaction = Compaction(segment, self._disk, self.segments, self.cursors)
                self._commits.announce()

    def drop(self, cursor: QueueCursor) -> None:
        """Drop `cursor`, whose queue was deleted: its settled positions need not be written any more."""
        cursor.is_dropped = True
        del self.cursors[cursor.queue, cursor.level]
        for segment in self.segments.values():
            segment.cursors.discard(cursor)
        if self._delivered is not None:
            self._delivered.drop(cursor)

    def commit(self) -> None:
        """Write what is pending; if a batch is in progress, it is written with the next one."""
        self._commits.commit()

    def retry(self) -> None:
        """Submit the failed batch again, for example when the disk has room again."""
        self._commits.retry()

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; it is called after a failure as well."""
        self._compaction = None
        self._background_tasks.clear()
        self._commits.close(partial(self._closed, on_closed))

    @property
    def failure(self) -> OSError | None:
        """The error of the last batch; None if it was written."""
        return self._commits.failure

    @property
    def is_idle(self) -> bool:
        """True if everything appended is synced, and no group has to prepare a batch."""
        return self._commits.is_idle and not self._preparing

    # --- as the source of batches ----------------------------------------------------------------

    def has_pending(self) -> bool:
        """True if there is something to write."""
        return self._has_messages() or len(self._dirty_cursors) > 0 or len(self._dirty_group_logs) > 0

    def take_batch(self) -> list[DiskStep]:
        """Encode everything that is pending into steps for the disk; none if all of it was released again."""
        log = self._log
        if self._preparing:
            self._prepare()
        pending, self._pending = self._pending, []
        references, self._pending_references = self._pending_references, []
        self._last = None
        place = 0
        begun = log.last.number
        if self._groups:
            place = self._encode_groups(pending, references)
            self._encode_messages(pending, references, place, len(pending))
            for group_log in self._dirty_group_logs:
                group_log.write_entries(log)
        else:
            self._encode_messages(pending, references, place, len(pending))
        if log.last.number != begun:
            self._note_queues(pending, references, begun)
        if self._background_tasks and not self._background_tasks[-1]():
            self._background_tasks.pop()
        if self._compaction is not None:
            self._compact(self._compaction)
        self._encode_state()
        if self._dirty_group_logs:
            self._write_group_logs()
        return log.finish()

    def batch_synced(self) -> None:
        """The batch can be read back."""
        # Nothing is appended to the log while a job is in progress.
        self.written = self._log.location
        self._log.written()
        if self._log.is_spare_due() and not self._commits.is_closing:
            self._log.make_spare(self._disk)

    def batch_confirmed(self) -> bool:
        """Continue the compaction, and announce what else there is to write."""
        self._advance()
        commits = self._commits
        if commits.is_closing:
            return False
        if self._has_messages() or commits.has_waiting() or self._has_more() or self._is_prepare_due:
            # At the end of the turn, so that messages still in the sockets share the sync.
            commits.announce()
        elif self._dirty_cursors or self._dirty_group_logs or self._preparing:
            commits.announce_later()
        else:
            self._end_reserving()
        return False

    # --- private -------------------------------------------------------------------------------

    def _note_queue(self, cursor: QueueCursor) -> None:
        """Record that the last segment has messages of the queue of `cursor`."""
        last = self._log.last
        cursor.noted_in = last.number
        last.queues.add(cursor.queue)

    def _mark_dirty(self, cursor: QueueCursor) -> None:
        cursor.is_dirty = True
        self._dirty_cursors.append(cursor)
        self._commits.announce_later()

    def _prepare(self) -> None:
        """Let groups that have asked for it append to this batch; once, so that each batch is finite."""
        group_logs, self._preparing = self._preparing, []
        self._is_prepare_due = False
        for group_log in group_logs:
            group_log.prepare(self._log)

    def _encode_messages(
        self, pending: list[StoredMessage], references: list[bytes | list[bytes]], first: int, end: int
    ) -> None:
        """Append the pending messages from `first` up to `end` that still have references."""
        log = self._log
        for place in range(first, end):
            message = pending[place]
            if message.references:
                joined = references[place]
                if isinstance(joined, list):
                    joined = b"".join(joined)
                log.append_message(message, joined)

    def _encode_groups(self, pending: list[StoredMessage], references: list[bytes | list[bytes]]) -> int:
        """Append the commit groups and the messages between them; returns the place behind the last group."""
        groups, self._groups = self._groups, []
        # The size of the first group if it contains the rest of the batch, up to the entries of Raft groups.
        rest = 0
        if self._dirty_group_logs:
            rest = self._size_of(pending, references, groups[0].first, len(pending))
            for group in groups[1:]:
                rest += group_record_size(group.marker.key, group.value)
            for group_log in self._dirty_group_logs:
                rest += group_log.entries_size()
        place = 0
        for group in groups:
            self._encode_messages(pending, references, place, group.first)
            size = rest or self._size_of(pending, references, group.first, group.end)
            rest = 0
            self._log.append_group(group.marker, group.value, size)
            self._encode_messages(pending, references, group.first, group.end)
            place = group.end
        return place

    def _note_queues(
        self, pending: list[StoredMessage], references: list[bytes | list[bytes]], begun: int
    ) -> None:
        """Record the queues of messages in the segments after `begun`, which this batch started."""
        for message, joined in zip(pending, references, strict=True):
            if message.location >> _SEGMENT_SHIFT > begun:
                parts = joined if isinstance(joined, list) else [joined]
                queues = self.segments[message.location >> _SEGMENT_SHIFT].queues
                for data in parts:
                    queues.update(uint32(data, at) for at in range(0, len(data), _REFERENCE_SIZE_ON_DISK))

    def _compact(self, compaction: Compaction) -> None:
        """Copy some of the live messages of the segment that is being compacted."""
        try:
            compaction.copy(self._log)
        except (OSError, StoreFileError) as error:
            # A damaged segment stays as it is; what is readable in it remains readable.
            compaction.segment.is_sealed = False
            self._compaction = None
            self._port.unreadable(error)

    def _encode_state(self) -> None:
        """Write what cursors have settled and delivered since the last batch; retire dead segments."""
        log = self._log
        cursors, self._dirty_cursors = self._dirty_cursors, []
        runs, self._runs = self._runs, []
        delivered_up_to: list[bytes] = []
        for cursor in cursors:
            cursor.is_dirty = False
            if cursor.run_count:
                runs.append(encode_run(cursor.queue, cursor.key | cursor.run_first, cursor.run_count))
                cursor.run_count = 0
            if cursor.is_delivered_dirty:
                delivered_up_to.append(encode_reference(cursor.queue, cursor.key | cursor.delivered_up_to))
                cursor.is_delivered_dirty = False
                if cursor.ahead > _AHEAD_KEPT:
                    cursor.ahead >>= 2
        self._mark_dead(log.sealed_dead())
        if len(self._dead) != self._dead_seen:
            cursors += self._retire_dead(runs, delivered_up_to)
        cursors = [cursor for cursor in cursors if not cursor.is_dropped]
        begun = log.last.number
        log.append_parts(RELEASE, runs)
        log.append_parts(DELIVERED, delivered_up_to)
        # State that spans two segments counts for both: neither is retired before it is written anew.
        for number in range(begun, log.last.number + 1) if cursors else ():
            self.segments[number].cursors.update(cursors)

    def _size_of(
        self, pending: list[StoredMessage], references: list[bytes | list[bytes]], first: int, end: int
    ) -> int:
        """The size of the records of the messages from `first` up to `end`, whose references are joined."""
        size = 0
        for place in range(first, end):
            if pending[place].references:
                joined = references[place]
                if isinstance(joined, list):
                    joined = references[place] = b"".join(joined)
                size += message_record_size(pending[place], joined)
        return size

    def _write_group_logs(self) -> None:
        """Append the records of Raft groups, behind the messages and settled positions of this batch."""
        group_logs, self._dirty_group_logs = self._dirty_group_logs, []
        for group_log in group_logs:
            group_log.write(self._log)

    def _retire_dead(self, runs: list[bytes], delivered_up_to: list[bytes]) -> list[QueueCursor]:
        """Retire the dead segments, after writing their markers and the states of cursors and groups anew.

        Returns the cursors that were written. Does nothing while that state would take a large part of the
        freed space: it would fill segments that would soon be dead themselves.
        """
        cursors = {cursor for segment in self._dead for cursor in segment.cursors}
        numbers = {segment.number for segment in self._dead}
        markers = [marker for marker in self.markers.values() if marker.segment in numbers]
        group_logs = [each for each in self._group_logs.values() if each.is_in(numbers)]
        needed = [(cursor, cursor.runs()) for cursor in cursors]
        size = sum(REFERENCE_SIZE + RUN_SIZE * len(its_runs) for _, its_runs in needed)
        size += sum(group_record_size(marker.key, marker.value) for marker in markers)
        size += sum(group_log.state_size() for group_log in group_logs)
        self._dead_seen = len(self._dead)
        if size * COMPACTION_GAIN_MIN > sum(segment.capacity for segment in self._dead):
            return []
        for cursor, its_runs in needed:
            runs += [encode_run(cursor.queue, cursor.key | first, end - first) for first, end in its_runs]
            delivered_up_to.append(encode_reference(cursor.queue, cursor.key | cursor.delivered_up_to))
        for marker in markers:
            self._log.append_group(marker, marker.value, 0)
        for group_log in group_logs:
            group_log.write_state()
        for segment in self._dead:
            self._log.retire(segment)
        self._dead.clear()
        self._dead_seen = 0
        return list(cursors)

    def _drop_references(self, location: int, byte_count: int) -> None:
        """Release one reference to the message of `byte_count` bytes at `location`."""
        segment = self.segments[location >> _SEGMENT_SHIFT]
        at = location - (segment.number << _SEGMENT_SHIFT)
        if segment.moved is not None:
            moved_to = segment.moved.find(at)
            if moved_to:
                self._drop_references(moved_to, byte_count)
        if segment.gone is not None:
            segment.gone.add(slot_of(at), slot_of(at) + 1)
        segment.drop_references(1, byte_count)
        if not segment.live:
            if segment.is_retired:
                del self.segments[segment.number]
            elif segment.is_sealed and not segment.is_retiring:
                self._mark_dead([segment])
                self._commits.announce()

    def _mark_dead(self, segments: list[Segment]) -> None:
        """Add `segments` to the dead segments, whose files can be retired."""
        for segment in segments:
            segment.is_retiring = True
        self._dead += segments

    def _advance(self) -> None:
        """Continue the compaction after its copies were synced."""
        compaction = self._compaction
        if compaction is None:
            return
        self._mark_dead(compaction.finish_moves())
        if compaction.is_finished or compaction.segment.is_retiring:
            if not compaction.segment.is_retiring:
                self._mark_dead([compaction.segment])
            self._compaction = None
            self.maintain()

    def _has_messages(self) -> bool:
        """True if there are messages or groups to write."""
        return len(self._pending) > 0 or len(self._groups) > 0

    def _has_more(self) -> bool:
        """True if there is much to write although no client waits for it."""
        return (
            self._compaction is not None or len(self._dead) != self._dead_seen or bool(self._background_tasks)
        )

    def _end_reserving(self) -> None:
        """Write exact delivered positions, since nothing is in progress."""
        if self._delivered is not None:
            self._delivered.take_back()

    def _closed(self, on_closed: Callable[[], None]) -> None:
        self._end_reserving()
        on_closed()
