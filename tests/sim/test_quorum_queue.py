"""A quorum queue before and after kills and power cuts, driven by seeds.

What was confirmed and not acknowledged is there, once and in order; what was acknowledged does not come back
once that is synced; a second delivery says so, knows its attempts, and does not come before its time.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.queues.samples import Host, Reader

from warren.metadata.incarnation import Incarnation
from warren.model.arguments import DelayedRetry, QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.coroutine_driver import drive
from warren.model.message import BODY_END, PERSISTENT, Message, StoredMessage, encode_address
from warren.queues.queue import CHANNEL_ENDED, NACKED, REJECTED, TIMED_OUT, Delivery
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

STEPS = 120
SEGMENT_SIZES = (8_192, 600)
NUMBER = 7
# Delays of messages that come back.
_DELAY_MIN, _DELAY_MAX = 100, 250


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def commit_due(self) -> None:
        """A commit will follow."""


class Confirms(ConfirmListener):
    """Collects the publishes that were confirmed."""

    def __init__(self) -> None:
        self.expected: set[int] = set()
        self.confirmed: set[int] = set()

    def expect(self, sequence: int) -> None:
        assert sequence not in self.expected
        self.expected.add(sequence)

    def done(self, first: int, last: int) -> None:
        for sequence in range(first, last + 1):
            assert sequence in self.expected
            assert sequence not in self.confirmed
            self.confirmed.add(sequence)


class Simulation:
    """One queue, its publishers and consumers, and what is known about each message."""

    def __init__(self, seed: int, priority_max: int | None) -> None:
        self.chance = random.Random(seed)
        self.settings = QueueSettings(
            priority_max=priority_max,
            delayed_retry=tuple(DelayedRetry)[seed % 4],
            delayed_retry_ms_min=_DELAY_MIN,
            delayed_retry_ms_max=_DELAY_MAX,
        )
        self.priority_max = priority_max
        self.now = 0
        self.disk = SimulatedDisk(self.chance)
        self.number = 0
        self.starts = 0
        self.priorities: dict[int, int] = {}
        # Published and not gone, gone for certain, and gone if that was synced before the end of the run.
        self.there: set[int] = set()
        self.gone: set[int] = set()
        self.leaving: set[int] = set()
        # Confirmed, and delivered at some time.
        self.confirmed: set[int] = set()
        self.delivered: set[int] = set()
        # How often each has failed, when it may be delivered again, and whose return may not be synced.
        self.failures: dict[int, int] = {}
        self.ready_at: dict[int, int] = {}
        self.returning: set[int] = set()
        self.deliveries: list[Delivery] = []
        self.readers: list[Reader] = []
        self.got: list[tuple[Delivery, int] | None] = []
        self.open()

    def open(self) -> None:
        self.starts += 1
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        recovered = open_store(self.disk, Port(), dependencies)
        assert not recovered.damage
        self.store = recovered.store
        self.host = Host(self.now)
        self.confirms = Confirms()
        incarnation = Incarnation(1, self.starts)
        self.queue = QuorumQueue("q", "/", self.host, self.settings, incarnation=incarnation)
        transient = open_erased(SimulatedDisk(self.chance), Port(), self.chance.randbytes)
        self.queue.attach_store(Stores(self.store, transient), NUMBER)
        for level, found in recovered.queues.get(NUMBER, {}).items():
            self.queue.restore(level, found)

    def publish(self) -> None:
        priority = self.chance.randrange(8)
        mode = self.chance.choice([1, 2])
        properties = BasicProperties(delivery_mode=mode, priority=priority)
        kind = StoredMessage if mode == 2 else Message
        message = kind(encode_address("", "q"), properties.encode_list(), b"%d" % self.number + BODY_END, 0)
        message.flags, message.priority = PERSISTENT if mode == 2 else 0, priority
        self.there.add(self.number)
        self.failures[self.number] = 0
        self.priorities[self.number] = min(priority, self.priority_max or 0)
        self.queue.publish(message, self.confirms, self.number)
        self.number += 1
        self.note()

    def get(self) -> None:
        async def fetch() -> None:
            self.got.append(await self.queue.fetch(False))

        drive(fetch())
        self.note()

    def consume(self) -> None:
        """Add or cancel a consumer."""
        if self.readers:
            self.queue.remove_consumer(self.readers.pop())
            return
        prefetch = self.chance.randrange(1, 4)
        self.readers.append(Reader(prefetch=prefetch, no_ack=self.chance.random() < 0.2))
        self.queue.add_consumer(self.readers[-1])
        self.note()

    def settle(self) -> None:
        if not self.deliveries:
            return
        delivery = self.deliveries.pop(self.chance.randrange(len(self.deliveries)))
        number, reader = int(delivery.message.body), delivery.consumer
        how = self.chance.choice([self.queue.acknowledge, self.queue.reject, self.give_back])
        if how != self.give_back:
            self.leave(number)
        how(delivery)
        if isinstance(reader, Reader):
            reader.unsettled.remove(delivery)
            self.queue.unpark(reader)
        self.queue.pump()
        self.note()

    def give_back(self, delivery: Delivery) -> None:
        """Return `delivery` for any reason."""
        reason = self.chance.choice([NACKED, TIMED_OUT, REJECTED, CHANNEL_ENDED])
        number, has_failed = int(delivery.message.body), reason in (REJECTED, CHANNEL_ENDED)
        self.queue.requeue(delivery, reason)
        self.returning.add(number)
        failures = self.failures.get(number)
        if failures is not None:
            failures = self.failures[number] = failures + has_failed
            assert delivery.failures == failures
        wanted = DelayedRetry.FAILED if has_failed else DelayedRetry.RETURNED
        if self.settings.delayed_retry in (DelayedRetry.ALL, wanted):
            self.ready_at[number] = self.now + min(_DELAY_MIN * max(failures or 0, 1), _DELAY_MAX)

    def wait(self) -> None:
        """Let time pass."""
        self.now += self.chance.choice([10, 50, 200])
        self.tick()

    def tick(self) -> None:
        self.host.now = self.now
        self.queue.expire()
        self.note()

    def leave(self, number: int) -> None:
        self.there.remove(number)
        self.leaving.add(number)

    def deliver(self, number: int, *, again: bool) -> None:
        assert number in self.there
        assert number in self.confirms.confirmed or number in self.confirmed
        assert again or number not in self.delivered
        assert self.now >= self.ready_at.get(number, 0)
        self.delivered.add(number)

    def note(self) -> None:
        """Record deliveries."""
        for each in self.got:
            if each is not None:
                self.deliver(int(each[0].message.body), again=each[0].attempts > 0)
                self.deliveries.append(each[0])
        self.got.clear()
        for reader in self.readers:
            for body, again in reader.got:
                self.deliver(int(body), again=again)
                if reader.no_ack:
                    self.leave(int(body))
            reader.got.clear()
            self.deliveries += [one for one in reader.unsettled if one not in self.deliveries]

    def purge(self) -> None:
        while not self.queue.is_restored:
            # Else it would drop what is committed until then as well.
            self.commit()
        held = {int(delivery.message.body) for delivery in self.deliveries}
        ready = {number for number in self.there - held if number in self.confirms.confirmed | self.confirmed}
        drive(self._purge(len(ready)))
        for number in ready:
            self.leave(number)

    async def _purge(self, count: int) -> None:
        assert await self.queue.purge() == count

    def commit(self) -> None:
        self.store.commit()
        self.disk.advance(self.chance.choice([1, 2, None]))
        self.note()

    def finish(self) -> None:
        """Have everything written."""
        while not self.store.is_idle or self.disk.is_busy:
            self.disk.advance()
            self.store.commit()
        self.note()
        assert self.confirms.confirmed == self.confirms.expected
        self.gone |= self.leaving
        self.leaving.clear()
        self.returning.clear()

    def end(self) -> None:
        """Kill the process or cut the power, and look at what is there."""
        if self.chance.random() < 0.5:
            self.finish()
        if self.chance.random() < 0.5:
            self.disk.die()
        else:
            self.disk.lose_power()
        self.confirmed |= self.confirms.confirmed
        possible = self.there | self.leaving
        self.readers, self.deliveries, self.got = [], [], []
        for number in self.returning:
            self.failures.pop(number, None)
            self.ready_at.pop(number, None)
        self.returning.clear()
        self.open()
        self.finish()
        found: list[Delivery] = []
        numbers: list[int] = []
        # What is ready, and what is when all delays have ended.
        for wait in (0, _DELAY_MAX):
            self.now += wait
            self.tick()
            taken = self.take_all()
            ready = [int(each.message.body) for each in taken]
            assert ready == sorted(ready, key=lambda number: (-self.priorities[number], number))
            assert all(self.now >= self.ready_at.get(number, 0) for number in ready)
            found += taken
            numbers += ready
        assert len({*numbers}) == len(numbers)
        assert {*numbers} >= self.there & self.confirmed
        assert {*numbers} <= possible
        for number, each in zip(numbers, found, strict=True):
            assert each.attempts or number not in self.delivered
        self.there, self.leaving = {*numbers}, set()
        self.gone |= {*range(self.number)} - self.there
        self.confirmed |= self.there
        self.delivered |= self.there
        for each in found:
            self.give_back(each)
        self.finish()

    def take_all(self) -> list[Delivery]:
        """All ready messages."""
        found: list[Delivery] = []
        self.note()
        while True:
            self.got.clear()
            self.get_quietly()
            if not self.got or self.got[0] is None:
                return found
            found.append(self.got[0][0])

    def get_quietly(self) -> None:
        async def fetch() -> None:
            self.got.append(await self.queue.fetch(False))

        drive(fetch())
        while not self.got:
            self.store.commit()
            self.disk.advance()


@pytest.mark.parametrize("priority_max", [None, 3, 31])
@pytest.mark.seeds(SEEDS)
def test_a_quorum_queue_keeps_what_it_confirmed_once_and_in_order_and_until_its_time(
    seed: int, priority_max: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed, priority_max)
    actions = [simulation.publish] * 5 + [simulation.get] * 2 + [simulation.settle] * 3
    actions += [simulation.commit] * 3 + [simulation.consume, simulation.wait]
    for _ in range(STEPS):
        simulation.chance.choice(actions)()
        if simulation.chance.random() < 0.02:
            simulation.purge()
        if simulation.chance.random() < 0.03:
            simulation.end()
    simulation.end()
