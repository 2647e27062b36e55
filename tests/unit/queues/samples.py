"""Messages, consumers and a queue host for tests of queues: small implementations of the ports."""

from tests.clock import ManualClock

from warren.model.arguments import QueueSettings
from warren.model.message import BODY_END, Message, encode_address, presume_died
from warren.queues.classic import ClassicQueue
from warren.queues.queue import Consumer, Delivery, Queue, QueueHost
from warren.wire.properties import BasicProperties


def sent(body: bytes | str = b"", *, now: int = 0, key: str = "q", **properties: object) -> Message:
    """A message that was published to the default exchange at `now`."""
    content = (body.encode() if isinstance(body, str) else body) + BODY_END
    return Message.compose(encode_address("", key), BasicProperties(**properties), content, now=now)


def trusted(message: Message) -> Message:
    """`message` as a store of an older version read it: its death headers count as the broker's, whoever
    wrote them.
    """
    presume_died(message)
    return message


class Host(QueueHost):
    """A queue host that records the calls of its queues."""

    def __init__(self, now: int = 0) -> None:
        self.clock = ManualClock(now)
        super().__init__(self.clock.turn)
        self.dead: list[tuple[bytes, str]] = []
        self.wakes: list[int] = []
        self.deleted: list[Queue] = []

    @property
    def now(self) -> int:
        """The time, which the test sets."""
        return self.clock.now

    @now.setter
    def now(self, now: int) -> None:
        self.clock.now = now

    def dead_letter(self, queue: Queue, message: Message, reason: str) -> None:
        self.dead.append((message.body, reason))

    def wake_at(self, queue: Queue, when: int) -> None:
        self.wakes.append(when)

    def delete_queue(self, queue: Queue) -> None:
        self.deleted.append(queue)
        assert isinstance(queue, ClassicQueue)
        queue.delete()


class Reader(Consumer):
    """A consumer with a prefetch count that records its deliveries."""

    def __init__(self, tag: str = "c", *, prefetch: int = 0, no_ack: bool = False, **more: int) -> None:
        super().__init__(tag, no_ack=no_ack, **more)
        self.prefetch = prefetch
        self.is_open = True
        self.unsettled: list[Delivery] = []
        self.got: list[tuple[bytes, bool]] = []
        self.cancels = 0

    def is_ready(self) -> bool:
        return self.is_open and not (self.prefetch and len(self.unsettled) >= self.prefetch)

    def deliver(self, delivery: Delivery) -> None:
        self.unsettled.append(delivery)
        self.got.append((delivery.message.body, delivery.attempts > 0))

    def deliver_message(self, message: Message, redelivered: bool) -> None:
        self.got.append((message.body, redelivered))

    def cancelled(self) -> None:
        self.cancels += 1

    @property
    def bodies(self) -> list[bytes]:
        """The bodies that it received, in order."""
        return [body for body, _ in self.got]


def made(host: Host, *, dead: bool = False, **settings: object) -> ClassicQueue:
    """A queue with these settings; its dead letters are recorded by its host."""
    if dead:
        settings["dead_letter_exchange"] = "dlx"
    return ClassicQueue("q", "v", host, QueueSettings(**settings))


def filled(host: Host, *bodies: str, **settings: object) -> ClassicQueue:
    """A queue with messages of these bodies; a single string means one message per letter."""
    queue = made(host, **settings)
    for body in bodies:
        queue.publish(sent(body, now=host.now), None, 0)
    return queue


def drained(queue: ClassicQueue) -> list[bytes]:
    """The bodies of all ready messages, which are received and acknowledged."""
    bodies = []
    while (delivery := queue.get()) is not None:
        bodies.append(delivery.message.body)
        queue.acknowledge(delivery)
    return bodies
