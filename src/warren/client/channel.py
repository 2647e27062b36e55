"""One channel of a client: calls, publishing with confirms, and deliveries, which a listener receives.

Deliveries, confirms and publishes are the hot path: they are parsed in place, and a delivered message keeps
its address, properties and body as the broker sent them, so that it can be published again unchanged. Its
properties are valid, and were scanned for headers, but for nothing else. All
other methods are calls: `call` sends one and awaits its answer, and answers come in the order of the calls.
"""

from collections import deque
from typing import TypeVar

from warren.client.answer import Answer
from warren.client.errors import BrokerRefused, malformed
from warren.client.raw_frames import decoded
from warren.errors import AmqpError
from warren.framing.outbox import Outbox
from warren.limits import MESSAGE_SIZE_MAX
from warren.model.message import BODY_END, HAS_HEADERS, Message, encode_address, new_message
from warren.model.turn import Turn
from warren.wire import methods
from warren.wire.frames import BODY, HEADER, METHOD, FrameReader
from warren.wire.method import Method
from warren.wire.properties import PropertyScan

Reply = TypeVar("Reply", bound=Method)

_METHOD = METHOD
_HEADER = HEADER
_BODY = BODY
_BODY_END = BODY_END
_HAS_HEADERS = HAS_HEADERS
_scan = PropertyScan()
_SIZE_MAX = MESSAGE_SIZE_MAX

# The method whose content is expected.
_NOTHING = 0
_DELIVERY = 1
_RETURN = 2

# Class and method ids as one number: basic.deliver, basic.ack and basic.nack.
_DELIVER = methods.BasicDeliver.index
_ACK = methods.BasicAck.index
_NACK = methods.BasicNack.index
# An ack or nack: ids, delivery tag u64, bits u8, of which the lowest is `multiple`.
_CONFIRM_SIZE = 13
# The smallest basic.deliver: ids, three empty short strings, delivery tag u64, bits u8.
_DELIVER_SIZE_MIN = 16
# Content header: class u16, weight u16, body size u64; then the property list, of at least two bytes.
_LIST_AT = 12
_HEADER_SIZE_MIN = 14
# basic.publish: ids and reserved-1; then the address and one byte of bits.
_PUBLISH_HEAD = b"\x00\x3c\x00\x28\x00\x00"
_NOT_MANDATORY = b"\x00"
_MANDATORY = b"\x01"
# The frame of a basic.ack or basic.nack between its channel and its delivery tag.
_ACK_HEAD = b"\x00\x00\x00\x0d\x00\x3c\x00\x50"
_NACK_HEAD = b"\x00\x00\x00\x0d\x00\x3c\x00\x78"


class ChannelListener:
    """Port: what happens on a channel without a call; the methods raise nothing."""

    __slots__ = ()

    def delivered(self, message: Message, delivery_tag: int, is_redelivered: bool) -> None:
        """Receive `message`, delivered to a consumer of the channel."""

    def confirmed(self, sequence: int, is_multiple: bool, is_acked: bool) -> None:
        """Receive a publisher confirm of `sequence`, or of all up to it."""

    def returned(self, reply_code: int, reply_text: str, message: Message) -> None:
        """Receive `message`, published as mandatory and not routed."""

    def cancelled(self, consumer_tag: str) -> None:
        """The broker has cancelled a consumer, for example because its queue was deleted."""

    def ended(self, error: BrokerRefused) -> None:
        """The channel has ended with `error`: the broker has closed it, or the connection is gone."""


