"""Queues whose messages are mostly on disk: removed messages free their space, the others are delivered."""

import random
from collections.abc import Callable

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.queues.samples import Host, Reader, made

from warren.errors import ConnectionForced
from warren.limits import PAGED_BLOCK_SIZE, SPARE_SEGMENTS_MAX
from warren.model.message import (
    BODY_END,
    HAS_EXPIRATION,
    PERSISTENT,
    Message,
    StoredMessage,
    encode_address,
)
from warren.queues.classic import ClassicQueue
from warren.store import stores
from warren.store.delivered import NAME
from warren.store.message_store import MessageStore
from warren.store.recovery import CATALOG, RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

SEGMENT_SIZE = 2_000
NUMBER = 7
COUNT = 300
EXPIRATION_MS = 1_000


class Port(StorePort):
    """A store port that records unreadable files."""

    def __init__(self) -> None:
        self.reported: list[OSError | StoreFileError] = []

    def commit_due(self) -> None:
        """Nothing to do: the test advances the disk."""

    def unreadable(self, error: OSError | StoreFileError) -> None:
        self.reported.append(error)


class Paged:
    """A queue with no memory for messages, and its two simulated disks."""

    def __init__(self, priority_max: int | None = None) -> None:
        self.settings: dict[str, object] = {"priority_max": priority_max}
        self.disk, self.erased = (SimulatedDisk(random.Random(0)) for _ in range(2))
        self.host = Host()
        self.port = Port()
        self.open()

    def open(self) -> None:
        """Open the queue, or open it again with the contents of the disk."""
        dependencies = RecoveryDependencies(
            random_bytes=bytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        recovered = open_store(self.disk, self.port, dependencies)
        self.stores = Stores(recovered.store, open_erased(self.erased, self.port, bytes))
        self.stores.queue_memory_max = 0
        self.queue = made(self.host, **self.settings)
        self.queue.attach_store(self.stores, NUMBER)
        for level, found in recovered.queues.get(NUMBER, {}).items():
            self.queue.restore(level, found)

    def publish(self, number: int, *, is_persistent: bool = True, expires: bool = False) -> None:
        properties = BasicProperties(
            delivery_mode=2 if is_persistent else 1, expiration=str(EXPIRATION_MS) if expires else None
        )
        kind = StoredMessage if is_persistent else Message
        body = b"%d," % number + bytes(500)
        message = kind(encode_address("", "q"), properties.encode_list(), body + BODY_END, self.host.now)
        message.flags = (PERSISTENT if is_persistent else 0) | (HAS_EXPIRATION if expires else 0)
        self.queue.publish(message, None, 0)

    def write(self) -> None:
        """Let the disks perform all operations."""
        for store, disk in ((self.stores.persistent, self.disk), (self.stores.transient, self.erased)):
            settle(store, disk)
        self.stores.maintain()

    def taken(self) -> list[int]:
        """The numbers of all ready messages, which are received and acknowledged."""
        found: list[int] = []
        self.take_into(found, self.queue.message_count)
        assert self.queue.get() is None
        return found

    def take_into(self, found: list[int], count: int) -> None:
        """Receive and acknowledge `count` messages, and append their numbers to `found`."""
        for _ in range(count):
            delivery = self.queue.get()
            found.append(int(delivery.message.body.partition(b",")[0]))
            self.queue.acknowledge(delivery)


def settle(store: MessageStore, disk: SimulatedDisk) -> None:
    store.commit()
    while not store.is_idle or disk.is_busy:
        disk.advance()
        store.commit()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZE)


def purge(paged: Paged) -> None:
    paged.queue.clear()


def expire(paged: Paged) -> None:
    paged.host.now += EXPIRATION_MS
    paged.queue.expire()


def take(paged: Paged) -> None:
    assert paged.taken() == list(range(COUNT))


