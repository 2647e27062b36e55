"""A forwarder between two real clients; what their brokers answer is written by the test, frame by frame."""

from collections.abc import Callable

from tests.unit.client.broker_pair import BrokerPair
from tests.unit.session.client import Broker, ReceivedMethod, call, frame, parse

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ConnectionListener
from warren.client.errors import BrokerRefused
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.relay.forwarder import (
    AckMode,
    DestinationConnectionListener,
    DestinationListener,
    Forwarder,
    ForwardingListener,
    SourceConnectionListener,
)
from warren.wire import methods
from warren.wire.properties import BasicProperties


class RecordedForwarding(ForwardingListener):
    """What a forwarder told its owner; messages go to the queue `to`."""

    def __init__(self) -> None:
        self.completions = 0
        self.source_errors: list[BrokerRefused] = []
        self.destination_errors: list[BrokerRefused] = []
        self.is_wanted: Callable[[Message], bool] = lambda message: True
        # True if each message gets a property list of its own.
        self.has_new_properties = False
        # The bodies that were transformed.
        self.transformed: list[bytes] = []
        # Pauses in ms, and what follows them.
        self.timers: list[tuple[int, Callable[[], None]]] = []

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        self.transformed.append(message.body)
        if not self.is_wanted(message):
            return None
        property_list = message.property_list
        if self.has_new_properties:
            property_list = BasicProperties.decode_list(property_list).encode_list()
        return Message(encode_address("", "to"), property_list, message.content, 0)

    def call_later(self, pause_ms: int, action: Callable[[], None]) -> None:
        self.timers.append((pause_ms, action))

    def completed(self) -> None:
        self.completions += 1

    def source_ended(self, error: BrokerRefused) -> None:
        self.source_errors.append(error)

    def destination_ended(self, error: BrokerRefused) -> None:
        self.destination_errors.append(error)


class WrittenBroker:
    """One open connection with one channel, whose broker says what the test writes."""

    def __init__(self, listener: ConnectionListener, channel_listener: ChannelListener) -> None:
        self.broker = Broker()
        self.pair = BrokerPair(self.broker, listener=listener)
        self.client = self.pair.client
        self.channel: ClientChannel
        drive(self._open(channel_listener))
        self.pair.exchange()
        assert self.channel.is_open

    async def _open(self, listener: ChannelListener) -> None:
        await self.client.open()
        self.channel = await self.client.open_channel(listener)

    def write(self, *data: bytes) -> None:
        """Have the broker send `data` in one read."""
        self.client.receive(b"".join(data))
        while self.client.has_more:
            self.client.process_more()

    def read(self) -> list[ReceivedMethod]:
        """What the client has sent since the last call."""
        sent = parse(b"".join(bytes(part) for part in self.client.take_output()))
        self.client.output_written()
        return sent


def delivery(
    tag: int, body: bytes, *, is_redelivered: bool = False, key: str = "from", **properties: object
) -> bytes:
    """The frames of one delivery."""
    deliver = methods.BasicDeliver(
        consumer_tag="c", delivery_tag=tag, redelivered=is_redelivered, exchange="", routing_key=key
    )
    return call(deliver) + frame(2, 1, BasicProperties(**properties).encode(len(body))) + frame(3, 1, body)


class WrittenRelay:
    """A forwarder between two brokers whose answers the test writes."""

    def __init__(self, ack_mode: AckMode = AckMode.ON_CONFIRM, *, remaining: int = -1) -> None:
        self.owner = RecordedForwarding()
        self.source: WrittenBroker
        broker = Broker()
        self.clock = broker.clock
        self.forwarder = forwarder = Forwarder(ack_mode, self.owner, broker.clock.turn, remaining)
        self.source = WrittenBroker(SourceConnectionListener(self.owner), forwarder)
        self.destination = WrittenBroker(
            DestinationConnectionListener(forwarder, self.owner), DestinationListener(forwarder, self.owner)
        )
        forwarder.attach_destination(self.destination.client, self.destination.channel)
        forwarder.attach_source(self.source.client, self.source.channel)
        self.tag = 0

    def deliver(
        self, *bodies: bytes, is_redelivered: bool = False, key: str = "from", **properties: object
    ) -> None:
        """Deliver messages with these bodies in one read."""
        data = []
        for body in bodies:
            self.tag += 1
            data.append(delivery(self.tag, body, is_redelivered=is_redelivered, key=key, **properties))
        self.source.write(*data)

    def published(self) -> list[bytes]:
        """The bodies that arrived at the destination since the last call."""
        sent = self.destination.read()
        assert all(isinstance(one.method, methods.BasicPublish) for one in sent)
        return [one.body for one in sent]

    def settled(self) -> list[tuple[str, int, bool]]:
        """What the source was told since the last call: the method, its tag, and whether all up to it."""
        found = []
        for one in self.source.read():
            assert isinstance(one.method, methods.BasicAck | methods.BasicNack)
            found.append((one.method.name, one.method.delivery_tag, one.method.multiple))
            assert isinstance(one.method, methods.BasicAck) or one.method.requeue
        return found

    def confirm(self, tag: int, *, multiple: bool = False) -> None:
        self.destination.write(call(methods.BasicAck(delivery_tag=tag, multiple=multiple)))

    def refuse(self, tag: int, *, multiple: bool = False) -> None:
        self.destination.write(call(methods.BasicNack(delivery_tag=tag, multiple=multiple)))


ACK, NACK = "basic.ack", "basic.nack"
