"""A link that delivers exactly once, while both brokers lose power and the network cuts connections.

Both brokers store their messages on a simulated disk. The source also has transient messages, and messages
that it loses because they were not synced, whose positions it gives to later ones. What was synced at the
source arrives exactly once; what was not arrives at most once.
"""

from collections import Counter

import pytest
from tests.seeds import SEEDS
from tests.sim.durable_broker import DurableBroker
from tests.sim.segments import make_small
from tests.sim.test_relay import Simulation
from tests.unit.session.client import publication

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message, encode_address
from warren.relay.attempts import LinkAttempts
from warren.relay.delivery_guarantee import Guarantee
from warren.relay.endpoint import Endpoint
from warren.relay.link import Link, LinkDependencies
from warren.relay.link_run import LinkPlan, LinkRun, LinkSettings
from warren.relay.status import LinkKey, LinkKind
from warren.wire import methods

STEPS = 200
SENT_MAX = 150
SEGMENT_SIZES = (65_536, 8_192)
PREFETCHES = (0, 1, 5, 1000)
# All seeds have crashes: with cuts, and without.
FAULTS = (
    {"crash": 3, "cut": 2, "refuse": 1, "alarm": 1},
    {"crash": 4},
)


class Synced(ConfirmListener):
    """Records up to which batch of messages everything is on disk."""

    def __init__(self) -> None:
        self.last = 0

    def expect(self, sequence: int) -> None:
        """It waits."""

    def done(self, first: int, last: int) -> None:
        self.last = last


class QueueToQueue(LinkPlan):
    """Forwards the queue `from` to the queue `to`, both of which exist."""

    def __init__(self) -> None:
        self.guarantees: set[Guarantee] = set()

    async def set_up(self, run: LinkRun) -> None:
        await run.connect_source()
        await run.connect_destination()
        self.guarantees.add(run.delivery.guarantee)
        await run.open_destination_channel()
        await run.open_source_channel()
        await run.consume("from")

    async def tear_down(self, run: LinkRun) -> None:
        """Both queues stay."""

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        return Message(encode_address("", "to"), message.property_list, message.content, 0)

    def completed(self) -> None:
        """The number of messages is not limited."""

    def confirmed(self) -> set[bytes]:
        """What the simulation need not remember."""
        return set()


