"""The start, the restart and the end of the link of a federated exchange, disturbed at its steps.

A step is a read of one end of a connection, or one step of a disk. At one of them a broker loses power, all
connections are cut, or the federation is ended; then everything goes on without a fault. With 1,000 seeds
that happens at every single step.
"""

import random
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.seeds import SEEDS, SEEDS_FROM
from tests.sim.relay_network import Network
from tests.sim.relay_site import Node
from tests.sim.relay_users import Operator, Publication, Publisher, take_all
from tests.sim.segments import make_small

from warren.metadata.commands import ClearPolicy, SetParameter, SetPolicy
from warren.wire import methods

UPSTREAM, HERE = "a", "b"
EXCHANGE, QUEUE, KEY = "x", "q", "k"
HEALED_MS_MAX = 120_000
# All steps take a quarter of a minute; the machine may be busy with other work.
TEST_S_MAX = 600
# With fewer seeds only one of so many steps is disturbed.
SEEDS_FOR_ALL = 1_000
STRIDE = 4
# A start and a restart have at least this number of steps.
STEPS_MIN = 100
# A message is published at every so many steps, up to a number of them.
STEPS_PER_MESSAGE = 10
MESSAGES_MAX = 14
PREFIX = "federation: "


class Story:
    """A link that starts, forwards, is restarted, and forwards again, with something happening at a step."""

    def __init__(self, step: int, event: "Callable[[Story], None]") -> None:
        self.network = Network(UPSTREAM + HERE, random.Random(1), pieces=(100_000,))
        self.network.flow_steps = 1
        self.upstream, self.here = self.network.sites[UPSTREAM], self.network.sites[HERE]
        self.publisher = Publisher(self.upstream)
        self.step = step
        self.promised: list[Publication] = []
        # True if the federation was ended.
        self.is_ended = False
        self.declare()
        self.network.planned_step = self.network.step_count + step
        self.network.planned = lambda: event(self)

    def declare(self) -> None:
        for site in (self.upstream, self.here):
            operator = Operator(site)
            operator.ask(methods.ExchangeDeclare(exchange=EXCHANGE, type="topic", durable=True))
            operator.ask(methods.QueueDeclare(queue=QUEUE, durable=True))
            if site is self.here:
                operator.ask(methods.QueueBind(queue=QUEUE, exchange=EXCHANGE, routing_key=KEY))
            self.network.flow()
        value = {"uri": f"amqp://{UPSTREAM}", "reconnect-delay": 1}
        self.here.node.propose(
            SetParameter(vhost="/", component="federation-upstream", name="u", value=value)
        )
        self.network.flow()

    def federate(self) -> None:
        """Federate the exchange."""
        policy = SetPolicy(vhost="/", name="p", pattern="^x$", definition={"federation-upstream": "u"})
        self.here.node.propose(policy)

    def end(self) -> None:
        """End the federation of the exchange."""
        self.is_ended = True
        self.network.each_step = lambda: None
        self.here.node.propose(ClearPolicy(vhost="/", name="p"))

    def run(self) -> bool:
        """Run to the end; False if it has ended before the step."""
        self.federate()
        self.settle()
        if not (self.here.node.vhost.policies.by_name or self.is_ended):
            # A crash has prevented it.
            self.federate()
            self.settle()
        # From here on everything that is published has to arrive.
        if not self.is_ended:
            self.network.each_step = self.publish
        # The second restart finds the bindings at the other internal exchange.
        for _ in range(2):
            for link in self.here.node.links.all():
                link.restart()
            self.settle()
        self.network.each_step = lambda: None
        self.settle()
        return self.network.step_count >= self.network.planned_step

    def publish(self) -> None:
        """Publish a message now and then, which has to arrive, since the link has been running before."""
        is_due = not self.network.step_count % STEPS_PER_MESSAGE and len(self.promised) < MESSAGES_MAX
        if self.upstream.running is None:
            return
        assert is_covered(self.upstream.node)
        if is_due:
            self.promised.append(self.publisher.publish(EXCHANGE, KEY))

    def settle(self) -> None:
        self.network.settle(
            lambda: all(node.is_forwarding() for node in self.network.running()), HEALED_MS_MAX
        )
        self.publisher.poll()

    def left(self) -> list[str]:
        """The objects of links at the upstream."""
        topology = self.upstream.node.vhost.topology
        names = [*topology.queues, *topology.exchanges]
        return sorted(name for name in names if name.startswith(PREFIX))

    def is_gone(self) -> bool:
        """True if nothing is left of the link."""
        return not (self.left() or propagated_keys(self.upstream.node) or self.network.wires)

    def check(self) -> None:
        """Everything has arrived in order, and the upstream has what a link needs and nothing else."""
        names = self.left()
        assert names in ([f"{PREFIX}x -> b", f"{PREFIX}x -> b {suffix}"] for suffix in "AB")
        assert propagated_keys(self.upstream.node) == [KEY]
        assert self.upstream.node.depth(names[0]) == 0
        bodies = [received.body for received in take_all(self.here.node, QUEUE)]
        arrived = list(dict.fromkeys(bodies))
        assert [each.body for each in self.promised if each.is_confirmed or each.body in arrived] == arrived
        if not (self.network.cut_count or self.network.crash_count):
            assert len(bodies) == len(arrived)
        self.network.check_reports()


def propagated_keys(node: Node) -> list[str]:
    """The keys that links have bound at `node`."""
    bindings = node.vhost.topology.bindings_from(EXCHANGE)
    return [binding.routing_key for binding in bindings if binding.destination.startswith(PREFIX)]


def is_covered(node: Node) -> bool:
    """True if a message that is published at `node` gets to the queue of the link."""
    topology = node.vhost.topology
    return any(
        further.is_to_queue
        for binding in topology.bindings_from(EXCHANGE)
        if binding.destination.startswith(PREFIX)
        for further in topology.bindings_from(binding.destination)
    )


def cut_all(story: Story) -> None:
    for wire in story.network.remote_wires():
        story.network.cut(wire)


def steps() -> Iterator[int]:
    """The steps at which something happens: every one with many seeds, otherwise some of them."""
    stride = 1 if SEEDS >= SEEDS_FOR_ALL else STRIDE
    return count(1 + SEEDS_FROM % stride, stride)


FAULTS: dict[str, Callable[[Story], None]] = {
    "the upstream crashes": lambda story: story.network.crash(UPSTREAM),
    "the downstream crashes": lambda story: story.network.crash(HERE),
    "connections are cut": cut_all,
}


@pytest.mark.timeout(TEST_S_MAX)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_link_recovers_from_a_fault_at_any_step(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, 8_192)
    for step in steps():
        story = Story(step, FAULTS[fault])
        if not story.run():
            break
        story.check()
    assert step > STEPS_MIN


@pytest.mark.timeout(TEST_S_MAX)
def test_a_link_that_ends_at_any_step_leaves_nothing_at_the_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, 8_192)
    for step in steps():
        story = Story(step, Story.end)
        if not story.run():
            break
        story.network.settle(story.is_gone, HEALED_MS_MAX, lambda story=story: (story.step, story.left()))  # type: ignore[misc]
        story.network.check_reports()
    assert step > STEPS_MIN
