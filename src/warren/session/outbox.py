"""Frames out: what one connection has to send, as pieces that are joined once per write.

A delivery adds four references, three of them to octets that exist already. What is small is copied once,
when it is joined; what is large goes to the socket where it lies, also when it is cut here because it does
not fit into one frame of this client (0-9-1 §4.2.6.2).
"""

from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE, OUTBOX_SIZE_MAX
from warren.model.message import Message
from warren.session.wake import Wake
from warren.wire.method import Method

# What goes to the socket.
Buffer = bytes | memoryview

# A content of this size or more is handed to the socket where it lies.
_JOINED_SIZE_MAX = 16_384
_OVERHEAD = FRAME_OVERHEAD
_SIZE_MAX = OUTBOX_SIZE_MAX
# Of the content after its header: the end octet of the header frame and the type of the body frame.
_BODY_CHANNEL_AT = 2
_BODY_AT = 8


class Outbox:
    """The pieces that wait for the socket of one connection."""

    __slots__ = (
        "_confirms",
        "_has_large",
        "_header_channel",
        "_header_head",
        "_header_size",
        "_held_back",
        "_pieces",
        "_wake",
        "connection",
        "frame_size_max",
        "is_paused",
        "size",
        "total",
    )  # fmt: skip

    def __init__(self, connection: object, wake: Wake) -> None:
        self.connection = connection
        self.frame_size_max = FRAME_SIZE_HANDSHAKE
        # True while the socket takes nothing more.
        self.is_paused = False
        # Octets waiting, and octets ever put in.
        self.size = 0
        self.total = 0
        self._wake = wake
        self._pieces: list[Buffer] = []
        self._has_large = False
        # Whose answers to publishes are due, and whose consumers wait for room.
        self._confirms: list[object] = []
        self._held_back: dict[object, None] = {}
        # The head of the last content header frame: it is the same for most messages.
        self._header_head = b""
        self._header_channel = -1
        self._header_size = 0

    def is_full(self) -> bool:
        """True if consumers should wait with more."""
        return self.is_paused or self.size >= _SIZE_MAX

    def wait_for_room(self, subscriber: object) -> None:
        """Remember `subscriber`, whose consumers were held back by a full outbox."""
        self._held_back[subscriber] = None

    def is_holding_back(self) -> bool:
        """True if a consumer waits for room."""
        return bool(self._held_back)

    def take_held_back(self) -> list[object]:
        """The subscribers that were held back, once each; they are forgotten here."""
        subscribers = list(self._held_back)
        self._held_back.clear()
        return subscribers

    def answer_later(self, confirms: object) -> None:
        """Have `confirms.flush()` called when the outbox is taken next."""
        self._confirms.append(confirms)
        if not self.size and len(self._confirms) == 1:
            self._wake.output_ready(self.connection)

    def take(self) -> list[Buffer]:
        """Everything that waits, in order, in few chunks; the outbox is empty then."""
        if self._confirms:
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

    def raw(self, octets: bytes) -> None:
        """Send `octets`, one or more whole frames (or the protocol header)."""
        self._pieces.append(octets)
        self._grow(len(octets))

    def method(self, channel: int, method: Method) -> None:
        """Send `method` on `channel`."""
        self.payload(channel, method.encode())

    def payload(self, channel: int, payload: bytes) -> None:
        """Send a method frame with an encoded method."""
        head = b"\x01" + channel.to_bytes(2, "big") + len(payload).to_bytes(4, "big")
        self.raw(b"".join((head, payload, b"\xce")))

    def content(self, channel: int, before: bytes, message: Message, after: bytes) -> None:
        """Send a method with content: its frame up to the exchange, `message`, and its last arguments.

        The size in the frame head of `before` counts the address of `message` and `after` already.
        """
        pieces = self._pieces
        address = message.address
        content = message.content
        header_size = message.header_size
        size = len(content)
        if header_size != self._header_size or channel != self._header_channel:
            self._make_header_head(channel, header_size)
        pieces.append(before)
        pieces.append(address)
        if after:
            pieces.append(after)
        pieces.append(self._header_head)
        if size >= _JOINED_SIZE_MAX:
            self._has_large = True
        if size - header_size > 1:
            if size - header_size - 1 > self.frame_size_max:
                self._cut(channel, message)
            elif message.channel == channel:
                pieces.append(content)
            else:
                self._readdress(channel, message)
        else:
            pieces.append(content)
        self._grow(len(before) + len(address) + len(after) + len(self._header_head) + size)

    def _grow(self, size: int) -> None:
        was = self.size
        self.size = was + size
        self.total += size
        if not was and not self._confirms:
            self._wake.output_ready(self.connection)
        if was < _SIZE_MAX and self.size >= _SIZE_MAX:
            self._wake.output_full(self.connection)

    def _make_header_head(self, channel: int, header_size: int) -> None:
        """The end of the method frame, and the head of a header frame of `header_size` octets."""
        self._header_channel = channel
        self._header_size = header_size
        self._header_head = b"\xce\x02" + channel.to_bytes(2, "big") + header_size.to_bytes(4, "big")

    def _readdress(self, channel: int, message: Message) -> None:
        """The content of `message`, which came on another channel number than it leaves on."""
        content = message.content
        at = message.header_size + _BODY_CHANNEL_AT
        octets = content
        self._pieces.append(octets[:at])
        self._pieces.append(channel.to_bytes(2, "big"))
        self._pieces.append(
            memoryview(content)[at + 2 :] if self._has_large else octets[at + 2 : len(content)]
        )

    def _cut(self, channel: int, message: Message) -> None:
        """The content of `message` with its body in frames that this client takes."""
        body = memoryview(message.content)[message.header_size + _BODY_AT : -1]
        chunk = self.frame_size_max - _OVERHEAD
        head = b"\xce\x03" + channel.to_bytes(2, "big")
        pieces = self._pieces
        pieces.append(message.header)
        for at in range(0, len(body), chunk):
            part = body[at : at + chunk]
            pieces.append(head + len(part).to_bytes(4, "big"))
            pieces.append(part)
        pieces.append(b"\xce")


def _gather(pieces: list[Buffer]) -> list[Buffer]:
    """The same octets in fewer pieces: small neighbours joined, large ones passed on without a copy."""
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
