"""The firehose: what one virtual host publishes and delivers, as copies on the exchange `amq.rabbitmq.trace`.

While it is off, nothing of this exists (`VirtualHost.tracer` is None). While it is on, the corridor only
notes what it did, and a later turn makes messages of it: a queue that is in the middle of handing something
out is never published to. What came by the exchange itself is not traced again.
"""

from warren.errors import AmqpSyntaxError
from warren.model.blind_copies import without_bcc
from warren.model.message import Message
from warren.routing.copies import carbon_copies
from warren.vhost.coroutine_driver import Later
from warren.vhost.internal_publisher import InternalPublisher
from warren.vhost.message_tracer import MessageOrigin
from warren.vhost.vhost import VirtualHost
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


class Tracer:
    """Makes the copies for one virtual host, if anything is bound to the exchange that they go to."""

    __slots__ = ("_feed", "_node_name", "_vhost")

    def __init__(self, vhost: VirtualHost, node_name: str, later: Later) -> None:
        self._vhost = vhost
        self._node_name = node_name
        self._feed = InternalPublisher(EXCHANGE, lambda: vhost, later)

    def published(self, message: Message, destinations: tuple[object, ...], origin: MessageOrigin) -> None:
        """`message` comes from `origin`, and goes to `destinations`."""
        if not self._feed.is_heard():
            return
        queues = sorted(name for queue in destinations if (name := getattr(queue, "name", None)) is not None)

        def copy(now: int) -> Message:
            facts = self._origin_headers(origin) | {"routed_queues": queues}
            return self._copied(f"publish.{message.exchange}", message, facts, now)

        self._feed.add(copy)

    def delivered(self, queue: str, message: Message, is_redelivered: bool, origin: MessageOrigin) -> None:
        """`message` goes to `origin` from the queue called `queue`."""
        if not self._feed.is_heard() or message.address.startswith(_ADDRESS):
            return

        def copy(now: int) -> Message:
            facts = {"redelivered": Int32(is_redelivered)} | self._origin_headers(origin)
            return self._copied(f"deliver.{queue}", message, facts, now)

        self._feed.add(copy)

    def _origin_headers(self, origin: MessageOrigin) -> Table:
        return {"vhost": self._vhost.name, **origin.facts()}

    def _copied(self, key: str, message: Message, facts: Table, now: int) -> Message:
        headers: Table = {
            "exchange_name": message.exchange,
            "routing_keys": [message.routing_key, *carbon_copies(message.headers())],
            "properties": _shown(without_bcc(message).properties()),
            "node": self._node_name,
            **facts,
        }
        properties = BasicProperties(headers=headers)
        try:
            return self._feed.composed(key, properties, message.content, now)
        except AmqpSyntaxError:
            # Its headers are as deep as headers may be, and would stand a level deeper here.
            del headers["properties"]["headers"]
            return self._feed.composed(key, properties, message.content, now)


def _shown(properties: BasicProperties) -> Table:
    found = {name: getattr(properties, name) for name in _PROPERTIES}
    return {name: _typed(value) for name, value in found.items() if value is not None}


def _typed(value: Value) -> Value:
    return Int32(value) if isinstance(value, int) and value <= _INT32_MAX else value
