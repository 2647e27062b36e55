"""The output of one connection: pieces of frames that are joined once per write.

A delivery appends four references, three of them to existing bytes. Small pieces are copied once, when they
are joined; large ones are passed to the socket without a copy, also when they are split into several frames
because they exceed this client's frame_max (0-9-1 §4.2.6.2).
"""

from warren.framing.output_listener import OutputListener
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE, OUTBOX_SIZE_MAX
from warren.model.blind_copies import strip_bcc
from warren.model.message import HAS_HEADERS, Message
from warren.wire.frames import BODY, HEADER
from warren.wire.method import Method

# The type of the pieces written to the socket.
Buffer = bytes | memoryview

# Content of at least this size (bytes) is passed to the socket without a copy.
_JOINED_SIZE_MAX = 16_384
_HAS_HEADERS = HAS_HEADERS
_OVERHEAD = FRAME_OVERHEAD
_SIZE_MAX = OUTBOX_SIZE_MAX
_HEAD_SIZE = FRAME_OVERHEAD - 1
_HEADER = HEADER
_BODY = BODY
# The bytes between a method and the body of its content:
#     0xCE | 2 | channel | size | 0 60 0 0 | body size u64 | property list | 0xCE | 3 | channel | body size |
_MIDDLE = b"\xce\x02" + bytes(6) + b"\x00\x3c\x00\x00" + bytes(8 + 8)
_LIST_AT = 20
_BODY_HEAD_SIZE = 8


