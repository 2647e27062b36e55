"""A quorum queue that dead-letters at least once, before and after kills and power cuts, driven by seeds.

Each message that was confirmed is in the queue, a dead letter of it, in the target, or acknowledged. One
whose death was synced does not come back, and its dead letter gives the reason that it died for.
"""

import random

import pytest
from msgspec.structs import replace
from tests.clock import ManualClock
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.sim.test_quorum_queue import Confirms, Port
from tests.unit.queues.samples import sent

from warren.limits_raft import DEAD_LETTERS_RETRIED_MS
from warren.metadata.incarnation import Incarnation
from warren.model.arguments import Overflow, QueueSettings, queue_settings
from warren.model.coroutine_driver import drive
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Delivery
from warren.queues.quorum.quorum_queue import QuorumQueue
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import EXCHANGE_TYPES
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores
from warren.vhost.vhost import VirtualHost

STEPS = 100
SEGMENT_SIZES = (8_192, 600)
SOURCE, TARGET = 7, 8
LIMIT = 2
TTL_MS = 1_000
# As clients declare them: a quorum queue has all its priority levels then; tests of one level leave them out.
SOURCE_ARGUMENTS = {
    "x-queue-type": "quorum",
    "x-overflow": "reject-publish",
    "x-dead-letter-exchange": "",
    "x-dead-letter-routing-key": "target",
    "x-dead-letter-strategy": "at-least-once",
    "x-delivery-limit": LIMIT,
}


