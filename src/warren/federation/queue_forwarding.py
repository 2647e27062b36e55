"""What happens to a message on its way from the upstream to the federated queue.

Its address becomes that of the queue here, and its headers say where it was (RabbitMQ 3.10.8, measured):

- `x-received-from` has an entry for each queue that it was taken from, newest first, with the number of its
  visits there; a message can be moved back and forth between two queues.
- `x-original-exchange` and `x-original-routing-key` are the address of its first publish.
- `CC` becomes `x-original-cc`, so that the copies are not routed again.

Consecutive messages usually have equal properties, which are changed once for all of them. If these headers
have no room in a frame, the message is forwarded without them: they inform, and decide nothing.
"""

from warren.errors import FrameError
from warren.federation.header_entries import prepended
from warren.model.message import Message, encode_address, new_message, published_at_of
from warren.routing.federation_upstream import RECEIVED_FROM
from warren.wire.properties import BasicProperties
from warren.wire.table import Table, Value

ORIGINAL_EXCHANGE = "x-original-exchange"
ORIGINAL_ROUTING_KEY = "x-original-routing-key"
ORIGINAL_CC = "x-original-cc"
VISIT_COUNT = "visit-count"

_CC = "CC"
_URI = "uri"
_QUEUE = "queue"
# A larger count, which no broker reaches, was set by a client.
_VISIT_COUNT_MAX = 1 << 62


class QueueForwarding:
    """Transforms the messages of one link."""

    __slots__ = (
        "_address_here", "_is_trusted", "_last_address", "_last_changed", "_last_list", "_last_redelivered",
        "_queue", "_size_max", "_uri", "has_returned",
    )  # fmt: skip

    def __init__(self, uri: str, upstream_queue: str, queue: str, *, is_trusted: bool, size_max: int) -> None:
        """Forward messages of `upstream_queue`, at `uri` without credentials, to `queue`.

        They keep the property user-id if the upstream `is_trusted`. Their property lists may have `size_max`
        bytes.
        """
        self._size_max = size_max
        self._uri = uri
        self._queue = upstream_queue
        self._is_trusted = is_trusted
        self._address_here = encode_address("", queue)
        # The previous message, as far as the result depends on it, and its new property list.
        self._last_address = b""
        self._last_list = b""
        self._last_redelivered = False
        self._last_changed = b""
        # True if the last message was taken from this upstream before: it has come back there since.
        self.has_returned = False

    def transform(self, message: Message, is_redelivered: bool) -> Message:
        """Return the message to publish here."""
        property_list = message.property_list
        if (
            property_list is not self._last_list
            or message.address is not self._last_address
            or is_redelivered is not self._last_redelivered
        ):
            self._last_changed = self._changed(message, is_redelivered)
            self._last_list = property_list
            self._last_address = message.address
            self._last_redelivered = is_redelivered
        return new_message(self._address_here, self._last_changed, message.content, published_at_of(message))

    def _changed(self, message: Message, is_redelivered: bool) -> bytes:
        """Return the new property list of `message`; one that is not valid is for the queue to refuse."""
        self.has_returned = False
        try:
            properties = message.properties()
        except FrameError:
            return message.property_list
        if not self._is_trusted:
            properties.user_id = None
        headers: Table = dict(properties.headers or {})
        changed = self._encoded(properties, self._with_visit(message, headers, is_redelivered))
        if len(changed) <= self._size_max:
            return changed
        # It may have come back: nothing in it would say so.
        self.has_returned = True
        return self._encoded(properties, {name: headers[name] for name in headers if name != _CC})

    @staticmethod
    def _encoded(properties: BasicProperties, headers: Table) -> bytes:
        properties.headers = headers
        return properties.encode_list()

    def _with_visit(self, message: Message, before: Table, is_redelivered: bool) -> Table:
        """Return the headers of `message`, `before`, with the visit at the upstream."""
        headers = dict(before)
        entries = headers.get(RECEIVED_FROM)
        visit_count = 0
        if isinstance(entries, list):
            headers[RECEIVED_FROM], visit_count = self._without_visit(entries)
            self.has_returned = visit_count > 0
        else:
            headers[ORIGINAL_EXCHANGE] = message.exchange
            headers[ORIGINAL_ROUTING_KEY] = message.routing_key
        if _CC in headers:
            headers[ORIGINAL_CC] = headers.pop(_CC)
        entry: Table = {
            _URI: self._uri,
            _QUEUE: self._queue,
            "redelivered": is_redelivered,
            VISIT_COUNT: visit_count + 1,
        }
        return prepended(headers, RECEIVED_FROM, entry)

    def _without_visit(self, entries: list[Value]) -> tuple[list[Value], int]:
        """Return `entries` without those of this upstream queue, and the number of visits there."""
        others: list[Value] = []
        visit_count = 0
        for entry in entries:
            if isinstance(entry, dict) and (entry.get(_URI), entry.get(_QUEUE)) == (self._uri, self._queue):
                count = entry.get(VISIT_COUNT)
                if isinstance(count, int) and visit_count < count < _VISIT_COUNT_MAX:
                    visit_count = int(count)
            else:
                others.append(entry)
        return others, visit_count
