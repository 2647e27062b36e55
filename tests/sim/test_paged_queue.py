"""A queue that pages, before and after a power cut, driven by seeds: equal messages in equal order.

Most of its messages do not fit into its memory limit, ready or unacknowledged; some are transient, some
expire in the middle, and the disk has any speed.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.queues.samples import Host, Reader, made

from warren.limits import SPARE_SEGMENTS_MAX
from warren.model.message import (
    BODY_END,
    HAS_EXPIRATION,
    PERSISTENT,
    Message,
    StoredMessage,
    encode_address,
)
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery
from warren.store.delivered import NAME
from warren.store.recovery import CATALOG, RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

STEPS = 120
SEGMENT_SIZE = 600
NUMBER = 7
EXPIRATION_MS = 1_000


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def __init__(self) -> None:
        # True if there is something to write.
        self.is_dirty = False

    def commit_due(self) -> None:
        self.is_dirty = True

    def unreadable(self, error: OSError | StoreFileError) -> None:
        raise AssertionError(error)


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZE)


class Simulation:
    """One queue, and its expected messages: number of a message -> whether it was delivered."""

    def __init__(self, seed: int, priority_max: int | None, *, is_durable: bool = True) -> None:
        self.chance = random.Random(seed)
        self.priority_max = priority_max
        self.queue_number = NUMBER if is_durable else 0
        self.memory_max = self.chance.choice([0, 300, 2_000, 1 << 20])
        self.disk = SimulatedDisk(self.chance)
        self.number = 0
        # That many deliveries are left unsettled: records written beside them are dead long before them.
        self.kept = self.chance.choice([0, 0, 4])
        self.host = Host()
        self.handed_out: dict[int, bool] = {}
        self.priorities: dict[int, int] = {}
        self.persistent: set[int] = set()
        self.deadlines: dict[int, int] = {}
        self.bodies: dict[int, bytes] = {}
        self.deliveries: list[Delivery] = []
        # Messages taken out of the middle, to be moved; and all ever taken, of which it is unknown after a
        # power cut whether they, or messages behind them, were delivered.
        self.taken: list[Delivery] = []
        self.ever_taken: set[int] = set()
        # A consumer that exists from time to time, and receives all messages.
        self.reader: Reader | None = None
        self.is_dead_lettering = self.chance.random() < 0.5
        self.queue = self.opened()

    def opened(self) -> ClassicQueue:
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        self.port = Port()
        recovered = open_store(self.disk, self.port, dependencies)
        assert not recovered.damage
        self.erased = SimulatedDisk(self.chance)
        transient = open_erased(self.erased, Port(), self.chance.randbytes)
        self.stores = Stores(recovered.store, transient)
        self.stores.queue_memory_max = self.memory_max
        queue = made(self.host, dead=self.is_dead_lettering, priority_max=self.priority_max)
        queue.attach_store(self.stores, self.queue_number)
        for level, found in recovered.queues.get(NUMBER, {}).items():
            queue.restore(level, found)
        queue.expire()
        return queue

    def publish(self) -> None:
        priority = self.chance.randrange(8)
        is_persistent, expires = self.chance.random() < 0.7, self.chance.random() < 0.1
        properties = BasicProperties(
            delivery_mode=2 if is_persistent else 1,
            priority=priority,
            expiration=str(EXPIRATION_MS) if expires else None,
            message_id=str(self.number),
        )
        body = self.bodies[self.number] = b"%d," % self.number + bytes(self.chance.randrange(60))
        kind = StoredMessage if is_persistent else Message
        message = kind(encode_address("", "q"), properties.encode_list(), body + BODY_END, self.host.now)
        message.flags = (PERSISTENT if is_persistent else 0) | (HAS_EXPIRATION if expires else 0)
        message.priority = priority
        self.handed_out[self.number] = False
        self.priorities[self.number] = min(priority, self.priority_max or 0)
        if is_persistent and self.queue_number:
            self.persistent.add(self.number)
        if expires:
            self.deadlines[self.number] = self.host.now + EXPIRATION_MS
        self.number += 1
        self.queue.publish(message, None, 0)
        self.take_over()

    def get(self) -> None:
        delivery = self.queue.get()
        if delivery is not None:
            assert delivery.message.body == self.bodies[number_of(delivery)]
            self.deliveries.append(delivery)
            self.handed_out[number_of(delivery)] = True

    def take(self) -> None:
        """Take a message out of the middle, or settle or return one that was taken."""
        if self.taken and self.chance.random() < 0.5:
            delivery = self.taken.pop(self.chance.randrange(len(self.taken)))
            number = number_of(delivery)
            if self.chance.random() < 0.5:
                self.queue.release(delivery)
                del self.handed_out[number]
                return
            self.queue.give_back(delivery)
            if self.is_over(number):
                del self.handed_out[number]
            self.queue.pump()
            self.take_over()
            return
        peeked = self.queue.peek(0, self.chance.choice([1, 5, 50]))
        if peeked:
            chosen = self.chance.choice(peeked)
            assert any(chosen.place in places for places in self.queue.extent())
            delivery = self.queue.take(chosen)
            assert delivery.message.body == self.bodies[number_of(delivery)]
            assert (delivery.attempts > 0) == self.handed_out[number_of(delivery)]
            assert self.queue.take(chosen) is None
            self.taken.append(delivery)
            self.ever_taken.add(number_of(delivery))

    @property
    def held(self) -> set[int]:
        """Return the messages that are not settled or are taken out."""
        return set(map(number_of, self.deliveries + self.taken))

    def consume(self) -> None:
        """Add or cancel a consumer."""
        if self.reader is not None:
            self.queue.remove_consumer(self.reader)
            self.reader = None
            return
        self.reader = Reader()
        self.queue.add_consumer(self.reader)
        self.take_over()

    def take_over(self) -> None:
        """Settle or keep deliveries of the consumer, as if by a client."""
        if self.reader is None:
            return
        for delivery, body in zip(self.reader.unsettled, self.reader.bodies, strict=True):
            assert body == self.bodies[number_of(delivery)]
            self.deliveries.append(delivery)
            self.handed_out[number_of(delivery)] = True
        self.reader.unsettled, self.reader.got = [], []

    def settle(self) -> None:
        if len(self.deliveries) > self.kept:
            delivery = self.deliveries.pop(self.chance.randrange(self.kept, len(self.deliveries)))
            number = number_of(delivery)
            how = self.chance.choice([self.queue.acknowledge, self.queue.reject, self.queue.requeue])
            dead = len(self.host.dead)
            how(delivery)
            if how == self.queue.reject and self.is_dead_lettering:
                assert self.host.dead[dead:] == [(self.bodies[number], "rejected")]
            if how != self.queue.requeue or self.is_over(number):
                del self.handed_out[number]
            self.queue.pump()
            self.take_over()

    def requeue_all(self) -> None:
        """Requeue all deliveries, as when a channel closes."""
        for delivery in self.deliveries:
            self.queue.requeue(delivery)
            if self.is_over(number_of(delivery)):
                del self.handed_out[number_of(delivery)]
        self.deliveries = []
        self.queue.pump()
        self.take_over()

    def purge(self) -> None:
        self.queue.clear()
        held = self.held
        self.handed_out = {number: was for number, was in self.handed_out.items() if number in held}

    def expire(self) -> None:
        self.host.now += EXPIRATION_MS
        dead = len(self.host.dead)
        self.queue.expire()
        assert all(body in self.bodies.values() for body, _ in self.host.dead[dead:])
        for number in self.deadlines.keys() - self.held:
            if self.is_over(number):
                self.handed_out.pop(number, None)

    def is_over(self, number: int) -> bool:
        deadline = self.deadlines.get(number)
        return deadline is not None and deadline <= self.host.now

    def shrink(self) -> None:
        self.stores.queue_memory_max = self.chance.choice([0, 300, self.memory_max])
        self.queue.shrink()

    def commit(self) -> None:
        self.stores.maintain()
        self.stores.persistent.commit()
        self.disk.advance(self.chance.choice([1, 2, None]))
        self.stores.transient.commit()
        self.erased.advance(self.chance.choice([1, 2, None]))

    def settle_disks(self) -> None:
        for store, disk in ((self.stores.persistent, self.disk), (self.stores.transient, self.erased)):
            # A store without pending work may still have files to release, and has announced it.
            store.commit()
            while not store.is_idle or disk.is_busy:
                disk.advance()
                store.commit()
        # Also what takes many batches, such as maintenance that frees space.
        while self.port.is_dirty:
            self.port.is_dirty = False
            self.stores.persistent.commit()
            self.disk.advance()

    def end_process(self) -> None:
        self.settle_disks()
        is_killed = self.chance.random() < 0.5
        if is_killed:
            self.disk.die()
        else:
            self.disk.lose_power()
        self.queue, self.deliveries, self.taken, self.reader = self.opened(), [], [], None
        self.handed_out = {
            number: was
            for number, was in self.handed_out.items()
            if number in self.persistent and not self.is_over(number)
        }
        self.check(unsure=self.ever_taken, is_exact=is_killed)
        self.handed_out = dict.fromkeys(self.handed_out, True)

    def check(self, unsure: set[int] = frozenset(), *, is_exact: bool = True) -> None:
        """Check that ready messages are as expected, and in order; all count as delivered afterwards.

        Unless the check is exact, messages that were never delivered may be marked as redelivered.
        """
        if self.reader is not None:
            self.consume()
        held = self.held
        ready = [number for number in self.handed_out if number not in held]
        order = sorted(ready, key=lambda number: (-self.priorities[number], number))
        assert self.queue.message_count == len(order)
        peeked = self.queue.peek(0, len(order) + 1)
        assert [each.message.body for each in peeked] == [self.bodies[number] for number in order]
        found = [self.queue.get() for _ in order]
        for number, each in zip(order, found, strict=True):
            if number not in unsure:
                assert each.attempts or not self.handed_out[number]
                assert not (is_exact and each.attempts) or self.handed_out[number]
        assert [each.message.body for each in found] == [self.bodies[number] for number in order]
        for delivery in found:
            self.queue.requeue(delivery)
        assert self.queue.message_count == len(order)
        held = [len(self.bodies[number]) for number in self.handed_out if number in held]
        assert (self.queue.unacked_count, self.queue.unacked_bytes) == (len(held), sum(held))
        assert self.queue.ready_bytes == sum(len(self.bodies[number]) for number in ready)

    def run(self) -> None:
        actions = [self.publish] * 6 + [self.get] * 3 + [self.settle] * 3 + [self.commit] * 2
        for _ in range(STEPS):
            self.chance.choice(actions)()
            chance = self.chance.random()
            if chance < 0.02:
                self.purge()
            elif chance < 0.05:
                self.expire()
            elif chance < 0.08:
                self.shrink()
            elif chance < 0.11:
                self.end_process()
            elif chance < 0.14:
                self.consume()
            elif chance < 0.16:
                self.requeue_all()
            elif chance < 0.30:
                self.take()


def number_of(delivery: Delivery) -> int:
    return int(delivery.message.properties().message_id or "")


@pytest.mark.parametrize("priority_max", [None, 3])
@pytest.mark.seeds(SEEDS // 2)
def test_a_queue_is_after_a_power_cut_or_a_kill_what_it_was_before(
    seed: int, priority_max: int | None
) -> None:
    simulation = Simulation(seed, priority_max)
    simulation.run()
    simulation.end_process()


@pytest.mark.seeds(SEEDS // 2)
def test_a_paged_queue_delivers_every_message_and_leaves_nothing_on_disk(seed: int) -> None:
    simulation = Simulation(seed, None, is_durable=seed % 2 == 0)
    simulation.run()
    simulation.check()
    simulation.deliveries += [simulation.queue.get() for _ in range(simulation.queue.message_count)]
    assert simulation.queue.get() is None
    for delivery in simulation.deliveries:
        simulation.queue.acknowledge(delivery)
    for delivery in simulation.taken:
        simulation.queue.release(delivery)
    assert (simulation.queue.unacked_count, simulation.queue.unacked_bytes) == (0, 0)
    simulation.settle_disks()
    simulation.stores.maintain()
    assert not simulation.stores.paging
    assert sum(simulation.erased.names().values()) <= (SPARE_SEGMENTS_MAX + 1) * SEGMENT_SIZE
    # Spare segments, the last one, and some that contain queue state.
    segments = [size for name, size in simulation.disk.names().items() if name not in (CATALOG, NAME)]
    assert sum(segments) <= (SPARE_SEGMENTS_MAX + 4) * SEGMENT_SIZE
    assert simulation.queue.paged_count == 0


def test_a_message_expires_although_it_is_on_disk_only() -> None:
    simulation = Simulation(0, None)
    simulation.stores.queue_memory_max = 0
    for number in range(300):
        properties = BasicProperties(
            delivery_mode=2, expiration=str(EXPIRATION_MS) if number == 250 else None
        )
        properties.message_id = str(number)
        body = bytes(1_000)
        message = StoredMessage(encode_address("", "q"), properties.encode_list(), body + BODY_END, 0)
        message.flags = PERSISTENT | (HAS_EXPIRATION if number == 250 else 0)
        simulation.queue.publish(message, None, 0)
    simulation.settle_disks()
    simulation.stores.maintain()
    assert simulation.queue.paged_count > 100
    simulation.host.now = EXPIRATION_MS
    simulation.queue.expire()
    got = [number_of(simulation.queue.get()) for _ in range(simulation.queue.message_count)]
    assert got == [number for number in range(300) if number != 250]
