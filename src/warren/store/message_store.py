"""The messages of one virtual host that must survive: appended to one log, shared by all of its queues.

    append ─▶ pending ─ commit ─▶ encoded into the last segment ─▶ one job ─▶ written and synced ─▶ confirmed
    release ─▶ still pending: never written │ written: a run of positions in the next batch

There is one job at a time; what comes meanwhile waits for the next, so the more there is to do, the more each
fdatasync is shared (group commit). A message is written once for all queues that it is in; what a queue is
done with is a run of its positions, which for a queue that is read in order is one run for thousands.

Invariants: a confirmation is told only after the sync of the batch that its message, and all before it, are
in. What is released is written behind what it releases. A file is used again only after what still matters
in it, messages that are alive, the state of lanes, and marks, was synced elsewhere. Numbers of queues are
never used twice. What is appended between `begin_group` and `end_group` is there after a crash together with
the mark that it was given, or none of it is.
"""

from collections.abc import Callable

from warren.limits import (
    DEAD_PER_STATE_MIN,
    DELIVERED_AHEAD_KEPT,
    PENDING_MESSAGE_SIZE,
    PENDING_REFERENCE_SIZE,
    STORE_PENDING_SIZE_MAX,
)
from warren.model.confirmation import Confirmation
from warren.model.message import StoredMessage
from warren.store.compaction import Compaction, worth_moving
from warren.store.delivered import Delivered
from warren.store.disk import PASSING, Disk, Step
from warren.store.lane import Lane
from warren.store.log import Log
from warren.store.marks import Group, Mark
from warren.store.reader import Reader
from warren.store.record import (
    MESSAGE_OVERHEAD,
    REACHED,
    REFERENCE_SIZE,
    RELEASE,
    RUN_SIZE,
    encode_reference,
    encode_run,
    group_record_size,
    message_record_size,
    uint32,
)
from warren.store.segment import Segment, SegmentError, slot_of

_SEGMENT_SHIFT = 32
_PENDING_SIZE_MAX = STORE_PENDING_SIZE_MAX
_MESSAGE_SIZE = PENDING_MESSAGE_SIZE
_REFERENCE_SIZE = PENDING_REFERENCE_SIZE
_REFERENCE_SIZE_ON_DISK = REFERENCE_SIZE
_MESSAGE_OVERHEAD = MESSAGE_OVERHEAD
_AHEAD_KEPT = DELIVERED_AHEAD_KEPT


class StorePort:
    """Port: what a store needs from whoever opened it."""

    def dirty(self) -> None:
        """There is something to write: call `commit` when the turn is over."""
        raise NotImplementedError

    def settled(self) -> None:
        """What nobody waits for is to be written, as what is done with: call `commit` in a moment."""
        self.dirty()

    def failed(self, error: OSError, is_full: bool) -> None:
        """A batch could not be written, and nothing is confirmed; `retry` it when a full disk has room."""
        raise NotImplementedError

    def recovered(self) -> None:
        """The batch that failed was written after all."""
        raise NotImplementedError

    def is_behind(self) -> None:
        """More is pending than there should be: let nobody publish until `has_caught_up`."""
        raise NotImplementedError

    def has_caught_up(self) -> None:
        """All that was pending is with the disk."""
        raise NotImplementedError

    def unreadable(self, error: OSError | SegmentError) -> None:
        """A message that was written cannot be read back: it is damaged, or the disk failed."""
        raise NotImplementedError


