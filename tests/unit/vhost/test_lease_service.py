"""Leases: which messages are reserved, until when, and what happens when a lease ends."""

from collections.abc import Callable, Iterator

import pytest
from tests.clock import ManualClock
from tests.unit.queues.samples import sent

from warren.errors import InternalError, NotFound, ResourceError
from warren.limits import LEASED_PER_TURN, LEASES_MAX
from warren.metadata.commands import (
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    Outcome,
    PutVhost,
    Reply,
)
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.machine import Metadata
from warren.model.arguments import DEFAULT_SETTINGS
from warren.model.coroutine_driver import NextTurn, drive
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery, PeekedMessage
from warren.routing.router import Router
from warren.vhost.failed_queues import FailedQueues
from warren.vhost.lease_service import LeasedMessages, LeaseRequest, LeaseService, LeaseServiceDependencies
from warren.vhost.vhost import VirtualHost


class LeaseHarness:
    """A virtual host with one queue, whose turns run when the test asks."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.turns: list[Callable[[int], None]] = []
        self.failure: InternalError | None = None
        self.retries: list[Callable[[], None]] = []
        self.apply(PutVhost(name="v"))
        self.apply(DeclareQueue(vhost="v", name="q", durable=True))
        self.clock = ManualClock(1_000)
        self.vhost = VirtualHost("v", Router("v"), self.clock.turn)
        self.queue = ClassicQueue("q", "v", self.vhost, DEFAULT_SETTINGS)
        self.vhost.queues["q"] = self.queue
        self.lease_service = self.begun()

    def begun(self) -> LeaseService:
        harness = LeaseServiceDependencies(
            metadata=self.metadata,
            proposals=self,
            later=self.turns.append,
            after=lambda _, action: self.retries.append(action),
        )
        lease_service = LeaseService(self.vhost, harness)
        for _ in lease_service.restore():
            pass
        return lease_service

    def expire(self, now: int) -> None:
        """Advance the time."""
        self.clock.now = now
        self.vhost.expire()

    is_in_doubt = False

    async def resolve(self) -> None:
        pass

    async def is_outdated(self, index: int) -> bool:
        raise AssertionError

    async def propose(self, command: MetadataCommand, user: str = "") -> Reply:
        if self.failure is not None:
            raise self.failure
        return self.apply(command)

    def apply(self, command: MetadataCommand) -> Reply:
        return self.metadata.apply(command, CommandContext(index=self.metadata.index + 1, now=0))

    def publish(self, count: int) -> None:
        for number in range(count):
            self.queue.publish(sent(str(number), delivery_mode=2), None, 0)

    def go_on(self) -> None:
        while self.turns:
            self.turns.pop(0)(0)

    def grant(self, id: str = "1", key: str = "k", **wanted: int) -> list[LeaseRecord | Exception | None]:
        lease_request = LeaseRequest(
            id=id, user="u", key=key, messages=wanted.get("messages", 10_000),
            byte_count=wanted.get("octets", 1 << 30), ttl_ms=wanted.get("ttl_ms", 500),
        )  # fmt: skip
        granted: list[LeaseRecord | Exception | None] = []

        async def ask() -> None:
            try:
                granted.append(await self.lease_service.grant(self.queue, lease_request))
            except (NotFound, InternalError, ResourceError) as error:
                granted.append(error)

        drive(ask())
        return granted

    def granted(self, id: str = "1", key: str = "k", **wanted: int) -> LeaseRecord:
        found = self.grant(id, key, **wanted)
        self.go_on()
        assert isinstance(found[0], LeaseRecord)
        return found[0]

    def end(self, lease: LeaseRecord, state: LeaseState) -> None:
        drive(self.lease_service.end(lease.id, state, "u"))
        self.go_on()

    def state(self, lease: LeaseRecord) -> LeaseState:
        return self.lease_service.leases.by_id[lease.id].state

    def left(self) -> Iterator[tuple[str, int]]:
        while (delivery := self.queue.get(no_ack=True)) is not None:
            yield delivery.message.body.decode(), delivery.attempts


@pytest.fixture
def harness() -> LeaseHarness:
    return LeaseHarness()


def bodies(harness: LeaseHarness, lease: LeaseRecord) -> list[str]:
    held = harness.lease_service.held[lease.id]
    return ["" if one is None else one.message.body.decode() for one in held.deliveries]


def test_leased_messages_are_unavailable_until_the_lease_is_acknowledged(harness: LeaseHarness) -> None:
    harness.publish(5)
    lease = harness.granted(messages=3)
    assert bodies(harness, lease) == ["0", "1", "2"]
    assert (lease.places, lease.messages, lease.byte_count) == ((0, 3), 3, 3)
    assert (harness.queue.message_count, harness.queue.unacked_count) == (2, 3)
    harness.end(lease, LeaseState.SETTLED)
    assert (harness.queue.message_count, harness.queue.unacked_count) == (2, 0)
    assert not harness.lease_service.held


def test_many_messages_are_leased_and_acknowledged_in_turns(harness: LeaseHarness) -> None:
    count = 3 * LEASED_PER_TURN
    harness.publish(count)
    answers = harness.grant()
    assert (answers, harness.queue.unacked_count) == ([], LEASED_PER_TURN)
    harness.go_on()
    [lease] = answers
    assert isinstance(lease, LeaseRecord)
    assert lease.messages == count
    drive(harness.lease_service.end(lease.id, LeaseState.SETTLED, "u"))
    assert harness.queue.unacked_count == count
    harness.turns.pop(0)(0)
    assert harness.queue.unacked_count == 2 * LEASED_PER_TURN
    harness.go_on()
    assert harness.queue.unacked_count == 0


def test_the_leased_messages_of_a_vhost_are_bounded(
    harness: LeaseHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.vhost.lease_service.LEASED_MESSAGES_MAX", 5)
    harness.publish(9)
    first = harness.granted("1", "first", messages=3)
    second = harness.granted("2", "second", messages=3)
    assert (first.messages, second.messages) == (3, 2)
    [refused] = harness.grant("3", "third", messages=3)
    assert isinstance(refused, ResourceError)
    assert "5 leased messages" in str(refused)
    harness.end(first, LeaseState.SETTLED)
    assert harness.granted("3", "third", messages=9).messages == 3


def test_the_ranges_of_positions_of_a_lease_are_bounded(
    harness: LeaseHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.vhost.lease_service.LEASE_RANGES_MAX", 2)
    monkeypatch.setattr("warren.vhost.lease_service.LEASED_PER_TURN", 1)
    harness.publish(9)
    for peeked in harness.queue.peek(0, 9)[1::2]:
        delivery = harness.queue.take(peeked)
        assert delivery is not None
        harness.queue.release(delivery)
    [lease] = (harness.grant(), harness.go_on())[0]
    assert isinstance(lease, LeaseRecord)
    assert lease.places == (0, 1, 2, 3)


def test_concurrent_requests_with_one_key_get_one_lease(harness: LeaseHarness) -> None:
    harness.publish(2 * LEASED_PER_TURN)
    first, second = harness.grant("1"), harness.grant("2")
    assert (first, second) == ([], [])
    harness.go_on()
    assert first == second
    assert harness.queue.message_count == 0


def test_messages_of_an_expired_lease_are_redelivered(harness: LeaseHarness) -> None:
    harness.publish(2)
    lease = harness.granted(ttl_ms=500)
    harness.expire(1_499)
    assert harness.state(lease) is LeaseState.ACTIVE
    harness.expire(1_500)
    harness.go_on()
    assert harness.state(lease) is LeaseState.EXPIRED
    assert list(harness.left()) == [("0", 1), ("1", 1)]


def test_an_end_that_cannot_be_written_is_retried(harness: LeaseHarness) -> None:
    harness.publish(1)
    lease = harness.granted(ttl_ms=500)
    harness.failure = InternalError("the disk")
    harness.expire(2_000)
    assert harness.state(lease) is LeaseState.ACTIVE
    assert len(harness.retries) == 1
    harness.failure = None
    harness.retries.pop()()
    harness.expire(2_001)
    harness.go_on()
    assert harness.state(lease) is LeaseState.EXPIRED


def test_a_lease_that_cannot_be_written_leaves_its_messages_in_the_queue(harness: LeaseHarness) -> None:
    harness.publish(3)
    harness.failure = InternalError("the disk")
    [error] = harness.grant()
    assert isinstance(error, InternalError)
    harness.go_on()
    harness.failure = None
    assert harness.queue.message_count == 3
    assert harness.granted("2").messages == 3


def test_a_queue_deleted_meanwhile_has_no_lease(harness: LeaseHarness) -> None:
    harness.publish(2 * LEASED_PER_TURN)
    answers = harness.grant()
    harness.apply(DeleteQueue(vhost="v", name="q"))
    harness.queue.delete()
    harness.go_on()
    [error] = answers
    assert isinstance(error, NotFound)
    assert not harness.lease_service.held


def test_deleting_a_queue_ends_its_leases(harness: LeaseHarness) -> None:
    harness.publish(3)
    harness.granted()
    harness.apply(DeleteQueue(vhost="v", name="q"))
    assert not harness.lease_service.held
    assert not harness.lease_service.leases.by_id
    harness.expire(10_000)
    assert harness.vhost.expiry.earliest() is None


def test_the_number_of_leases_is_bounded(harness: LeaseHarness) -> None:
    harness.publish(LEASES_MAX + 1)
    leases = [harness.granted(str(number), str(number), messages=1) for number in range(LEASES_MAX)]
    [error] = harness.grant("more", "more")
    assert isinstance(error, ResourceError)
    harness.end(leases[0], LeaseState.SETTLED)
    assert harness.granted("more", "more").messages == 1


def test_messages_of_a_lease_are_leased_again_after_a_restart(harness: LeaseHarness) -> None:
    harness.publish(6)
    first = harness.granted("1", "a", messages=2)
    settled = harness.granted("2", "b", messages=2)
    drive(harness.lease_service.end(settled.id, LeaseState.SETTLED, "u"))
    harness.lease_service.close()
    # As after a crash before anything was acknowledged.
    harness.queue = ClassicQueue("q", "v", harness.vhost, DEFAULT_SETTINGS)
    harness.vhost.queues["q"] = harness.queue
    harness.publish(6)
    harness.lease_service = harness.begun()
    assert bodies(harness, first) == ["0", "1"]
    assert (harness.queue.message_count, harness.queue.unacked_count) == (2, 2)
    harness.end(first, LeaseState.REQUEUED)
    assert list(harness.left()) == [("0", 1), ("1", 1), ("4", 0), ("5", 0)]


class OpeningQueue(ClassicQueue):
    """A queue whose messages are there some time after a restart."""

    waiting: Callable[[], None] | None = None
    is_restored = False

    def when_restored(self, callback: Callable[[], None]) -> None:
        self.waiting = callback


def test_a_lease_has_its_messages_again_when_its_queue_has_and_does_not_expire_before(
    harness: LeaseHarness,
) -> None:
    harness.publish(4)
    lease = harness.granted(messages=2, ttl_ms=500)
    harness.lease_service.close()
    harness.vhost.expiry.forget(harness.lease_service)
    harness.queue = queue = OpeningQueue("q", "v", harness.vhost, DEFAULT_SETTINGS)
    harness.vhost.queues["q"] = queue
    harness.lease_service = harness.begun()
    harness.expire(2_000)
    assert harness.state(lease) is LeaseState.ACTIVE
    assert not harness.lease_service.held
    harness.publish(4)
    assert queue.waiting is not None
    queue.waiting()
    assert bodies(harness, lease) == ["0", "1"]
    harness.expire(2_000)
    harness.go_on()
    assert harness.state(lease) is LeaseState.EXPIRED
    assert list(harness.left()) == [("0", 1), ("1", 1), ("2", 0), ("3", 0)]


def test_a_lease_granted_during_a_restart_of_its_vhost_has_its_messages(harness: LeaseHarness) -> None:
    harness.publish(4)
    held = harness.lease_service.held
    lease = harness.granted(messages=2)
    harness.lease_service.close()
    harness.apply(DeleteQueue(vhost="v", name="q"))
    harness.apply(DeclareQueue(vhost="v", name="q", durable=True))
    harness.queue = ClassicQueue("q", "v", harness.vhost, DEFAULT_SETTINGS)
    harness.vhost.queues["q"] = harness.queue
    harness.publish(4)
    harness.lease_service = harness.begun()
    harness.apply(GrantLease(vhost="v", lease=lease))
    harness.go_on()
    assert held is not harness.lease_service.held
    assert bodies(harness, lease) == ["0", "1"]
    assert harness.queue.message_count == 2


class LedQueue(ClassicQueue):
    """A queue of a group, whose messages have other places on this node than at other members."""

    __slots__ = ("has_ended", "offset")

    def __init__(self, harness: LeaseHarness, offset: int) -> None:
        super().__init__("q", "v", harness.vhost, DEFAULT_SETTINGS)
        self.offset = offset
        self.has_ended = False

    def lasting_place(self, place: int) -> int:
        return place + self.offset

    def place_here(self, lasting: int) -> int:
        return max(lasting - self.offset, 0)

    async def committed(self) -> None:
        if self.has_ended:
            raise InternalError("another node leads")


def led(harness: LeaseHarness, offset: int, count: int, first: int = 0) -> LedQueue:
    """The queue of the next leader on this node, with messages."""
    harness.queue = queue = LedQueue(harness, offset)
    for number in range(first, first + count):
        queue.publish(sent(str(number), delivery_mode=2), None, 0)
    return queue


def test_the_next_leader_takes_the_messages_of_leases_out_of_its_queue(harness: LeaseHarness) -> None:
    first = led(harness, 100, 6)
    active = harness.granted("1", "a", messages=2)
    assert active.places == (100, 102)
    settled = harness.granted("2", "b", messages=2)
    # Its messages are not acknowledged before the leader changes.
    drive(harness.lease_service.end(settled.id, LeaseState.SETTLED, "u"))
    harness.lease_service.leadership_ended(first)
    assert not harness.lease_service.held
    # The first message was settled, and the store of the next leader begins with the second one.
    next = led(harness, 101, 5, first=1)
    harness.lease_service.leadership_began(next)
    harness.lease_service.leadership_began(next)
    assert bodies(harness, active) == ["", "1"]
    assert (next.message_count, next.unacked_count) == (2, 1)
    harness.end(active, LeaseState.REQUEUED)
    assert list(harness.left()) == [("1", 1), ("4", 0), ("5", 0)]


def test_no_lease_is_granted_of_a_queue_that_has_ended_meanwhile(harness: LeaseHarness) -> None:
    queue = led(harness, 0, 3)
    queue.has_ended = True
    granted = harness.grant()
    harness.go_on()
    assert isinstance(granted[0], InternalError)
    assert not harness.lease_service.leases.by_id
    assert not harness.lease_service.held


class BrokenQueue(ClassicQueue):
    """A queue that raises an error when messages are looked at or returned."""

    def peek(self, first: int, count: int) -> list[PeekedMessage]:
        raise IndexError("planted")

    def requeue(self, delivery: Delivery, reason: int = 0) -> None:
        raise IndexError("planted")


class PlantedError(LeaseHarness):
    """A virtual host with `q`, in whose lease an error is planted, and `other`; it notes what fails."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when = when
        self.noted: list[str] = []
        self.apply(DeclareQueue(vhost="v", name="other", durable=True))
        self.other = ClassicQueue("other", "v", self.vhost, DEFAULT_SETTINGS)
        self.vhost.queues["other"] = self.other
        for queue in (self.queue, self.other):
            queue.publish(sent("a"), None, 0)
        self.vhost.contain_failures(
            FailedQueues(
                self.vhost.queues,
                self.vhost.router,
                log=lambda text, error: self.noted.append(f"{text}: {error}"),
                store_failed=lambda error: pytest.fail(str(error)),
                ended=lambda queue: None,
            )
        )

    def broken(self) -> BrokenQueue:
        """What stands for the queue `q` from now on."""
        made = BrokenQueue("q", "v", self.vhost, DEFAULT_SETTINGS)
        made.publish(sent("a"), None, 0)
        self.vhost.queues["q"] = made
        return made

    async def propose(self, command: MetadataCommand, user: str = "") -> Reply:
        if isinstance(command, EndLease) and command.id == "1" and self.when.startswith("expired"):
            if self.when == "expired later":
                await NextTurn(self.turns.append)
            raise IndexError("planted")
        return await super().propose(command, user)

    def lease(self, id: str, queue: str) -> None:
        """Lease the message in a queue, as another request was granted it."""
        lease = LeaseRecord(
            id=id, queue=queue, user="u", key=id, places=(0, 1), messages=1, byte_count=1, granted_at=1_000,
            expires_at=1_500,
        )  # fmt: skip
        reply = self.apply(GrantLease(vhost="v", lease=lease))
        assert reply.outcome is Outcome.DONE


@pytest.mark.parametrize("when", ["granted", "restored", "expired", "expired later", "released"])
def test_an_error_in_one_lease_ends_that_lease_and_no_other(when: str) -> None:
    harness = PlantedError(when)
    if when == "restored":
        harness.lease_service.close()
    if when in ("granted", "restored"):
        harness.broken()
    harness.lease("1", "q")
    harness.lease("2", "other")
    if when == "restored":
        harness.lease_service = harness.begun()
    held = harness.lease_service.held
    if when == "released":
        held["1"] = LeasedMessages(harness.broken(), held["1"].deliveries)
    assert bodies(harness, harness.lease_service.leases.by_id["2"]) == ["a"]
    harness.expire(1_500)
    harness.go_on()
    assert harness.noted == ["lease 1 of queue 'q' in vhost 'v' has failed: planted"]
    assert harness.vhost.failure_count == 1
    # The other one has expired.
    assert harness.other.message_count == 1
    assert harness.lease_service.ended_counts[LeaseState.EXPIRED] == (1 if when.startswith("expired") else 2)
