"""Queues of which most is on the disk only: what leaves them is gone, and what is left is handed out."""

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
from warren.store.message_store import MessageStore, StorePort
from warren.store.recovery import CATALOG, RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

SEGMENT_SIZE = 2_000
NUMBER = 7
COUNT = 300
EXPIRATION_MS = 1_000


class Port(StorePort):
    """Notes what cannot be read."""

    def __init__(self) -> None:
        self.told: list[OSError | StoreFileError] = []

    def commit_due(self) -> None:
        """The disk works when a test says so."""

    def unreadable(self, error: OSError | StoreFileError) -> None:
        self.told.append(error)


class Paged:
    """A queue that may have nothing in memory, and its two disks."""

    def __init__(self, priority_max: int | None = None) -> None:
        self.settings: dict[str, object] = {"priority_max": priority_max}
        self.disk, self.erased = (SimulatedDisk(random.Random(0)) for _ in range(2))
        self.host = Host()
        self.port = Port()
        self.open()

    def open(self) -> None:
        """Begin, or begin again, with what is on the disk."""
        world = RecoveryDependencies(random_octets=bytes, has_queue=NUMBER.__eq__, progress=lambda *_: None)
        recovered = open_store(self.disk, self.port, world)
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
        """Have the disks do all there is to do."""
        for store, disk in ((self.stores.persistent, self.disk), (self.stores.transient, self.erased)):
            settle(store, disk)
        self.stores.maintain()

    def taken(self) -> list[int]:
        """All that is handed out, and acknowledged."""
        found: list[int] = []
        self.take_into(found, self.queue.message_count)
        assert self.queue.get() is None
        return found

    def take_into(self, found: list[int], count: int) -> None:
        """Have `count` messages handed out, each added to `found` and acknowledged."""
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
    paged.queue.purge()


def expire(paged: Paged) -> None:
    paged.host.now += EXPIRATION_MS
    paged.queue.expire()


def take(paged: Paged) -> None:
    assert paged.taken() == list(range(COUNT))


@pytest.mark.parametrize("is_persistent", [True, False])
@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("leave", [purge, expire, take])
def test_what_has_left_takes_no_room_on_the_disk(
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
def test_what_cannot_be_read_is_told_and_nothing_that_lies_behind_is_handed_out(
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
    assert {type(error) for error in paged.port.told} == {StoreFileError if is_damaged else OSError}
    # It is built anew, with what can be read of it.
    paged.disk.unreadable = {}
    paged.write()
    paged.open()
    rest = [number for number in range(len(taken), COUNT + 10) if number != 200 or not is_damaged]
    assert paged.taken() == rest


def test_the_first_of_what_is_not_written_yet_may_have_expired() -> None:
    paged = Paged()
    paged.publish(0)
    paged.publish(1, expires=True)
    paged.publish(2)
    expire(paged)
    assert paged.taken() == [0, 2]


def test_what_was_handed_out_before_a_start_is_redelivered_to_whoever_settles_nothing() -> None:
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


def test_what_came_back_and_is_dropped_does_not_come_back_once_more() -> None:
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


def test_what_is_purged_gives_up_its_places_some_with_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "DISCARDED_PER_BATCH", 2)
    paged = Paged()
    count = 4 * PAGED_BLOCK_SIZE
    for number in range(count):
        paged.publish(number, is_persistent=number % 3 > 0)
    paged.write()
    assert paged.queue.paged_count > 3 * PAGED_BLOCK_SIZE
    held = paged.queue.get()
    assert paged.queue.purge() == count - 1
    assert paged.queue.message_count == 0
    live = [alive(paged.stores.persistent)]
    while live[-1] > 1:
        paged.stores.persistent.commit()
        paged.disk.advance(1)
        live.append(alive(paged.stores.persistent))
    assert len(set(live)) > 3, "not all in one batch"
    paged.queue.acknowledge(held)
    paged.write()
    assert alive(paged.stores.persistent) == alive(paged.stores.transient) == 0


def test_what_is_purged_does_not_come_back_though_its_places_were_not_given_up_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stores, "DISCARDED_PER_BATCH", 1)
    paged = Paged()
    for number in range(COUNT):
        paged.publish(number)
    paged.write()
    held = paged.queue.get()
    paged.queue.purge()
    paged.publish(COUNT)
    paged.stores.persistent.commit()
    paged.disk.advance()
    paged.disk.lose_power()
    paged.open()
    assert held is not None
    assert paged.taken() == [0, COUNT]


def alive(store: MessageStore) -> int:
    return sum(segment.live for segment in store.segments.values())


@pytest.mark.parametrize("priority_max", [None, 3])
def test_what_would_survive_is_counted_wherever_it_is(priority_max: int | None) -> None:
    paged = Paged(priority_max)

    def kept(*numbers: int) -> None:
        octets = sum(len(b"%d," % number) + 500 for number in numbers)
        assert (paged.queue.persistent_count, paged.queue.persistent_octets) == (len(numbers), octets)

    for number in range(100):
        # Odd ones are transient, and spilled.
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
    paged.queue.purge()
    kept(4)
    paged.queue.acknowledge(held[4])
    kept()
    paged.publish(1)
    kept(1)


def test_what_survived_is_counted() -> None:
    paged = Paged()
    for number in range(10):
        paged.publish(number)
    paged.write()
    paged.open()
    assert (paged.queue.persistent_count, paged.queue.persistent_octets) == (10, 10 * 502)
    assert len(paged.taken()) == 10
    assert (paged.queue.persistent_count, paged.queue.persistent_octets) == (0, 0)


def test_reads_and_writes_of_messages_are_counted() -> None:
    paged = Paged()
    for number in range(10):
        paged.publish(number, is_persistent=number < 5)
    paged.write()
    assert len(paged.taken()) == 10
    # The first has never left the memory.
    assert (paged.stores.write_count, paged.stores.read_count) == (10, 9)
