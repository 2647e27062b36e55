"""What the queue of a leader proposes to its group, from the first message of a batch to the commit.

    place, settle, returned ─▶ pending batch ─ prepare ─▶ entry ─ committed ─▶ queue, confirms, releases
                                               │ with the next write of the store

A message is appended to the store as it is published, so that it is written once for all queues that it was
routed to; what belongs to one write becomes entries behind its messages. Nothing is done before its entry is
committed: messages become ready then, publishers get their confirms, and what was settled is released.

Proposals end with the leadership for which they were made: what is not committed then may be so later, by
another leader, or never. From then on nothing of the former leader's queue has an effect.

Positions are those of the store; `GroupLog.logical` gives the ones that all members of the group share.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from warren.errors import InternalError
from warren.limits_raft import QUORUM_BATCH_SIZE, REACH_AHEAD_MAX, REACH_AHEAD_MIN
from warren.metadata.incarnation import Incarnation
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_ON_DISK, StoredMessage, body_size_of
from warren.queues.queue import Delivery
from warren.queues.quorum.batch_builder import BatchBuilder
from warren.queues.quorum.batch_codec import (
    Enqueuer,
    HoldReason,
    QuorumBatch,
    Reach,
    SettledRun,
    SettleReason,
    encode,
)
from warren.queues.quorum.pending_batch import PendingBatch, Waiting
from warren.queues.quorum.raft_storage import new_quorum_payload
from warren.replication.driver import RaftDriver
from warren.store.cursor import QueueCursor
from warren.store.group_log import GroupLog
from warren.store.group_record import PositionRun
from warren.store.message_store import MessageStore

_BODY_ON_DISK = BODY_ON_DISK
_BATCH_SIZE = QUORUM_BATCH_SIZE
# Looked up once: an attribute of an enum costs as much as the rest of settling a message.
_ACKNOWLEDGED = SettleReason.ACKNOWLEDGED


class GroupOwner(Protocol):
    """The queue, as its group sees it."""

    def opened(self) -> None:
        """The group leads, and has applied everything of earlier terms."""

    def stopped_leading(self, unanswered: list[PendingBatch]) -> None:
        """Another replica leads, or soon does; what was published may be committed later, or not."""

    def stop_delivering(self, ended: Callable[[], None]) -> None:
        """Deliver nothing any more; call `ended` when all agree on what was never delivered."""

    def keeps_leading(self) -> None:
        """No other replica leads after `stop_delivering`: deliver again."""

    def failed(self, error: Exception) -> None:
        """The group has raised `error` outside of any connection, and ends."""

    def enter(self, messages: list[StoredMessage], runs: Sequence[PositionRun]) -> None:
        """`messages` are committed; `runs` are their positions in the group."""

    def reached(self) -> None:
        """More messages can be delivered; `enter` looks for that by itself."""

    def delivers_at_once(self) -> bool:
        """True if messages are likely to be delivered as soon as they are committed."""


class GroupProposals:
    """The proposals of one leadership, or of one that may come."""

    __slots__ = (
        "_batches", "_builder", "_enqueuer", "_has_ended", "_log", "_number", "_opening", "_owner",
        "_pending", "_proposed", "_reach_asked", "_store", "_waiting", "is_closed", "is_open",
        "pending_bytes", "pending_count",
    )  # fmt: skip

    def __init__(
        self, log: GroupLog, store: MessageStore, owner: GroupOwner, incarnation: Incarnation
    ) -> None:
        self._log = log
        self._store = store
        self._owner = owner
        # True from when the group leads and has applied everything of earlier terms, while it does.
        self.is_open = False
        # True when the queue was deleted, and when the leadership has ended.
        self.is_closed = False
        self._has_ended = False
        # Messages that were published and are not committed, and the size of their bodies.
        self.pending_count = 0
        self.pending_bytes = 0
        # The numbers of the messages that this run of the node has published.
        self._enqueuer = Enqueuer(incarnation.node, incarnation.number)
        self._number = 0
        # What is gathered now, what waits to be proposed before it, and what is proposed.
        self._builder = BatchBuilder()
        self._pending = PendingBatch()
        self._batches: list[PendingBatch] = []
        self._proposed: list[PendingBatch] = []
        # Level -> the reach that was proposed last.
        self._reach_asked: dict[int, int] = {}
        # Who waits for the group to open, and what is called then.
        self._waiting: list[Waiting] = []
        self._opening: list[Callable[[], None]] = []

    # --- what the queue calls -------------------------------------------------------------------------

    @property
    def last_position(self) -> int:
        """The position in the store of the message that was published last."""
        return self._log.last_stored

    def place(
        self, message: StoredMessage, level: int, confirmation: ConfirmListener | None, sequence: int
    ) -> None:
        """Publish `message` with priority `level`; it enters the queue when that is committed."""
        pending = self._pending
        if pending.byte_count >= _BATCH_SIZE or self._builder.is_full:
            pending = self._next_batch()
        position = self._log.place(message, level)
        self._number += 1
        self._builder.enqueue(self._enqueuer, self._number, level, position)
        before = pending.byte_count
        pending.add(message)
        self.pending_count += 1
        self.pending_bytes += pending.byte_count - before
        if confirmation is not None:
            pending.confirm(confirmation, sequence)

    def place_as(self, message: StoredMessage, level: int, enqueuer: Enqueuer, number: int) -> None:
        """Publish `message` with priority `level`, which `enqueuer` has numbered; `confirm_last` follows."""
        pending = self._pending
        if pending.byte_count >= _BATCH_SIZE or self._builder.is_full:
            pending = self._next_batch()
        position = self._log.place(message, level)
        self._builder.enqueue(enqueuer, number, level, position)
        before = pending.byte_count
        pending.add(message)
        self.pending_count += 1
        self.pending_bytes += pending.byte_count - before

    def confirm_last(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Answer publish `sequence` of `confirmation` when everything that was proposed is committed.

        Only while something is not.
        """
        self._last_batch().confirm(confirmation, sequence)

    @property
    def enqueuer(self) -> Enqueuer:
        """The enqueuer whose messages `place` numbers."""
        return self._enqueuer

    @property
    def last_number(self) -> int:
        """The last number that `place` has given."""
        return self._number

    def settle(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Settle `message` at `position` of `cursor`: it is released when that is committed."""
        if self.is_closed:
            if not self._has_ended:
                self._drop(message)
                self._store.finish(cursor, position, position + 1)
            return
        level = cursor.level
        self._room().settle(level, self._log.logical(level, position), body_size_of(message), _ACKNOWLEDGED)
        self._pending.release(message, cursor, position)
        self._log.announce_later()

    def settle_range(self, cursor: QueueCursor, first: int, end: int, byte_count: int) -> None:
        """Settle the positions from `first` up to `end`, whose messages are released by another call.

        `byte_count` is the size of their bodies.
        """
        if self.is_closed:
            if not self._has_ended:
                self._store.finish(cursor, first, end)
            return
        level = cursor.level
        for low, high in self._log.logical_ranges(level, first, end):
            run = SettledRun(level, low, high - low, size=byte_count, reason=SettleReason.PURGED)
            self._room().settle_run(run)
            byte_count = 0
        self._pending.finish(cursor, first, end)
        self._log.announce_later()

    def hold(self, level: int, position: int, hold: HoldReason) -> None:
        """Record why the message at `position` is held, or that it is not any more."""
        if not self.is_closed:
            self._room().hold(level, self._log.logical(level, position), hold)
            self._log.announce()

    def returned(self, level: int, delivery: Delivery, ready_at: int) -> None:
        """Record that `delivery` of `level` came back, and is ready at `ready_at` (ms); 0 is at once."""
        if not self.is_closed:
            logical = self._log.logical(level, delivery.position)
            failed, total = delivery.failures, delivery.attempts
            self._room().return_counted(level, logical, failed, total, ready_at=ready_at)
            self._log.announce_later()

    def want_reach(self, level: int, position: int, count: int) -> None:
        """Make it possible to deliver `count` messages, or a few more, from `position` on."""
        logical = self._log.logical(level, position)
        if self._reach_asked.get(level, 0) <= logical:
            ahead = min(max(2 * count, REACH_AHEAD_MIN), REACH_AHEAD_MAX)
            self._reach_asked[level] = logical + ahead
            self._room().raise_reach(level, logical + ahead)
            self._log.announce()

    def retreat(self, positions: dict[int, int]) -> None:
        """Have the reach of each level go back to its position in `positions`: nothing beyond was handed out.

        Nothing at or above it may be delivered from now on.
        """
        if self.is_closed or not positions:
            return
        if not self._is_empty():
            self._next_batch()
        pending = PendingBatch()
        pending.batch = QuorumBatch(
            retreats=tuple(
                [Reach(level, self._log.logical(level, positions[level])) for level in sorted(positions)]
            )
        )
        self._batches.append(pending)
        self._reach_asked.clear()
        self._log.announce()

    def when_committed(self, callback: Callable[[], None]) -> None:
        """Call `callback` when everything that was proposed before is committed and applied.

        It is not called if the leadership ends before.
        """
        if self.is_closed:
            if not self._has_ended:
                callback()
        elif self.is_idle:
            if self.is_open:
                callback()
            else:
                self._opening.append(callback)
        else:
            self._last_batch().call_back(callback)
            self._log.announce()

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when everything that was proposed before is committed and applied.

        Nothing is written sooner for that. It is not called if the leadership ends before.
        """
        if self.is_idle:
            callback()
        elif not self._has_ended:
            self._last_batch().call_back(callback)

    def wait(self, waiting: "Committed") -> None:
        """Complete `waiting` when everything that was proposed before is committed, or never will be."""
        if self._has_ended:
            waiting.complete(is_lost=True)
        elif self.is_closed or (self.is_open and self.is_idle):
            waiting.complete()
        elif self.is_idle:
            self._waiting.append(waiting)
        else:
            self._last_batch().wait(waiting)
            self._log.announce()

    # --- what the group calls -------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """True if nothing was gathered, and all that was proposed is committed."""
        return self._is_empty() and not self._batches and not self._proposed

    @property
    def is_gathered(self) -> bool:
        """True if something was gathered that is not proposed yet."""
        return bool(self._batches) or not self._is_empty()

    @property
    def is_due(self) -> bool:
        """True if something waits to be proposed."""
        return bool(self._batches)

    def open(self, last_number: int) -> None:
        """Begin to lead: everything of earlier terms is applied.

        `last_number` is that of the last message that this run of the node has published.
        """
        self.is_open = True
        self._number = max(self._number, last_number)

    def call_waiting(self) -> None:
        """Call those who have waited for the group to open, or to be closed."""
        opening, self._opening = self._opening, []
        waiting, self._waiting = self._waiting, []
        for callback in opening:
            callback()
        for each in waiting:
            each.complete(is_lost=False)

    def forget(self, enqueuer: Enqueuer) -> None:
        """Have the numbers of `enqueuer` forgotten, which will publish no more."""
        self._room().forget(enqueuer)

    def propose(self, driver: RaftDriver) -> None:
        """Propose what was gathered, as far as `driver` takes it."""
        if not self._is_empty():
            self._next_batch()
        while self._batches and self._propose(self._batches[0], driver):
            self._proposed.append(self._batches[0])
            del self._batches[0]

    def next_proposed(self, index: int) -> PendingBatch:
        """The batch that is entry `index`, the first one that is not committed; `committed` follows."""
        pending: PendingBatch = self._proposed[0]
        del self._proposed[0]
        assert pending.index == index, f"entry {index} is committed, {pending.index} was proposed"
        return pending

    def committed(self, pending: PendingBatch) -> None:
        """Do what waits for the commit of `pending`, but the answers."""
        if pending.released:
            self._release_all(pending)
        else:
            pending.finish_released(self._store)
        self.pending_count -= len(pending.messages)
        self.pending_bytes -= pending.byte_count

    def end(self) -> list[PendingBatch]:
        """End with the leadership; returns what is not committed, in order. Others may commit it.

        What is in no entry yet is void.
        """
        self.is_closed = self._has_ended = True
        unanswered = self._take_all()
        self._log.unplace()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.complete(is_lost=True)
        for batch in unanswered:
            batch.lose()
        return unanswered

    def close(self) -> None:
        """Release everything, since the queue was deleted; whoever published to it gets a confirm."""
        self.is_closed = True
        was_open = self.is_open
        for batch in self._take_all():
            if was_open or not batch.index:
                # Otherwise they were released with the other entries of the log.
                for message, (cursor, position) in zip(batch.messages, self._places(batch), strict=True):
                    self._store.release(message, cursor, position)
            self._release_all(batch)
            batch.answer()
        self._log.drop()
        self.call_waiting()

    # --- private ----------------------------------------------------------------------------------

    def _take_all(self) -> list[PendingBatch]:
        """Take what is not committed, in order."""
        self.is_open = False
        self._pending.batch = self._builder.take()
        batches = [*self._proposed, *self._batches, self._pending]
        self._proposed.clear()
        self._batches.clear()
        self._pending = PendingBatch()
        self.pending_count = self.pending_bytes = 0
        return batches

    def _places(self, batch: PendingBatch) -> Iterator[tuple[QueueCursor, int]]:
        """The cursor and the position in the store of each message of `batch`."""
        log = self._log
        for run in batch.batch.runs:
            cursor = self._store.cursor(log.number, run.level)
            # The messages of a run are next to each other in the store as well.
            first = log.stored(run.level, run.first)
            for position in range(first, first + run.count):
                yield cursor, position

    def _next_batch(self) -> PendingBatch:
        """End the batch, and begin another one."""
        ended = self._pending
        if ended.messages and self._owner.delivers_at_once():
            self._builder.reach_enqueued()
        ended.batch = self._builder.take()
        self._batches.append(ended)
        self._pending = PendingBatch()
        return self._pending

    def _is_empty(self) -> bool:
        """True if nothing was gathered."""
        return not self._pending.messages and self._builder.is_empty()

    def _last_batch(self) -> PendingBatch:
        """The last batch that is not empty, while there is one."""
        if not self._is_empty():
            return self._pending
        return self._batches[-1] if self._batches else self._proposed[-1]

    def _room(self) -> BatchBuilder:
        """The builder of the batch that takes another command."""
        if self._builder.is_full:
            self._next_batch()
        return self._builder

    def _propose(self, pending: PendingBatch, driver: RaftDriver) -> bool:
        """Propose `pending`; False if too much is uncommitted."""
        batch = pending.batch
        commands = encode(batch)
        payload = new_quorum_payload(batch.runs, commands)
        payload.messages = pending.messages
        if batch.runs:
            payload.sizes = pending.sizes()
        pending.index = driver.propose(payload, len(commands) + pending.byte_count + 1)
        return pending.index > 0

    def _release_all(self, batch: PendingBatch) -> None:
        """Release the settled messages of `batch`."""
        for message in batch.released:
            self._drop(message)
        batch.finish_released(self._store)

    def _drop(self, message: StoredMessage) -> None:
        """Release what `message` takes in the store; its position is settled by `finish`."""
        if message.flags & _BODY_ON_DISK:
            self._store.drop_references(message.location)
        else:
            self._store.drop_message(message)


class Committed:
    """An awaitable that completes when everything that was proposed to a group before is committed.

    InternalError if another replica leads before: it may be committed, or not.
    """

    __slots__ = ("_callback", "_is_done", "_is_lost")

    def __init__(self, proposals: GroupProposals) -> None:
        self._callback: Callable[[object], None] | None = None
        self._is_done = False
        self._is_lost = False
        proposals.wait(self)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, when it is committed."""
        self._callback = callback

    def __await__(self) -> Generator["Committed", None, None]:
        if not self._is_done:
            yield self
        if self._is_lost:
            raise InternalError("the leader of the quorum queue has changed")

    def complete(self, *, is_lost: bool = False) -> None:
        """Continue who waits, with an error if it `is_lost`."""
        self._is_done = True
        self._is_lost = is_lost
        if self._callback is not None:
            self._callback(self)
