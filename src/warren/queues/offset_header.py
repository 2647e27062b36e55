"""The header `x-stream-offset` in messages delivered from a stream (RabbitMQ, measured).

It is a long (`l`), and replaces one that the publisher set. The other headers stay before it in their order,
as readers over AMQP expect; RabbitMQ sorts all of them by name. Everything around the number is the same for
all messages with one property list.
"""

from warren.wire.properties import BasicProperties

OFFSET_HEADER = "x-stream-offset"
_NUMBER_SIZE = 8


class OffsetHeader:
    """A property list with a gap for the offset."""

    __slots__ = ("_after", "_before", "source")

    def __init__(self, property_list: bytes) -> None:
        self.source = property_list
        properties = BasicProperties.decode_list(property_list)
        headers = dict(properties.headers or {})
        headers.pop(OFFSET_HEADER, None)
        properties.headers = {**headers, OFFSET_HEADER: 0}
        data = properties.encode_list()
        # The number is where this one differs, in its first byte already.
        properties.headers[OFFSET_HEADER] = -1
        other = properties.encode_list()
        at = next(at for at in range(len(data)) if data[at] != other[at])
        self._before = data[:at]
        self._after = data[at + _NUMBER_SIZE :]

    def with_offset(self, offset: int) -> bytes:
        """The property list of the message at `offset`."""
        return b"".join((self._before, offset.to_bytes(_NUMBER_SIZE, "big"), self._after))
