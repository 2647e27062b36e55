"""The persistent messages of one virtual host: one log, shared by all queues.

    append ─▶ pending ─ commit ─▶ encoded into the last segment ─▶ one job ─▶ written and synced ─▶ confirmed
    release ─▶ still pending: never written │ written: a run of positions in the next batch

One job is in progress at a time, and what is appended meanwhile waits for the next one: the higher the load,
the more messages share each fdatasync (group commit). A message is written once for all its queues; settled
messages are recorded as runs of positions, a single run for a queue that is consumed in order.

Invariants: a publish is confirmed only after the batch with its message, and all earlier batches, were
synced. A release is written behind the message that it releases. A file is reused only after everything in it
that still matters (live messages, cursors, markers) was synced elsewhere. Queue numbers are never reused.
Messages appended between `begin_group` and `end_group` are present after a crash together with the value of
their marker, or not at all.
"""

from collections.abc import Callable

from warren.limits import (
    COMPACTION_GAIN_MIN,
    DELIVERED_AHEAD_KEPT,
    PENDING_MESSAGE_SIZE,
    PENDING_REFERENCE_SIZE,
    STORE_PENDING_SIZE_MAX,
)
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import StoredMessage
from warren.store.compaction import Compaction, segment_to_compact
from warren.store.cursor import QueueCursor
from warren.store.delivered import Delivered
from warren.store.disk import TRANSIENT_ERRNOS, Disk, DiskStep
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

_SEGMENT_SHIFT = 32
_PENDING_SIZE_MAX = STORE_PENDING_SIZE_MAX
_MESSAGE_SIZE = PENDING_MESSAGE_SIZE
_REFERENCE_SIZE = PENDING_REFERENCE_SIZE
_REFERENCE_SIZE_ON_DISK = REFERENCE_SIZE
_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD
_AHEAD_KEPT = DELIVERED_AHEAD_KEPT


class StorePort:
    """Port: what a store needs from its owner."""

    def commit_due(self) -> None:
        """Data is waiting to be written: call `commit` at the end of the turn."""
        raise NotImplementedError

    def commit_due_later(self) -> None:
        """Data that no client waits for, such as releases, is to be written: call `commit` after a delay."""
        self.commit_due()

    def failed(self, error: OSError, is_full: bool) -> None:
        """A batch was not written; if the disk is full, call `retry` when it has room again."""
        raise NotImplementedError

    def recovered(self) -> None:
        """The batch that failed before was written."""
        raise NotImplementedError

    def fell_behind(self) -> None:
        """Too much is pending: block publishers until `caught_up`."""
        raise NotImplementedError

    def caught_up(self) -> None:
        """All that was pending has been passed to the disk."""
        raise NotImplementedError

    def unreadable(self, error: OSError | StoreFileError) -> None:
        """A stored message cannot be read: it is damaged, or the disk failed."""
        raise NotImplementedError


