"""The publishing side of a channel: assembles method, header and body frames into messages, and routes them.

Address and properties are compared with those of the last message; if they are equal its objects are
reused, so that only changes are copied and parsed. A body in one frame is one slice of the read buffer.
"""

from collections.abc import Callable
from io import BytesIO

from warren.errors import AmqpNotImplemented, FrameError, NotFound, PreconditionFailed, UnexpectedFrame
from warren.flow.credit import PublishCredit
from warren.framing.outbox import Outbox
from warren.limits import PUBLISHER_ADDRESSES_MAX
from warren.model.counters import Counters
from warren.model.message import (
    BODY_END,
    HAS_EXPIRATION,
    HAS_HEADERS,
    NO_PROPERTIES,
    PERSISTENT,
    Message,
    new_message,
    new_stored_message,
)
from warren.queues.queue import BEHIND, REFUSED, UNAVAILABLE
from warren.queues.reply import REPLY_ADDRESS_PREFIX
from warren.routing.copies import addresses_of, has_copies
from warren.routing.exchange import BY_CHANCE, BY_KEY
from warren.routing.router import Route, decode_name
from warren.session.channel_origin import ChannelOrigin
from warren.session.confirms import Confirms
from warren.session.pending_confirms import PendingConfirms
from warren.session.positioned_publisher import PositionedPublisher
from warren.session.transaction import Transaction
from warren.vhost.vhost import UNROUTED, VirtualHost
from warren.wire.erlang import bytes_written, frame_bytes
from warren.wire.frames import HEADER, FrameReader
from warren.wire.methods import BasicPublish
from warren.wire.properties import PropertyScan

# The expected frame.
_METHOD = 0
_HEADER = 1
_BODY = 2

_REFUSED = REFUSED
_BEHIND = BEHIND
_UNAVAILABLE = UNAVAILABLE
_UNROUTED = UNROUTED
_PERSISTENT = PERSISTENT
_HAS_HEADERS = HAS_HEADERS
_BY_KEY = BY_KEY
_BY_CHANCE = BY_CHANCE
_HAS_EXPIRATION = HAS_EXPIRATION
_BODY_END = BODY_END
_PUBLISH_INDEX = BasicPublish.index

# basic.publish: ids, reserved-1, then exchange and routing key, then one byte of bits.
_ADDRESS_AT = 6
_MANDATORY = 1
_IMMEDIATE = 2
# Content header: class, weight, body size; then the property list, with at least two bytes of flags.
_LIST_AT = 12
_HEADER_SIZE_MIN = 14
_FLAGS_SIZE = 2

# basic.return's arguments up to the exchange: 312, NO_ROUTE (0-9-1 §1.8.3.9).
_RETURN_HEAD = b"\x00\x3c\x00\x32" + (312).to_bytes(2, "big") + b"\x08NO_ROUTE"


