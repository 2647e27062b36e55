"""Federated queues of two brokers whose network and power fail, in one thread, driven by seeds.

Consumers come and go at both ends, with any prefetch, and acknowledge as fast or as slowly as they like,
while messages are published at both ends, connections are cut and delayed, and brokers lose power. One broker
is the upstream of the other, or each of the other.

In the end every confirmed message was acknowledged by a consumer or is in a queue, and without a fault once.
A message says where it was. When nothing happens any more, no message moves: none goes back and forth, and
none is taken by a queue that has enough of them, or that has no consumer.
"""

import random
from collections import Counter

import pytest
from tests.seeds import SEEDS
from tests.sim.relay_network import Network
from tests.sim.relay_users import Consumer, Operator, Publisher, take_all
from tests.sim.segments import make_small
from tests.unit.session.client import ReceivedMethod

from warren.metadata.commands import SetParameter, SetPolicy
from warren.wire import methods

STEPS = 120
QUEUE = "fq"
HEALED_MS_MAX = 120_000
# For this time nothing may move when nothing happens.
CALM_MS = 60_000
# The sites, each with its upstreams.
LAYOUTS = ({"a": "", "b": "a"}, {"a": "b", "b": "a"})
# Weights of the faults, of which each seed has one row: none, cuts, crashes, all.
FAULTS = (
    {},
    {"cut": 3, "refuse": 1, "hold": 2},
    {"crash": 2},
    {"cut": 2, "refuse": 1, "hold": 2, "crash": 1},
)
_POLICY = SetPolicy(vhost="/", name="p", pattern="^fq$", definition={"federation-upstream-set": "all"})