class MessageStore:
    """An open store; `recovery.open_store` makes it."""

    __slots__ = (
        "_asked_first", "_asked_last", "_asking", "_batch_waiting", "_chores", "_compaction", "_dead",
        "_dead_seen", "_delivered", "_dirty_lanes", "_disk", "_group_first", "_groups", "_is_announced",
        "_is_busy", "_is_closed", "_is_mentioned", "_last", "_last_references", "_log", "_on_closed",
        "_pending", "_pending_references", "_pending_size", "_port", "_reader", "_retried", "_runs",
        "_waiting", "failure", "lanes", "marks", "segments", "written",
    )  # fmt: skip

    def __init__(self, disk: Disk, log: Log, port: StorePort, lanes: dict[tuple[int, int], Lane]) -> None:
        self._disk = disk
        self._log = log
        # None in a store that no start reads.
        self._delivered: Delivered | None = None
        # Number -> segment, with those whose files are gone while somebody names them.
        self.segments = log.segments
        self._port = port
        self._reader = Reader(disk, log.segments, port.unreadable)
        # True while the port knows that there is something to commit; that nobody waits for it.
        self._is_announced = False
        self._is_mentioned = False
        self._is_busy = False
        # What a job failed with: nothing is confirmed until the same job succeeds, if ever.
        self.failure: OSError | None = None
        self._retried: list[Step] = []
        # Messages that are not encoded yet, and for each its references, encoded: one or more.
        self._pending: list[StoredMessage] = []
        self._pending_references: list[bytes | list[bytes]] = []
        # About what these take in memory.
        self._pending_size = 0
        # Groups of them, in order; and where the one begins that is being appended.
        self._groups: list[Group] = []
        self._group_first = 0
        self._last: StoredMessage | None = None
        self._last_references: list[bytes] | None = None
        # Lanes of which something was released or reached, and runs that cannot grow any more.
        self._dirty_lanes: list[Lane] = []
        self._runs: list[bytes] = []
        # Segments that no queue needs any more, except for the state of lanes that stands in them.
        self._dead: list[Segment] = []
        # How many of them it was not worth yet to write that state anew for.
        self._dead_seen = 0
        self._compaction: Compaction | None = None
        # What is too much for one turn: some of it is done with each batch.
        self._chores: list[Callable[[], bool]] = []
        # Who waits for the next batch, and who for the one that is being written, and with which numbers: the
        # first and the last. Those of whoever asked last may still grow.
        self._waiting: list[tuple[Confirmation, int, int]] = []
        self._batch_waiting: list[tuple[Confirmation, int, int]] = []
        self._asking: Confirmation | None = None
        self._asked_first = 0
        self._asked_last = 0
        self._on_closed: Callable[[], None] | None = None
        # True when nothing more is written: what is released then was not released by anybody's wish.
        self._is_closed = False
        # (number of a queue, priority level) -> lane.
        self.lanes = lanes
        # By key.
        self.marks: dict[bytes, Mark] = {}
        # What lies before this location can be read back.
        self.written = log.location
        self._bury([segment for segment in log.segments.values() if segment.is_dead])

    def note_in(self, delivered: Delivered) -> None:
        """Have what is handed out noted in `delivered`; what was found there goes to the log, too."""
        self._delivered = delivered
        for lane in self.lanes.values():
            if lane.has_reached:
                lane.is_dirty = True
                self._dirty_lanes.append(lane)

    def lane(self, queue: int, level: int) -> Lane:
        """The lane of priority `level` of the queue with number `queue`."""
        lane = self.lanes.get((queue, level))
        if lane is None:
            lane = self.lanes[(queue, level)] = Lane(queue, level)
        return lane

    def append(self, message: StoredMessage, lane: Lane, position: int) -> None:
        """Keep `message` for `lane`, where its place is `position`; in a turn, all lanes of it in a row."""
        reference = encode_reference(lane.queue, lane.key | position)
        if lane.noted_in != self._log.last.number:
            self._note_queue(lane)
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
        """What is appended from here on belongs together, until `end_group`, in this turn."""
        self._group_first = len(self._pending)
        self._last = None

    def end_group(self, key: bytes, value: bytes) -> None:
        """What was appended since `begin_group` is there if the mark `key` has `value`, and only then."""
        mark = self.marks.get(key)
        if mark is None:
            mark = self.marks[key] = Mark(key, value)
        mark.value = value
        self._groups.append(Group(self._group_first, len(self._pending), mark))
        self._last = None
        if not self._is_announced:
            self._announce()

    def forget(self, key: bytes) -> None:
        """Nobody asks for the mark `key` any more; an old one may come back when the store is opened."""
        del self.marks[key]

    def confirm(self, confirmation: Confirmation, sequence: int) -> None:
        """Say to `confirmation` that `sequence` is done when all that was appended before is safe."""
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

    def release(self, message: StoredMessage, lane: Lane, position: int) -> None:
        """`lane` is done with `message`, at `position`."""
        message.references -= 1
        if message.location:
            self._leave(message.location, len(message.content) + _MESSAGE_OVERHEAD)
        self.finish(lane, position, position + 1)

    def release_at(self, location: int, lane: Lane, position: int) -> None:
        """`lane` is done with the message at `position`, which nobody has read back from `location`."""
        self.leave(location)
        self.finish(lane, position, position + 1)

    def finish(self, lane: Lane, first: int, end: int) -> None:
        """`lane` is done with all from `first` up to, not including, `end`: the next batch says so.

        Their places in segments are given up by `leave`, one by one.
        """
        if lane.is_dropped:
            return
        lane.add(first, end)
        if lane.run_count and first == lane.run_first + lane.run_count:
            lane.run_count += end - first
            return
        if lane.run_count:
            self._runs.append(encode_run(lane.queue, lane.key | lane.run_first, lane.run_count))
        lane.run_first = first
        lane.run_count = end - first
        if not lane.is_dirty:
            self._mark(lane)

    def leave(self, location: int) -> None:
        """A queue needs the message at `location` no more, and its lane says so already."""
        segment = self.segments[location >> _SEGMENT_SHIFT]
        self._leave(location, segment.live_octets // segment.live)

    def do_some(self, chore: Callable[[], bool]) -> None:
        """Call `chore` with each batch, for as long as it answers that there is more of it to do."""
        self._chores.append(chore)
        if not self._is_announced:
            self._announce()

    def reached(self, lane: Lane, position: int) -> None:
        """Everything in `lane` before `position` is handed out; it is redelivered if it comes back."""
        if position > lane.reached:
            lane.reached = position
            lane.has_reached = True
            if position > lane.reserved and self._delivered is not None:
                self._delivered.reserve(lane)
            if not lane.is_dirty:
                self._mark(lane)

    def reader(self) -> Reader:
        """Reads back what lies before `written`."""
        return self._reader

    def tend(self) -> None:
        """Begin to give back disk, if much is taken by what nobody needs: ask for it now and then."""
        if self._is_closed or self._on_closed is not None:
            return
        is_new = self._dirty_lanes and not self._is_mentioned
        if (is_new or len(self._dead) != self._dead_seen) and not self._is_announced:
            # Found when the store was opened, and nothing was written since.
            self._announce()
        if self._compaction is None:
            segment = worth_moving(self.segments.values())
            if segment is not None:
                self._compaction = Compaction(segment, self._disk, self.segments, self.lanes)
                if not self._is_announced:
                    self._announce()

    def drop(self, lane: Lane) -> None:
        """The queue of `lane` is gone: what is done with it need not be written any more."""
        lane.is_dropped = True
        del self.lanes[lane.queue, lane.level]
        if self._delivered is not None:
            self._delivered.drop(lane)

    def commit(self) -> None:
        """Write what is pending, unless a batch is being written: then it goes with the next."""
        self._is_announced = False
        self._is_mentioned = False
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
        """Try the batch that failed once more, as when the disk has room again."""
        if self._retried and not self._is_busy:
            self._submit(self._retried)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; also after a failure."""
        self._on_closed = on_closed
        self._compaction = None
        self._chores.clear()
        if not self._is_busy:
            self.commit()
        self._end_if_done()

    @property
    def is_idle(self) -> bool:
        """True when everything that was appended is safe, or never will be."""
        return not (self._is_busy or self._is_wanted() or self._dirty_lanes)

    # --- private -------------------------------------------------------------------------------

    def _note_queue(self, lane: Lane) -> None:
        """The segment that is written to has messages of the queue of `lane`."""
        last = self._log.last
        lane.noted_in = last.number
        last.queues.add(lane.queue)

    def _announce(self) -> None:
        self._is_announced = True
        self._port.dirty()

    def _mention(self) -> None:
        self._is_mentioned = True
        self._port.settled()

    def _add_pending(self, size: int) -> None:
        """So much more is in memory until the next batch: beyond the bound, the port is told, once."""
        before = self._pending_size
        self._pending_size = before + size
        if before <= _PENDING_SIZE_MAX < before + size:
            self._port.is_behind()

    def _mark(self, lane: Lane) -> None:
        lane.is_dirty = True
        self._dirty_lanes.append(lane)
        if not self._is_announced and not self._is_mentioned:
            self._mention()

    def _encode_batch(self) -> list[Step]:
        """Everything pending as steps for the disk; none if all of it was released again."""
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
        if self._chores and not self._chores[-1]():
            self._chores.pop()
        if self._compaction is not None:
            self._compact(self._compaction)
        self._encode_state()
        if self._pending_size > _PENDING_SIZE_MAX:
            self._port.has_caught_up()
        self._pending_size = 0
        return log.finish()

    def _encode_messages(
        self, pending: list[StoredMessage], references: list[bytes | list[bytes]], first: int, end: int
    ) -> None:
        """Append those from `first` up to `end` that somebody needs still."""
        log = self._log
        for place in range(first, end):
            message = pending[place]
            if message.references:
                joined = references[place]
                if isinstance(joined, list):
                    joined = b"".join(joined)
                log.append_message(message, joined)

    def _encode_groups(self, pending: list[StoredMessage], references: list[bytes | list[bytes]]) -> int:
        """Append what belongs together, and what stands between; answers the place behind the last group."""
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
            self._log.append_group(group.mark, group.value, size)
            self._encode_messages(pending, references, group.first, group.end)
            place = group.end
        return place

    def _note_queues(
        self, pending: list[StoredMessage], references: list[bytes | list[bytes]], begun: int
    ) -> None:
        """Segments behind `begun`, begun among `pending`, know of the queues with these `references`."""
        for message, joined in zip(pending, references, strict=True):
            if message.location >> _SEGMENT_SHIFT > begun:
                parts = joined if isinstance(joined, list) else [joined]
                queues = self.segments[message.location >> _SEGMENT_SHIFT].queues
                for octets in parts:
                    queues.update(uint32(octets, at) for at in range(0, len(octets), _REFERENCE_SIZE_ON_DISK))

    def _compact(self, compaction: Compaction) -> None:
        """Copy some of what is alive in a segment of which most is dead."""
        try:
            compaction.copy(self._log)
        except (OSError, SegmentError) as error:
            # What can be read of it stays where it is.
            compaction.segment.is_sealed = False
            self._compaction = None
            self._port.unreadable(error)

    def _encode_state(self) -> None:
        """What lanes are done with and have reached since the last batch; all of it, from dead segments."""
        log = self._log
        lanes, self._dirty_lanes = self._dirty_lanes, []
        runs, self._runs = self._runs, []
        reached: list[bytes] = []
        for lane in lanes:
            lane.is_dirty = False
            if lane.run_count:
                runs.append(encode_run(lane.queue, lane.key | lane.run_first, lane.run_count))
                lane.run_count = 0
            if lane.has_reached:
                reached.append(encode_reference(lane.queue, lane.key | lane.reached))
                lane.has_reached = False
                if lane.ahead > _AHEAD_KEPT:
                    lane.ahead >>= 2
        self._bury(log.sealed_dead())
        if len(self._dead) != self._dead_seen:
            lanes += self._retire_dead(runs, reached)
        begun = log.last.number
        log.append_parts(RELEASE, runs)
        log.append_parts(REACHED, reached)
        # What does not fit into one segment stands in two: both must not go before it is written anew.
        for number in range(begun, log.last.number + 1) if lanes else ():
            self.segments[number].lanes.update(lanes)

    def _retire_dead(self, runs: list[bytes], reached: list[bytes]) -> list[Lane]:
        """Let the dead segments go, with their marks written anew, and their other state added to the rest.

        Answers the lanes whose state that is. Nothing happens while it would take a good part of the room
        that is won: it would fill segments that are dead themselves.
        """
        lanes = {lane for segment in self._dead for lane in segment.lanes if not lane.is_dropped}
        numbers = {segment.number for segment in self._dead}
        marks = [mark for mark in self.marks.values() if mark.segment in numbers]
        needed = [(lane, lane.runs()) for lane in lanes]
        size = sum(REFERENCE_SIZE + RUN_SIZE * len(its_runs) for _, its_runs in needed)
        size += sum(group_record_size(mark.key, mark.value) for mark in marks)
        self._dead_seen = len(self._dead)
        if size * DEAD_PER_STATE_MIN > sum(segment.capacity for segment in self._dead):
            return []
        for lane, its_runs in needed:
            runs += [encode_run(lane.queue, lane.key | first, end - first) for first, end in its_runs]
            reached.append(encode_reference(lane.queue, lane.key | lane.reached))
        for mark in marks:
            self._log.append_group(mark, mark.value, 0)
        for segment in self._dead:
            self._log.retire(segment)
        self._dead.clear()
        self._dead_seen = 0
        return list(lanes)

    def _leave(self, location: int, octets: int) -> None:
        """A queue is done with a message of `octets` that it has at `location`."""
        segment = self.segments[location >> _SEGMENT_SHIFT]
        at = location - (segment.number << _SEGMENT_SHIFT)
        if segment.moved is not None:
            moved_to = segment.moved.find(at)
            if moved_to:
                self._leave(moved_to, octets)
        if segment.gone is not None:
            segment.gone.add(slot_of(at), slot_of(at) + 1)
        segment.leave(1, octets)
        if not segment.live:
            if segment.is_gone:
                del self.segments[segment.number]
            elif segment.is_sealed and not segment.is_dying:
                self._bury([segment])
                if not self._is_announced:
                    self._announce()

    def _bury(self, segments: list[Segment]) -> None:
        """The files of `segments` can be let go."""
        for segment in segments:
            segment.is_dying = True
        self._dead += segments

    def _advance(self) -> None:
        """What was copied is written: say so, and go on with it."""
        compaction = self._compaction
        if compaction is None:
            return
        self._bury(compaction.settle())
        if compaction.is_over or compaction.segment.is_dying:
            if not compaction.segment.is_dying:
                self._bury([compaction.segment])
            self._compaction = None
            self.tend()

    def _is_wanted(self) -> bool:
        """True if there is something to write that somebody waits for."""
        return bool(self._pending or self._groups or self._waiting or self._asking)

    def _has_more(self) -> bool:
        """True if there is something to write that is much, though nobody waits for it."""
        return self._compaction is not None or len(self._dead) != self._dead_seen or bool(self._chores)

    def _submit(self, steps: list[Step]) -> None:
        self._is_busy = True
        self._retried = steps
        self._disk.submit(steps, self._done)

    def _done(self, error: OSError | None) -> None:
        """The job has ended."""
        self._is_busy = False
        if error is not None:
            self.failure = error
            self._port.failed(error, is_full=error.errno in PASSING)
            self._end_if_done()
            return
        self._retried = []
        # Nothing is appended to the log while a job is under way.
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
            # When the turn is over: what else has come to the sockets shares the sync.
            if not self._is_announced:
                self._announce()
        elif self._dirty_lanes:
            self._mention()
        else:
            self._end_reserving()
        self._end_if_done()

    def _end_reserving(self) -> None:
        """Nothing is under way: what is noted as handed out need not be ahead."""
        if self._delivered is not None:
            self._delivered.take_back()

    def _confirm(self) -> None:
        waiting, self._batch_waiting = self._batch_waiting, []
        for confirmation, first, last in waiting:
            confirmation.done(first, last)

    def _end_asking(self) -> None:
        """Whoever asks next has numbers of its own."""
        if self._asking is not None:
            self._waiting.append((self._asking, self._asked_first, self._asked_last))
            self._asking = None

    def _end_if_done(self) -> None:
        if self._on_closed is not None and (self.is_idle or self.failure is not None):
            on_closed, self._on_closed = self._on_closed, None
            self._is_closed = True
            self._end_reserving()
            on_closed()
