"""Publishers and readers of a stream that may be on another node, and what each of them was told."""

import random
from dataclasses import dataclass, field

from tests.unit.cluster.two_nodes import ClusterNode, TwoNodes
from tests.unit.session.client import ReceivedMethod, call, publication

from warren.wire import methods
from warren.wire.table import Value

STREAM = "b.stream"
_OFFSET_HEADER = "x-stream-offset"


@dataclass
class Reading:
    """One consumer: where it began, and what it was sent."""

    name: str
    start: Value
    # What was confirmed to anybody before it asked.
    confirmed_before: frozenset[bytes]
    # How many messages all clients had published when it heard that it consumes; -1 before.
    begun_at: int = -1
    # Offsets and bodies.
    entries: list[tuple[int, bytes]] = field(default_factory=list)
    # True after the broker has cancelled it, or its connection was lost.
    is_over: bool = False


class StreamPromises:
    """What all clients have published, what became of it as they know, and what was found wrong."""

    def __init__(self) -> None:
        # Bodies in the order in which they were published by any client.
        self.published: list[bytes] = []
        self.confirmed: set[bytes] = set()
        self.refused: set[bytes] = set()
        self.returned: set[bytes] = set()
        # All consumers there were.
        self.readings: list[Reading] = []
        self.wrong: list[str] = []


class RemoteStreamClient:
    """One client with a channel in confirm mode, which publishes and reads; connects again if it ends."""

    def __init__(
        self,
        name: str,
        cluster: TwoNodes,
        node: ClusterNode,
        promises: StreamPromises,
        *,
        prefetch: int,
        shared: int,
    ) -> None:
        """`prefetch` is the limit of each consumer on deliveries, `shared` that of the channel, or 0."""
        self.name = name
        self.cluster = cluster
        self.node = node
        self.promises = promises
        self._prefetch = prefetch
        self._shared = shared
        self._serial = 0
        self._consumer_count = 0
        self.connect()

    def connect(self) -> None:
        """Open a connection with a channel in confirm mode."""
        self.client = self.cluster.client(self.node)
        self.client.ask(methods.ConfirmSelect())
        # This order: a limit for each consumer removes that of the channel.
        self.client.ask(methods.BasicQos(prefetch_count=self._prefetch))
        if self._shared:
            self.client.ask(methods.BasicQos(prefetch_count=self._shared, is_global=True))
        self._sequence = 0
        # By sequence: bodies that are not answered.
        self.unconfirmed: dict[int, bytes] = {}
        # Delivery tags that are not acknowledged.
        self.unacked: list[int] = []
        # By consumer tag: those that run, or wait until they do.
        self.readings: dict[str, Reading] = {}

    # --- what it does ---------------------------------------------------------------------------------

    def publish(self, chance: random.Random) -> None:
        """Publish some messages in one read."""
        data = []
        for _ in range(chance.choice((1, 1, 5))):
            self._serial += 1
            self._sequence += 1
            body = b"%s %d " % (self.name.encode(), self._serial) + b"x" * chance.choice((0, 0, 0, 900))
            self.unconfirmed[self._sequence] = body
            self.promises.published.append(body)
            data.append(publication(STREAM, body, mandatory=chance.random() < 0.5))
        self.client.send(*data)

    def consume(self, start: Value) -> None:
        """Begin to read."""
        self._consumer_count += 1
        tag = f"c{self._consumer_count}"
        reading = Reading(f"{self.name}.{tag}", start, frozenset(self.promises.confirmed))
        self.readings[tag] = reading
        self.promises.readings.append(reading)
        consume = methods.BasicConsume(queue=STREAM, consumer_tag=tag, arguments={_OFFSET_HEADER: start})
        self.client.send(call(consume))

    def cancel(self, chance: random.Random) -> None:
        """Cancel a consumer."""
        self.client.send(call(methods.BasicCancel(chance.choice(sorted(self.readings)))))

    def acknowledge(self, chance: random.Random) -> None:
        """Acknowledge one delivery, or all up to it."""
        at = chance.randrange(len(self.unacked))
        tag, is_multiple = self.unacked[at], chance.random() < 0.6
        del self.unacked[0 if is_multiple else at : at + 1]
        self.client.send(call(methods.BasicAck(tag, is_multiple)))

    def acknowledge_all(self) -> None:
        """Acknowledge all deliveries."""
        if self.unacked:
            self.unacked.clear()
            self.client.send(call(methods.BasicAck(0, True)))

    def leave(self) -> None:
        """Close the connection without a word, and open another one."""
        self.client.connection.lost()
        for reading in self.readings.values():
            reading.is_over = True
        self.connect()

    # --- what it hears --------------------------------------------------------------------------------

    def hear(self) -> None:
        """Take notice of everything that was sent."""
        for received in self.client.hear():
            self._note(received)

    def _note(self, received: ReceivedMethod) -> None:
        promises = self.promises
        match received.method:
            case methods.BasicDeliver(consumer_tag=tag, delivery_tag=number):
                self.unacked.append(number)
                self._note_message(received, self.readings[tag])
            case methods.BasicConsumeOk(consumer_tag=tag):
                self.readings[tag].begun_at = len(promises.published)
            case methods.BasicAck(delivery_tag=number, multiple=multiple):
                promises.confirmed.update(self._answered(number, multiple))
            case methods.BasicNack(delivery_tag=number, multiple=multiple):
                promises.refused.update(self._answered(number, multiple))
            case methods.BasicReturn():
                promises.returned.add(received.body)
            case methods.BasicCancel(consumer_tag=tag) | methods.BasicCancelOk(consumer_tag=tag):
                # Both, if they cross.
                reading = self.readings.pop(tag, None)
                if reading is not None:
                    reading.is_over = True
            case methods.ChannelClose(reply_code=404):
                self.leave()
            case methods.ChannelClose(reply_text=text) | methods.ConnectionClose(reply_text=text):
                promises.wrong.append(f"{self.name}: {text}")

    def _note_message(self, received: ReceivedMethod, reading: Reading) -> None:
        assert received.properties is not None
        assert received.properties.headers is not None
        offset = received.properties.headers[_OFFSET_HEADER]
        assert isinstance(offset, int)
        if reading.begun_at < 0:
            self.promises.wrong.append(f"{reading.name}: a delivery came before consume-ok")
        reading.entries.append((offset, received.body))

    def _answered(self, number: int, multiple: bool) -> list[bytes]:
        known = [one for one in self.unconfirmed if one == number or (multiple and one < number)]
        if number not in known:
            self.promises.wrong.append(f"{self.name}: publish {number} is answered again")
        return [self.unconfirmed.pop(one) for one in known]
