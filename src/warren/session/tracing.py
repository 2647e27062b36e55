"""The firehose: what one virtual host publishes and delivers, as copies on the exchange `amq.rabbitmq.trace`.

While it is off, nothing of this exists (`VirtualHost.tracer` is None). While it is on, the corridor only
notes what it did, and a later turn makes messages of it: a queue that is in the middle of handing something
out is never published to. What came by the exchange itself is not traced again.
"""

from collections.abc import Callable
from typing import Protocol

from warren.errors import AmqpSyntaxError
from warren.limits import NAME_SIZE_MAX
from warren.model.message import Message, encode_address
from warren.routing.copies import carbon_copies
from warren.vhost.errand import Later
from warren.vhost.vhost import VirtualHost, without_bcc
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32, Table, Value

EXCHANGE = "amq.rabbitmq.trace"

# How the address of a message begins that was published to it.
_ADDRESS = bytes((len(EXCHANGE),)) + EXCHANGE.encode("ascii")
# RabbitMQ's order, the last property first; the number is one of 32 bits where it fits.
_PROPERTIES = (
    "cluster_id", "app_id", "user_id", "type", "timestamp", "message_id", "expiration", "reply_to",
    "correlation_id", "priority", "delivery_mode", "headers", "content_encoding", "content_type",
)  # fmt: skip
_INT32_MAX = 2**31 - 1


class Named(Protocol):
    """Whatever somebody's connection is called by."""

    @property
    def name(self) -> str:
        """RabbitMQ's name of a connection: where from, where to."""


class Origin:
    """Whose channel it is that publishes or consumes."""

    __slots__ = ("_connection", "channel", "user")

    def __init__(self, connection: Named, channel: int, user: str) -> None:
        self._connection = connection
        self.channel = channel
        self.user = user

    def facts(self) -> Table:
        """What is said of it."""
        return {"connection": self._connection.name, "channel": Int32(self.channel), "user": self.user}


class Tracer:
    """Makes the copies for one virtual host, if anything is bound to the exchange that they go to."""

    __slots__ = ("_later", "_node_name", "_noted", "_vhost")

    def __init__(self, vhost: VirtualHost, node_name: str, later: Later) -> None:
        self._vhost = vhost
        self._node_name = node_name
        self._later = later
        # What makes the copies of this turn, as many at most as a turn publishes and delivers.
        self._noted: list[Callable[[], Message]] = []

    def published(self, message: Message, destinations: tuple[object, ...], origin: Origin) -> None:
        """`message` comes from `origin`, and goes to `destinations`."""
        if not self._is_heard():
            return
        queues = sorted(name for queue in destinations if (name := getattr(queue, "name", None)) is not None)

        def copy() -> Message:
            facts = self._whereabouts(origin) | {"routed_queues": queues}
            return self._copied(f"publish.{message.exchange}", message, facts)

        self._note(copy)

    def delivered(self, queue: str, message: Message, is_redelivered: bool, origin: Origin) -> None:
        """`message` goes to `origin` from the queue called `queue`."""
        if not self._is_heard() or message.address.startswith(_ADDRESS):
            return

        def copy() -> Message:
            facts = {"redelivered": Int32(is_redelivered)} | self._whereabouts(origin)
            return self._copied(f"deliver.{queue}", message, facts)

        self._note(copy)

    def _is_heard(self) -> bool:
        exchange = self._vhost.router.exchanges.get(EXCHANGE)
        return exchange is not None and exchange.bindings > 0

    def _note(self, copy: Callable[[], Message]) -> None:
        self._noted.append(copy)
        if len(self._noted) == 1:
            self._later(self._publish)

    def _publish(self, now: int) -> None:
        self._vhost.now = now
        noted, self._noted = self._noted, []
        if self._is_heard():
            for copy in noted:
                self._vhost.distribute(copy())

    def _whereabouts(self, origin: Origin) -> Table:
        return {"vhost": self._vhost.name, **origin.facts()}

    def _copied(self, key: str, message: Message, facts: Table) -> Message:
        headers: Table = {
            "exchange_name": message.exchange,
            "routing_keys": [message.routing_key, *carbon_copies(message.headers())],
            "properties": _shown(without_bcc(message).properties()),
            "node": self._node_name,
            **facts,
        }
        address = encode_address(EXCHANGE, _cut(key))
        try:
            properties = BasicProperties(headers=headers)
            return Message.compose(address, properties, message.content, now=self._vhost.now)
        except AmqpSyntaxError:
            # Its headers are as deep as headers may be, and would stand a level deeper here.
            del headers["properties"]["headers"]
            return Message.compose(address, properties, message.content, now=self._vhost.now)


def _shown(properties: BasicProperties) -> Table:
    found = {name: getattr(properties, name) for name in _PROPERTIES}
    return {name: _typed(value) for name, value in found.items() if value is not None}


def _typed(value: Value) -> Value:
    return Int32(value) if isinstance(value, int) and value <= _INT32_MAX else value


def _cut(key: str) -> str:
    """As much of `key` as fits: it is longer than a name of the same length."""
    octets = key.encode("utf-8", "surrogateescape")[:NAME_SIZE_MAX]
    return octets.decode("utf-8", "surrogateescape")