class ChannelPublisher(Counters):
    """Assembles the messages of one channel, and passes them to the virtual host."""

    __slots__ = (
        "_address", "_admit", "_admitted_generation", "_assembled", "_body_size", "_channel_number", "_due",
        "_is_admitted", "_is_mandatory", "_is_special", "_known", "_open_exchange", "_open_exchanges",
        "_outbox", "_property_list", "_received", "_route", "_scan", "_vhost", "behind", "check_properties",
        "confirms", "has_persistent", "origin", "positioned", "size_max", "transaction", "unadmitted",
        "unrouted",
    )  # fmt: skip

    def __init__(
        self, vhost: VirtualHost, outbox: Outbox, channel_number: int, admit: Callable[[bytes], bool]
    ) -> None:
        super().__init__()
        self._vhost = vhost
        self._outbox = outbox
        self._channel_number = channel_number
        # True once a persistent message was published.
        self.has_persistent = False
        # Raises AmqpError unless the user may publish to the address; True if any routing key is permitted.
        # Called again when permissions or the topology have changed.
        self._admit = admit
        self._admitted_generation = 0
        # The exchanges (short strings) to which the user may publish with any key; and the last one used.
        self._open_exchanges: set[bytes] = set()
        self._open_exchange: bytes | None = None
        # The permitted addresses of other exchanges.
        self._known: set[bytes] = set()
        self._is_admitted = False
        # Checks, and may replace, messages with the rare properties user-id, reply-to and expiration.
        self.check_properties: Callable[[Message], Message] = _keep
        self.confirms: Confirms | None = None
        self.transaction: Transaction | None = None
        # The origin that traces name.
        self.origin: ChannelOrigin | None = None
        # Publishes with positions, each once; None unless the channel has announced them.
        self.positioned: PositionedPublisher | None = None
        self.size_max = 0
        # The content of a message whose address was not admitted, for `publish_again`.
        self.unadmitted: bytes | None = None
        # A message of which it is not certain that no queue is there for it, for `route_again`.
        self.unrouted: Message | None = None
        # The credit of a queue on another node to which it has published too much; None usually.
        self.behind: PublishCredit | None = None
        self._due = _METHOD
        # The default exchange and an empty key, to which publishing is not permitted yet.
        self._address = b"\0\0"
        # The route of the address with the last properties, valid for one generation.
        self._route: Route | None = None
        self._is_mandatory = False
        # The properties of the last message, and the result of scanning them.
        self._property_list = NO_PROPERTIES
        # True if the headers have CC or BCC, the virtual host is traced, or messages have positions.
        self._is_special = False
        self._scan = PropertyScan()
        self._body_size = 0
        self._received = 0
        # The content received so far, if the body is in several frames.
        self._assembled: BytesIO | None = None

    def is_idle(self) -> bool:
        """True between messages."""
        return self._due == _METHOD

    def method(self, reader: FrameReader) -> None:
        """Process basic.publish."""
        if self._due != _METHOD:
            self.refuse_method()
        data = reader.data
        raw = data
        start = reader.start + _ADDRESS_AT
        bits_at = reader.start + reader.size - 1
        address = self._address
        if not (bits_at - start == len(address) and data.startswith(address, start)):
            self._take_address(reader, start, bits_at)
        bits = raw[bits_at]
        if bits & _IMMEDIATE:
            raise AmqpNotImplemented("immediate=true")
        self._is_mandatory = bits & _MANDATORY != 0
        self._due = _HEADER

    def header(self, reader: FrameReader) -> None:
        """Process a content header frame."""
        if self._due != _HEADER:
            self._refuse_header()
        data = reader.data
        raw = data
        at = reader.start
        size = reader.size
        if (
            size < _HEADER_SIZE_MIN
            or raw[at] != 0
            or raw[at + 1] != 60
            or raw[at + 2] != 0
            or raw[at + 3] != 0
        ):
            self._refuse_header_of(reader)
        # The size is a u64, and no message may need the upper half of it.
        body_size = (raw[at + 8] << 24) | (raw[at + 9] << 16) | (raw[at + 10] << 8) | raw[at + 11]
        if body_size > self.size_max or raw[at + 4] | raw[at + 5] | raw[at + 6] | raw[at + 7]:
            self._refuse_size(int.from_bytes(raw[at + 4 : at + 12], "big"))
        known = self._property_list
        if not (size - _LIST_AT == len(known) and data.startswith(known, at + _LIST_AT)):
            self._take_properties(data, at + _LIST_AT, at + size)
        if body_size:
            self._body_size = body_size
            self._received = 0
            self._due = _BODY
        else:
            self._publish(_BODY_END)

    def body(self, reader: FrameReader) -> None:
        """Process a content body frame, which usually is the whole body."""
        if self._due != _BODY:
            self._refuse_body()
        data = reader.data
        if reader.size == self._body_size and not self._received:
            self._publish(data[reader.start : reader.start + reader.size + 1])
        else:
            self._assemble(reader)

    def _assemble(self, reader: FrameReader) -> None:
        """Append one of several body frames."""
        data = reader.data
        size = reader.size
        if self._received + size > self._body_size:
            raise FrameError("content body frame exceeds remaining content size", method_index=_PUBLISH_INDEX)
        assembled = self._assembled
        if assembled is None:
            assembled = self._assembled = BytesIO()
        assembled.write(data[reader.start : reader.start + size])
        self._received += size
        if self._received == self._body_size:
            assembled.write(_BODY_END)
            # getvalue() makes no copy while it has the only reference to the buffer.
            self._publish(assembled.getvalue())

    def refuse_method(self) -> None:
        """Raise UnexpectedFrame for a method frame where content is expected."""
        if self._due == _HEADER:
            self._refuse_header_frame()
        raise UnexpectedFrame(
            "expected content body, got non content body frame instead", method_index=_PUBLISH_INDEX
        )

    def take_positions(self) -> None:
        """Publish each message once from here on, by the position that it must have (access.request).

        PreconditionFailed unless the channel is in confirm mode.
        """
        if self.confirms is None or self.origin is None:
            raise PreconditionFailed("publishes with positions need confirm mode")
        if self.positioned is None:
            self.positioned = PositionedPublisher(self._vhost, self._outbox, self.confirms, self.origin.user)
            self._look_at_properties()

    def publish_again(self) -> None:
        """Publish the message whose address was not admitted, as permissions and exchanges are now."""
        content = self.unadmitted
        assert content is not None
        self.unadmitted = None
        self._publish(content)

    def may_lack_queue(self, message: Message, is_mandatory: bool) -> bool:
        """True if `message`, which is not published yet, has no queue here, and that has to be certain."""
        router, address = self._vhost.router, message.address
        if not self._needs_queue(message, is_mandatory) or decode_name(address, 0) not in router.exchanges:
            return False
        return not router.rehearse(address, message)

    def route_again(self, *, is_certain: bool) -> None:
        """Publish the message that had no queue to those that it has now.

        If there is still none, it is returned or dropped, and refused unless that `is_certain`.
        """
        message = self.unrouted
        assert message is not None
        self.unrouted = None
        vhost, confirms = self._vhost, self.confirms
        sequence = 0 if confirms is None else confirms.last
        outcome = _UNROUTED if is_certain else _UNROUTED | _REFUSED
        destinations = vhost.router.route(message.address, message)
        if destinations:
            outcome = vhost.publish_found(destinations, message, confirms, sequence)
        self._take_outcome(message, outcome)
        if confirms is not None:
            confirms.done(sequence, sequence)

    def publish_committed(
        self, message: Message, is_mandatory: bool, confirms: PendingConfirms, sequence: int
    ) -> None:
        """Publish a message at commit, as number `sequence` of `confirms`; its time to live begins now."""
        message.published_at = self._vhost.turn.now()
        self.published += 1
        outcome = self._vhost.publish(message, confirms, sequence)
        if outcome & _REFUSED:
            confirms.is_refused = True
        if outcome & _UNROUTED or (outcome & _UNAVAILABLE and is_mandatory):
            self._count_unrouted(is_mandatory)
            if is_mandatory:
                self._return(message)

    def _publish(self, content: bytes) -> None:
        """Publish the complete message with `content`."""
        self._due = _METHOD
        self._assembled = None
        vhost = self._vhost
        if not self._is_admitted or vhost.generation() != self._admitted_generation:
            self.unadmitted = content
            self._admit_address()
            self.unadmitted = None
        message: Message
        if self._scan.delivery_mode == 2 and vhost.has_store:
            message = new_stored_message(self._address, self._property_list, content, vhost.turn.now())
        else:
            message = new_message(self._address, self._property_list, content, vhost.turn.now())
        if self._scan.flags:
            message = self._describe(message)
        if self._is_special:
            self.unadmitted = content
            self._admit_copies(message)
            self.unadmitted = None
        if self.transaction is not None:
            if vhost.is_traced:
                self._trace(message, vhost.router.rehearse(message.address, message))
            self.transaction.publish(message, self._is_mandatory)
            return
        confirms = self.confirms
        if confirms is None:
            outcome = self._send(message, None, 0)
        else:
            outcome = self._send(message, confirms, confirms.next())
        if outcome:
            if outcome & _UNROUTED and self._needs_queue(message, self._is_mandatory):
                self._refuse_unrouted(message)
            self._take_outcome(message, outcome)

    def _needs_queue(self, message: Message, is_mandatory: bool) -> bool:
        """True if it has to be certain that no queue is there for `message`.

        It is mandatory, or its routing key is the name of a queue. Most others that have no queue are events
        that nobody wants, and there may be many of them. Direct replies are for channels.
        """
        address = message.address
        if self.positioned is not None or address.startswith(REPLY_ADDRESS_PREFIX):
            return False
        return is_mandatory or address[0] == 0

    def _refuse_unrouted(self, message: Message) -> None:
        """Keep `message`, for which no queue is known here, and raise NotFound; `route_again` follows."""
        if self.confirms is not None:
            self.confirms.expect(self.confirms.last)
        self.unrouted = message
        raise NotFound(f"no queue for a message of vhost '{self._vhost.name}'")

    def _take_outcome(self, message: Message, outcome: int) -> None:
        """Do what follows if not every queue has taken `message`, or one asks to wait: return it, refuse it.

        A message that reaches no queue, because all are on nodes that are away, is returned like one that is
        not routed, but not confirmed.
        """
        if outcome & _BEHIND:
            self.behind = self._vhost.behind
        confirms = self.confirms
        is_mandatory = self._is_mandatory
        # Without confirms it is dropped, and with them its publisher hears of it.
        is_lost = outcome & _UNAVAILABLE != 0 and (is_mandatory or confirms is None)
        if outcome & _UNROUTED or is_lost:
            self._count_unrouted(is_mandatory)
            if is_mandatory:
                if confirms is not None:
                    confirms.flush_before(confirms.last)
                self._return(message)
        if outcome & _REFUSED and confirms is not None:
            confirms.expect(confirms.last)
            confirms.refused(confirms.last)

    def _send(self, message: Message, confirms: Confirms | None, sequence: int) -> int:
        """Publish `message`, along the cached route if it is neither traced nor has copies."""
        vhost = self._vhost
        self.published += 1
        if self._is_special:
            return self._send_specially(message, confirms, sequence)
        route = self._route
        if route is None:
            route = vhost.router.find(self._address, message)
            if route.decides != _BY_CHANCE:
                self._route = route
        return vhost.publish_by_route(route, message, confirms, sequence)

    def _send_specially(self, message: Message, confirms: Confirms | None, sequence: int) -> int:
        """Publish a message that has copies (CC, BCC) or is traced."""
        vhost = self._vhost
        destinations = vhost.router.route(message.address, message)
        if vhost.is_traced:
            self._trace(message, destinations)
        if self.positioned is not None:
            return self.positioned.publish(message, destinations, sequence)
        return vhost.publish_routed(destinations, message, confirms, sequence)

    def _trace(self, message: Message, destinations: tuple[object, ...]) -> None:
        tracer = self._vhost.tracer
        if tracer is not None and self.origin is not None:
            tracer.published(message, destinations, self.origin)

    def _look_at_properties(self) -> None:
        """Determine whether messages with these properties must be routed without the cached route."""
        has = self._scan.headers_at > 0 and has_copies(self._property_list)
        self._is_special = has or self._vhost.is_traced or self.positioned is not None

    def _describe(self, message: Message) -> Message:
        """Set flags and priority of `message` from its properties; return it, or its replacement."""
        scan = self._scan
        flags = 0
        if scan.delivery_mode == 2:
            flags = _PERSISTENT
            self.has_persistent = True
        elif scan.delivery_mode > 2:
            raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{scan.delivery_mode}}}")
        if scan.priority > 0:
            message.priority = scan.priority
        if scan.headers_at:
            flags |= _HAS_HEADERS
        if scan.expiration_at:
            flags |= _HAS_EXPIRATION
        message.flags = flags
        if scan.expiration_at or scan.user_id_at or scan.reply_to_at:
            message = self.check_properties(message)
        return message

    def _count_unrouted(self, is_mandatory: bool) -> None:
        """Count an unroutable message."""
        vhost = self._vhost
        if is_mandatory:
            self.returned += 1
            vhost.returned += 1
        else:
            self.dropped += 1
            vhost.dropped += 1

    def _return(self, message: Message) -> None:
        """Send an unroutable mandatory message back (basic.return)."""
        size = len(_RETURN_HEAD) + len(message.address)
        head = b"\x01" + self._channel_number.to_bytes(2, "big") + size.to_bytes(4, "big")
        self._outbox.content(self._channel_number, head + _RETURN_HEAD, message, b"")

    def _take_address(self, reader: FrameReader, start: int, bits_at: int) -> None:
        """Set an address that differs from that of the last message."""
        data = reader.data
        raw = data
        if bits_at <= start or start + raw[start] + 1 >= bits_at:
            self._refuse_payload(reader)
        key_at = start + raw[start] + 1
        if key_at + raw[key_at] + 1 != bits_at:
            self._refuse_payload(reader)
        address = raw[start:bits_at]
        route = self._vhost.router.known(address)
        self._route = route
        self._address = address if route is None else route.address
        exchange = self._open_exchange
        self._is_admitted = exchange is not None and address.startswith(exchange)

    def _admit_address(self) -> None:
        """Check the permission for the address; positive results are cached for one generation."""
        generation = self._vhost.generation()
        if generation != self._admitted_generation:
            self._known.clear()
            self._open_exchanges.clear()
            self._open_exchange = None
            self._admitted_generation = generation
            self._route = None
            self._look_at_properties()
        address = self._address
        data = address
        exchange = data[: 1 + data[0]]
        if exchange in self._open_exchanges:
            self._open_exchange = exchange
        elif address not in self._known:
            if self._admit(address):
                self._open_exchanges.add(exchange)
                self._open_exchange = exchange
            else:
                if len(self._known) >= PUBLISHER_ADDRESSES_MAX:
                    self._known.clear()
                self._known.add(address)
        self._is_admitted = True

    def _admit_copies(self, message: Message) -> None:
        """Check the permission for the keys in CC and BCC, unless every key is permitted."""
        exchange = self._open_exchange
        if exchange is None or not self._address.startswith(exchange):
            for address in addresses_of(message)[1:]:
                self._admit(address)

    def _take_properties(self, data: bytes, start: int, end: int) -> None:
        """Set properties that differ from those of the last message."""
        if self.positioned is not None:
            data = self.positioned.take_position(data[start:end])
            start = 0
            end = len(data)
        raw = data
        self._scan.scan(data, start, end)
        self._property_list = raw[start:end]
        self._look_at_properties()
        if self._route is not None and self._route.decides != _BY_KEY:
            self._route = None

    def _refuse_payload(self, reader: FrameReader) -> None:
        BasicPublish.decode(reader.payload())
        raise FrameError("cannot decode basic.publish", method_index=_PUBLISH_INDEX)

    def _refuse_header(self) -> None:
        if self._due == _METHOD:
            raise UnexpectedFrame("expected method frame, got non method frame instead", method_index=0)
        raise UnexpectedFrame(
            "expected content body, got non content body frame instead", method_index=_PUBLISH_INDEX
        )

    def _refuse_body(self) -> None:
        if self._due == _METHOD:
            raise UnexpectedFrame("expected method frame, got non method frame instead", method_index=0)
        self._refuse_header_frame()

    def _refuse_header_frame(self) -> None:
        raise UnexpectedFrame(
            "expected content header for class 60, got non content header frame instead",
            method_index=_PUBLISH_INDEX,
        )

    def _refuse_header_of(self, reader: FrameReader) -> None:
        """Raise for a content header that is too short, of another class, or has a weight."""
        payload = reader.payload()
        if len(payload) < _HEADER_SIZE_MIN - _FLAGS_SIZE:
            raise FrameError(f"{frame_bytes(HEADER, payload)}: unknown_frame", method_index=0)
        class_id = int.from_bytes(payload[:2], "big")
        if class_id != 60:
            raise UnexpectedFrame(
                f"expected content header for class 60, got one for class {class_id} instead",
                method_index=_PUBLISH_INDEX,
            )
        if len(payload) < _HEADER_SIZE_MIN:
            raise FrameError(f"cannot decode {bytes_written(payload)}", method_index=_PUBLISH_INDEX)
        self._refuse_header_frame()

    def _refuse_size(self, body_size: int) -> None:
        raise PreconditionFailed(
            f"message size {body_size} is larger than configured max size {self.size_max}",
            method_index=_PUBLISH_INDEX,
        )


def _keep(message: Message) -> Message:
    return message
