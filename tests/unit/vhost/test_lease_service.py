"""Leases as they live: who has what, until when, and what becomes of it when something ends."""

from collections.abc import Callable, Iterator

import pytest
from tests.unit.queues.samples import sent

from warren.errors import InternalError, NotFound, ResourceError
from warren.limits import LEASED_PER_TURN, LEASES_MAX
from warren.metadata.commands import (
    CommandContext,
    DeclareQueue,
    DeleteQueue,
    GrantLease,
    MetadataCommand,
    PutVhost,
    Reply,
)
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.machine import Metadata
from warren.model.arguments import DEFAULT_SETTINGS
from warren.queues.classic import ClassicQueue
from warren.routing.router import Router
from warren.vhost.coroutine_driver import drive
from warren.vhost.lease_service import LeaseRequest, LeaseService, LeaseServiceDependencies
from warren.vhost.vhost import VirtualHost


class World:
    """A virtual host with one queue, whose turns come when they are asked for."""

    def __init__(self) -> None:
        self.metadata = Metadata()
        self.turns: list[Callable[[int], None]] = []
        self.failure: InternalError | None = None
        self.retries: list[Callable[[], None]] = []
        self.apply(PutVhost(name="v"))
        self.apply(DeclareQueue(vhost="v", name="q", durable=True))
        self.vhost = VirtualHost("v", Router("v"), 1_000)
        self.queue = ClassicQueue("q", "v", self.vhost, DEFAULT_SETTINGS)
        self.vhost.queues["q"] = self.queue
        self.lease_service = self.begun()

    def begun(self) -> LeaseService:
        world = LeaseServiceDependencies(
            metadata=self.metadata,
            proposals=self,
            later=self.turns.append,
            after=lambda _, action: self.retries.append(action),
        )
        lease_service = LeaseService(self.vhost, world)
        for _ in lease_service.restore():
            pass
        return lease_service

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
            octets=wanted.get("octets", 1 << 30), ttl_ms=wanted.get("ttl_ms", 500),
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
def world() -> World:
    return World()


def bodies(world: World, lease: LeaseRecord) -> list[str]:
    held = world.lease_service.held[lease.id]
    return ["" if one is None else one.message.body.decode() for one in held.deliveries]


def test_what_is_on_lease_is_out_of_its_queue_until_it_is_settled(world: World) -> None:
    world.publish(5)
    lease = world.granted(messages=3)
    assert bodies(world, lease) == ["0", "1", "2"]
    assert (lease.places, lease.messages, lease.octets) == ((0, 3), 3, 3)
    assert (world.queue.message_count, world.queue.unacked_count) == (2, 3)
    world.end(lease, LeaseState.SETTLED)
    assert (world.queue.message_count, world.queue.unacked_count) == (2, 0)
    assert not world.lease_service.held


def test_many_are_taken_and_settled_in_turns(world: World) -> None:
    count = 3 * LEASED_PER_TURN
    world.publish(count)
    answers = world.grant()
    assert (answers, world.queue.unacked_count) == ([], LEASED_PER_TURN)
    world.go_on()
    [lease] = answers
    assert isinstance(lease, LeaseRecord)
    assert lease.messages == count
    drive(world.lease_service.end(lease.id, LeaseState.SETTLED, "u"))
    assert world.queue.unacked_count == count
    world.turns.pop(0)(0)
    assert world.queue.unacked_count == 2 * LEASED_PER_TURN
    world.go_on()
    assert world.queue.unacked_count == 0


def test_leases_have_no_more_messages_together_than_a_vhost_may_have_on_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.vhost.lease_service.LEASED_MESSAGES_MAX", 5)
    world.publish(9)
    first = world.granted("1", "first", messages=3)
    second = world.granted("2", "second", messages=3)
    assert (first.messages, second.messages) == (3, 2)
    [refused] = world.grant("3", "third", messages=3)
    assert isinstance(refused, ResourceError)
    assert "5 messages on lease" in str(refused)
    world.end(first, LeaseState.SETTLED)
    assert world.granted("3", "third", messages=9).messages == 3


def test_a_lease_has_no_more_ranges_of_places_than_the_log_takes_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.vhost.lease_service.LEASE_RANGES_MAX", 2)
    monkeypatch.setattr("warren.vhost.lease_service.LEASED_PER_TURN", 1)
    world.publish(9)
    for peeked in world.queue.peek(0, 9)[1::2]:
        delivery = world.queue.take(peeked)
        assert delivery is not None
        world.queue.release(delivery)
    [lease] = (world.grant(), world.go_on())[0]
    assert isinstance(lease, LeaseRecord)
    assert lease.places == (0, 1, 2, 3)


