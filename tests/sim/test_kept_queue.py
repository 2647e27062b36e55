"""A durable queue before and after a power cut or a kill, driven by seeds: equal messages in equal order."""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.queues.samples import Host, Reader, made

from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

STEPS = 80
SEGMENT_SIZES = (8_192, 600)
NUMBER = 7


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def commit_due(self) -> None:
        """A commit will follow."""


class Simulation:
    """One queue, and its expected messages: body -> whether it was delivered."""

    def __init__(self, seed: int, priority_max: int | None) -> None:
        self.chance = random.Random(seed)
        self.priority_max = priority_max
        self.disk = SimulatedDisk(self.chance)
        self.number = 0
        self.handed_out: dict[int, bool] = {}
        # All messages ever delivered that may come back.
        self.delivered: set[int] = set()
        self.priorities: dict[int, int] = {}
        self.deliveries: list[Delivery] = []
        self.readers: list[Reader] = []
        self.host = Host()
        self.length_max = self.chance.choice([None, None, 6])
        self.queue = self.opened()

    def opened(self) -> ClassicQueue:
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=NUMBER.__eq__, progress=lambda *_: None
        )
        recovered = open_store(self.disk, Port(), dependencies)
        assert not recovered.damage
        self.store = recovered.store
        queue = made(self.host, dead=True, priority_max=self.priority_max, length_max=self.length_max)
        transient = open_erased(SimulatedDisk(self.chance), Port(), self.chance.randbytes)
        queue.attach_store(Stores(self.store, transient), NUMBER)
        for level, found in recovered.queues.get(NUMBER, {}).items():
            queue.restore(level, found)
        return queue

    def publish(self) -> None:
        priority = self.chance.randrange(8)
        properties = BasicProperties(delivery_mode=2, priority=priority)
        body = b"%d" % self.number
        message = StoredMessage(encode_address("", "q"), properties.encode_list(), body + BODY_END, 0)
        message.flags, message.priority = PERSISTENT, priority
        self.handed_out[self.number] = False
        self.priorities[self.number] = min(priority, self.priority_max or 0)
        self.number += 1
        self.queue.publish(message, None, 0)
        self.note()

    def get(self) -> None:
        delivery = self.queue.get()
        if delivery is not None:
            self.deliveries.append(delivery)
            self.handed_out[int(delivery.message.body)] = True
            self.delivered.add(int(delivery.message.body))

    def consume(self) -> None:
        """Add or cancel a consumer."""
        if self.readers:
            self.queue.remove_consumer(self.readers.pop())
            return
        prefetch = self.chance.randrange(1, 4)
        self.readers.append(Reader(prefetch=prefetch, no_ack=self.chance.random() < 0.3))
        self.queue.add_consumer(self.readers[-1])
        self.note()

    def settle(self) -> None:
        if self.deliveries:
            delivery = self.deliveries.pop(self.chance.randrange(len(self.deliveries)))
            reader = delivery.consumer
            how = self.chance.choice([self.queue.acknowledge, self.queue.reject, self.queue.requeue])
            how(delivery)
            if how != self.queue.requeue:
                self.handed_out.pop(int(delivery.message.body), None)
            if isinstance(reader, Reader):
                reader.unsettled.remove(delivery)
                self.queue.unpark(reader)
            self.queue.pump()
            self.note()

    def note(self) -> None:
        """Record deliveries; messages delivered without acknowledgement or dead-lettered are gone."""
        for reader in self.readers:
            for body, _ in reader.got:
                self.delivered.add(int(body))
                self.handed_out[int(body)] = True
                if reader.no_ack:
                    del self.handed_out[int(body)]
            reader.got.clear()
            self.deliveries += [one for one in reader.unsettled if one not in self.deliveries]
        for body, _ in self.host.dead:
            self.handed_out.pop(int(body), None)
        self.host.dead.clear()

    def purge(self) -> None:
        self.queue.clear()
        held = {int(delivery.message.body) for delivery in self.deliveries}
        self.handed_out = {number: True for number in self.handed_out if number in held}

    def commit(self) -> None:
        self.store.commit()
        self.disk.advance(self.chance.choice([1, 2, None]))

    def kill(self) -> None:
        """Kill the process at any time; recovered messages that were delivered are marked as redelivered."""
        self.disk.die()
        self.readers = []
        self.queue, self.deliveries = self.opened(), []
        found = [self.queue.get() for _ in range(self.queue.message_count)]
        numbers = [int(each.message.body) for each in found]
        unmarked = {int(each.message.body) for each in found if not each.attempts}
        assert not unmarked & self.delivered
        self.handed_out = dict.fromkeys(numbers, True)
        for delivery in found:
            self.queue.requeue(delivery)
            self.note()

    def settle_and_end(self) -> None:
        """Write everything, then cut the power, or only kill the process.

        Delivered messages are marked as redelivered, and after a kill no others.
        """
        while not self.store.is_idle or self.disk.is_busy:
            self.disk.advance()
            self.store.commit()
        is_exact = self.chance.random() < 0.5
        if is_exact:
            self.disk.die()
        else:
            self.disk.lose_power()
        self.readers = []
        self.queue, self.deliveries = self.opened(), []
        order = sorted(self.handed_out, key=lambda number: (-self.priorities[number], number))
        assert self.queue.message_count == len(order)
        found = [self.queue.get() for _ in order]
        assert [int(each.message.body) for each in found] == order
        for number, each in zip(order, found, strict=True):
            assert each.attempts or not self.handed_out[number]
            assert not (is_exact and each.attempts) or self.handed_out[number]
        self.handed_out = dict.fromkeys(self.handed_out, True)
        for delivery in found:
            self.queue.requeue(delivery)
            self.note()


@pytest.mark.parametrize("priority_max", [None, 3])
@pytest.mark.seeds(SEEDS)
def test_a_queue_is_after_a_power_cut_or_a_kill_what_it_was_before(
    seed: int, priority_max: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed, priority_max)
    actions = [simulation.publish] * 5 + [simulation.get] * 3 + [simulation.settle] * 3
    actions += [simulation.commit, simulation.commit, simulation.consume]
    for _ in range(STEPS):
        simulation.chance.choice(actions)()
        if simulation.chance.random() < 0.02:
            simulation.purge()
        if simulation.chance.random() < 0.03:
            simulation.settle_and_end()
    simulation.settle_and_end()


@pytest.mark.parametrize("priority_max", [None, 3])
@pytest.mark.seeds(SEEDS // 2)
def test_messages_delivered_before_a_kill_are_marked_as_redelivered(
    seed: int, priority_max: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed, priority_max)
    actions = [simulation.publish] * 6 + [simulation.get] * 3 + [simulation.settle] * 3
    actions += [simulation.commit, simulation.consume]
    for _ in range(STEPS):
        simulation.chance.choice(actions)()
        if simulation.chance.random() < 0.05:
            simulation.kill()
        elif simulation.chance.random() < 0.02:
            simulation.settle_and_end()
    simulation.kill()
