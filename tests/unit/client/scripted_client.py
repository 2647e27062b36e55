"""A client that performs a script against whatever bytes a broker sends, and records all that it learns."""

from itertools import pairwise

from tests.clock import ManualClock

from warren.client.channel import ChannelListener, ClientChannel
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.framing.output_listener import OutputListener
from warren.model.coroutine_driver import drive
from warren.model.message import Message, encode_address
from warren.wire import methods
from warren.wire.method import Method
from warren.wire.properties import BasicProperties

PUBLISHED = 3
CALLS: list[tuple[Method, type[Method]]] = [
    (methods.ConfirmSelect(), methods.ConfirmSelectOk),
    (methods.QueueDeclare(queue="q"), methods.QueueDeclareOk),
    (methods.BasicConsume(queue="q", consumer_tag="c"), methods.BasicConsumeOk),
]
# Expiry is bounded: a deadline that does not move is an error.
EXPIRATIONS_MAX = 50
HOUR_MS = 3_600_000


class IgnoredOutput(OutputListener):
    """Output is taken after each read."""

    def output_ready(self) -> None:
        pass

    def output_full(self) -> None:
        pass


class RecordedEvents(ChannelListener):
    """Appends the events of a channel to a list."""

    def __init__(self, events: list[tuple[object, ...]]) -> None:
        self.events = events

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        told = (message.address, message.property_list, message.content)
        self.events.append(("delivered", *told, delivery_tag, is_redelivered))

    def confirmed(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        self.events.append(("confirmed", sequence, is_multiple, is_acked))

    def returned(self, reply_code: int, reply_text: str, message: Message) -> None:
        told = (message.address, message.property_list, message.content)
        self.events.append(("returned", *told, reply_code, reply_text))

    def cancelled(self, consumer_tag: str) -> None:
        self.events.append(("cancelled", consumer_tag))

    def ended(self, error: BrokerRefused) -> None:
        self.events.append(("channel ended", str(error), error.code))


class RecordedAlarms(ConnectionListener):
    """Appends the events of a connection to a list."""

    def __init__(self, events: list[tuple[object, ...]]) -> None:
        self.events = events

    def blocked(self, reason: str) -> None:
        self.events.append(("blocked", reason))

    def ended(self, error: BrokerRefused | None) -> None:
        self.events.append(("ended", str(error), error.code if error else 0))


class ScriptedClient:
    """Opens a connection and a channel, makes CALLS, publishes, and reopens a channel that is closed."""

    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.events: list[tuple[object, ...]] = []
        self.output = b""
        self.is_over = False
        login = ClientLogin(user="guest", password="guest", vhost="/")
        self.connection = ClientConnection(
            login, self.clock.turn, IgnoredOutput(), RecordedAlarms(self.events)
        )
        drive(self._perform())
        self._collect()

    def receive(self, data: bytes) -> None:
        """Pass in the bytes of one read."""
        self.connection.receive(data)
        while self.connection.has_more:
            self.connection.process_more()
        self._collect()

    def expire(self) -> None:
        """Let time pass until the connection has ended, or nothing more is due."""
        for _ in range(EXPIRATIONS_MAX):
            due = self.connection.deadline()
            if due is None or self.connection.is_finished:
                return
            self.clock.now = max(self.clock.now, due)
            self.connection.expire()
            self._collect()
        raise AssertionError("a deadline that does not move")

    def _collect(self) -> None:
        self.output += b"".join(bytes(piece) for piece in self.connection.take_output())

    async def _perform(self) -> None:
        try:
            await self.connection.open()
            self.events.append(("opened",))
            for _ in range(2):
                try:
                    await self._use(await self.connection.open_channel(RecordedEvents(self.events)))
                except BrokerRefused as error:
                    self.events.append(("refused", str(error), error.code))
            await self.connection.close()
        except BrokerRefused as error:
            self.events.append(("not opened", str(error), error.code))
        self.is_over = True

    async def _use(self, channel: ClientChannel) -> None:
        for method, kind in CALLS:
            answer = await channel.call(method, kind)
            assert type(answer) is kind
            self.events.append(("answered", answer.encode()))
            for number in range(PUBLISHED):
                body = b"%d\xce" % number
                channel.publish(Message.compose(encode_address("", "q"), BasicProperties(), body, now=0))
        await channel.close()


def result(data: bytes, *cuts: int) -> tuple[object, ...]:
    """Return all that a client has learnt and sent, if `data` arrives in pieces; it must have ended then."""
    client = ScriptedClient()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        client.receive(data[start:end])
    learnt = (list(client.events), client.output, client.connection.state)
    client.expire()
    client.connection.lost()
    client._collect()
    assert client.connection.is_finished
    assert client.is_over
    return learnt
