"""What is fuzzed: for each target, what must hold for any octets, and octets to begin with.

A target returns quietly for whatever is fine, our own refusals included; any other exception is a finding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.fuzz.broker import frame
from tests.fuzz.sessions import check_session, session_seeds

from warren.errors import AmqpError, CommandInvalid, FrameError
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE
from warren.wire import methods
from warren.wire.frames import FrameReader
from warren.wire.properties import BasicProperties, PropertyScan
from warren.wire.table import Timestamp, UInt32, check_table, decode_table, encode_table

SAMPLES = [
    {},
    {"x-message-ttl": 60_000, "x-dead-letter-exchange": "dead", "x-single-active-consumer": True},
    {"a": [None, 1.5, b"\xff", [True, {"b": Timestamp(1), "c": UInt32(2)}]], "": "é"},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing to throw octets at."""

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def check_tables(data: bytes) -> None:
    """Checking and decoding agree; what was decoded survives another round, to the octet."""
    try:
        check_table(data, 0, len(data))
    except FrameError as refusal:
        expect_refusal(lambda: decode_table(data, 0, len(data)), refusal)
        return
    octets = encode_table(decode_table(data, 0, len(data)))
    assert encode_table(decode_table(octets, 4, len(octets))) == octets


def check_properties(data: bytes) -> None:
    """Scanning and decoding agree; what was decoded survives another round, to the octet."""
    try:
        PropertyScan().scan(data, 12, len(data))
    except FrameError as refusal:
        expect_refusal(lambda: BasicProperties.decode(data), refusal)
        return
    octets = BasicProperties.decode(data).encode(0)
    assert BasicProperties.decode(octets).encode(0) == octets


def check_methods(data: bytes) -> None:
    """A method or a refusal; what was decoded survives another round, to the octet."""
    try:
        octets = methods.decode_method(data).encode()
    except (FrameError, CommandInvalid):
        return
    assert methods.decode_method(octets).encode() == octets


def check_frames(data: bytes) -> None:
    """Frames are the same however the octets arrive; the first octet says in how large pieces."""
    if not data:
        return
    step, octets = data[0] % 32 + 1, data[1:]
    pieces = [octets[at : at + step] for at in range(0, len(octets), step)]
    assert read_frames(pieces) == read_frames([octets])


def read_frames(pieces: list[bytes]) -> list[object]:
    """The frames in `pieces`, and the refusal that ends them: zeros, which complete any frame, end none."""
    reader = FrameReader()
    found: list[object] = []
    try:
        for piece in [*pieces, bytes(FRAME_SIZE_HANDSHAKE + FRAME_OVERHEAD)]:
            reader.feed(piece)
            while reader.advance():
                found.append((reader.kind, reader.channel, reader.payload()))
    except FrameError as refusal:
        return [*found, refusal.message]
    return found


def expect_refusal(call: Callable[[], object], refusal: AmqpError) -> None:
    """`call` must refuse in the same words."""
    words = "nothing"
    try:
        call()
    except FrameError as again:
        words = again.message
    assert words == refusal.message, f"refused first for {refusal.message!r}, then for {words!r}"


def table_seeds() -> list[bytes]:
    return [encode_table(sample)[4:] for sample in SAMPLES]


def property_seeds() -> list[bytes]:
    every = BasicProperties(
        content_type="text/plain", content_encoding="gzip", headers=SAMPLES[1], delivery_mode=2, priority=4,
        correlation_id="1", reply_to="amq.rabbitmq.reply-to", expiration="60000", message_id="2", timestamp=3,
        type="t", user_id="guest", app_id="a", cluster_id="c",
    )  # fmt: skip
    return [each.encode(5) for each in (BasicProperties(), BasicProperties(delivery_mode=2), every)]


def method_seeds() -> list[bytes]:
    return [method().encode() for method in methods.METHODS.values()] + [
        methods.QueueDeclare(queue="jobs", arguments=SAMPLES[1]).encode(),
        methods.BasicPublish(exchange="events", routing_key="a.b.c", mandatory=True).encode(),
    ]


def frame_seeds() -> list[bytes]:
    publish = [
        frame(1, 1, methods.BasicPublish(routing_key="jobs").encode()),
        frame(2, 1, BasicProperties(delivery_mode=2).encode(3)),
        frame(3, 1, b"abc"),
        frame(8, 0, b""),
    ]
    return [bytes((step,)) + b"".join(publish) for step in (0, 6, 31)]


def targets() -> Iterator[tuple[str, Target]]:
    """Every target there is, by name."""
    yield "table", Target(check=check_tables, seeds=table_seeds)
    yield "properties", Target(check=check_properties, seeds=property_seeds)
    yield "methods", Target(check=check_methods, seeds=method_seeds)
    yield "frames", Target(check=check_frames, seeds=frame_seeds)
    yield "sessions", Target(check=check_session, seeds=session_seeds)