class MessageStore:
    """An open store; `recovery.open_store` makes it."""

    __slots__ = (
        "_asked_first", "_asked_last", "_asking", "_background_tasks", "_batch_waiting", "_compaction",
        "_dead", "_dead_seen", "_delivered", "_dirty_cursors", "_disk", "_group_first", "_groups",
        "_is_announced", "_is_announced_for_later", "_is_busy", "_is_closed", "_last", "_last_references",
        "_log", "_on_closed", "_pending", "_pending_references", "_pending_size", "_port", "_reader",
        "_retried", "_runs", "_waiting", "cursors", "failure", "markers", "segments", "written",
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
        # True while the port knows that there is something to commit, at once or later.
        self._is_announced = False
        self._is_announced_for_later = False
        self._is_busy = False
        # The error of the last job: nothing is confirmed until the same job succeeds.
        self.failure: OSError | None = None
        self._retried: list[DiskStep] = []
        # Messages that are not encoded yet, and for each its encoded references: one or more.
        self._pending: list[StoredMessage] = []
        self._pending_references: list[bytes | list[bytes]] = []
        # Approximate memory of the pending messages, in bytes.
        self._pending_size = 0
        # Commit groups among the pending messages, in order; and the start of the open one.
        self._groups: list[CommitGroup] = []
        self._group_first = 0
        self._last: StoredMessage | None = None
        self._last_references: list[bytes] | None = None
        # Cursors with unwritten changes, and runs that cannot grow any more.
        self._dirty_cursors: list[QueueCursor] = []
        self._runs: list[bytes] = []
        # Segments without live messages; the state of cursors in them may still matter.
        self._dead: list[Segment] = []
        # How many of them were there when rewriting that state was last found not to be worthwhile.
        self._dead_seen = 0
        self._compaction: Compaction | None = None
        # Work that is too long for one turn: a part of it is done with each batch.
        self._background_tasks: list[Callable[[], bool]] = []
        # Listeners that wait for the next batch, and those that wait for the batch in progress, with the
        # first and last sequence number. The numbers of the latest listener can still grow.
        self._waiting: list[tuple[ConfirmListener, int, int]] = []
        self._batch_waiting: list[tuple[ConfirmListener, int, int]] = []
        self._asking: ConfirmListener | None = None
        self._asked_first = 0
        self._asked_last = 0
        self._on_closed: Callable[[], None] | None = None
        # True when nothing more is written.
        self._is_closed = False
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
            self._add_pending(_REFERENCE_SIZE)
            return
        self._last = message
        self._last_references = None
        self._pending.append(message)
        self._pending_references.append(reference)
        if not self._is_announced:
            self._announce()
        self._add_pending(_MESSAGE_SIZE + len(message.content))

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
        if not self._is_announced:
            self._announce()

    def forget(self, key: bytes) -> None:
        """Forget the marker `key`; an old value may reappear when the store is opened again."""
        del self.markers[key]

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything appended before is synced."""
        if confirmation is self._asking and sequence == self._asked_last:
            return
        confirmation.expect(sequence)
        if confirmation is self._asking and sequence == self._asked_last + 1:
            self._asked_last = sequence
            return
        self._end_asking()
        self._asking = confirmation
        self._asked_first = self._asked_last = sequence
        if not self._is_announced:
            self._announce()

    def release(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Settle `message` at `position` of `cursor`."""
        message.references -= 1
        if message.location:
            self._drop_references(message.location, len(message.content) + _MESSAGE_OVERHEAD)
        self.finish(cursor, position, position + 1)

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

    def drop_references(self, location: int) -> None:
        """Release one reference to the message at `location`, whose position is settled already."""
        segment = self.segments[location >> _SEGMENT_SHIFT]
        self._drop_references(location, segment.live_bytes // segment.live)

    def add_background_task(self, background_task: Callable[[], bool]) -> None:
        """Call `background_task` with each batch until it returns False, which means that it is finished."""
        self._background_tasks.append(background_task)
        if not self._is_announced:
            self._announce()

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
        if self._is_closed or self._on_closed is not None:
            return
        is_new = self._dirty_cursors and not self._is_announced_for_later
        if (is_new or len(self._dead) != self._dead_seen) and not self._is_announced:
            # State found when the store was opened, and nothing was written since.
            self._announce()
        if self._compaction is None:
            segment = segment_to_compact(self.segments.values())
            if segment is not None:
                self._compaction = Compaction(segment, self._disk, self.segments, self.cursors)
                if not self._is_announced:
                    self._announce()

    def drop(self, cursor: QueueCursor) -> None:
        """Drop `cursor`, whose queue was deleted: its settled positions need not be written any more."""
        cursor.is_dropped = True
        del self.cursors[cursor.queue, cursor.level]
        if self._delivered is not None:
            self._delivered.drop(cursor)

    def commit(self) -> None:
        """Write what is pending; if a batch is in progress, it is written with the next one."""
        self._is_announced = False
        self._is_announced_for_later = False
        if self._is_busy or self._is_closed or self.failure is not None:
            return
        steps = self._encode_batch()
        self._end_asking()
        self._batch_waiting, self._waiting = self._waiting, []
        if steps:
            self._submit(steps)
        else:
            self._confirm()
            self._advance()
            if self._has_more():
                self._announce()
            else:
                self._end_reserving()

    def retry(self) -> None:
        """Submit the failed batch again, for example when the disk has room again."""
        if self._retried and not self._is_busy:
            self._submit(self._retried)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; it is called after a failure as well."""
        self._on_closed = on_closed
        self._compaction = None
        self._background_tasks.clear()
        if not self._is_busy:
            self.commit()
        self._end_if_done()

    @property
    def is_idle(self) -> bool:
        """True when everything appended is synced."""
        return not (self._is_busy or self._retried or self._is_wanted() or self._dirty_cursors)

    # --- private -------------------------------------------------------------------------------

    def _note_queue(self, cursor: QueueCursor) -> None:
        """Record that the last segment has messages of the queue of `cursor`."""
        last = self._log.last
        cursor.noted_in = last.number
        last.queues.add(cursor.queue)

    def _announce(self) -> None:
        self._is_announced = True
        self._port.commit_due()

    def _announce_later(self) -> None:
        self._is_announced_for_later = True
        self._port.commit_due_later()

    def _add_pending(self, size: int) -> None:
        """Add `size` bytes to the memory of pending messages; beyond the limit the port is told, once."""
        before = self._pending_size
        self._pending_size = before + size
        if before <= _PENDING_SIZE_MAX < before + size:
            self._port.fell_behind()

    def _mark_dirty(self, cursor: QueueCursor) -> None:
        cursor.is_dirty = True
        self._dirty_cursors.append(cursor)
        if not self._is_announced and not self._is_announced_for_later:
            self._announce_later()

    def _encode_batch(self) -> list[DiskStep]:
        """Encode everything that is pending into steps for the disk; none if all of it was released again."""
        log = self._log
        pending, self._pending = self._pending, []
        references, self._pending_references = self._pending_references, []
        self._last = None
        place = 0
        begun = log.last.number
        if self._groups:
            place = self._encode_groups(pending, references)
        self._encode_messages(pending, references, place, len(pending))
        if log.last.number != begun:
            self._note_queues(pending, references, begun)
        if self._background_tasks and not self._background_tasks[-1]():
            self._background_tasks.pop()
        if self._compaction is not None:
            self._compact(self._compaction)
        self._encode_state()
        if self._pending_size > _PENDING_SIZE_MAX:
            self._port.caught_up()
        self._pending_size = 0
        return log.finish()

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
        place = 0
        for group in groups:
            self._encode_messages(pending, references, place, group.first)
            size = 0
            for place in range(group.first, group.end):
                if pending[place].references:
                    joined = references[place]
                    if isinstance(joined, list):
                        joined = references[place] = b"".join(joined)
                    size += message_record_size(pending[place], joined)
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
        begun = log.last.number
        log.append_parts(RELEASE, runs)
        log.append_parts(DELIVERED, delivered_up_to)
        # State that spans two segments counts for both: neither is retired before it is written anew.
        for number in range(begun, log.last.number + 1) if cursors else ():
            self.segments[number].cursors.update(cursors)

    def _retire_dead(self, runs: list[bytes], delivered_up_to: list[bytes]) -> list[QueueCursor]:
        """Retire the dead segments, after writing their markers and the state of their cursors anew.

        Returns the cursors that were written. Does nothing while that state would take a large part of the
        freed space: it would fill segments that would soon be dead themselves.
        """
        cursors = {cursor for segment in self._dead for cursor in segment.cursors if not cursor.is_dropped}
        numbers = {segment.number for segment in self._dead}
        markers = [marker for marker in self.markers.values() if marker.segment in numbers]
        needed = [(cursor, cursor.runs()) for cursor in cursors]
        size = sum(REFERENCE_SIZE + RUN_SIZE * len(its_runs) for _, its_runs in needed)
        size += sum(group_record_size(marker.key, marker.value) for marker in markers)
        self._dead_seen = len(self._dead)
        if size * COMPACTION_GAIN_MIN > sum(segment.capacity for segment in self._dead):
            return []
        for cursor, its_runs in needed:
            runs += [encode_run(cursor.queue, cursor.key | first, end - first) for first, end in its_runs]
            delivered_up_to.append(encode_reference(cursor.queue, cursor.key | cursor.delivered_up_to))
        for marker in markers:
            self._log.append_group(marker, marker.value, 0)
        for segment in self._dead:
            self._log.retire(segment)
        self._dead.clear()
        self._dead_seen = 0
        return list(cursors)

    def _drop_references(self, location: int, byte_count: int) -> None:
        """Release one reference to the message of `data` bytes at `location`."""
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
                if not self._is_announced:
                    self._announce()

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

    def _is_wanted(self) -> bool:
        """True if there is something to write that a client waits for."""
        return bool(self._pending or self._groups or self._waiting or self._asking)

    def _has_more(self) -> bool:
        """True if there is much to write although no client waits for it."""
        return (
            self._compaction is not None or len(self._dead) != self._dead_seen or bool(self._background_tasks)
        )

    def _submit(self, steps: list[DiskStep]) -> None:
        self._is_busy = True
        self._retried = steps
        self._disk.submit(steps, self._done)

    def _done(self, error: OSError | None) -> None:
        """Handle the end of a job: confirm its messages, or report the failure."""
        self._is_busy = False
        if error is not None:
            self.failure = error
            self._port.failed(error, is_full=error.errno in TRANSIENT_ERRNOS)
            self._end_if_done()
            return
        self._retried = []
        # Nothing is appended to the log while a job is in progress.
        self.written = self._log.location
        self._log.written()
        if self.failure is not None:
            self.failure = None
            self._port.recovered()
        self._confirm()
        self._advance()
        if self._on_closed is not None:
            self.commit()
        elif self._is_wanted() or self._has_more():
            # At the end of the turn, so that messages still in the sockets share the sync.
            if not self._is_announced:
                self._announce()
        elif self._dirty_cursors:
            self._announce_later()
        else:
            self._end_reserving()
        self._end_if_done()

    def _end_reserving(self) -> None:
        """Write exact delivered positions, since nothing is in progress."""
        if self._delivered is not None:
            self._delivered.take_back()

    def _confirm(self) -> None:
        waiting, self._batch_waiting = self._batch_waiting, []
        for confirmation, first, last in waiting:
            confirmation.done(first, last)

    def _end_asking(self) -> None:
        """Close the current range of sequence numbers; the next call of `confirm` starts a new one."""
        if self._asking is not None:
            self._waiting.append((self._asking, self._asked_first, self._asked_last))
            self._asking = None

    def _end_if_done(self) -> None:
        if self._on_closed is not None and (self.is_idle or self.failure is not None):
            on_closed, self._on_closed = self._on_closed, None
            self._is_closed = True
            self._end_reserving()
            on_closed()
