"""Fuzz targets of client input: tables, properties, methods, frames, commands, and AMQP 1.0 messages."""

from collections.abc import Callable
from contextlib import suppress

from tests.fuzz.broker import frame

from warren.errors import AmqpError, CommandInvalid, FrameError
from warren.limits import FRAME_OVERHEAD, FRAME_SIZE_HANDSHAKE
from warren.wire import methods
from warren.wire.amqp1 import data_head
from warren.wire.frames import FrameReader
from warren.wire.properties import BasicProperties, PropertyScan
from warren.wire.streams import commands
from warren.wire.streams.codes import MalformedFrame, OffsetType
from warren.wire.streams.commands import decode as decode_command
from warren.wire.streams.conversion import MessageConverter, write_head
from warren.wire.streams.fields import Offset, Version
from warren.wire.streams.publish import Publication, SubEntryBatch, decode_publish, encode_publish
from warren.wire.table import Timestamp, UInt32, check_table, decode_table, encode_table

SAMPLES = [
    {},
    {"x-message-ttl": 60_000, "x-dead-letter-exchange": "dead", "x-single-active-consumer": True},
    {"a": [None, 1.5, b"\xff", [True, {"b": Timestamp(1), "c": UInt32(2)}]], "": "é"},
]


def check_tables(data: bytes) -> None:
    """Checking and decoding agree; decoded values survive encoding and decoding exactly."""
    try:
        check_table(data, 0, len(data))
    except FrameError as refusal:
        expect_refusal(lambda: decode_table(data, 0, len(data)), refusal)
        return
    raw = encode_table(decode_table(data, 0, len(data)))
    assert encode_table(decode_table(raw, 4, len(raw))) == raw


def check_properties(data: bytes) -> None:
    """Scanning and decoding agree; decoded values survive encoding and decoding exactly."""
    try:
        PropertyScan().scan(data, 12, len(data))
    except FrameError as refusal:
        expect_refusal(lambda: BasicProperties.decode(data), refusal)
        return
    raw = BasicProperties.decode(data).encode(0)
    assert BasicProperties.decode(raw).encode(0) == raw


def check_methods(data: bytes) -> None:
    """The input is a method or refused; a decoded method survives encoding and decoding exactly."""
    try:
        raw = methods.decode_method(data).encode()
    except (FrameError, CommandInvalid):
        return
    assert methods.decode_method(raw).encode() == raw


def check_frames(data: bytes) -> None:
    """Frames do not depend on how the input is cut; the first byte selects the size of the pieces."""
    if not data:
        return
    step, raw = data[0] % 32 + 1, data[1:]
    pieces = [raw[at : at + step] for at in range(0, len(raw), step)]
    assert read_frames(pieces) == read_frames([raw])


def check_stream_frames(data: bytes) -> None:
    """A decoded command is encoded as it was, and a publish is preserved."""
    for frame_of in (check_stream_command, check_stream_publish):
        with suppress(MalformedFrame):
            frame_of(data)


def check_stream_command(data: bytes) -> None:
    command, correlation = decode_command(data)
    again = command.encode(correlation)[4:]
    assert decode_command(again) == (command, correlation)


def check_stream_publish(data: bytes) -> None:
    for _, entry in decode_publish(data).entries:
        messages = entry.messages() if isinstance(entry, SubEntryBatch) and entry.is_readable else []
        for message in [entry] if isinstance(entry, bytes) else messages:
            check_amqp_1(message)


def check_amqp_1(data: bytes) -> None:
    """An AMQP 1.0 message is decoded into sections, or is a body; encoded again, it is unchanged."""
    raw = put_together(data)
    assert put_together(raw) == raw


def put_together(data: bytes) -> bytes:
    head, begin, end, is_data = MessageConverter().split(data)
    body = data[begin:end]
    properties = BasicProperties.decode_list(head.property_list)
    raw = write_head(properties, head.exchange, head.routing_key, is_kept=True)
    return raw + (data_head(len(body)) if is_data else b"") + body


def read_frames(pieces: list[bytes]) -> list[object]:
    """The frames in `pieces`, and the refusal that ends them: trailing zeros complete any frame, but end
    none.
    """
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
    """`call` must be refused with the same text."""
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


def stream_seeds() -> list[bytes]:
    entries: list[tuple[int, bytes | SubEntryBatch]] = [
        (1, amqp_1_seeds()[0]),
        (2, SubEntryBatch(0, 1, 5, b"\0\0\0\1x")),
    ]
    asked = [
        commands.PeerProperties({"product": "x"}),
        commands.Subscribe(1, "s", Offset(OffsetType.OFFSET, 5), 10, {"name": "n"}),
        commands.Metadata(("a", "b")),
        commands.ExchangeCommandVersions((Version(1, 1, 1),)),
    ]
    return [each.encode(1)[4:] for each in asked] + [encode_publish(Publication(1, entries))]


def amqp_1_seeds() -> list[bytes]:
    properties = BasicProperties(headers=SAMPLES[1], message_id="1", type="t", priority=4, timestamp=3)
    return [data_head(3) + b"abc", write_head(properties, "e", "k", is_kept=False) + data_head(3) + b"abc"]
