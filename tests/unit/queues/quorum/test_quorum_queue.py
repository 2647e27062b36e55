"""A quorum queue on a disk: what has to be agreed on first, and in which order messages are delivered."""

import random
from typing import Protocol

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.queues.quorum.test_kept_dead_letters import KeepingPlace
from tests.unit.queues.samples import Host, Reader, sent
from tests.unit.store.test_recovery import Port
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read
from tests.unit.vhost.places import bodies

from warren.limits_raft import DEAD_LETTERS_RETRIED_MS, QUORUM_PRIORITY_MAX
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import QueueSettings
from warren.model.coroutine_driver import drive
from warren.queues.queue import Delivery
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.store.group_log import GroupLog
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores

NUMBER = 7


class Disk:
    """A store on a simulated disk, in which the queue is attached to has number `NUMBER`."""

    def __init__(self) -> None:
        chance = random.Random(1)
        self.files = SimulatedDisk(chance)
        dependencies = RecoveryDependencies(
            random_bytes=chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        self.store = open_store(self.files, Port(), dependencies).store
        self.stores = Stores(self.store, open_erased(SimulatedDisk(chance), Port(), chance.randbytes))

    def keep(self, queue: QuorumQueue) -> None:
        """Have `queue` here, open."""
        queue.attach_store(self.stores, NUMBER)
        self.write()
        assert queue.is_restored

    def write(self) -> None:
        """Write and sync everything, and what follows from that."""
        while not self.store.is_idle:
            self.store.commit()
            self.files.advance()


class Writer(Protocol):
    """What can write everything."""

    def write(self) -> None:
        """Write and sync everything, and what follows from that."""


def got(queue: QuorumQueue, disk: Writer) -> Delivery:
    """The first message of `queue`, with what has to be written for that."""
    found: list[tuple[Delivery, int] | None] = []

    async def fetch() -> None:
        found.append(await queue.fetch(False))

    drive(fetch())
    disk.write()
    [fetched] = found
    assert fetched is not None
    return fetched[0]


def test_a_dead_letter_is_published_when_the_death_is_committed_and_not_before() -> None:
    place, disk = KeepingPlace(), Disk()
    target = place.target("target")
    disk.keep(place.q)
    place.publish("a")
    disk.write()
    place.q.reject(got(place.q, disk))
    disk.store.commit()
    assert (place.waiting, bodies(target)) == ((1, 1), "")
    disk.write()
    assert (place.waiting, bodies(target)) == ((1, 1), "a")


@pytest.mark.parametrize("priority_max", [None, 9, QUORUM_PRIORITY_MAX])
@pytest.mark.parametrize("priority", [None, 0, 5])
@pytest.mark.parametrize("ttl_ms", [None, 100])
@pytest.mark.parametrize("is_full", [False, True])
def test_what_expires_is_kept_until_a_target_takes_it(
    priority_max: int | None, priority: int | None, ttl_ms: int | None, is_full: bool
) -> None:
    place, disk = KeepingPlace(), Disk()
    queue = place.quorum("expiring", message_ttl_ms=ttl_ms, priority_max=priority_max)
    full = place.full("full")
    if is_full:
        place.bind("amq.topic", full, "dead")
    disk.keep(queue)
    own = {} if ttl_ms else {"expiration": "100"}
    place.publish("abc", "expiring", priority=priority, **own)
    disk.write()
    place.turn(100)
    disk.write()
    status = queue.replication_status()
    assert status is not None
    assert (queue.message_count, status.dead_letter_count, status.dead_letter_bytes) == (0, 3, 3)
    target = place.target("target")
    full.apply_settings(QueueSettings())
    place.turn(DEAD_LETTERS_RETRIED_MS)
    for each in (full, target):
        each.write()
    disk.write()
    assert (bodies(target), queue.total_count, queue.persistent_count) == ("abc", 0, 0)


def test_what_is_applied_is_not_written_again_when_a_segment_is_freed() -> None:
    disk = Disk()
    queue = QuorumQueue("q", "/", Host(), QueueSettings(), incarnation=Incarnation(1, 1))
    disk.keep(queue)
    log = GroupLog.find(disk.store, NUMBER)
    assert log is not None
    for number in range(20):
        queue.publish(sent(f"{number}", delivery_mode=2), None, 0)
        disk.write()
    applied, entries = log.last, log.last - log.snapshot.index
    assert entries >= 20
    queue.publish(sent("last", delivery_mode=2), None, 0)
    disk.store.commit()
    # The entry of the last message is on its way. The store asks before it repeats what it needs of a group.
    assert log.state_size() < 20 * 40
    assert (log.snapshot.index, log.last) == (applied, applied + 1)
    disk.write()
    assert [got(queue, disk).message.body for _ in range(21)][-1] == b"last"


def test_a_message_does_not_overtake_one_of_a_higher_priority_that_waits_for_its_reach() -> None:
    disk, reader = Disk(), Reader()
    queue = QuorumQueue("q", "/", Host(), QueueSettings(priority_max=9), incarnation=Incarnation(1, 1))
    disk.keep(queue)
    # With this the next messages without a priority can be delivered at once.
    queue.publish(sent("first", delivery_mode=2), None, 0)
    disk.write()
    queue.acknowledge(got(queue, disk))
    queue.publish(sent("high", delivery_mode=2, priority=5), None, 0)
    queue.publish(sent("low", delivery_mode=2), None, 0)
    disk.store.commit()
    # The entry with both is on its way, and raises no reach, since nobody was there to whom they could go.
    queue.add_consumer(reader)
    disk.write()
    assert reader.bodies == [b"high", b"low"]


def test_nothing_is_delivered_any_more_when_the_node_stops() -> None:
    disk, reader = Disk(), Reader()
    queue = QuorumQueue("q", "/", Host(), QueueSettings(), incarnation=Incarnation(1, 1))
    disk.keep(queue)
    for body in "abc":
        queue.publish(sent(body, delivery_mode=2), None, 0)
    disk.write()
    assert got(queue, disk).message.body == b"a"
    ended: list[bool] = []
    queue.stop_delivering(lambda: ended.append(True))
    assert not ended
    queue.add_consumer(reader)
    queue.publish(sent("d", delivery_mode=2), None, 0)
    disk.write()
    # The reach that was agreed on before is not used any more.
    assert (ended, reader.bodies, queue.message_count) == ([True], [], 3)
    fetched: list[object] = []

    async def fetch() -> None:
        fetched.append(await queue.fetch(False))

    drive(fetch())
    assert fetched == [None]


def test_a_queue_whose_leadership_nobody_takes_over_delivers_again() -> None:
    disk, reader = Disk(), Reader()
    queue = QuorumQueue("q", "/", Host(), QueueSettings(), incarnation=Incarnation(1, 1))
    disk.keep(queue)
    for body in "ab":
        queue.publish(sent(body, delivery_mode=2), None, 0)
    disk.write()
    assert queue.group is not None
    queue.group.retire()
    queue.add_consumer(reader)
    # The group has no other member.
    disk.write()
    disk.write()
    assert reader.bodies == [b"a", b"b"]


def test_a_queue_in_memory_has_nothing_to_agree_on_when_the_node_stops() -> None:
    queue = QuorumQueue("q", "/", Host(), QueueSettings(), incarnation=Incarnation(1, 1))
    ended: list[bool] = []
    queue.stop_delivering(lambda: ended.append(True))
    assert ended == [True]