class Simulation:
    """The sites, their consumers, and what was published and consumed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.layout = LAYOUTS[seed % len(LAYOUTS)]
        self.faults = FAULTS[seed // len(LAYOUTS) % len(FAULTS)]
        self.prefetch_count = self.chance.choice((1, 10, 1000))
        self.network = Network("".join(self.layout), self.chance)
        self.publishers = {name: Publisher(site) for name, site in self.network.sites.items()}
        self.consumers: dict[str, list[Consumer]] = {name: [] for name in self.layout}
        self.consumed: list[ReceivedMethod] = []
        # How many changes of consumers there were, each of which can move messages.
        self.consumer_changes = 0
        for name in self.layout:
            self.declare(name)
        self.settle()

    # --- what the users do --------------------------------------------------------------------------

    def declare(self, name: str) -> None:
        """Declare the queue of a site, and federate it."""
        node = self.network.sites[name].node
        operator = Operator(self.network.sites[name])
        operator.ask(methods.QueueDeclare(queue=QUEUE, durable=True))
        self.network.flow()
        operator.poll()
        for upstream in self.layout[name]:
            value = {
                "uri": f"amqp://{upstream}",
                "reconnect-delay": self.chance.choice((1, 5)),
                "prefetch-count": self.prefetch_count,
            }
            node.propose(SetParameter(vhost="/", component="federation-upstream", name=upstream, value=value))
        node.propose(_POLICY)
        self.network.flow()

    def publish(self) -> None:
        name = self.chance.choice(list(self.layout))
        if self.network.sites[name].running is not None:
            for _ in range(self.chance.choice((1, 3, 20))):
                self.publishers[name].publish("", QUEUE)

    def consume(self) -> None:
        """Add a consumer, which may be one that demands nothing, or end one."""
        name = self.chance.choice(list(self.layout))
        consumers = self.consumers[name]
        self.consumer_changes += 1
        if consumers and self.chance.random() < 0.5:
            consumers.pop(self.chance.randrange(len(consumers))).close()
        elif self.network.sites[name].running is not None:
            prefetch = self.chance.choice((1, 5, 100))
            arguments = {"x-priority": -5} if self.chance.random() < 0.1 else {}
            consumers.append(Consumer(self.network.sites[name], QUEUE, prefetch, arguments))

    def acknowledge(self) -> None:
        """Have a consumer acknowledge some of its messages."""
        consumers = [each for each in self.all_consumers() if each.held_count]
        if consumers:
            self.consumed += self.chance.choice(consumers).acknowledge(self.chance.choice((1, 5, 100)))

    def all_consumers(self) -> list[Consumer]:
        return [consumer for consumers in self.consumers.values() for consumer in consumers]

    # --- the run ------------------------------------------------------------------------------------

    def step(self) -> None:
        network = self.network
        for _ in range(self.chance.randrange(1, 20)):
            if not network.pass_bytes() or self.chance.random() < 0.2:
                network.write()
            network.run_turns()
        network.pass_time(self.chance.choice((0, 10, 100, 500)))
        self.poll()
        weights = {"nothing": 5, "flow": 5, "publish": 10, "consume": 6, "acknowledge": 20, "restart": 1}
        weights |= self.faults
        (event,) = self.chance.choices(list(weights), list(weights.values()))
        self.happen(event)

    def happen(self, event: str) -> None:
        network, chance = self.network, self.chance
        if event in ("publish", "consume", "acknowledge"):
            getattr(self, event)()
        elif event == "flow":
            network.flow()
        elif event == "restart" and not network.unnoticed_count:
            for node in network.running():
                for link in node.links.all():
                    node.links.restart(link.key)
        elif event == "cut" and network.remote_wires():
            network.cut(chance.choice(network.remote_wires()))
        elif event == "hold" and network.wires:
            chance.choice(network.wires).held_until = network.clock.now + chance.randrange(3_000)
        elif event == "refuse":
            network.refused_until[chance.choice(list(self.layout))] = network.clock.now + 3_000
        elif event == "crash":
            network.crash(chance.choice(list(self.layout)))

    def poll(self) -> None:
        """Let the users receive; consumers of a broker that has crashed are gone."""
        for publisher in self.publishers.values():
            publisher.poll()
        for name, consumers in self.consumers.items():
            self.consumers[name] = [each for each in consumers if not each.node.is_over]
        for consumer in self.all_consumers():
            consumer.poll()

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        self.settle()
        self.check_calm()
        self.check_windows()
        self.check_messages()
        self.network.check_reports()

    def settle(self) -> None:
        """Let everything pass until nothing is under way."""

        def is_done() -> bool:
            self.poll()
            return all(node.is_forwarding() for node in self.network.running())

        self.network.settle(is_done, HEALED_MS_MAX, self.statuses)

    def statuses(self) -> list[object]:
        return [link.status() for node in self.network.running() for link in node.links.all()]

    # --- what is verified ---------------------------------------------------------------------------

    def forwarded(self) -> int:
        """The number of messages that links have forwarded since the nodes have started."""
        links = [link for node in self.network.running() for link in node.links.all()]
        return sum(link.status().counters.forwarded for link in links)

    def check_calm(self) -> None:
        """No message moves for a long time."""
        for _ in range(10):
            self.network.flow()
            self.network.pass_time(1_000)
        self.settle()
        before = self.forwarded()
        end = self.network.clock.now + CALM_MS
        while self.network.clock.now < end:
            self.network.flow()
            self.network.pass_time(5_000)
            self.poll()
        assert self.forwarded() == before

    def check_windows(self) -> None:
        """A link consumes only while the queue here has a consumer, and at most a window waits in it."""
        for name, upstreams in self.layout.items():
            for upstream in upstreams:
                queue = self.network.sites[upstream].node.queue(QUEUE)
                assert queue is not None
                tags = [one.tag for one in queue.consumers() if one.tag == f"federation-link-{upstream}"]
                if not any(consumer.node.site.node_name == name for consumer in self.consumers[name]):
                    assert not tags, f"{name} takes messages without a consumer"

    def check_messages(self) -> None:
        """Every confirmed message is somewhere, or was acknowledged; without a fault it is so once."""
        for consumer in self.all_consumers():
            consumer.close()
        self.settle()
        left = [take_all(self.network.sites[name].node, QUEUE) for name in self.layout]
        found = Counter(received.body for received in [*self.consumed, *left[0], *left[1]])
        sent = [publication for publisher in self.publishers.values() for publication in publisher.sent]
        lost = [each for each in sent if each.is_confirmed and each.body not in found]
        assert not lost
        assert found.keys() <= {each.body for each in sent}
        if not (self.network.cut_count or self.network.crash_count):
            assert not [body for body, count in found.items() if count > 1]
        for received in [*self.consumed, *left[0], *left[1]]:
            self.check_visits(received)

    def check_visits(self, received: ReceivedMethod) -> None:
        """A message says at which upstreams it was, and how often, which is not very often."""
        assert received.properties is not None
        headers = received.properties.headers or {}
        entries = headers.get("x-received-from", [])
        assert isinstance(entries, list)
        uris = [entry["uri"] for entry in entries]
        assert len(set(uris)) == len(uris) <= len(self.layout)
        visits = [entry["visit-count"] for entry in entries]
        assert not visits or max(visits) - min(visits) <= 1
        limit = 1 + self.consumer_changes + self.network.cut_count + self.network.crash_count
        assert sum(visits) <= 2 * limit, (visits, limit)
        if entries:
            assert (headers["x-original-exchange"], headers["x-original-routing-key"]) == ("", QUEUE)


@pytest.mark.seeds(SEEDS // 2)
def test_no_message_of_a_federated_queue_is_lost_or_moves_without_need(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 8_192)
    Simulation(seed).run()


@pytest.mark.seeds(SEEDS // 10)
def test_messages_come_to_rest_between_two_queues_whose_consumers_are_busy(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, 8_192)
    simulation = Simulation(len(LAYOUTS) * len(FAULTS) * seed + 1)
    chance, sites = simulation.chance, simulation.network.sites
    first = Consumer(sites["a"], QUEUE, chance.choice((1, 5)))
    # It is fast at first, so that the window of its link grows.
    for _ in range(chance.randrange(3, 8)):
        for _ in range(20):
            simulation.publishers["b"].publish("", QUEUE)
        for _ in range(10):
            simulation.network.flow()
            first.poll()
            first.acknowledge(100)
    # From here on it acknowledges nothing.
    for _ in range(chance.randrange(5, 20)):
        simulation.publishers["b"].publish("", QUEUE)
    simulation.settle()
    simulation.consumers["b"].append(Consumer(sites["b"], QUEUE, chance.choice((1, 5))))
    simulation.settle()
    simulation.check_calm()
    simulation.network.check_reports()


def test_a_slow_consumer_has_few_messages_brought_and_the_link_seldom_begins_to_consume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_small(monkeypatch, 8_192)
    simulation = Simulation(0)
    for _ in range(200):
        simulation.publishers["a"].publish("", QUEUE)
    consumer = Consumer(simulation.network.sites["b"], QUEUE, 1)
    simulation.settle()
    (wire,) = simulation.network.remote_wires()
    before = wire.consume_count
    for _ in range(60):
        consumer.poll()
        assert len(consumer.acknowledge(1)) == 1
        simulation.settle()
        assert simulation.network.sites["b"].node.depth(QUEUE) <= 5
    wire.collect()
    assert wire.consume_count - before <= 40