@pytest.mark.parametrize("is_persistent", [True, False])
@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("leave", [purge, expire, take])
def test_removed_messages_free_their_space_on_disk(
    leave: Callable[[Paged], None], is_written: bool, is_persistent: bool
) -> None:
    paged = Paged()
    for number in range(COUNT):
        paged.publish(number, is_persistent=is_persistent, expires=leave is expire)
        if is_written:
            paged.write()
    assert (paged.queue.paged_count > COUNT / 2) == is_written
    leave(paged)
    assert paged.queue.message_count == 0
    paged.write()
    for disk in (paged.disk, paged.erased):
        segments = [size for name, size in disk.names().items() if name not in (CATALOG, NAME)]
        assert sum(segments) <= (SPARE_SEGMENTS_MAX + 2) * SEGMENT_SIZE
    paged.publish(COUNT)
    assert paged.taken() == [COUNT]


@pytest.mark.parametrize("priority_max", [None, 3])
@pytest.mark.parametrize("is_damaged", [True, False])
def test_an_unreadable_message_is_reported_and_none_behind_it_is_delivered(
    is_damaged: bool, priority_max: int | None
) -> None:
    paged = Paged(priority_max)
    for number in range(COUNT):
        paged.publish(number)
    paged.write()
    for number in range(COUNT, COUNT + 10):
        paged.publish(number)
    name = next(name for name, file in paged.disk.files.items() if b"200," in file.current)
    if is_damaged:
        paged.disk.flip_bit(name, paged.disk.files[name].current.index(b"200,"))
    else:
        paged.disk.unreadable = {name: range(SEGMENT_SIZE)}
    taken: list[int] = []
    with pytest.raises(ConnectionForced, match="cannot be read"):
        paged.take_into(taken, COUNT)
    assert taken == list(range(len(taken)))
    assert {type(error) for error in paged.port.reported} == {StoreFileError if is_damaged else OSError}
    # The queue is opened again with the messages that can be read.
    paged.disk.unreadable = {}
    paged.write()
    paged.open()
    rest = [number for number in range(len(taken), COUNT + 10) if number != 200 or not is_damaged]
    assert paged.taken() == rest


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_message_that_expires_and_cannot_be_read_is_reported_and_gone(is_damaged: bool) -> None:
    paged = Paged()
    for number in range(COUNT):
        paged.publish(number, expires=number == 200)
    paged.write()
    name = next(name for name, file in paged.disk.files.items() if b"200," in file.current)
    if is_damaged:
        paged.disk.flip_bit(name, paged.disk.files[name].current.index(b"200,"))
    else:
        paged.disk.unreadable = {name: range(SEGMENT_SIZE)}
    expire(paged)
    assert {type(error) for error in paged.port.reported} == {StoreFileError if is_damaged else OSError}
    assert paged.queue.message_count == COUNT - 1


def test_the_first_unwritten_message_may_have_expired() -> None:
    paged = Paged()
    paged.publish(0)
    paged.publish(1, expires=True)
    paged.publish(2)
    expire(paged)
    assert paged.taken() == [0, 2]


def test_messages_delivered_before_a_restart_are_redelivered_without_acknowledgement() -> None:
    paged = Paged()
    for number in range(5):
        paged.publish(number)
    for _ in range(3):
        paged.queue.get()
    paged.write()
    paged.open()
    reader = Reader(no_ack=True)
    paged.queue.add_consumer(reader)
    assert [(body[:1], is_redelivered) for body, is_redelivered in reader.got] == [
        (b"%d" % number, number < 3) for number in range(5)
    ]


def test_a_requeued_message_that_was_dropped_does_not_return_after_a_restart() -> None:
    paged = Paged()
    paged.queue = made(paged.host, length_max=2)
    paged.queue.attach_store(paged.stores, NUMBER)
    paged.publish(0)
    paged.publish(1)
    delivery = paged.queue.get()
    assert isinstance(paged.queue, ClassicQueue)
    assert delivery is not None
    paged.publish(2)
    paged.queue.requeue(delivery)
    paged.publish(3)
    paged.write()
    paged.open()
    assert paged.taken() == [2, 3]


