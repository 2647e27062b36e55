"""A replica that follows receives a snapshot with its messages, and continues with it."""

import pytest
from tests.unit.queues.quorum.followers import Bodies, Follower, applied
from tests.unit.queues.quorum.test_kept_dead_letters import KeepingPlace
from tests.unit.queues.samples import sent
from tests.unit.store.test_recovery import Promise
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read
from tests.unit.vhost.places import bodies as bodies_in

from warren.errors import AmqpError, InternalError
from warren.model.coroutine_driver import drive
from warren.queues.quorum.batch_codec import (
    Enqueue,
    Enqueuer,
    HeldRun,
    HoldReason,
    QuorumBatch,
    QuorumFormatError,
    Reach,
    ReturnedRun,
    SettledRun,
    SettleReason,
)
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.store.group_record import PositionRun

OTHER = Enqueuer(2, 1)
# Seven messages were published on the other node; the third and the fifth are settled.
FIRST = QuorumBatch(
    runs=(PositionRun(0, 0, 6), PositionRun(4, 0, 1)),
    enqueued=(Enqueue(OTHER, 1, 7),),
    reaches=(Reach(0, 2), Reach(4, 1)),
    settled=tuple(
        SettledRun(0, position, 1, size=1, reason=SettleReason.ACKNOWLEDGED) for position in (2, 4)
    ),
)
BODIES: Bodies = {(0, 0): b"a", (0, 1): b"b", (0, 3): b"d", (0, 5): b"f", (4, 0): b"high"}
ENDS = {0: 6, 4: 1}


def install(follower: Follower, *batches: QuorumBatch, index: int = 9) -> QuorumMachine:
    """Have the follower get a snapshot with these batches behind the first one."""
    machine = applied(FIRST, *batches)
    follower.receive(BODIES)
    follower.step(index, machine.encode(), ENDS)
    follower.write()
    return machine


def ready(follower: Follower) -> list[tuple[bytes, int]]:
    """The ready messages and their attempts, in order."""
    return [(peeked.message.body, peeked.attempts) for peeked in follower.queue.peek(0, 99)]


def test_a_snapshot_is_answered_and_installed_when_it_is_synced_and_not_before() -> None:
    follower = Follower()
    machine = applied(FIRST)
    follower.receive(BODIES)
    follower.step(9, machine.encode(), ENDS)
    follower.store.commit()
    assert (follower.answers, follower.group.machine.last_number(OTHER)) == ([], 0)
    follower.write()
    assert (follower.answers, follower.group.machine.last_number(OTHER)) == ([9], 7)
    assert follower.group.machine.encode() == machine.encode()
    status = follower.queue.replication_status()
    assert status is not None
    assert (status.last_index, status.applied_index, status.snapshot_index) == (9, 9, 9)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_empty_replica_has_the_messages_of_a_snapshot_when_it_leads(is_restarted: bool) -> None:
    follower = Follower()
    install(follower)
    if is_restarted:
        follower.disk.lose_power()
        follower.open()
    follower.lead()
    # What is below the reach may have been delivered.
    assert ready(follower) == [(b"high", 1), (b"a", 1), (b"b", 1), (b"d", 0), (b"f", 0)]
    # The next messages continue the positions.
    follower.queue.publish(sent("next", delivery_mode=2), None, 0)
    follower.write()
    assert ready(follower)[-1] == (b"next", 0)
    assert (follower.log.end(0), follower.log.end(4)) == (7, 1)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_newer_snapshot_replaces_entries_machine_and_messages(is_restarted: bool) -> None:
    follower = Follower()
    # One that was settled by an entry, as is known when that is applied, one that is void, and one that is
    # appended in the same run.
    old = QuorumBatch(runs=(PositionRun(0, 0, 3),), enqueued=(Enqueue(Enqueuer(3, 1), 1, 3),))
    follower.append(old, [b"old 0", b"old 1", b"old 2"])
    settled = (SettledRun(0, 1, 1, size=5, reason=SettleReason.DROPPED),)
    follower.append(QuorumBatch(settled=settled), [], commit=1)
    void = QuorumBatch(runs=(PositionRun(0, 3, 1),), enqueued=(Enqueue(Enqueuer(3, 1), 4, 1),))
    follower.append(void, [b"void"], commit=2)
    follower.write()
    follower.open()
    follower.log.cut(3)
    follower.append(void, [b"new entry"], commit=2)
    follower.write()
    assert sum(segment.live for segment in follower.store.segments.values()) == 3
    machine = install(follower)
    # The space of all old messages is free.
    assert sum(segment.live for segment in follower.store.segments.values()) == len(BODIES)
    assert follower.group.machine.encode() == machine.encode()
    if is_restarted:
        follower.disk.lose_power()
        follower.open()
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"high", b"a", b"b", b"d", b"f"]
    assert follower.group.machine.last_number(Enqueuer(3, 1)) == 0


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_snapshot_replaces_one_that_is_not_synced_yet(is_restarted: bool) -> None:
    follower = Follower()
    follower.receive({(0, 0): b"first 0", (4, 1): b"first 1"})
    follower.step(7, QuorumMachine().encode(), {0: 1, 4: 2})
    follower.store.commit()
    install(follower)
    assert follower.answers == [7, 9]
    assert sum(segment.live for segment in follower.store.segments.values()) == len(BODIES)
    if is_restarted:
        follower.disk.lose_power()
        follower.open()
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"high", b"a", b"b", b"d", b"f"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_returned_and_quarantined_messages_of_a_snapshot_are_so_when_it_leads(is_restarted: bool) -> None:
    follower = Follower()
    returned = QuorumBatch(
        returned=tuple(ReturnedRun(0, position, 1, 2, total) for position, total in ((0, 9), (1, 5), (5, 3)))
    )
    held = QuorumBatch(held=tuple(HeldRun(level, 0, 1, HoldReason.QUARANTINED) for level in (0, 4)))
    install(follower, returned, held)
    if is_restarted:
        follower.disk.lose_power()
        follower.open()
    follower.lead()
    assert ready(follower) == [(b"b", 5), (b"d", 0), (b"f", 3)]
    quarantined = follower.queue.quarantined(0, 9)
    assert [(peeked.message.body, peeked.attempts) for peeked in quarantined] == [(b"high", 1), (b"a", 9)]
    # It may be delivered as often again.
    assert follower.queue.release_quarantined(quarantined[1].place)
    assert ready(follower)[0] == (b"a", 1)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_messages_of_a_snapshot_that_died_are_dead_letters_when_it_leads(is_restarted: bool) -> None:
    place = KeepingPlace()
    target = place.target("target")
    follower = Follower(host=place.vhost, settings=place.q.settings)
    held = QuorumBatch(held=(HeldRun(0, 3, 1, HoldReason.REJECTED),))
    machine = applied(FIRST, held)
    follower.receive({each: body for each, body in BODIES.items() if each[0] == 0})
    follower.step(9, machine.encode(), {0: 6})
    follower.write()
    if is_restarted:
        follower.disk.lose_power()
        follower.open()
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"a", b"b", b"f"]
    status = follower.queue.replication_status()
    assert status is not None
    assert (status.dead_letter_count, bodies_in(target)) == (1, "d")


