"""Clients of two nodes use one queue, of which one node is the home, over a link that is slow and fails.

Payloads are passed one by one at any time; the link does not take any for a while; its session is lost, at
one end earlier than at the other, and begins again later. Messages are stored on a simulated disk.

In the end each message that was confirmed is in the queue once, or a client has settled it. What was sent to
a client came with the mark if it had been sent before, and otherwise in the order of its publisher. Every
publish is answered, and a message that is returned is nowhere. Consumers get what they make room for, and
nothing is left over at the home when the clients are gone.
"""

import random
from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.remote_clients import QUEUE, Promises, RemoteClient
from tests.unit.cluster.two_nodes import ClusterNode, TwoNodes

from warren.wire import methods

STEPS = 300
PREFETCHES = (0, 1, 3, 20)


class Simulation:
    """Two nodes, two clients of each, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = TwoNodes()
        self.promises = Promises()
        # With a limit of a channel a message can return without a mark.
        self.is_global = self.chance.random() < 0.3
        self.promises.is_ordered = not self.is_global
        self.has_power_cut = False
        if self.chance.random() < 0.7:
            self.cluster.b.attach_store(self.chance)
            self.has_power_cut = self.chance.random() < 0.3
        self.has_faults = self.chance.random() < 0.7
        # Without acknowledgements a message can be lost with the session.
        self.has_no_ack = self.chance.random() < 0.2
        # All of one seed have the same limit, since one without it would hide that others get nothing.
        self.prefetch = self.chance.choice(PREFETCHES)
        self.lost_at: list[ClusterNode] = []
        first = self.cluster.client(self.cluster.b)
        self.is_small = self.chance.random() < 0.2
        arguments = {"x-max-length": 10, "x-overflow": "reject-publish"} if self.is_small else {}
        first.ask(methods.QueueDeclare(queue=QUEUE, durable=True, arguments=arguments))
        self.cluster.run()
        self.clients = [
            RemoteClient(f"{node.name}{number}", self.cluster, node, self.promises)
            for node in self.cluster.nodes
            for number in range(2)
        ]
        # In some seeds only clients of the other node take messages.
        self.takers = self.clients[: self.chance.choice((1, 2, 4))]

    def run(self) -> None:
        """Let things happen in any order."""
        actions: list[tuple[Callable[[], None], int]] = [
            (self._publish, 10),
            (self._settle, 10),
            (self._consume, 3),
            (self._get, 3),
            (self._cancel, 1),
            (self._leave, 3),
            (self._turn, 30),
            (self._pass, 30),
            (self._write, 5),
            (self._stop_or_go, 2 if self.has_faults else 0),
            (self._lose, 2 if self.has_faults else 0),
            (self._begin, 5),
        ]
        kinds, weights = [action for action, _ in actions], [weight for _, weight in actions]
        for action in self.chance.choices(kinds, weights, k=STEPS):
            action()
            for client in self.clients:
                client.hear()
        if self.has_power_cut:
            self._cut_power()
        self._heal()

    # --- what happens ---------------------------------------------------------------------------------

    def _publish(self) -> None:
        client = self.chance.choice(self.clients)
        client.publish(
            self.chance.choice((1, 1, 5)),
            is_persistent=self.chance.random() < 0.5,
            is_mandatory=self.chance.random() < 0.5,
        )

    def _settle(self) -> None:
        holders = [client for client in self.clients if client.unacked]
        if holders:
            self.chance.choice(holders).settle(self.chance)

    def _consume(self) -> None:
        client = self.chance.choice(self.takers)
        if len(client.consumers) < 2:
            no_ack = self.has_no_ack and self.chance.random() < 0.5
            client.consume(no_ack=no_ack, prefetch=self.prefetch, is_global=self.is_global)

    def _get(self) -> None:
        client = self.chance.choice(self.takers)
        if not client.is_waiting:
            client.get(no_ack=self.has_no_ack and self.chance.random() < 0.5)

    def _cancel(self) -> None:
        client = self.chance.choice(self.takers)
        if client.consumers:
            client.cancel(self.chance.choice(sorted(client.consumers)))

    def _leave(self) -> None:
        client = self.chance.choice(self.clients)
        # The message of a basic.get that nobody waits for returns without a mark.
        if self.chance.random() < 0.3 and not (client.is_waiting and self.promises.is_ordered):
            client.leave()

    def _turn(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        if node.turns:
            node.turn()

    def _pass(self) -> None:
        self.cluster.pass_one(self.chance.choice(self.cluster.nodes))

    def _write(self) -> None:
        self.cluster.b.write()

    def _stop_or_go(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        node.channel.is_writable = not node.channel.is_writable
        if node.channel.is_writable:
            node.traffic.writable()

    def _lose(self) -> None:
        """One end learns that the session is lost, or the other one does."""
        if len(self.lost_at) < 2:
            left = [node for node in self.cluster.nodes if node not in self.lost_at]
            node = self.chance.choice(left)
            self.lost_at.append(node)
            self.cluster.lose_at(node)
            self.promises.counts["lost"] += 1

    def _cut_power(self) -> None:
        """The home loses power, and starts again."""
        for client in self.clients:
            if client.node is self.cluster.b:
                client.leave()
        for node in self.cluster.nodes:
            self.cluster.lose_at(node)
        self.lost_at = [*self.cluster.nodes]
        self.cluster.b.lose_power()
        for client in self.clients:
            client.hear()
            if client.node is self.cluster.b:
                client.connect()
        self.promises.counts["lost"] += 1

    def _begin(self) -> None:
        if len(self.lost_at) == 2 or (self.lost_at and self.chance.random() < 0.1):
            for node in self.cluster.nodes:
                if node not in self.lost_at:
                    self.cluster.lose_at(node)
            self.lost_at = []
            self.cluster.begin()

    def _heal(self) -> None:
        """Let everything come to rest with a link that works."""
        if self.lost_at:
            self.lost_at = [*self.cluster.nodes]
            for node in self.cluster.nodes:
                self.cluster.lose_at(node)
            self._begin()
        for node in self.cluster.nodes:
            node.channel.is_writable = True
            node.traffic.writable()
        self._rest()

    def _rest(self) -> None:
        """Let everything come to rest, and let clients take notice."""
        for _ in range(3):
            self.cluster.run()
            for client in self.clients:
                client.hear()

    # --- what must be true ----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise AssertionError if a promise was broken."""
        promises = self.promises
        for node in self.cluster.nodes:
            assert not node.channel.ended
            assert not node.reports
        for client in self.clients:
            assert not client.unconfirmed, f"{client.name}: no answer to {client.unconfirmed}"
        queue = self.cluster.b.queue(QUEUE)
        self._check_consumers()
        for client in self.clients:
            client.client.connection.lost()
        self.cluster.run()
        assert not queue.unacked_count
        assert not queue.consumer_count
        left = self._drained()
        self._check_returned(left)
        assert len(left) == len(set(left)), "a message is in the queue twice"
        assert not promises.wrong, promises.wrong
        if self.has_no_ack:
            assert self.has_power_cut or not [body for body in left if promises.sent_no_ack[body]]
            assert self.has_power_cut or all(count == 1 for count in promises.sent_no_ack.values())
            return
        missing = promises.confirmed - {*left} - {*promises.settled}
        if self.has_power_cut:
            missing -= promises.transient
        assert not missing, f"confirmed and lost: {sorted(missing)}"
        assert not promises.refused & promises.confirmed
        if not promises.counts["lost"]:
            assert not promises.refused & {*left, *promises.settled}
            assert self.is_small or not promises.refused
            sure = {body: count for body, count in promises.settled.items() if body not in promises.unsure}
            twice = [body for body, count in sure.items() if count > 1 or body in left]
            assert not twice, f"settled, and there again: {twice}"

    def _check_returned(self, left: list[bytes]) -> None:
        """What was returned is nowhere: no queue had it, and it was not confirmed."""
        promises = self.promises
        assert promises.returned <= promises.refused
        assert not promises.returned & {*left, *promises.delivered}

    def _check_consumers(self) -> None:
        """Clients and the home know of the same consumers, and these get all that they make room for."""
        queue = self.cluster.b.queue(QUEUE)
        count = sum(len(client.consumers) for client in self.clients)
        assert queue.consumer_count == count
        while any(client.unacked for client in self.clients):
            for client in self.clients:
                client.acknowledge_all()
            self._rest()
        assert not count or not queue.message_count

    def _drained(self) -> list[bytes]:
        """The bodies of all messages in the queue."""
        client = RemoteClient("last", self.cluster, self.cluster.a, self.promises)
        bodies = []
        while True:
            client.get(no_ack=True)
            self.cluster.run()
            got = [one for one in client.client.hear() if isinstance(one.method, methods.BasicGetOk)]
            if not got:
                return bodies
            bodies.append(got[0].body)


@pytest.mark.seeds(SEEDS)
def test_what_is_confirmed_is_kept_and_comes_in_order(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run()
    simulation.check()
