"""Publishers and readers of two nodes use one stream, of which one node is the home, over a link that fails.

Payloads are passed one by one at any time; the link does not take any for a while; its session is lost, at
one end earlier than at the other, and begins again later. The home writes in steps, and may lose power at any
of them.

A reader gets every message of the stream from its start on, once, in the order of the offsets, and all
readers the same at each offset. `first` begins with offset 0, a number with that offset. `next` misses
nothing that is published after consume-ok, and gets nothing that was confirmed before it has asked. What was
confirmed is in the stream once, and messages of one publisher are in its order. What is returned is nowhere.
"""

import random
from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.remote_stream_clients import STREAM, Reading, RemoteStreamClient, StreamPromises
from tests.unit.cluster.two_nodes import ClusterNode, TwoNodes

from warren.wire import methods
from warren.wire.table import Value

STEPS = 300
PREFETCHES = (1, 3, 20)


class StreamSimulation:
    """Two nodes, two clients of each, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = TwoNodes()
        self.promises = StreamPromises()
        self.home = self.cluster.b
        self.home.attach_store(self.chance)
        self.home.stream_disk.chance = self.chance
        self.has_faults = self.chance.random() < 0.7
        self.has_power_cuts = self.chance.random() < 0.4
        prefetch = self.chance.choice(PREFETCHES)
        # A limit of the channel can make the node of a client send back what is on its way.
        shared = self.chance.choice((0, 0, 2, 5))
        self.lost_at: list[ClusterNode] = []
        first = self.cluster.client(self.home)
        arguments: dict[str, Value] = {"x-queue-type": "stream"}
        first.ask(methods.QueueDeclare(queue=STREAM, durable=True, arguments=arguments))
        self.cluster.run()
        self.clients = [
            RemoteStreamClient(
                f"{node.name}{number}", self.cluster, node, self.promises, prefetch=prefetch, shared=shared
            )
            for node in self.cluster.nodes
            for number in range(2)
        ]
        # In some seeds one client of the other node has all consumers.
        self.readers = self.clients[: self.chance.choice((1, 2, 4))]

    def run(self) -> None:
        """Let things happen in any order."""
        actions: list[tuple[Callable[[], None], int]] = [
            (self._publish, 10),
            (self._consume, 8),
            (self._acknowledge, 10),
            (self._cancel, 1),
            (self._leave, 1),
            (self._turn, 30),
            (self._pass, 30),
            (self._write, 10),
            (self._stop_or_go, 2 if self.has_faults else 0),
            (self._lose, 2 if self.has_faults else 0),
            (self._begin, 5),
            (self._cut_power, 1 if self.has_power_cuts else 0),
        ]
        kinds, weights = [action for action, _ in actions], [weight for _, weight in actions]
        for action in self.chance.choices(kinds, weights, k=STEPS):
            action()
            self._hear()
        self._heal()

    # --- what happens ---------------------------------------------------------------------------------

    def _publish(self) -> None:
        self.chance.choice(self.clients).publish(self.chance)

    def _consume(self) -> None:
        client = self.chance.choice(self.readers)
        if len(client.readings) < 3:
            client.consume(self._start())

    def _start(self) -> Value:
        """Where a reader begins: a name, or an offset that is in the stream."""
        sent = [reading.entries[-1][0] for reading in self.promises.readings if reading.entries]
        return self.chance.choice(("first", "next", "next", self.chance.choice(sent) if sent else 0))

    def _acknowledge(self) -> None:
        holders = [client for client in self.clients if client.unacked]
        if holders:
            self.chance.choice(holders).acknowledge(self.chance)

    def _cancel(self) -> None:
        client = self.chance.choice(self.clients)
        if client.readings:
            client.cancel(self.chance)

    def _leave(self) -> None:
        self.chance.choice(self.clients).leave()

    def _turn(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        if node.turns:
            node.turn()

    def _pass(self) -> None:
        self.cluster.pass_one(self.chance.choice(self.cluster.nodes))

    def _write(self) -> None:
        """The home begins to write what is due, or writes a piece of it."""
        home = self.home
        if home.stream_port.is_due:
            home.stream_port.is_due = False
            home.streams.commit()
        home.stream_disk.advance(self.chance.choice((1, 2, None)))

    def _stop_or_go(self) -> None:
        node = self.chance.choice(self.cluster.nodes)
        node.channel.is_writable = not node.channel.is_writable
        if node.channel.is_writable:
            node.traffic.writable()

    def _lose(self) -> None:
        """One end learns that the session is lost, or the other one does."""
        left = [node for node in self.cluster.nodes if node not in self.lost_at]
        if left:
            self._lose_at(self.chance.choice(left))

    def _lose_at(self, node: ClusterNode) -> None:
        self.lost_at.append(node)
        self.cluster.lose_at(node)

    def _cut_power(self) -> None:
        """The home loses power, and starts again."""
        for node in self.cluster.nodes:
            if node not in self.lost_at:
                self._lose_at(node)
        self._hear()
        self.home.stream_disk.lose_power()
        self.home.lose_power()
        for client in self.clients:
            if client.node is self.home:
                client.leave()

    def _begin(self) -> None:
        if len(self.lost_at) == 2 or (self.lost_at and self.chance.random() < 0.1):
            for node in self.cluster.nodes:
                if node not in self.lost_at:
                    self.cluster.lose_at(node)
            self.lost_at = []
            self.cluster.begin()

    def _heal(self) -> None:
        """Let everything come to rest with a link that works, and let readers get what there is."""
        for node in self.cluster.nodes:
            if self.lost_at and node not in self.lost_at:
                self._lose_at(node)
        self._begin()
        for node in self.cluster.nodes:
            node.channel.is_writable = True
            node.traffic.writable()
        self._rest()

    def _rest(self) -> None:
        """Let everything come to rest, with clients that acknowledge all that comes."""
        is_moving = True
        while is_moving:
            self.cluster.run()
            self._hear()
            is_moving = any(client.unacked for client in self.clients)
            for client in self.clients:
                client.acknowledge_all()

    def _hear(self) -> None:
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
        bodies = self._bodies()
        assert not promises.wrong, promises.wrong
        assert len(bodies) == len(set(bodies)), "a message is in the stream twice"
        missing = promises.confirmed - {*bodies}
        assert not missing, f"confirmed and lost: {sorted(missing)}"
        assert not promises.refused & promises.confirmed
        assert promises.returned <= promises.refused
        assert not promises.returned & {*bodies}
        self._check_order(bodies)
        for reading in promises.readings:
            self._check_reading(reading, bodies)
        for client in self.clients:
            client.client.connection.lost()
        self.cluster.run()
        assert not self.cluster.b.queue(STREAM).consumer_count

    def _bodies(self) -> list[bytes]:
        """All messages of the stream, which readers of both nodes agree on."""
        readers = (self.clients[0], self.clients[-1])
        before = len(self.promises.readings)
        for client in readers:
            client.leave()
            client.consume("first")
        self._rest()
        here, there = (reading.entries for reading in self.promises.readings[before:])
        assert here == there
        assert [offset for offset, _ in here] == list(range(len(here)))
        return [body for _, body in here]

    def _check_order(self, bodies: list[bytes]) -> None:
        """The messages of one publisher are in its order."""
        latest: dict[bytes, int] = {}
        for body in bodies:
            publisher, serial = body.split()[:2]
            assert int(serial) > latest.get(publisher, 0), f"{body!r} came after {latest[publisher]}"
            latest[publisher] = int(serial)

    def _check_reading(self, reading: Reading, bodies: list[bytes]) -> None:
        """A reader got all from its start on, and until the end if it was not ended before."""
        if reading.begun_at < 0:
            assert not reading.entries
            return
        offsets = [offset for offset, _ in reading.entries]
        if offsets:
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), reading
            assert [body for _, body in reading.entries] == [bodies[offset] for offset in offsets], reading
        if not reading.is_over:
            assert bodies[len(bodies) - len(offsets) :] == [body for _, body in reading.entries], reading
        if reading.start != "next":
            assert not offsets or offsets[0] == (0 if reading.start == "first" else reading.start)
            return
        begin = offsets[0] if offsets else len(bodies)
        assert not reading.confirmed_before & {*bodies[begin:]}, f"{reading.name} begins too early"
        if offsets or not reading.is_over:
            later = set(self.promises.published[reading.begun_at :])
            assert not later & {*bodies[:begin]}, f"{reading.name} begins too late"


@pytest.mark.seeds(SEEDS // 5)
def test_readers_of_two_nodes_get_every_message_from_their_start_on(seed: int) -> None:
    simulation = StreamSimulation(seed)
    simulation.run()
    simulation.check()