def test_messages_of_a_snapshot_that_is_behind_are_void() -> None:
    follower = Follower()
    install(follower)
    follower.receive({(0, 0): b"late", (0, 2): b"later"})
    follower.step(8, QuorumMachine().encode(), {0: 3})
    follower.write()
    assert follower.answers == [9, 9]
    assert sum(segment.live for segment in follower.store.segments.values()) == len(BODIES)
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"high", b"a", b"b", b"d", b"f"]


def test_messages_of_a_snapshot_that_does_not_come_are_void() -> None:
    follower = Follower()
    install(follower)
    follower.receive({(0, 0): b"late", (0, 2): b"later"})
    follower.group.discard_received()
    follower.write()
    assert sum(segment.live for segment in follower.store.segments.values()) == len(BODIES)
    install(follower, index=10)
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"high", b"a", b"b", b"d", b"f"]


def test_a_snapshot_of_a_newer_version_is_refused_and_changes_nothing() -> None:
    follower = Follower()
    machine = applied(FIRST).encode()
    follower.receive(BODIES)
    with pytest.raises(QuorumFormatError, match="machine of version 9"):
        follower.step(9, b"\x09" + machine[1:], ENDS)
    follower.write()
    assert (follower.log.last, follower.log.hard.term, follower.answers) == (0, 0, [])


def test_what_was_published_at_a_replica_that_follows_is_refused() -> None:
    follower, promise = Follower(), Refusals()
    for sequence in (1, 2):
        follower.queue.publish(sent("x", delivery_mode=2), promise, sequence)
    purging = Purge(follower.queue)
    # The first message of a snapshot says that somebody leads.
    follower.receive({(0, 0): b"early"})
    assert (promise.refusals, promise.done_numbers) == ([1, 2], [])
    follower.group.discard_received()
    install(follower)
    assert (promise.refusals, promise.done_numbers) == ([1, 2], [])
    proposals = follower.group.proposals
    assert (proposals.pending_count, proposals.pending_bytes) == (0, 0)
    assert isinstance(purging.error, InternalError)
    follower.lead()
    assert [body for body, _ in ready(follower)] == [b"high", b"a", b"b", b"d", b"f"]


class Purge:
    """Purges a queue, and notes the error."""

    def __init__(self, queue: QuorumQueue) -> None:
        self.error: AmqpError | None = None
        drive(self._purge(queue))

    async def _purge(self, queue: QuorumQueue) -> None:
        try:
            await queue.purge()
        except AmqpError as error:
            self.error = error


class Refusals(Promise):
    """A publisher that notes what was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[int] = []

    def refused(self, sequence: int) -> None:
        self.refusals.append(sequence)


def test_a_replica_that_leads_receives_no_snapshot() -> None:
    follower = Follower()
    install(follower)
    follower.lead()
    with pytest.raises(AssertionError, match="who leads receives no snapshot"):
        follower.receive(BODIES)