class ClientChannel:
    """One channel; `ClientConnection.open_channel` creates it."""

    __slots__ = (
        "_address", "_before", "_before_size", "_body_size", "_delivery_tag", "_due", "_has_headers",
        "_is_body", "_is_redelivered", "_listener", "_method", "_number", "_outbox", "_parts", "_pending",
        "_property_list", "_received", "_tag_head", "_turn", "error", "extra_work", "is_open", "sequence",
    )  # fmt: skip

    def __init__(self, number: int, outbox: Outbox, turn: Turn, listener: ChannelListener) -> None:
        self._number = number
        self._outbox = outbox
        self._turn = turn
        self._listener = listener
        self.is_open = True
        # What the listener adds for a frame that has cost more than others, in frames.
        self.extra_work = 0
        # Why the channel has ended; None while it is open, or was closed by `close`.
        self.error: BrokerRefused | None = None
        # The sequence of the last publish in confirm mode; 0 before the first.
        self.sequence = 0
        # The calls that wait for an answer, with the types of it, in order.
        self._pending: deque[tuple[tuple[type[Method], ...], Answer[Method]]] = deque()
        # The content that is being received.
        self._due = _NOTHING
        self._is_body = False
        self._method: methods.BasicReturn | None = None
        self._delivery_tag = 0
        self._is_redelivered = False
        self._address = b"\0\0"
        self._property_list = b"\0\0"
        self._has_headers = False
        self._body_size = 0
        self._received = 0
        # The parts of a body in several frames.
        self._parts: list[bytes] = []
        # The frame of basic.publish up to the address, for an address of `_before_size` bytes.
        self._before = b""
        self._before_size = -1
        self._tag_head = b"\x01" + number.to_bytes(2, "big")

    # --- calls ----------------------------------------------------------------------------------

    async def call(self, method: Method, *answers: type[Reply]) -> Reply:
        """Send `method`, and return its answer, of one of the types `answers`.

        Raises BrokerRefused if the broker closes the channel or the connection instead.
        """
        self._check_open()
        answer: Answer[Method] = Answer()
        self._pending.append((answers, answer))
        self._outbox.method(self._number, method)
        return await answer  # type: ignore[return-value]

    def send(self, method: Method) -> None:
        """Send `method`, which has no answer. Raises BrokerRefused if the channel has ended."""
        self._check_open()
        self._outbox.method(self._number, method)

    async def close(self) -> None:
        """Close the channel, and wait until the broker has; does nothing if it has ended."""
        if self.is_open:
            await self.call(methods.ChannelClose(reply_code=200, reply_text="done"), methods.ChannelCloseOk)
            self.is_open = False

    def _check_open(self) -> None:
        if not self.is_open:
            raise self.error or BrokerRefused("the channel is closed")

    # --- the hot path: publishing and settling ----------------------------------------------------

    def publish(self, message: Message, is_mandatory: bool = False) -> int:
        """Publish `message` to its address; returns its sequence, which confirms name in confirm mode.

        Ignored once the channel has ended, which the listener was told.
        """
        self.sequence += 1
        if not self.is_open:
            return self.sequence
        size = len(message.address)
        if size != self._before_size:
            self._before_size = size
            size += len(_PUBLISH_HEAD) + 1
            self._before = self._tag_head + size.to_bytes(4, "big") + _PUBLISH_HEAD
        self._outbox.content(
            self._number, self._before, message, _MANDATORY if is_mandatory else _NOT_MANDATORY
        )
        return self.sequence

    def acknowledge(self, delivery_tag: int, is_multiple: bool) -> None:
        """Acknowledge a delivery, or all up to it."""
        if self.is_open:
            end = b"\x01\xce" if is_multiple else b"\x00\xce"
            self._outbox.raw(self._tag_head + _ACK_HEAD + delivery_tag.to_bytes(8, "big") + end)

    def reject(self, delivery_tag: int, is_multiple: bool, is_requeued: bool) -> None:
        """Reject a delivery, or all up to it (basic.nack), with or without returning it to its queue."""
        if self.is_open:
            bits = (1 if is_multiple else 0) | (2 if is_requeued else 0)
            end = bytes((bits, 0xCE))
            self._outbox.raw(self._tag_head + _NACK_HEAD + delivery_tag.to_bytes(8, "big") + end)

    # --- input ------------------------------------------------------------------------------------

    def handle_run(self, reader: FrameReader, work: int) -> int:
        """Process the frame under the cursor, and those that follow it on this channel, at most `work`.

        Returns the work that is left. Raises BrokerRefused or FrameError for a frame that is not valid.
        """
        while True:
            self._handle(reader)
            work -= 1
            if self.extra_work:
                work = max(work - self.extra_work, 0)
                self.extra_work = 0
            if not work or not self.is_open or not reader.is_next_of(self._number):
                return work
            reader.advance()

    def _handle(self, reader: FrameReader) -> None:
        """Process the frame under the cursor."""
        if reader.kind == _METHOD:
            self._receive_method(reader)
        elif reader.kind == _HEADER:
            self._receive_header(reader)
        elif reader.kind == _BODY:
            self._receive_body(reader)
        else:
            raise malformed(f"a frame of type {reader.kind} on channel {self._number}")

    def _receive_method(self, reader: FrameReader) -> None:
        """Process a method: a delivery or a confirm in place, all others decoded."""
        data = reader.data
        raw = data
        at = reader.start
        size = reader.size
        if self._due:
            raise malformed("a method where content is expected")
        index = 0
        if size >= _CONFIRM_SIZE:
            index = (raw[at] << 24) | (raw[at + 1] << 16) | (raw[at + 2] << 8) | raw[at + 3]
        if index == _DELIVER:
            self._receive_delivery(reader)
        elif index in (_ACK, _NACK) and size == _CONFIRM_SIZE:
            sequence = _read_number(raw, at + 4)
            if sequence > self.sequence:
                raise malformed(f"a confirm of publish {sequence}, when {self.sequence} were published")
            self._listener.confirmed(sequence, raw[at + 12] & 1 != 0, index == _ACK)
        else:
            self._receive_answer(decoded(reader.payload()))

    def _receive_delivery(self, reader: FrameReader) -> None:
        """Note the delivery tag and the address of basic.deliver, whose content follows.

        class u16 | method u16 | consumer tag | delivery tag u64 | redelivered u8 | exchange | routing key |
        """
        data = reader.data
        raw = data
        end = reader.start + reader.size
        if reader.size < _DELIVER_SIZE_MIN:
            raise malformed("a basic.deliver that is too short")
        at = reader.start + 5 + raw[reader.start + 4]
        # The tag, the bits, and at least the lengths of the two names of the address.
        if at + 11 > end:
            raise malformed("a basic.deliver that is too short")
        address_at = at + 9
        key_at = address_at + 1 + raw[address_at]
        if key_at >= end or key_at + 1 + raw[key_at] != end:
            raise malformed("a basic.deliver whose names do not end with it")
        self._delivery_tag = _read_number(raw, at)
        self._is_redelivered = raw[at + 8] & 1 != 0
        known = self._address
        if not (end - address_at == len(known) and data.startswith(known, address_at)):
            self._address = data[address_at:end]
        self._due = _DELIVERY

    def _receive_header(self, reader: FrameReader) -> None:
        """Process a content header."""
        data = reader.data
        raw = data
        at = reader.start
        size = reader.size
        if not self._due or self._is_body:
            raise malformed("a content header that no method announced")
        if size < _HEADER_SIZE_MIN:
            raise malformed("a content header that is too short")
        body_size = (raw[at + 8] << 24) | (raw[at + 9] << 16) | (raw[at + 10] << 8) | raw[at + 11]
        if body_size > _SIZE_MAX or raw[at + 4] | raw[at + 5] | raw[at + 6] | raw[at + 7]:
            raise malformed(f"a body of more than {_SIZE_MAX} bytes")
        known = self._property_list
        if not (size - _LIST_AT == len(known) and data.startswith(known, at + _LIST_AT)):
            self._property_list = data[at + _LIST_AT : at + size]
            self._has_headers = _scanned_headers(self._property_list)
        if body_size:
            self._body_size = body_size
            self._received = 0
            self._is_body = True
        else:
            self._content(_BODY_END)

    def _receive_body(self, reader: FrameReader) -> None:
        """Process a body frame, which usually is the whole body."""
        data = reader.data
        if not self._is_body:
            raise malformed("a body frame that no content header announced")
        if reader.size == self._body_size and not self._received:
            self._content(data[reader.start : reader.start + reader.size + 1])
        else:
            self._assemble(reader)

    def _assemble(self, reader: FrameReader) -> None:
        """Append one of several body frames."""
        if self._received + reader.size > self._body_size:
            raise malformed("a body that exceeds the size in its header")
        self._parts.append(reader.payload())
        self._received += reader.size
        if self._received == self._body_size:
            self._parts.append(_BODY_END)
            content = b"".join(self._parts)
            self._parts = []
            self._content(content)

    def _content(self, content: bytes) -> None:
        """Pass on the complete message with `content`: to the listener, or as an answer."""
        due = self._due
        self._due = _NOTHING
        self._is_body = False
        if due == _DELIVERY:
            message = new_message(self._address, self._property_list, content, self._turn.now())
            if self._has_headers:
                message.flags = _HAS_HEADERS
            self._listener.delivered(message, self._delivery_tag, self._is_redelivered)
        else:
            self._return(content)

    def _return(self, content: bytes) -> None:
        """Pass on a returned message with `content`."""
        method, self._method = self._method, None
        assert method is not None
        address = encode_address(method.exchange, method.routing_key)
        message = new_message(address, self._property_list, content, self._turn.now())
        if self._has_headers:
            message.flags = _HAS_HEADERS
        self._listener.returned(method.reply_code, method.reply_text, message)

    # --- input: everything else ---------------------------------------------------------------------

    def _receive_answer(self, method: Method) -> None:
        """Process a method that is neither a delivery nor a confirm."""
        if isinstance(method, methods.BasicReturn):
            self._method = method
            self._due = _RETURN
        elif isinstance(method, methods.ChannelClose):
            self._outbox.method(self._number, methods.ChannelCloseOk())
            self.end(BrokerRefused(f"{method.reply_code} {method.reply_text}", method.reply_code))
        elif isinstance(method, methods.BasicCancel):
            if not method.no_wait:
                self._outbox.method(self._number, methods.BasicCancelOk(method.consumer_tag))
            self._listener.cancelled(method.consumer_tag)
        elif isinstance(method, methods.ChannelFlow):
            self._outbox.method(self._number, methods.ChannelFlowOk(method.active))
        elif self._pending and isinstance(method, self._pending[0][0]):
            self._pending.popleft()[1].complete(method)
        # Ignored: the answer to a close of the channel before, which both ends had closed at the same time.
        elif not isinstance(method, methods.ChannelCloseOk):
            raise malformed(f"a {method.name} that nothing asked for")

    def end(self, error: BrokerRefused) -> None:
        """End the channel with `error`: its calls raise it, and the listener is told."""
        if not self.is_open:
            return
        self.is_open = False
        self.error = error
        pending, self._pending = self._pending, deque()
        for _, answer in pending:
            answer.fail(error)
        self._listener.ended(error)


def _read_number(data: bytes, at: int) -> int:
    """Read eight bytes, most significant first."""
    number = 0
    for place in range(at, at + 8):
        number = number << 8 | data[place]
    return number


def _scanned_headers(property_list: bytes) -> bool:
    """Return whether `property_list` has headers. Raises BrokerRefused if it is not valid."""
    try:
        _scan.scan(property_list, 0, len(property_list))
    except AmqpError as error:
        raise malformed(str(error)) from None
    return _scan.headers_at > 0
