"""Clients of two nodes use a quorum queue with one member, whose node crashes and starts again at any time.

Payloads are passed one by one; the link does not take any for a while, and its session is lost at one end
before the other. The home loses power and starts with what is on its disk, or its virtual host fails alone.

No publish of a client of the other node is refused, none of its consumers is cancelled, and what it has
acknowledged does not come back. In the end each message that was confirmed is in the queue once, or was
settled; none is there twice. What comes a second time says so.
"""

import random
from collections import Counter
from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.remote_clients import QUEUE, Promises, RemoteClient
from tests.unit.cluster.two_nodes import VHOST, ClusterNode, TwoNodes

from warren.limits_cluster import CLAIMS_MS_MAX
from warren.wire import methods
from warren.wire.table import Table

STEPS = 300
PREFETCHES = (0, 1, 3, 20)
QUORUM: Table = {"x-queue-type": "quorum"}


class Simulation:
    """Two nodes, two clients of each, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.cluster = TwoNodes()
        for node in self.cluster.nodes:
            node.attach_store(chance)
        self.promises = Promises()
        # With a limit of a channel, or when what was handed out is ready again, the order is another one.
        self.promises.is_ordered = False
        self.is_small = chance.random() < 0.2
        self.prefetch = chance.choice(PREFETCHES)
        self.is_global = chance.random() < 0.2
        self.lost_at: list[ClusterNode] = []
        arguments = {"x-max-length": 10, "x-overflow": "reject-publish"} if self.is_small else {}
        first = self.cluster.client(self.cluster.b)
        first.ask(methods.QueueDeclare(queue=QUEUE, durable=True, arguments=QUORUM | arguments))
        self.cluster.run()
        self.clients = [
            RemoteClient(f"{node.name}{number}", self.cluster, node, self.promises)
            for node in self.cluster.nodes
            for number in range(2)
        ]

    def run(self) -> None:
        """Let things happen in any order."""
        actions: list[tuple[Callable[[], None], int]] = [
            (self._publish, 10), (self._settle, 10), (self._consume, 3), (self._get, 3), (self._cancel, 1),
            (self._leave, 1), (self._turn, 30), (self._pass, 30), (self._write, 8), (self._stop_or_go, 2),
            (self._lose, 2), (self._begin, 5), (self._crash, 1), (self._wait, 2),
        ]  # fmt: skip
        kinds, weights = [action for action, _ in actions], [weight for _, weight in actions]
        for action in self.chance.choices(kinds, weights, k=STEPS):
            action()
            for client in self.clients:
                client.hear()
        self._heal()

    # --- what happens ---------------------------------------------------------------------------------

    def _publish(self) -> None:
        client = self.chance.choice(self.clients)
        client.publish(self.chance.choice((1, 1, 5)), is_persistent=True, is_mandatory=False)

    def _settle(self) -> None:
        holders = [client for client in self.clients if client.unacked]
        if holders:
            self.chance.choice(holders).settle(self.chance)

    def _consume(self) -> None:
        client = self.chance.choice(self.clients)
        if len(client.consumers) < 2:
            client.consume(no_ack=False, prefetch=self.prefetch, is_global=self.is_global)

    def _get(self) -> None:
        client = self.chance.choice(self.clients)
        if not client.is_waiting:
            client.get(no_ack=False)

    def _cancel(self) -> None:
        client = self.chance.choice(self.clients)
        if client.consumers:
            client.cancel(self.chance.choice(sorted(client.consumers)))

    def _leave(self) -> None:
        self.chance.choice(self.clients).leave()

    def _turn(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        if node.turns:
            node.turn()

    def _pass(self) -> None:
        self.cluster.pass_one(self.chance.choice(self.cluster.nodes))

    def _write(self) -> None:
        self.cluster.b.write()

    def _wait(self) -> None:
        """Time passes, less in all than methods wait for a leader."""
        for node in self.cluster.nodes:
            node.clock.now += 300
            node.run_timers()

    def _stop_or_go(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        node.channel.is_writable = not node.channel.is_writable
        if node.channel.is_writable:
            node.traffic.writable()

    def _lose(self) -> None:
        """One end learns that the session is lost, or the other one does."""
        if len(self.lost_at) < 2:
            node = self.chance.choice([each for each in self.cluster.nodes if each not in self.lost_at])
            self.lost_at.append(node)
            self.cluster.lose_at(node)
            self.promises.counts["lost"] += 1

    def _begin(self) -> None:
        if len(self.lost_at) == 2 or (self.lost_at and self.chance.random() < 0.1):
            self._lose_all()
            self.lost_at = []
            self.cluster.begin()

    def _lose_all(self) -> None:
        for node in self.cluster.nodes:
            if node not in self.lost_at:
                self.cluster.lose_at(node)
        self.lost_at = [*self.cluster.nodes]

    def _crash(self) -> None:
        """The home loses power and starts again: the process, or the virtual host alone."""
        home = self.cluster.b
        is_vhost = not self.lost_at and self.chance.random() < 0.3
        for client in self.clients:
            if client.node is home:
                self.promises.unsure |= client.settled
                client.client.connection.lost()
        if is_vhost:
            home.server.vhost_services.pop(VHOST)
            home.replicated.vhost_ended(VHOST)
            home.traffic.vhost_ended(VHOST)
        else:
            self._lose_all()
        home.lose_power()
        if is_vhost:
            home.traffic.vhost_began(VHOST)
        for client in self.clients:
            if client.node is home:
                client.connect()
        self.promises.counts["crashed"] += 1

    def _heal(self) -> None:
        """Let everything come to rest with a link that works."""
        if self.lost_at:
            self._lose_all()
            self._begin()
        for node in self.cluster.nodes:
            node.channel.is_writable = True
            node.traffic.writable()
        self._rest()
        self.cluster.wait(CLAIMS_MS_MAX)
        self._rest()

    def _rest(self) -> None:
        for _ in range(3):
            self.cluster.run()
            for client in self.clients:
                client.hear()

    # --- what must be true ----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise AssertionError if a promise was broken."""
        promises = self.promises
        for node in self.cluster.nodes:
            assert not node.channel.ended, node.channel.ended
            assert not node.reports, node.reports
        for client in self.clients:
            assert not client.unconfirmed, f"{client.name}: no answer to {client.unconfirmed}"
            assert not client.is_waiting, f"{client.name}: no answer to basic.get"
        assert not promises.wrong, promises.wrong
        assert not promises.counts["cancelled"]
        if not self.is_small:
            assert not promises.refused, promises.refused
        queue = self.cluster.b.queue(QUEUE)
        held = Counter(body for client in self.clients for body in client.unacked.values())
        ready = Counter(peeked.message.body for peeked in queue.peek(0, 100_000))
        assert queue.unacked_count == held.total(), f"{queue.unacked_count} where {held} is held"
        there = held + ready
        assert there.total() == len(there), f"twice: {[body for body in there if there[body] > 1]}"
        missing = promises.confirmed - there.keys() - promises.settled.keys()
        assert not missing, f"lost: {missing}"
        back = there.keys() & promises.settled.keys() - promises.unsure
        assert not back, f"acknowledged, and there again: {back}"
        assert not there.keys() & promises.refused
        self._drain()

    def _drain(self) -> None:
        """Consumers go on: everything is settled in the end."""
        client = self.clients[0]
        client.consume(no_ack=False, prefetch=0, is_global=False)
        for _ in range(100):
            self._rest()
            if not any(client.unacked for client in self.clients):
                break
            for each in self.clients:
                each.acknowledge_all()
        queue = self.cluster.b.queue(QUEUE)
        assert (queue.message_count, queue.unacked_count) == (0, 0)
        traffic = self.cluster.a.services.vhost.queues[QUEUE].traffic  # type: ignore[attr-defined]
        assert not traffic.unsettled.held
        assert not traffic.unsettled.count
        assert not self.promises.wrong, self.promises.wrong


@pytest.mark.seeds(SEEDS)
def test_clients_do_not_notice_that_the_leader_changes(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run()
    simulation.check()


def test_the_home_has_crashed_and_messages_have_come_again() -> None:
    counts: Counter[str] = Counter()
    for seed in range(10):
        simulation = Simulation(seed)
        simulation.run()
        counts += simulation.promises.counts
    assert counts["crashed"] > 5
    assert counts["again"] > 5
    assert counts["lost"] > 5
