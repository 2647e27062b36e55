"""A virtual host with a store that confirms on request, and the dead letters of a queue in it."""

from tests.clock import ManualClock

from warren.model.arguments import Overflow, QueueSettings
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.queues.classic import ClassicQueue
from warren.routing.exchange import Binding, ExchangeSettings
from warren.routing.router import Router
from warren.routing.types import EXCHANGE_TYPES
from warren.vhost.vhost import VirtualHost


class SlowQueue(ClassicQueue):
    """A queue that confirms messages when it is told to."""

    def __init__(self, name: str, vhost: VirtualHost, settings: QueueSettings) -> None:
        super().__init__(name, vhost.name, vhost, settings)
        self.due: list[tuple[ConfirmListener, int]] = []

    def publish(self, message: Message, confirmation: ConfirmListener | None, sequence: int) -> int:
        if confirmation is not None and message.is_persistent:
            confirmation.expect(sequence)
            self.due.append((confirmation, sequence))
        return super().publish(message, confirmation, sequence)

    def write(self, count: int | None = None) -> None:
        """Confirm `count` messages."""
        answered, self.due = self.due[:count], self.due[len(self.due[:count]) :]
        for confirmation, sequence in answered:
            confirmation.done(sequence, sequence)


class Place:
    """Queues by their names, and the exchanges amq.fanout, amq.topic and amq.headers."""

    def __init__(self, now: int = 5_000) -> None:
        self.clock = ManualClock(now)
        self.vhost = VirtualHost("v", Router("v"), self.clock.turn)
        for name, kind in (
            ("", "direct"),
            ("amq.fanout", "fanout"),
            ("amq.topic", "topic"),
            ("amq.headers", "headers"),
        ):
            self.vhost.router.add(EXCHANGE_TYPES[kind](name, ExchangeSettings(), bytes))

    def queue(self, name: str, **settings: object) -> SlowQueue:
        """A new queue."""
        queue = SlowQueue(name, self.vhost, QueueSettings(**settings))
        self.vhost.queues[name] = queue
        self.bind("", queue, name)
        return queue

    def full(self, name: str) -> SlowQueue:
        """A queue that refuses every message."""
        return self.queue(name, length_max=0, overflow=Overflow.REJECT_PUBLISH)

    def bind(self, exchange: str, destination: object, key: str = "") -> None:
        """A binding without arguments."""
        source = self.vhost.router.exchanges[exchange]
        self.vhost.router.bind(Binding(source, key, None, destination))


def bodies(queue: ClassicQueue) -> str:
    """The ready messages, one letter each."""
    return "".join(peeked.message.body.decode() for peeked in queue.peek(0, 1_000))


def may(address: bytes) -> None:
    """Permit everything to every user."""
