"""What happens to a message on its way from the upstream to the federated exchange.

It keeps its routing key, properties and body. The upstream is entered in front of the header
`x-received-from`, and the property `user-id` is removed unless the upstream is trusted, because users of
different brokers need not be the same. Consecutive messages usually have equal properties, which are changed
once for all of them. A message whose properties cannot be changed, or have no room for the entry, is dropped:
it would stop the link for ever, and without the entry it could go round a cycle of brokers for ever.
"""

from collections.abc import Callable

from msgspec import Struct

from warren.errors import AmqpError
from warren.federation.header_entries import prepended
from warren.model.message import Message, new_message, published_at_of
from warren.routing.federation_upstream import CLUSTER_NAME, RECEIVED_FROM, VHOST, is_forwarded
from warren.wire.properties import BasicProperties
from warren.wire.table import Table

_NO_LIST = b""


class Source(Struct, frozen=True, kw_only=True):
    """The upstream, as messages name it."""

    # Without credentials.
    uri: str
    # The name of the federated exchange here, as in RabbitMQ.
    exchange: str
    # None if the upstream says none.
    cluster_name: str | None
    vhost: str

    def entry(self, *, is_redelivered: bool) -> Table:
        """The entry in the header `x-received-from`."""
        entry: Table = {"uri": self.uri, "exchange": self.exchange, "redelivered": is_redelivered}
        if self.cluster_name is not None:
            entry[CLUSTER_NAME] = self.cluster_name
        return {**entry, VHOST: self.vhost}


class PropertyLimit(Struct, frozen=True):
    """The largest property list that a link may publish, and who is told that a message has a larger one."""

    size_max: int
    warn: Callable[[str], None]


class ExchangeForwarding:
    """Transforms the messages of one run of a link."""

    __slots__ = (
        "_address", "_address_here", "_cluster_name", "_entries", "_exchange", "_has_warned", "_is_trusted",
        "_last_changed", "_last_list", "_last_redelivered", "_limit", "_max_hops", "_vhost",
    )  # fmt: skip

    def __init__(
        self,
        source: Source,
        limit: PropertyLimit,
        *,
        cluster_name: str,
        vhost: str,
        max_hops: int,
        is_trusted: bool,
    ) -> None:
        name = source.exchange.encode("utf-8", "surrogateescape")
        # The beginning of the address of a publish to the federated exchange.
        self._exchange = bytes((len(name),)) + name
        self._entries = (source.entry(is_redelivered=False), source.entry(is_redelivered=True))
        self._cluster_name = cluster_name
        self._vhost = vhost
        self._max_hops = max_hops
        self._is_trusted = is_trusted
        self._limit = limit
        self._has_warned = False
        # The previous address and property list, and what became of them; None if it was dropped.
        self._address = b""
        self._address_here = b""
        self._last_list = _NO_LIST
        self._last_redelivered = False
        self._last_changed: bytes | None = None

    def transform(self, message: Message, is_redelivered: bool) -> Message | None:
        """The message to publish here; None if it has passed too many brokers, or this one."""
        property_list = message.property_list
        if property_list is not self._last_list or is_redelivered is not self._last_redelivered:
            self._last_changed = self._changed(message, is_redelivered)
            self._last_list = property_list
            self._last_redelivered = is_redelivered
        changed = self._last_changed
        if changed is None:
            return None
        address = message.address
        if address is not self._address:
            self._address = address
            self._address_here = self._exchange + address[1 + address[0] :]
        return new_message(self._address_here, changed, message.content, published_at_of(message))

    def _changed(self, message: Message, is_redelivered: bool) -> bytes | None:
        try:
            changed = self._encoded(BasicProperties.decode_list(message.property_list), is_redelivered)
        except AmqpError:
            return None
        if changed is not None and len(changed) > self._limit.size_max:
            self._warn(message)
            return None
        return changed

    def _warn(self, message: Message) -> None:
        """Report a message that is dropped for its size; the counter of the link tells how many follow."""
        if not self._has_warned:
            self._has_warned = True
            self._limit.warn(
                f"a message with the routing key '{message.routing_key}' was dropped, because its properties"
                f" of {len(message.property_list)} bytes have no room for {RECEIVED_FROM}"
            )

    def _encoded(self, properties: BasicProperties, is_redelivered: bool) -> bytes | None:
        headers = properties.headers or {}
        passed = headers.get(RECEIVED_FROM)
        # An upstream without the type of exchange that checks this forwards everything.
        if isinstance(passed, list) and not is_forwarded(
            passed, self._max_hops, self._cluster_name, self._vhost
        ):
            return None
        properties.headers = prepended(headers, RECEIVED_FROM, self._entries[is_redelivered])
        if not self._is_trusted:
            properties.user_id = None
        return properties.encode_list()