class DeadLetterSimulation:
    """A source and a target in one store, and what is known about each message."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.is_target_quorum = seed % 3 != 0
        # Whether messages expire by the time to live of the queue, by one of their own, or by both.
        self.has_ttl = seed % 4 != 0
        self.has_expirations = seed % 4 in (0, 1)
        # Whether messages have priorities.
        self.has_priorities = seed % 5 == 0
        self.disk = SimulatedDisk(self.chance)
        self.clock = ManualClock(1_000_000)
        self.number = 0
        self.starts = 0
        # When each expires.
        self.deadlines: list[int] = []
        # Confirmed in some run, and acknowledged at some time.
        self.confirmed: set[int] = set()
        self.acknowledged: set[int] = set()
        # Number -> the reasons for which it died, in this run, or in any; and those that died for certain.
        self.dying: dict[int, str] = {}
        self.reasons: dict[int, set[str]] = {}
        self.dead: set[int] = set()
        self.deliveries: list[Delivery] = []
        self.got: list[tuple[Delivery, int] | None] = []
        self.open()

    def open(self) -> None:
        self.starts += 1
        dependencies = RecoveryDependencies(
            random_bytes=self.chance.randbytes,
            has_queue={SOURCE, TARGET}.__contains__,
            progress=lambda *_: None,
        )
        recovered = open_store(self.disk, Port(), dependencies)
        assert not recovered.damage
        self.store = recovered.store
        self.stores = Stores(
            self.store, open_erased(SimulatedDisk(self.chance), Port(), self.chance.randbytes)
        )
        self.vhost = VirtualHost("v", Router("v"), self.clock.turn)
        self.vhost.router.add(EXCHANGE_TYPES["direct"]("", ExchangeSettings(), bytes))
        self.confirms = Confirms()
        self.source = self.quorum("source", SOURCE, self.source_settings())
        self.target: ClassicQueue = (
            self.quorum("target", TARGET, queue_settings({"x-queue-type": "quorum"}))
            if self.is_target_quorum
            else ClassicQueue("target", "v", self.vhost, QueueSettings())
        )
        if not self.is_target_quorum:
            self.target.attach_store(self.stores, TARGET)
        for queue, number in ((self.source, SOURCE), (self.target, TARGET)):
            for level, found in recovered.queues.get(number, {}).items():
                queue.restore(level, found)
        self.is_bound = False
        self.bind()

    def source_settings(self) -> QueueSettings:
        return queue_settings(SOURCE_ARGUMENTS | ({"x-message-ttl": TTL_MS} if self.has_ttl else {}))

    def quorum(self, name: str, number: int, settings: QueueSettings) -> QuorumQueue:
        queue = QuorumQueue(name, "v", self.vhost, settings, incarnation=Incarnation(1, self.starts))
        queue.attach_store(self.stores, number)
        return queue

    # --- actions ----------------------------------------------------------------------------------

    def bind(self) -> None:
        """Bind the target, or unbind it, so that dead letters have none."""
        binding = Binding(self.vhost.router.exchanges[""], "target", None, self.target)
        change = self.vhost.router.unbind if self.is_bound else self.vhost.router.bind
        assert change(binding)
        self.is_bound = not self.is_bound

    def fill(self) -> None:
        """Have the target refuse, or take again."""
        settings = self.target.settings
        length_max = 0 if settings.length_max is None else None
        self.target.apply_settings(replace(settings, length_max=length_max, overflow=Overflow.REJECT_PUBLISH))

    def publish(self) -> None:
        own = self.chance.choice([TTL_MS // 2, TTL_MS, 2 * TTL_MS]) if self.has_expirations else None
        properties: dict[str, object] = {} if own is None else {"expiration": str(own)}
        if self.has_priorities:
            properties["priority"] = self.chance.randrange(4)
        message = sent(b"%d" % self.number, now=self.clock.now, key="source", delivery_mode=2, **properties)
        self.source.publish(message, self.confirms, self.number)
        ttls = [ttl for ttl in (own, TTL_MS if self.has_ttl else None) if ttl is not None]
        self.deadlines.append(self.clock.now + min(ttls))
        self.number += 1

    def get(self) -> None:
        async def fetch() -> None:
            self.got.append(await self.source.fetch(False))

        drive(fetch())
        self.note()

    def note(self) -> None:
        for each in self.got:
            if each is not None:
                number = int(each[0].message.body)
                assert number not in self.dead
                self.deliveries.append(each[0])
        self.got.clear()

    def settle(self) -> None:
        if not self.deliveries:
            return
        delivery = self.deliveries.pop(self.chance.randrange(len(self.deliveries)))
        number = int(delivery.message.body)
        how = self.chance.choice([self.source.acknowledge, self.source.reject, self.source.requeue])
        if how == self.source.acknowledge:
            self.acknowledged.add(number)
        elif how == self.source.reject:
            self.die(number, "rejected")
        elif delivery.attempts >= LIMIT:
            self.die(number, "delivery_limit")
        how(delivery)
        self.source.pump()

    def die(self, number: int, reason: str) -> None:
        self.dying[number] = reason
        self.reasons.setdefault(number, set()).add(reason)

    def wait(self) -> None:
        """Let time pass, so that messages expire, or dead letters are sent again."""
        self.clock.now += self.chance.choice([10, TTL_MS, DEAD_LETTERS_RETRIED_MS])
        self.vhost.expire()

    def purge(self) -> None:
        if self.source.is_restored:
            ready = [int(peeked.message.body) for peeked in self.source.peek(0, 10_000)]
            self.source.clear()
            self.acknowledged |= {*ready}

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
        self.dead |= {*self.dying}

    # --- the end of a run -------------------------------------------------------------------------

    def end(self) -> None:
        """Kill the process or cut the power, and look at what is there."""
        if self.chance.random() < 0.5:
            self.finish()
        if self.chance.random() < 0.5:
            self.disk.die()
        else:
            self.disk.lose_power()
        self.confirmed |= self.confirms.confirmed
        self.deliveries, self.got, self.dying = [], [], {}
        self.open()
        self.finish()
        self.check()

    def check(self) -> None:
        """Look at what is there after everything was written."""
        ready = [int(peeked.message.body) for peeked in self.source.peek(0, 10_000)]
        assert len({*ready}) == len(ready)
        assert not {*ready} & self.dead
        # A dead letter is published when its death is agreed on.
        assert not {*ready} & self.arrived()
        status = self.source.replication_status()
        assert status is not None
        found = {*ready} | self.arrived() | self.acknowledged
        missing = self.confirmed - found
        assert len(missing) <= status.dead_letter_count

    def arrived(self) -> set[int]:
        """The messages in the target, whose death headers give a reason that they died for."""
        arrived = self.target.peek(0, 100_000)
        for peeked in arrived:
            first, number = peeked.message.headers()["x-death"][0], int(peeked.message.body)
            assert first["queue"] == "source"
            reasons = self.reasons.get(number, set())
            is_expired = self.deadlines[number] <= self.clock.now
            assert first["reason"] in reasons or (first["reason"] == "expired" and is_expired)
            assert first["count"] == 1
        return {int(peeked.message.body) for peeked in arrived}

    def conclude(self) -> None:
        """Have every dead letter arrive."""
        if not self.is_bound:
            self.bind()
        if self.target.settings.length_max is not None:
            self.fill()
        self.finish()
        for _ in range(2):
            # Those that expire now follow in the second round.
            self.clock.now += DEAD_LETTERS_RETRIED_MS
            self.vhost.expire()
            self.finish()
        status = self.source.replication_status()
        assert status is not None
        assert (status.dead_letter_count, status.dead_letter_bytes) == (0, 0)
        held = {int(delivery.message.body) for delivery in self.deliveries}
        everything = {int(peeked.message.body) for peeked in self.source.peek(0, 10_000)}
        everything |= self.arrived() | self.acknowledged | held
        assert everything >= self.confirmed | self.confirms.confirmed
        assert self.arrived() >= self.dead
        assert self.source.persistent_count == self.source.message_count + len(self.deliveries)


@pytest.mark.seeds(SEEDS)
def test_every_dead_letter_arrives_and_none_comes_back(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = DeadLetterSimulation(seed)
    actions = [simulation.publish] * 6 + [simulation.get] * 4 + [simulation.settle] * 4
    actions += [simulation.commit] * 4 + [simulation.wait]
    for _ in range(STEPS):
        simulation.chance.choice(actions)()
        for rare, often in ((simulation.bind, 0.03), (simulation.fill, 0.03), (simulation.purge, 0.01)):
            if simulation.chance.random() < often:
                rare()
        if simulation.chance.random() < 0.04:
            simulation.end()
    simulation.end()
    simulation.conclude()
