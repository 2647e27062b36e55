"""The firehose tracer: copies all messages of a virtual host to the exchange `amq.rabbitmq.trace`.

While tracing is off, `VirtualHost.tracer` is None. While it is on, publishing and delivering only record
what they did, and a later turn makes the messages: nothing is published to a queue that is in the middle of
a delivery. Messages that were published to the exchange itself are not traced.
"""

from warren.errors import AmqpSyntaxError
from warren.model.blind_copies import without_bcc
from warren.model.coroutine_driver import Later
from warren.model.message import Message
from warren.routing.copies import carbon_copies
from warren.vhost.internal_publisher import InternalPublisher
from warren.vhost.message_tracer import MessageOrigin
from warren.vhost.vhost import VirtualHost
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32, Table, Value

EXCHANGE = "amq.rabbitmq.trace"

# The prefix of the addresses of messages published to the exchange.
_ADDRESS = bytes((len(EXCHANGE),)) + EXCHANGE.encode("ascii")
# In RabbitMQ's order, the last property first; numbers are of 32 bits where they fit.
_PROPERTIES = (
    "cluster_id", "app_id", "user_id", "type", "timestamp", "message_id", "expiration", "reply_to",
    "correlation_id", "priority", "delivery_mode", "headers", "content_encoding", "content_type",
)  # fmt: skip
_INT32_MAX = 2**31 - 1


class Tracer:
    """Publishes the copies for one virtual host, if the exchange has bindings."""

    __slots__ = ("_feed", "_node_name", "_vhost")

    def __init__(self, vhost: VirtualHost, node_name: str, later: Later) -> None:
        self._vhost = vhost
        self._node_name = node_name
        self._feed = InternalPublisher(EXCHANGE, lambda: vhost, later)

    def published(self, message: Message, destinations: tuple[object, ...], origin: MessageOrigin) -> None:
        """Trace the publish of `message` by `origin`, routed to `destinations`."""
        if not self._feed.is_heard():
            return
        queues = sorted(name for queue in destinations if (name := getattr(queue, "name", None)) is not None)

        def copy(now: int) -> Message:
            facts = self._origin_headers(origin) | {"routed_queues": queues}
            return self._copied(f"publish.{message.exchange}", message, facts, now)

        self._feed.add(copy)

    def delivered(self, queue: str, message: Message, is_redelivered: bool, origin: MessageOrigin) -> None:
        """Trace the delivery of `message` from `queue` to `origin`."""
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
            # Its headers have the maximum depth, and would be nested one level deeper here.
            del headers["properties"]["headers"]
            return self._feed.composed(key, properties, message.content, now)


def _shown(properties: BasicProperties) -> Table:
    found = {name: getattr(properties, name) for name in _PROPERTIES}
    return {name: _typed(value) for name, value in found.items() if value is not None}


def _typed(value: Value) -> Value:
    return Int32(value) if isinstance(value, int) and value <= _INT32_MAX else value