def test_who_asks_with_the_same_key_meanwhile_waits_for_the_same_lease(world: World) -> None:
    world.publish(2 * LEASED_PER_TURN)
    first, second = world.grant("1"), world.grant("2")
    assert (first, second) == ([], [])
    world.go_on()
    assert first == second
    assert world.queue.message_count == 0


def test_what_expires_goes_back_redelivered(world: World) -> None:
    world.publish(2)
    lease = world.granted(ttl_ms=500)
    world.vhost.expire(1_499)
    assert world.state(lease) is LeaseState.ACTIVE
    world.vhost.expire(1_500)
    world.go_on()
    assert world.state(lease) is LeaseState.EXPIRED
    assert list(world.left()) == [("0", 1), ("1", 1)]


def test_an_end_that_cannot_be_written_is_tried_again(world: World) -> None:
    world.publish(1)
    lease = world.granted(ttl_ms=500)
    world.failure = InternalError("the disk")
    world.vhost.expire(2_000)
    assert world.state(lease) is LeaseState.ACTIVE
    assert len(world.retries) == 1
    world.failure = None
    world.retries.pop()()
    world.vhost.expire(2_001)
    world.go_on()
    assert world.state(lease) is LeaseState.EXPIRED


def test_a_lease_that_cannot_be_written_leaves_its_messages_in_the_queue(world: World) -> None:
    world.publish(3)
    world.failure = InternalError("the disk")
    [error] = world.grant()
    assert isinstance(error, InternalError)
    world.go_on()
    world.failure = None
    assert world.queue.message_count == 3
    assert world.granted("2").messages == 3


def test_a_queue_that_goes_meanwhile_has_no_lease(world: World) -> None:
    world.publish(2 * LEASED_PER_TURN)
    answers = world.grant()
    world.apply(DeleteQueue(vhost="v", name="q"))
    world.queue.delete()
    world.go_on()
    [error] = answers
    assert isinstance(error, NotFound)
    assert not world.lease_service.held


def test_a_queue_that_is_deleted_takes_its_leases_along(world: World) -> None:
    world.publish(3)
    world.granted()
    world.apply(DeleteQueue(vhost="v", name="q"))
    assert not world.lease_service.held
    assert not world.lease_service.leases.by_id
    world.vhost.expire(10_000)
    assert world.vhost.expiry.earliest() is None


def test_there_are_no_more_leases_than_may_be(world: World) -> None:
    world.publish(LEASES_MAX + 1)
    leases = [world.granted(str(number), str(number), messages=1) for number in range(LEASES_MAX)]
    [error] = world.grant("more", "more")
    assert isinstance(error, ResourceError)
    world.end(leases[0], LeaseState.SETTLED)
    assert world.granted("more", "more").messages == 1


def test_messages_of_a_lease_are_taken_again_where_they_are(world: World) -> None:
    world.publish(6)
    first = world.granted("1", "a", messages=2)
    settled = world.granted("2", "b", messages=2)
    drive(world.lease_service.end(settled.id, LeaseState.SETTLED, "u"))
    world.lease_service.close()
    # As after a crash that came before anything was acknowledged.
    world.queue = ClassicQueue("q", "v", world.vhost, DEFAULT_SETTINGS)
    world.vhost.queues["q"] = world.queue
    world.publish(6)
    world.lease_service = world.begun()
    assert bodies(world, first) == ["0", "1"]
    assert (world.queue.message_count, world.queue.unacked_count) == (2, 2)
    world.end(first, LeaseState.REQUEUED)
    assert list(world.left()) == [("0", 1), ("1", 1), ("4", 0), ("5", 0)]


def test_a_lease_that_was_granted_while_its_virtual_host_was_restarted_has_its_messages(world: World) -> None:
    world.publish(4)
    held = world.lease_service.held
    lease = world.granted(messages=2)
    world.lease_service.close()
    world.apply(DeleteQueue(vhost="v", name="q"))
    world.apply(DeclareQueue(vhost="v", name="q", durable=True))
    world.queue = ClassicQueue("q", "v", world.vhost, DEFAULT_SETTINGS)
    world.vhost.queues["q"] = world.queue
    world.publish(4)
    world.lease_service = world.begun()
    world.apply(GrantLease(vhost="v", lease=lease))
    world.go_on()
    assert held is not world.lease_service.held
    assert bodies(world, lease) == ["0", "1"]
    assert world.queue.message_count == 2
