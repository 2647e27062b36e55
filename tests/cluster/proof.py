"""One proof: clients of a quorum queue work while its nodes and their network fail, and all is counted.

Publishers at all nodes wait for each confirm. Consumers read all the time. In the end everything is mended,
what is left in the queue is read, and each message is accounted for.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingChannel
from tests.cluster.counted import CountedConsumer, CountedPublisher, with_channel
from tests.cluster.warren_cluster import WarrenCluster

QUEUE, EXPIRING = "orders", "expiring"
# How long a message waits in the queue whose dead letters are read (ms).
TTL_MS = 1_000
# How long everything may take to be as it was, when nothing fails any more.
MENDED_S = 90
MORE_CONFIRMS = 5


class Taken(NamedTuple):
    """A message that a client was given."""

    body: bytes
    is_marked: bool


class RecordingConsumer(CountedConsumer):
    """Consumes, or polls with basic.get, and records each message in order."""

    def __init__(self, name: str, ports: Sequence[int], *, polls: bool) -> None:
        super().__init__(name, ports, QUEUE)
        self._polls = polls
        self.taken: list[Taken] = []

    def _work(self, connection: pika.BlockingConnection) -> None:
        if not self._polls:
            super()._work(connection)
            return
        channel = connection.channel()
        while not self._is_ending.is_set():
            method, _, body = channel.basic_get(QUEUE)
            if method is None:
                connection.process_data_events(0.05)
                continue
            self._record(body, is_marked=method.redelivered)
            channel.basic_ack(method.delivery_tag)

    def _record(self, body: bytes, *, is_marked: bool) -> None:
        self.taken.append(Taken(body, is_marked))


class SessionPublisher(CountedPublisher):
    """Knows with which number each of its connections began: only within one is there an order."""

    def __init__(self, name: str, ports: Sequence[int], queues: Sequence[str]) -> None:
        super().__init__(name, ports, queues)
        self._begins: list[int] = []

    def _work(self, connection: pika.BlockingConnection) -> None:
        self._begins.append(self._number)
        super()._work(connection)

    @property
    def published(self) -> int:
        """How many messages it has published."""
        return self._number

    def session(self, number: int) -> int:
        """The connection on which message `number` was published."""
        return bisect_right(self._begins, number - 1)


class Findings(NamedTuple):
    """What has become of the messages."""

    confirmed: int
    # Confirmed, and not there.
    lost: int
    # There without a confirm: the client was not told, and may have published it again.
    recovered: int
    # Came again, unmarked: enqueued twice, or handed out while another client held it.
    twice: int
    # Came again, marked as redelivered.
    redelivered: int
    # Came unmarked behind a later one of its connection, to the same consumer.
    late: int
    # The longest time that a publisher got no confirm (s).
    gap_s: float

    def check(self, *, may_come_twice: bool = False) -> None:
        """Raise AssertionError unless all is well; `may_come_twice` for dead letters, kept at least once."""
        assert self.confirmed > 0
        assert self.lost == 0
        if not may_come_twice:
            assert (self.twice, self.late) == (0, 0)


def findings(
    confirmed: set[bytes],
    taken: Sequence[Sequence[Taken]],
    session: Callable[[str, int], int],
    gap_s: float,
) -> Findings:
    """Account for the `confirmed` messages, of which each client has `taken` some, in this order.

    A body has the name of its publisher and a number, published on the connection `session(name, number)`.
    """
    came = [each for of_one in taken for each in of_one]
    bodies = {each.body for each in came}
    # Each message comes without the mark once at most: the first time, to whomever that was.
    unmarked = Counter(each.body for each in came if not each.is_marked)
    return Findings(
        confirmed=len(confirmed),
        lost=len(confirmed - bodies),
        recovered=len(bodies - confirmed),
        twice=sum(count - 1 for count in unmarked.values()),
        redelivered=sum(each.is_marked for each in came),
        late=sum(_late(of_one, session) for of_one in taken),
        gap_s=gap_s,
    )


def _late(taken: Sequence[Taken], session: Callable[[str, int], int]) -> int:
    """How many messages came unmarked behind a later one of the same connection."""
    latest: dict[tuple[str, int], int] = {}
    late = 0
    for body in (each.body for each in taken if not each.is_marked):
        name, text = body.decode().split()
        number = int(text)
        place = name, session(name, number)
        late += number < latest.get(place, 0)
        latest[place] = max(number, latest.get(place, 0))
    return late


class Proof:
    """A queue with a replica on each node, its clients, and their counts."""

    def __init__(self, cluster: WarrenCluster, *, polls: Sequence[bool], has_dead_letters: bool) -> None:
        """`polls` says for each consumer whether it polls."""
        self.cluster = cluster
        self._has_dead_letters = has_dead_letters
        ports = [node.amqp for node in cluster.nodes.values()]
        with_channel(ports[0], self._declare)
        target = EXPIRING if has_dead_letters else QUEUE
        self.publishers = [
            SessionPublisher(f"p{at}", ports[at:] + ports[:at], [target]) for at in range(len(ports))
        ]
        self.consumers = [
            RecordingConsumer(f"c{at}", ports[at + 1 :] + ports[: at + 1], polls=each)
            for at, each in enumerate(polls)
        ]
        for client in (*self.publishers, *self.consumers):
            client.start()
        self.wait_confirmed()

    def wait_confirmed(self) -> None:
        """Wait until each publisher has got some more confirms."""
        before = [self._confirmed(publisher) for publisher in self.publishers]
        self.cluster.wait(
            lambda: all(
                self._confirmed(publisher) >= count + MORE_CONFIRMS
                for publisher, count in zip(self.publishers, before, strict=True)
            ),
            "confirms for all publishers",
            MENDED_S,
        )

    def mended(self) -> None:
        """Wait until clients go on at all nodes."""
        self.cluster.mend()
        self.cluster.wait(self.cluster.is_whole, "all nodes see one another", MENDED_S)
        self.wait_confirmed()

    def end(self) -> Findings:
        """End the clients, read what is left, and count."""
        for publisher in self.publishers:
            publisher.end()
        confirmed = {body for each in self.publishers for found in each.confirmed.values() for body in found}
        if self._has_dead_letters:
            # The last ones expire, and are moved.
            self.cluster.wait(lambda: self._is_empty(EXPIRING), "all dead letters are moved", MENDED_S)
        for consumer in self.consumers:
            consumer.end()
        taken = [*(consumer.taken for consumer in self.consumers), self._drained()]
        publishers = {publisher.name: publisher for publisher in self.publishers}
        gap_s = max(gap for each in self.publishers for gap in each.gaps.values())
        return findings(confirmed, taken, lambda name, number: publishers[name].session(number), gap_s)

    def _declare(self, channel: BlockingChannel) -> None:
        arguments: dict[str, object] = {
            "x-queue-type": "quorum",
            "x-quorum-initial-group-size": len(self.cluster.nodes),
            "x-delivery-limit": -1,
        }
        channel.queue_declare(QUEUE, durable=True, arguments=arguments)
        if self._has_dead_letters:
            arguments |= {
                "x-message-ttl": TTL_MS,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": QUEUE,
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
            }
            channel.queue_declare(EXPIRING, durable=True, arguments=arguments)

    def _is_empty(self, queue: str) -> bool:
        status, found = self.cluster.ask(
            next(iter(self.cluster.nodes)), "GET", f"/api/queues/%2F/{queue}?columns=messages"
        )
        return status == 200 and found["messages"] == 0

    def _drained(self) -> list[Taken]:
        """All messages of the queue, when none of them is with a client any more."""

        def drain(channel: BlockingChannel) -> list[Taken]:
            found = []
            while True:
                method, _, body = channel.basic_get(QUEUE)
                if method is not None:
                    channel.basic_ack(method.delivery_tag)
                    found.append(Taken(body, method.redelivered))
                elif self._is_empty(QUEUE):
                    return found
                else:
                    channel.connection.process_data_events(0.05)

        port = next(iter(self.cluster.nodes.values())).amqp
        drained: list[Taken] = with_channel(port, drain)
        return drained

    @staticmethod
    def _confirmed(publisher: CountedPublisher) -> int:
        return sum(map(len, publisher.confirmed.values()))
