"""What a simulated client writes and reads: whole methods with their content, as octets."""

from collections.abc import Iterator

from msgspec import Struct

from warren.limits import FRAME_SIZE_MAX
from warren.wire.frames import BODY, HEADER, METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.methods import BasicPublish, decode_method
from warren.wire.properties import BasicProperties

_END = b"\xce"
# A frame with its header and its end is not larger than what was agreed on.
_BODY_SIZE_MAX = FRAME_SIZE_MAX - 8


class ReceivedMethod(Struct):
    """A method, with its content if it has any."""

    channel: int
    method: Method
    properties: BasicProperties | None = None
    body: bytes = b""


class MethodReader:
    """Joins frames to methods with their content."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._reader.frame_size_max = FRAME_SIZE_MAX
        # The methods whose content is incomplete, by channel, and the bytes that are missing.
        self._open: dict[int, ReceivedMethod] = {}
        self._missing: dict[int, int] = {}

    def read(self, data: bytes) -> Iterator[ReceivedMethod]:
        """Feed `data`, and return what is complete; all of it must be iterated."""
        reader = self._reader
        reader.feed(data)
        while reader.advance():
            channel, payload = reader.channel, reader.payload()
            if reader.kind == METHOD:
                received = ReceivedMethod(channel, decode_method(payload))
                if not received.method.has_content:
                    yield received
                else:
                    self._open[channel] = received
            elif reader.kind == HEADER:
                received = self._open[channel]
                received.properties = BasicProperties.decode(payload)
                self._missing[channel] = int.from_bytes(payload[4:12], "big")
            elif reader.kind == BODY:
                received = self._open[channel]
                received.body += payload
                self._missing[channel] -= len(payload)
            else:
                continue
            if channel in self._open and self._missing.get(channel) == 0:
                del self._missing[channel]
                yield self._open.pop(channel)


def method_frame(channel: int, method: Method) -> bytes:
    """A method frame."""
    return _frame(METHOD, channel, method.encode())


def publish_frames(channel: int, method: BasicPublish, properties: BasicProperties, body: bytes) -> bytes:
    """The frames of a message, whose body is in as few frames as it fits into."""
    header = _frame(HEADER, channel, properties.encode(len(body)))
    pieces = (body[at : at + _BODY_SIZE_MAX] for at in range(0, len(body), _BODY_SIZE_MAX))
    return method_frame(channel, method) + header + b"".join(_frame(BODY, channel, one) for one in pieces)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload + _END
