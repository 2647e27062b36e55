"""A quorum queue whose store has damage, driven by seeds: it is down until it is recovered.

While it is down nothing is confirmed or delivered, also after further kills. `recover` brings back, in
order, every message whose record is intact and that was not settled, and says of each that it may have been
delivered. From then on the queue keeps what it confirms, the damaged file notwithstanding; new damage takes
it down again. A classic queue in the same store is served all the time.
"""

import random

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.segments import make_small
from tests.unit.queues.samples import Host, Reader

from warren.errors import NotFound
from warren.metadata.incarnation import Incarnation
from warren.metadata.records import FIRST_REPLICA
from warren.model.arguments import QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.coroutine_driver import drive
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.queues.classic import ClassicQueue
from warren.queues.queue import REFUSED, Delivery
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.store_port import StorePort
from warren.store.stores import Stores
from warren.wire.properties import BasicProperties

SEGMENT_SIZES = (8_192, 600)
NUMBER, CLASSIC = 7, 8
ROUNDS = 3


class Port(StorePort):
    """A port that commits when the simulation decides."""

    def commit_due(self) -> None:
        """A commit will follow."""


class Confirms(ConfirmListener):
    """Collects the publishes that were confirmed."""

    def __init__(self) -> None:
        self.confirmed: set[int] = set()

    def expect(self, sequence: int) -> None:
        """The confirm follows."""

    def done(self, first: int, last: int) -> None:
        self.confirmed.update(range(first, last + 1))


class Simulation:
    """A quorum queue and a classic one in one store."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = SimulatedDisk(self.chance)
        self.number = 0
        self.starts = 0
        self.confirms = Confirms()
        # Published; and acknowledged: those that may come back.
        self.there: set[int] = set()
        self.settled: set[int] = set()
        self.open()

    def open(self) -> None:
        self.starts += 1
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes, has_queue=(NUMBER, CLASSIC).__contains__,
            progress=lambda *_: None, replicas={NUMBER: FIRST_REPLICA},
        )  # fmt: skip
        self.recovered = open_store(self.disk, Port(), dependencies)
        self.store = self.recovered.store
        self.readable = [int(message.body) for _, message in messages_in(self.recovered, NUMBER)]
        transient = open_erased(SimulatedDisk(self.chance), Port(), self.chance.randbytes)
        stores = Stores(self.store, transient)
        host, incarnation = Host(), Incarnation(1, self.starts)
        self.queue = QuorumQueue("q", "/", host, QueueSettings(), incarnation=incarnation)
        self.queue.attach_store(stores, NUMBER)
        self.classic = ClassicQueue("c", "/", host, QueueSettings())
        self.classic.attach_store(stores, CLASSIC)
        for queue, number in ((self.queue, NUMBER), (self.classic, CLASSIC)):
            for level, found in self.recovered.queues.get(number, {}).items():
                queue.restore(level, found)
        if not self.queue.is_down:
            self.finish()

    def finish(self) -> None:
        """Have everything written."""
        while not self.store.is_idle or self.disk.is_busy:
            self.disk.advance()
            self.store.commit()

    def publish(self, queue: ClassicQueue) -> int:
        number, self.number = self.number, self.number + 1
        properties = BasicProperties(delivery_mode=2).encode_list()
        message = StoredMessage(encode_address("", "q"), properties, b"%d" % number + BODY_END, 0)
        message.flags = PERSISTENT
        answer: int = queue.publish(message, self.confirms, number)
        if answer != REFUSED and queue is self.queue:
            self.there.add(number)
        return answer

    def get(self) -> Delivery | None:
        got: list[tuple[Delivery, int] | None] = []

        async def fetch() -> None:
            got.append(await self.queue.fetch(False))

        drive(fetch())
        while not got:
            self.store.commit()
            self.disk.advance()
        return None if got[0] is None else got[0][0]

    def use(self) -> None:
        """Publish, get, acknowledge and requeue."""
        for _ in range(self.chance.randrange(5, 40)):
            chosen = self.chance.random()
            if chosen < 0.6:
                self.publish(self.queue)
            elif chosen < 0.7:
                self.publish(self.classic)
            elif chosen < 0.8:
                self.store.commit()
                self.disk.advance()
            elif (delivery := self.get()) is not None:
                if self.chance.random() < 0.7:
                    self.queue.acknowledge(delivery)
                    self.there.discard(int(delivery.message.body))
                    self.settled.add(int(delivery.message.body))
                else:
                    self.queue.requeue(delivery)
        self.finish()

    def damage(self) -> bool:
        """Flip a bit of what was synced; False if that is in what was damaged already."""
        before = {str(error) for error in self.recovered.damage}
        # A segment with a damaged head is not there as a whole.
        segments = [each for each in self.store.segments.values() if each.name in self.disk.files]
        segment = self.chance.choice(segments)
        self.disk.flip_bit(segment.name, self.chance.randrange(segment.size))
        self.disk.die()
        self.open()
        is_new = {str(error) for error in self.recovered.damage} - before != set()
        assert self.queue.is_down == is_new
        return is_new

    def check_down(self) -> None:
        """Nothing is accepted, confirmed or delivered; kills change nothing."""
        for _ in range(2):
            confirmed = {*self.confirms.confirmed}
            assert self.publish(self.queue) == REFUSED
            assert not self.queue.is_restored
            for use in (self.queue.fetch(True), self.queue.inspect(), self.queue.purge()):
                with pytest.raises(NotFound, match="down until an operator recovers it"):
                    use.send(None)
            with pytest.raises(NotFound, match="incomplete"):
                self.queue.check_consumer(Reader())
            status = self.queue.replication_status()
            assert status is not None
            assert status.untrusted
            assert (status.role, status.readable_count) == ("down", len(self.readable))
            assert self.publish(self.classic) != REFUSED
            self.finish()
            assert self.confirms.confirmed == confirmed | {self.number - 1}
            readable = self.readable
            self.chance.choice([self.disk.die, self.disk.lose_power])()
            self.open()
            assert self.queue.is_down
            assert self.readable == readable

    def recover(self) -> None:
        """Accept the loss: what is readable is there, in order, once, and marked as redelivered."""
        self.queue.recover()
        self.finish()
        assert self.queue.is_restored
        found = []
        while (delivery := self.get()) is not None:
            found.append(delivery)
        numbers = [int(each.message.body) for each in found]
        assert numbers == sorted({*numbers})
        assert {*numbers} <= {*self.readable}
        # What an intact entry has settled is not there, though the store may not have known.
        assert {*self.readable} - {*numbers} <= self.settled
        assert all(each.attempts for each in found)
        for each in found:
            self.queue.requeue(each)
        self.finish()
        self.there = {*numbers}
        self.disk.die()
        self.open()
        assert not self.queue.is_down, "damage that was accepted counts again"
        assert self.queue.message_count == len(numbers)


@pytest.mark.seeds(SEEDS)
def test_a_damaged_quorum_queue_is_down_until_it_is_recovered_with_all_that_is_readable(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = Simulation(seed)
    for _ in range(ROUNDS):
        simulation.use()
        if simulation.damage():
            simulation.check_down()
            simulation.recover()
    simulation.use()
    simulation.disk.lose_power()
    simulation.open()
    assert simulation.queue.message_count == len(simulation.there)