class DurableSimulation(Simulation):
    """Two brokers with disks, the network, and the link."""

    brokers: dict[str, DurableBroker]  # type: ignore[assignment]

    def __init__(self, seed: int, *, is_exactly_once: bool = True) -> None:
        self.is_exactly_once = is_exactly_once
        super().__init__(seed)
        self.faults = FAULTS[seed % len(FAULTS)]
        # The bodies of persistent messages by batch, and what is known to be synced.
        self.batches: list[list[bytes]] = []
        self.synced = Synced()
        self.safe: set[bytes] = set()
        # Arrived messages that a consumer has taken.
        self.taken: list[bytes] = []

    def make_link(self) -> Link:
        self.plan = QueueToQueue()  # type: ignore[assignment]
        ends = {
            host: Endpoint(targets=(self.target(host),), name="link", user="guest") for host in self.brokers
        }
        attempts = LinkAttempts(self.clock.turn, self.after)
        dependencies = LinkDependencies(
            self, self.clock.turn, self.after, self.log, attempts, lambda link: None, lambda vhost: None
        )
        settings = LinkSettings(
            **ends,
            prefetch_count=self.chance.choice(PREFETCHES),
            is_exactly_once=self.is_exactly_once,
            reconnect_delay_ms=20,
        )
        return Link(LinkKey(LinkKind.SHOVEL, "/", "s"), self.plan, settings, dependencies)

    def start_broker(self, host: str, queue: str, bodies: list[bytes]) -> None:
        broker = self.brokers[host] = DurableBroker(self.chance)
        broker.clock.now = self.clock.now
        client = broker.client()
        arguments: dict[str, object] = {}
        if host == "source" and self.chance.random() < 0.3:
            arguments["x-max-priority"] = 3
        if host == "destination" and self.chance.random() < 0.5:
            arguments = {"x-max-length": 10, "x-overflow": "reject-publish"}
        client.ask(methods.QueueDeclare(queue=queue, durable=True, arguments=arguments))
        client.connection.lost()
        broker.sync()

    def publish(self) -> None:
        broker = self.brokers["source"]
        client = broker.client()
        batch = []
        for _ in range(self.chance.choice((1, 1, 2, 7))):
            if self.sent == SENT_MAX:
                break
            mode = self.chance.choice((1, 2, 2))
            body = b"%05d" % self.sent
            self.sent += 1
            client.send(publication("from", body, delivery_mode=mode, priority=self.chance.randrange(4)))
            if mode == 2:
                batch.append(body)
        self.batches.append(batch)
        broker.store.confirm(self.synced, len(self.batches))
        client.connection.lost()

    def count_synced(self) -> None:
        for batch in self.batches[: self.synced.last]:
            self.safe.update(batch)

    def crash(self, host: str) -> None:
        for wire in [wire for wire in self.wires if wire.host == host]:
            self.cut(wire, is_known=True)
        for name, pair in self.cut_pairs:
            if name == host and not pair.server.is_finished:
                pair.server.lost()
        broker = self.brokers[host]
        if self.chance.random() < 0.5:
            broker.work(self.chance.randrange(4))
        self.count_synced()
        if host == "source":
            # What was not synced is not asked for any more.
            self.batches = [[] for _ in self.batches]
        broker.crash(is_power_lost=self.chance.random() < 0.8)
        self.refused_until[host] = self.clock.now + self.chance.randrange(100)

    def take_some(self) -> None:
        """A consumer of the destination takes what is synced, so that a full queue has room."""
        broker = self.brokers["destination"]
        broker.sync()
        self.taken += self.content("destination", "to")
        broker.sync()

    def run_turns(self) -> None:
        super().run_turns()
        for broker in self.brokers.values():
            broker.work(self.chance.randrange(3))
            if self.chance.random() < 0.1:
                broker.store.maintain()

    def step(self) -> None:
        for _ in range(self.chance.choice((0, 0, 40))):
            self.pass_bytes()
        super().step()
        if self.chance.random() < 0.05:
            self.take_some()

    def depth(self) -> int:
        """The number of messages that are ready in the source."""
        return self.brokers["source"].services.vhost.queues["from"].message_count

    def heal(self) -> None:
        self.refused_until = dict.fromkeys(self.refused_until, 0)
        self.brokers["destination"].block("")
        for _ in range(2_000):
            if self.is_done():
                break
            for _ in range(30):
                self.pass_bytes()
            self.pass_time(100)
            for broker in self.brokers.values():
                broker.sync()
            self.take_some()
        assert self.is_done(), self.link.status()

    def arrived(self) -> list[bytes]:
        """Run, and return all bodies that have arrived."""
        # Some are on disk before anybody asks for positions.
        self.publish()
        self.brokers["source"].sync()
        self.link.start()
        for _ in range(STEPS):
            self.step()
        self.heal()
        self.count_synced()
        self.take_some()
        return self.taken


@pytest.mark.seeds(SEEDS)
def test_every_message_arrives_exactly_once_whatever_is_cut_or_loses_power(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    simulation = DurableSimulation(seed)
    arrived = Counter(simulation.arrived())
    assert [body for body, count in arrived.items() if count > 1] == []
    assert simulation.safe - set(arrived) == set()
    assert simulation.plan.guarantees == {Guarantee.EXACTLY_ONCE}  # type: ignore[attr-defined]


def test_without_positions_some_messages_arrive_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[0])
    duplicates = 0
    for seed in range(20):
        simulation = DurableSimulation(seed, is_exactly_once=False)
        arrived = Counter(simulation.arrived())
        assert simulation.safe - set(arrived) == set()
        duplicates += sum(count - 1 for count in arrived.values())
    assert duplicates > 0
