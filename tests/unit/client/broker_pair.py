"""A client's connection that exchanges bytes with a connection of a broker, in one thread without sockets."""

from tests.unit.session.client import Broker, CountingWake

from warren.client.channel import ChannelListener
from warren.client.connection import ClientConnection, ConnectionListener
from warren.client.errors import BrokerRefused
from warren.client.login import ClientLogin
from warren.model.message import Message
from warren.session.connection import Connection
from warren.session.peer import Peer

PEER = Peer(host="127.0.0.1", port=40_000, server_host="127.0.0.1", server_port=5672)


class RecordedConnection(ConnectionListener):
    """What a connection told its listener."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.errors: list[BrokerRefused | None] = []
        self.room_count = 0

    def blocked(self, reason: str) -> None:
        self.reasons.append(reason)

    def has_room(self) -> None:
        self.room_count += 1

    def ended(self, error: BrokerRefused | None) -> None:
        self.errors.append(error)


class RecordedChannel(ChannelListener):
    """What a channel told its listener."""

    def __init__(self) -> None:
        self.deliveries: list[tuple[Message, int, bool]] = []
        self.confirms: list[tuple[int, bool, bool]] = []
        self.returns: list[tuple[int, str, Message]] = []
        self.cancelled_tags: list[str] = []
        self.errors: list[BrokerRefused] = []

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        self.deliveries.append((message, delivery_tag, is_redelivered))

    def confirmed(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        self.confirms.append((sequence, is_multiple, is_acked))

    def returned(self, reply_code: int, reply_text: str, message: Message) -> None:
        self.returns.append((reply_code, reply_text, message))

    def cancelled(self, consumer_tag: str) -> None:
        self.cancelled_tags.append(consumer_tag)

    def ended(self, error: BrokerRefused) -> None:
        self.errors.append(error)


class BrokerPair:
    """Both ends of one connection; `exchange` passes bytes until neither end reads any."""

    def __init__(
        self, broker: Broker, login: ClientLogin | None = None, listener: ConnectionListener | None = None
    ) -> None:
        self.broker = broker
        self.listener = RecordedConnection()
        self.client = ClientConnection(
            login or ClientLogin(user="guest", password="guest", vhost="/"),
            broker.server.turn,
            CountingWake(),
            listener or self.listener,
        )
        self.server = Connection(broker.server, PEER, CountingWake())
        # What was sent and not read, because the other end has paused reading.
        self._to_broker = b""
        self._to_client = b""

    def exchange(self) -> bool:
        """Pass what both ends read; returns whether there was anything."""
        was_busy = False
        while self._pass_bytes():
            was_busy = True
        return was_busy

    def _pass_bytes(self) -> bool:
        self._to_broker += b"".join(bytes(part) for part in self.client.take_output())
        self._to_client += b"".join(bytes(part) for part in self.server.take_output())
        to_broker = b"" if self.server.is_reading_paused else self._to_broker
        to_client = b"" if self.client.is_reading_paused else self._to_client
        if not to_broker and not to_client:
            return False
        if to_broker:
            self._to_broker = b""
            self.server.receive(to_broker)
        if to_client:
            self._to_client = b""
            self.client.receive(to_client)
        while self.client.has_more:
            self.client.process_more()
        while self.server.has_more:
            self.server.process_more()
        self.client.output_written()
        self.server.output_written()
        return True