class Outbox:
    """The pending output of one connection."""

    __slots__ = (
        "_channel_number", "_confirms", "_content_size", "_has_large", "_held_back", "_middle",
        "_output_listener", "_pieces", "_property_list", "_scratch", "frame_size_max", "is_paused", "size",
        "total",
    )  # fmt: skip

    def __init__(self, output_listener: OutputListener) -> None:
        self.frame_size_max = FRAME_SIZE_HANDSHAKE
        # True while the socket accepts no more output.
        self.is_paused = False
        # Bytes pending, and bytes ever added.
        self.size = 0
        self.total = 0
        self._output_listener = output_listener
        self._pieces: list[Buffer] = []
        self._has_large = False
        # The confirms to flush, and the subscribers that wait for room.
        self._confirms: list[object] = []
        self._held_back: dict[object, None] = {}
        # The bytes between method and body of the last content, which are the same for most.
        self._middle = b""
        self._channel_number = -1
        self._property_list = b""
        self._content_size = 0
        # The buffer in which the next one is built.
        self._scratch = bytearray(_MIDDLE)

    def is_full(self) -> bool:
        """True if consumers must wait before sending more."""
        return self.is_paused or self.size >= _SIZE_MAX

    def wait_for_room(self, subscriber: object) -> None:
        """Register `subscriber`, whose consumers are held back by a full outbox."""
        self._held_back[subscriber] = None

    def is_holding_back(self) -> bool:
        """True if subscribers wait for room."""
        return bool(self._held_back)

    def take_held_back(self) -> list[object]:
        """Return the subscribers that were held back, once each, and forget them."""
        subscribers = list(self._held_back)
        self._held_back.clear()
        return subscribers

    def flush_later(self, confirms: object) -> None:
        """Call `confirms.flush()` before the outbox is taken next."""
        self._confirms.append(confirms)
        if not self.size and len(self._confirms) == 1:
            self._output_listener.output_ready()

    def take(self) -> list[Buffer]:
        """Return the pending output in order, in few chunks, and empty the outbox."""
        # What is flushed can have more to flush.
        while self._confirms:
            due = self._confirms
            self._confirms = []
            for confirms in due:
                confirms.flush()  # type: ignore[attr-defined]
        pieces = self._pieces
        self._pieces = []
        self.size = 0
        if self._has_large:
            self._has_large = False
            return _gather(pieces)
        return [b"".join(pieces)] if pieces else []

    def raw(self, data: bytes) -> None:
        """Send `data`, one or more whole frames (or the protocol header)."""
        self._pieces.append(data)
        self._grow(len(data))

    def method(self, channel: int, method: Method) -> None:
        """Send `method` on `channel`."""
        self.payload(channel, method.encode())

    def payload(self, channel: int, payload: bytes) -> None:
        """Send a method frame with an encoded method."""
        head = b"\x01" + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big")
        self.raw(b"".join((head, payload, b"\xce")))

    def content(self, channel: int, before: bytes, message: Message, after: bytes) -> None:
        """Send a method with content: `before` is its frame up to the exchange, `after` its last arguments.

        The size in the frame head of `before` counts the address of `message` and `after` already.
        """
        pieces = self._pieces
        content = message.content
        size = len(content)
        if (
            size != self._content_size
            or channel != self._channel_number
            or message.property_list != self._property_list
        ):
            self._make_middle(channel, message)
        pieces.append(before)
        pieces.append(message.address)
        if after:
            pieces.append(after)
        pieces.append(self._middle)
        if size >= _JOINED_SIZE_MAX:
            self._has_large = True
        if size + _HEAD_SIZE > self.frame_size_max:
            self._cut(channel, content)
        else:
            pieces.append(content)
        self._grow(len(before) + len(message.address) + len(after) + len(self._middle) + size)

    def _grow(self, size: int) -> None:
        was = self.size
        self.size = was + size
        self.total += size
        if not was and not self._confirms:
            self._output_listener.output_ready()
        if was < _SIZE_MAX and self.size >= _SIZE_MAX:
            self._output_listener.output_full()

    def _make_middle(self, channel: int, message: Message) -> None:
        """Build the bytes between the method and the body of `message`."""
        property_list = message.property_list
        content_size = len(message.content)
        self._property_list = property_list
        self._content_size = content_size
        self._channel_number = channel
        if message.flags & _HAS_HEADERS:
            property_list = strip_bcc(property_list)
        list_size = len(property_list)
        if len(self._scratch) < _LIST_AT + list_size + _BODY_HEAD_SIZE:
            self._scratch += bytes(list_size)
        data = self._scratch
        source = property_list
        _write_head(data, 0, _HEADER, channel)
        _write(data, 4, _LIST_AT - 8 + list_size)
        _write(data, _LIST_AT - 4, content_size - 1)
        for at in range(list_size):
            data[_LIST_AT + at] = source[at]
        end = _LIST_AT + list_size
        if 1 < content_size <= self.frame_size_max - _HEAD_SIZE:
            _write_head(data, end, _BODY, channel)
            _write(data, end + 4, content_size - 1)
            end += _BODY_HEAD_SIZE
        # Compiled, this is bytes; interpreted, a bytearray, which joins as well.
        self._middle = data[:end]  # type: ignore[assignment]

    def _cut(self, channel: int, content: bytes) -> None:
        """Split a body into frames of at most frame_max."""
        body = memoryview(content)[:-1]
        chunk = self.frame_size_max - _OVERHEAD
        head = b"\xce\x03" + channel.to_bytes(2, "big")
        pieces = self._pieces
        for at in range(0, len(body), chunk):
            part = body[at : at + chunk]
            pieces.append(head + len(part).to_bytes(4, "big"))
            pieces.append(part)
        pieces.append(b"\xce")


def _write_head(data: bytearray, at: int, kind: int, channel: int) -> None:
    """Write the end of a frame and the start of the next, up to its size: four bytes."""
    data[at] = 0xCE
    data[at + 1] = kind
    data[at + 2] = (channel >> 8) & 0xFF
    data[at + 3] = channel & 0xFF


def _write(data: bytearray, at: int, number: int) -> None:
    """Write `number` as four bytes, most significant first."""
    data[at] = (number >> 24) & 0xFF
    data[at + 1] = (number >> 16) & 0xFF
    data[at + 2] = (number >> 8) & 0xFF
    data[at + 3] = number & 0xFF


def _gather(pieces: list[Buffer]) -> list[Buffer]:
    """Reduce the number of pieces: join small neighbours, keep large pieces without a copy."""
    gathered: list[Buffer] = []
    small: list[Buffer] = []
    for piece in pieces:
        if len(piece) < _JOINED_SIZE_MAX:
            small.append(piece)
            continue
        if small:
            gathered.append(b"".join(small))
            small.clear()
        gathered.append(piece)
    if small:
        gathered.append(b"".join(small))
    return gathered