def test_positions_of_a_purge_are_released_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "DISCARDED_PER_BATCH", 2)
    paged = Paged()
    count = 4 * PAGED_BLOCK_SIZE
    for number in range(count):
        paged.publish(number, is_persistent=number % 3 > 0)
    paged.write()
    assert paged.queue.paged_count > 3 * PAGED_BLOCK_SIZE
    held = paged.queue.get()
    assert paged.queue.clear() == count - 1
    assert paged.queue.message_count == 0
    live = [live_references(paged.stores.persistent)]
    while live[-1] > 1:
        paged.stores.persistent.commit()
        paged.disk.advance(1)
        live.append(live_references(paged.stores.persistent))
    assert len(set(live)) > 3, "one batch does not release everything"
    paged.queue.acknowledge(held)
    paged.write()
    assert live_references(paged.stores.persistent) == live_references(paged.stores.transient) == 0


def test_purged_messages_do_not_return_before_their_positions_are_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stores, "DISCARDED_PER_BATCH", 1)
    paged = Paged()
    for number in range(COUNT):
        paged.publish(number)
    paged.write()
    held = paged.queue.get()
    paged.queue.clear()
    paged.publish(COUNT)
    paged.stores.persistent.commit()
    paged.disk.advance()
    paged.disk.lose_power()
    paged.open()
    assert held is not None
    assert paged.taken() == [0, COUNT]


def test_a_purge_does_not_release_a_message_that_is_being_moved() -> None:
    paged = Paged()
    for number in range(COUNT):
        paged.publish(number)
    paged.write()
    moved = 60
    peeked = next(each for each in paged.queue.peek(0, COUNT) if each.message.body.startswith(b"%d," % moved))
    assert paged.queue.take(peeked) is not None
    paged.queue.clear()
    paged.write()
    assert live_references(paged.stores.persistent) == 1
    paged.disk.lose_power()
    paged.open()
    assert paged.taken() == [moved]


def live_references(store: MessageStore) -> int:
    return sum(segment.live for segment in store.segments.values())


@pytest.mark.parametrize("priority_max", [None, 3])
def test_persistent_messages_are_counted_in_memory_and_on_disk(priority_max: int | None) -> None:
    paged = Paged(priority_max)

    def kept(*numbers: int) -> None:
        byte_count = sum(len(b"%d," % number) + 500 for number in numbers)
        assert (paged.queue.persistent_count, paged.queue.persistent_bytes) == (len(numbers), byte_count)

    for number in range(100):
        # Odd numbers are transient and spilled.
        paged.publish(number, is_persistent=number % 2 == 0)
    paged.write()
    kept(*range(0, 100, 2))
    held = [paged.queue.get() for _ in range(5)]
    kept(*range(0, 100, 2))
    paged.queue.acknowledge(held[0])
    paged.queue.acknowledge(held[1])
    paged.queue.requeue(held[3])
    kept(*range(2, 100, 2))
    paged.write()
    assert paged.queue.get(True).message.body.startswith(b"3,")
    paged.queue.reject(held[2])
    kept(*range(4, 100, 2))
    paged.queue.clear()
    kept(4)
    paged.queue.acknowledge(held[4])
    kept()
    paged.publish(1)
    kept(1)


def test_recovered_messages_are_counted() -> None:
    paged = Paged()
    for number in range(10):
        paged.publish(number)
    paged.write()
    paged.open()
    assert (paged.queue.persistent_count, paged.queue.persistent_bytes) == (10, 10 * 502)
    assert len(paged.taken()) == 10
    assert (paged.queue.persistent_count, paged.queue.persistent_bytes) == (0, 0)


def test_reads_and_writes_of_messages_are_counted() -> None:
    paged = Paged()
    for number in range(10):
        paged.publish(number, is_persistent=number < 5)
    paged.write()
    assert len(paged.taken()) == 10
    # The first message has stayed in memory.
    assert (paged.stores.write_count, paged.stores.read_count) == (10, 9)
