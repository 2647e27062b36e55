"""Clients of a broker that will be killed, and the answers that they received."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError, ChannelClosedByBroker, ConnectionClosedByBroker

PUBLISHERS = 3
CLASSIC = tuple(f"queue {number}" for number in range(4))
QUORUM = tuple(f"quorum {number}" for number in range(3))
QUEUES = CLASSIC + QUORUM
# Those with a consumer.
CONSUMED = CLASSIC[:3] + QUORUM[:2]
# The queues that are bound to amq.fanout: one record of the log is for both.
SHARED = (CLASSIC[3], QUORUM[2])
SHARING = "amq.fanout"
# Large enough to fill a few segments in a second or two.
BODY_SIZES = (10, 1_000, 60_000, 200_000)
PREFETCH = 20
# Each of them is checked after each kill.
DECLARED_MAX = 200
# A message: its publisher, and its number among those of the publisher.
Name = tuple[int, int]


@dataclass
class ClientHistory:
    """What clients sent and were told, recorded by each thread for itself; all times are of one clock."""

    # Queue -> message -> when it was sent; when the broker confirmed it; when a consumer acknowledged it.
    sent: dict[str, dict[Name, float]] = field(default_factory=lambda: defaultdict(dict))
    confirmed: dict[str, set[Name]] = field(default_factory=lambda: defaultdict(set))
    delivered: dict[str, dict[Name, float]] = field(default_factory=lambda: defaultdict(dict))
    acknowledged: dict[str, set[Name]] = field(default_factory=lambda: defaultdict(set))
    # When the broker has certainly processed an acknowledgement.
    gone: dict[str, dict[Name, float]] = field(default_factory=lambda: defaultdict(dict))
    # When the last confirmed message was sent: earlier operations of the broker are on disk.
    synced: float = 0.0
    declared: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    next: dict[int, int] = field(default_factory=lambda: defaultdict(int))


class Load:
    """Publishers, consumers and a thread that declares, until the broker has ended."""

    def __init__(self, port: int, history: ClientHistory, chance: random.Random) -> None:
        self._port = port
        self._history = history
        works: list[Callable[[BlockingChannel, random.Random], None]] = [
            *(lambda channel, own, who=who: self._publish(channel, own, who) for who in range(PUBLISHERS)),
            *(lambda channel, own, queue=queue: self._consume(channel, own, queue) for queue in CONSUMED),
            self._declare,
        ]
        # Unexpected errors of the clients; the end of the broker is not one.
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(work, random.Random(chance.random()))) for work in works
        ]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all threads have noticed the end of the broker."""
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a client is still waiting for the killed broker"
        if self.errors:
            raise self.errors[0]

    def _run(self, work: Callable[[BlockingChannel, random.Random], None], chance: random.Random) -> None:
        try:
            work(connected(self._port), chance)
        except (ConnectionClosedByBroker, ChannelClosedByBroker) as error:
            # A broker that is killed says nothing.
            self.errors.append(error)
        except (AMQPError, OSError):
            return
        except BaseException as error:
            self.errors.append(error)

    def _publish(self, channel: BlockingChannel, chance: random.Random, who: int) -> None:
        history = self._history
        channel.confirm_delivery()
        while True:
            exchange, key, queues = chance.choice(_TARGETS)
            name = (who, history.next[who])
            history.next[who] += 1
            sent = time.monotonic()
            for queue in queues:
                history.sent[queue][name] = sent
            channel.basic_publish(exchange, key, body_of(name, chance.choice(BODY_SIZES)), _PERSISTENT)
            for queue in queues:
                history.confirmed[queue].add(name)
            history.synced = max(history.synced, sent)

    def _consume(self, channel: BlockingChannel, chance: random.Random, queue: str) -> None:
        history = self._history
        channel.basic_qos(prefetch_count=PREFETCH)
        waiting: dict[int, Name] = {}
        for method, _, body in channel.consume(queue, inactivity_timeout=5):
            if method is None:
                continue
            name = name_of(body)
            history.delivered[queue][name] = time.monotonic()
            waiting[method.delivery_tag] = name
            if len(waiting) < PREFETCH // 2:
                continue
            # Some are left unacknowledged for later, so that there are gaps.
            tags = chance.sample(list(waiting), len(waiting) // 2)
            for tag in tags:
                history.acknowledged[queue].add(waiting[tag])
                channel.basic_ack(tag)
            channel.queue_declare(queue, passive=True)
            now = time.monotonic()
            for tag in tags:
                history.gone[queue][waiting.pop(tag)] = now

    def _declare(self, channel: BlockingChannel, chance: random.Random) -> None:
        history = self._history
        while True:
            name = f"declared {history.next[-1]}"
            history.next[-1] += 1
            channel.queue_declare(name, durable=True, arguments={"x-max-length": history.next[-1]})
            channel.queue_bind(name, "amq.topic", name)
            history.declared.add(name)
            there = sorted(history.declared - history.deleting)
            if chance.random() < 0.5 or len(there) > DECLARED_MAX:
                name = chance.choice(there)
                history.deleting.add(name)
                channel.queue_delete(name)
                history.deleted.add(name)


_PERSISTENT = pika.BasicProperties(delivery_mode=2)
# Where a message is published: exchange, routing key, and the queues that receive it.
_TARGETS = [("", queue, (queue,)) for queue in QUEUES] + [(SHARING, "", SHARED)]


def declare(channel: BlockingChannel) -> None:
    """Declare the queues of the load; messages of quorum queues may come back any number of times."""
    for queue in CLASSIC:
        channel.queue_declare(queue, durable=True)
    for queue in QUORUM:
        arguments = {"x-queue-type": "quorum", "x-delivery-limit": -1}
        channel.queue_declare(queue, durable=True, arguments=arguments)
    for queue in SHARED:
        channel.queue_bind(queue, SHARING)


def connected(port: int) -> BlockingChannel:
    """A channel of a new connection."""
    parameters = pika.ConnectionParameters(
        "127.0.0.1", port, socket_timeout=20, blocked_connection_timeout=20, stack_timeout=20
    )
    return pika.BlockingConnection(parameters).channel()


def body_of(name: Name, size: int) -> bytes:
    """A body that identifies the message."""
    return b"%d:%d:" % name + bytes(size)


def name_of(body: bytes) -> Name:
    """The message with this body."""
    who, number, _ = body.split(b":", 2)
    return int(who), int(number)
