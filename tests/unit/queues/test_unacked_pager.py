"""Bodies of unacknowledged messages of a durable queue are dropped beyond its memory limit and read when
needed.
"""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.sim.disk import SimulatedDisk
from tests.unit.queues.samples import Host, Reader, drained, made, sent

from warren.errors import ConnectionForced
from warren.model.message import BODY_ON_DISK, HAS_EXPIRATION
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery
from warren.store.delivered import NAME
from warren.store.recovery import CATALOG, RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.stores import Stores

MEMORY_MAX = 100
BODIES = [b"%03d " % number + bytes(36) for number in range(10)]
NUMBER = 7


class Port(StorePort):
    """Nothing to do: the tests commit."""

    def __init__(self) -> None:
        self.reported: list[OSError | StoreFileError] = []

    def commit_due(self) -> None:
        """Nothing to do: the test commits the store."""

    def unreadable(self, error: OSError | StoreFileError) -> None:
        self.reported.append(error)


class Node:
    """A node with one queue, and the disk that stores its messages."""

    def __init__(self, **settings: object) -> None:
        self.chance = random.Random(0)
        self.disk = SimulatedDisk(self.chance)
        self.port = Port()
        self.host = Host()
        self.settings = settings
        self.stores = self.opened()
        self.queue = self.queue_of(NUMBER)

    def opened(self) -> Stores:
        dependencies = RecoveryDependencies(
            random_bytes=bytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        self.recovered: RecoveredStore = open_store(self.disk, self.port, dependencies)
        erased = open_erased(SimulatedDisk(self.chance), self.port, bytes)
        stores = Stores(self.recovered.store, erased)
        stores.queue_memory_max = MEMORY_MAX
        return stores

    def queue_of(self, number: int, **settings: object) -> ClassicQueue:
        queue = made(self.host, **(settings or self.settings))
        queue.attach_store(self.stores, number)
        return queue

    def publish(self, *bodies: bytes, delivery_mode: int = 2, **properties: object) -> None:
        for body in bodies:
            self.queue.publish(sent(body, delivery_mode=delivery_mode, **properties), None, 0)

    def write(self) -> None:
        while not self.stores.persistent.is_idle or self.disk.is_busy:
            self.stores.persistent.commit()
            self.disk.advance()

    def consume(self, count: int = len(BODIES)) -> list[Delivery]:
        """The deliveries of a consumer that is added and removed at once."""
        reader = Reader(prefetch=count)
        self.queue.add_consumer(reader)
        self.queue.remove_consumer(reader)
        return reader.unsettled

    def restarted(self) -> ClassicQueue:
        """The queue after a restart."""
        self.write()
        self.stores = self.opened()
        self.queue = self.queue_of(NUMBER)
        for level, found in self.recovered.queues.get(NUMBER, {}).items():
            self.queue.restore(level, found)
        return self.queue

    def fail(self, body: bytes, is_damaged: bool) -> None:
        """Damage `body` on disk, or make the disk fail at it."""
        ((name, file),) = [item for item in self.disk.files.items() if item[0] not in (CATALOG, NAME)]
        at = bytes(file.current).index(body)
        if not is_damaged:
            self.disk.unreadable = {name: range(at, at + 1)}
            return
        for data in (file.current, file.synced):
            data[at] ^= 1


def handed_out(*bodies: bytes, **settings: object) -> tuple[Node, list[Delivery]]:
    """A queue whose messages, written before, are unacknowledged."""
    node = Node(**settings)
    node.publish(*(bodies or BODIES))
    node.write()
    return node, node.consume()


def is_light(delivery: Delivery) -> bool:
    return bool(delivery.message.flags & BODY_ON_DISK)


def test_unacknowledged_messages_beyond_the_memory_limit_have_no_body() -> None:
    node = Node()
    node.publish(*BODIES, correlation_id="c", priority=3)
    node.write()
    reader = Reader()
    node.queue.add_consumer(reader)
    assert reader.bodies == BODIES
    assert [is_light(one) for one in reader.unsettled] == [False] * 2 + [True] * 8
    assert (node.queue.unacked_count, node.queue.unacked_bytes) == (10, 400)
    light = reader.unsettled[-1].message
    assert (light.body, light.routing_key, light.priority, light.is_persistent) == (b"", "q", 3, True)
    assert light.properties().correlation_id == "c"
    # Equal parts are shared.
    assert light.address is reader.unsettled[-2].message.address
    assert light.property_list is reader.unsettled[-2].message.property_list


def test_the_body_of_a_directly_delivered_message_is_dropped_once_it_is_written() -> None:
    node = Node()
    reader = Reader()
    node.queue.add_consumer(reader)
    node.publish(*BODIES)
    assert reader.bodies == BODIES
    assert not any(map(is_light, reader.unsettled))
    node.write()
    node.publish(b"next")
    assert [is_light(one) for one in reader.unsettled] == [False] * 2 + [True] * 8 + [False]
    node.write()
    node.stores.maintain()
    assert is_light(reader.unsettled[-1])
    assert not node.stores.paging


def test_messages_acknowledged_before_they_are_written_do_not_count() -> None:
    node = Node()
    reader = Reader()
    node.queue.add_consumer(reader)
    node.publish(*BODIES)
    for delivery in reader.unsettled[:6]:
        node.queue.acknowledge(delivery)
    node.write()
    node.stores.maintain()
    assert not node.stores.paging
    assert [is_light(one) for one in reader.unsettled[6:]] == [True] * 4
    assert node.queue.unacked_bytes == 160


def test_a_message_of_basic_get_has_its_body_until_it_is_sent() -> None:
    node = Node()
    node.publish(*BODIES)
    node.write()
    got = []
    for body in BODIES:
        delivery = node.queue.get()
        assert delivery is not None
        assert delivery.message.body == body
        got.append(delivery)
    node.stores.maintain()
    assert [is_light(one) for one in got] == [False] * 2 + [True] * 8


def test_transient_messages_and_transient_queues_keep_their_bodies() -> None:
    node = Node()
    node.publish(*BODIES, delivery_mode=1)
    deliveries = node.consume()
    node.queue = node.queue_of(0)
    node.publish(*BODIES)
    deliveries += node.consume()
    node.write()
    node.stores.maintain()
    assert [one.message.body for one in deliveries] == BODIES * 2


@pytest.mark.parametrize("settings", [{}, {"priority_max": 3}])
def test_requeued_messages_are_redelivered_complete_and_in_order(settings: dict[str, object]) -> None:
    node, deliveries = handed_out(**settings)
    for delivery in reversed(deliveries):
        node.queue.requeue(delivery)
    node.publish(b"later")
    assert (node.queue.message_count, node.queue.ready_bytes) == (11, 405)
    reader = Reader()
    node.queue.add_consumer(reader)
    assert reader.got == [*((body, True) for body in BODIES), (b"later", False)]
    assert sum(map(is_light, reader.unsettled)) == 8
    for delivery in reader.unsettled:
        node.queue.acknowledge(delivery)
    assert (node.queue.ready_bytes, node.queue.unacked_bytes) == (0, 0)
    assert node.restarted().is_empty


@pytest.mark.parametrize("settings", [{}, {"priority_max": 3}])
def test_only_the_body_is_read_when_the_rest_is_in_memory(settings: dict[str, object]) -> None:
    node, deliveries = handed_out(**settings)
    assert [node.queue.body(one) for one in deliveries] == BODIES
    assert [is_light(one) for one in deliveries] == [False] * 2 + [True] * 8


@pytest.mark.parametrize("is_damaged", [True, False])
def test_an_unreadable_body_is_reported_and_stays_unacknowledged(is_damaged: bool) -> None:
    node, deliveries = handed_out()
    node.fail(BODIES[4], is_damaged)
    with pytest.raises(ConnectionForced, match="cannot be read"):
        node.queue.body(deliveries[4])
    assert {type(error) for error in node.port.reported} == {StoreFileError if is_damaged else OSError}
    assert node.queue.unacked_count == len(BODIES)
    assert node.queue.body(deliveries[9]) == BODIES[9]


def test_a_consumer_without_acknowledgement_receives_requeued_messages() -> None:
    node, deliveries = handed_out()
    for delivery in deliveries:
        node.queue.requeue(delivery)
    reader = Reader(no_ack=True)
    node.queue.add_consumer(reader)
    assert reader.bodies == BODIES
    assert node.restarted().is_empty


def test_acknowledged_messages_are_gone_and_the_others_redelivered_after_a_restart() -> None:
    node, deliveries = handed_out()
    for delivery in deliveries[:3] + deliveries[4:9]:
        node.queue.acknowledge(delivery)
    assert drained(node.restarted()) == [BODIES[3], BODIES[9]]
    assert node.restarted().is_empty


def test_dropping_a_body_in_one_queue_leaves_that_of_others() -> None:
    node = Node()
    other = node.queue_of(NUMBER + 1)
    message = sent(BODIES[0], delivery_mode=2)
    node.stores.queue_memory_max = 0
    for queue in (node.queue, other):
        queue.publish(message, None, 0)
    node.write()
    (first,) = node.consume()
    second = other.get()
    assert second is not None
    assert (is_light(first), second.message is message) == (True, True)
    node.queue.acknowledge(first)
    assert second.message.body == BODIES[0]
    other.requeue(second)
    assert drained(other) == [BODIES[0]]
    assert node.restarted().is_empty


def test_dead_letters_have_their_bodies() -> None:
    node, deliveries = handed_out(dead=True, delivery_limit=1, length_bytes_max=400)
    node.queue.reject(deliveries[-1])
    node.queue.requeue(deliveries[-2])
    (again,) = node.consume()
    assert (is_light(again), again.attempts) == (True, 1)
    node.queue.requeue(again)
    node.publish(bytes(300))
    for delivery in deliveries[2:5]:
        node.queue.requeue(delivery)
    assert node.host.dead == [
        (BODIES[9], "rejected"),
        (BODIES[8], "delivery_limit"),
        (BODIES[2], "maxlen"),
    ]
    assert node.queue.ready_bytes == 380
    for delivery in deliveries[:2] + deliveries[5:8]:
        node.queue.acknowledge(delivery)
    assert drained(node.restarted()) == [*BODIES[3:5], bytes(300)]


def test_a_requeued_message_that_expires_is_dead_lettered_with_its_body() -> None:
    node = Node(dead=True, message_ttl_ms=100)
    node.publish(*BODIES[:4])
    message = sent(BODIES[4], delivery_mode=2, expiration="50")
    assert message.flags & HAS_EXPIRATION
    node.queue.publish(message, None, 0)
    node.write()
    deliveries = node.consume()
    assert is_light(deliveries[4])
    for delivery in deliveries:
        node.queue.requeue(delivery)
    for now, count in ((50, 4), (100, 0)):
        node.host.now = now
        node.queue.expire()
        assert (node.queue.message_count, node.queue.ready_bytes) == (count, count * 40)
    assert node.host.dead == [(body, "expired") for body in (BODIES[4], *BODIES[:4])]
    assert node.restarted().is_empty


def test_purging_and_deleting_read_no_bodies() -> None:
    node, deliveries = handed_out()
    reads = node.disk.read_count
    for delivery in deliveries[:6]:
        node.queue.requeue(delivery)
    assert node.queue.clear() == 6
    for delivery in deliveries[6:8]:
        node.queue.requeue(delivery)
    assert node.queue.delete() == 2
    node.queue.requeue(deliveries[8])
    node.queue.acknowledge(deliveries[9])
    assert node.disk.read_count == reads
    assert (node.queue.ready_bytes, node.queue.unacked_bytes) == (0, 0)


def drop(node: Node) -> None:
    node.queue.apply_settings(replace(node.queue.settings, length_max=1))


def expire(node: Node) -> None:
    node.host.now = 100
    node.queue.expire()


def get(node: Node) -> None:
    node.queue.get()


def consume(node: Node) -> None:
    node.queue.add_consumer(Reader())


@pytest.mark.parametrize("settings", [{}, {"priority_max": 3}])
@pytest.mark.parametrize("is_damaged", [True, False])
@pytest.mark.parametrize("ask", [get, consume, drop, expire])
def test_an_unreadable_requeued_message_stays_in_the_queue(
    ask: Callable[[Node], None], is_damaged: bool, settings: dict[str, object]
) -> None:
    node, deliveries = handed_out(dead=True, message_ttl_ms=100, **settings)
    for delivery in deliveries[4:]:
        node.queue.requeue(delivery)
    node.fail(BODIES[4], is_damaged)
    with pytest.raises(ConnectionForced, match="cannot be read"):
        ask(node)
    assert (node.queue.message_count, node.queue.ready_bytes) == (6, 240)
    assert {type(error) for error in node.port.reported} == {StoreFileError if is_damaged else OSError}
    assert node.host.dead == []
    with pytest.raises(ConnectionForced, match="cannot be read"):
        node.queue.peek(0, 1)
    for delivery in deliveries[:4]:
        node.queue.acknowledge(delivery)
    assert node.queue.delete() == 6


@pytest.mark.parametrize("is_damaged", [True, False])
def test_an_unreadable_rejected_message_is_in_the_queue_after_a_restart(is_damaged: bool) -> None:
    node, deliveries = handed_out(dead=True, delivery_limit=0)
    node.fail(BODIES[4], is_damaged)
    for how in (node.queue.reject, node.queue.requeue):
        with pytest.raises(ConnectionForced, match="cannot be read"):
            how(deliveries[4])
    assert node.host.dead == []
    assert (node.queue.message_count, node.queue.unacked_count) == (0, 8)
    # The disk can read it again.
    node.disk.unreadable = {}
    if is_damaged:
        node.fail(b"\x31" + BODIES[4][1:], is_damaged)
    assert drained(node.restarted()) == BODIES


def test_an_unreadable_expired_message_is_in_the_queue_after_a_restart() -> None:
    node = Node(dead=True)
    node.publish(*BODIES[:3])
    node.publish(BODIES[3], expiration="50")
    node.write()
    for delivery in node.consume():
        node.queue.requeue(delivery)
    node.fail(BODIES[3], is_damaged=False)
    node.host.now = 50
    with pytest.raises(ConnectionForced, match="cannot be read"):
        node.queue.expire()
    node.disk.unreadable = {}
    node.host.now = 0
    assert node.host.dead == []
    assert drained(node.restarted()) == BODIES[:4]
