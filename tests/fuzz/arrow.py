"""Fuzz targets of rows: staged uploads in Arrow's format, and messages encoded as columns, in C and in
Python.
"""

import asyncio
from contextlib import suppress

import pyarrow as pa

from warren.arrow.shapes import IS_COMPILED, TYPES, columns_of, from_properties
from warren.errors import FrameError
from warren.staging.ipc_messages import IpcMessageKind, IpcStreamRefused, read_ipc_messages
from warren.staging.row_decoder import RowDecoder, RowRefused
from warren.wire.properties import BasicProperties
from warren.wire.table import Timestamp, UInt64, encode_table

NAMES = tuple(TYPES)
LOOP = asyncio.new_event_loop()
_SHAPE_SIZE_MIN = 3
_LIST_SIZE_MAX = 1024
_IS_TABLE = 0x80
HEADERS = {
    "x-death": [{"count": 3, "reason": "expired"}],
    "retries": 2,
    "t": True,
    "void": None,
    "b": b"\xff",
}


def check_shapes(data: bytes) -> None:
    """Columns made by the C module equal those made in Python, each column alone and all together."""
    shapes = _shapes(data)
    if not shapes:
        return
    wanted = [name for place, name in enumerate(NAMES) if data[place % len(data)] & 1] or list(NAMES)
    try:
        found = columns_of(shapes, wanted)
    except FrameError:
        _expect_frame_error(shapes)
        return
    for column in found.values():
        column.validate(full=True)
    with suppress(FrameError):
        # The C module does not decode headers that were not selected.
        expected = from_properties(shapes, wanted)
        assert found.keys() == expected.keys(), f"{sorted(found)} is not {sorted(expected)}"
        for name, column in found.items():
            assert column.equals(expected[name]), f"{name}: {column} is not {expected[name]}"
    if IS_COMPILED:
        # A truncated address is refused as well.
        with suppress(FrameError):
            columns_of([(data[:40], property_list) for _, property_list in shapes], NAMES)


def _shapes(data: bytes) -> list[tuple[bytes, bytes]]:
    """Shapes one after the other: kind and key size, the routing key, the size of the rest as u16, and the
    rest.

    The rest is a property list, or the entries of a table of headers, whose size is then correct.
    """
    shapes = []
    while len(data) > _SHAPE_SIZE_MIN:
        head, key_size = data[0], data[0] % 16
        key, data = data[1 : 1 + key_size], data[1 + key_size :]
        size = int.from_bytes(data[:2], "big") % _LIST_SIZE_MAX
        listed, data = data[2 : 2 + size], data[2 + size :]
        if head & _IS_TABLE:
            listed = b"\x20\0" + len(listed).to_bytes(4, "big") + listed
        shapes.append((b"\x02e\xc3" + bytes([len(key)]) + key, listed))
    return shapes


def _expect_frame_error(shapes: list[tuple[bytes, bytes]]) -> None:
    """Input that the C module refuses must be refused by the Python code."""
    try:
        from_properties(shapes, NAMES)
    except FrameError:
        return
    raise AssertionError("refused by C, and not by Python")


def shape_seeds() -> list[bytes]:
    """Property lists of all kinds, alone and together."""
    every = BasicProperties(
        content_type="text/plain", headers=HEADERS, delivery_mode=2, priority=4, correlation_id="1",
        reply_to="r", expiration="60000", message_id="é", timestamp=3, type="t", user_id="guest", app_id="a",
        cluster_id="c",
    )  # fmt: skip
    kinds = [BasicProperties(), BasicProperties(headers={"a": "b", "n": 1.5}), every]
    lists = [_shape(0, properties.encode_list()) for properties in kinds]
    tables = [{"s": "é\n", "u": UInt64(5), "t": False}, {"a" * 9: None, "x": [1], "T": Timestamp(3)}, HEADERS]
    entries = [_shape(_IS_TABLE, encode_table(table)[4:]) for table in tables]
    return [*lists, *entries, b"".join(lists), b"".join(entries), b"".join(entries[:2]) * 3]


def _shape(head: int, listed: bytes) -> bytes:
    return bytes([head + 3]) + b"a.b" + len(listed).to_bytes(2, "big") + listed


def check_staged(data: bytes) -> None:
    """An upload is refused, or its rows are messages that can be read, within the bounds."""
    with suppress(IpcStreamRefused, RowRefused):
        LOOP.run_until_complete(_stage(data))


async def _stage(data: bytes) -> None:
    at = 0

    async def read(size: int) -> bytes:
        nonlocal at
        piece = data[at : at + min(size, 512)]
        at += len(piece)
        return piece

    rows = RowDecoder(pa, "events", "guest", may_impersonate=False)
    async for frame in read_ipc_messages(read):
        if frame.kind is IpcMessageKind.SCHEMA:
            rows.begin(frame.data)
        elif frame.kind is IpcMessageKind.RECORDS:
            for found in rows.take(frame.data):
                if isinstance(found, list):
                    for message in found:
                        assert message.exchange == "events"
                        message.properties().encode(len(message.body))


def staged_seeds() -> list[bytes]:
    """Streams of few rows, with each column, of one shape and of several, compressed and not."""
    columns = {
        "body": pa.array([b"1", b"22", b""], pa.binary()),
        "routing_key": ["a", "b", None],
        "message_id": ["1", None, "é"],
        "priority": pa.array([1, None, 255], pa.int16()),
        "delivery_mode": pa.array([1, 2, None], pa.int8()),
        "timestamp": pa.array([0, 1_000_000, None], pa.timestamp("us")),
        "headers": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
        "headers_json": ['{"a":{"$I":5}}', None, '{"b":[1,"x"]}'],
        "expiration": ["60000", None, None],
        "queue": ["passed over"] * 3,
    }
    alike = {"body": pa.array([b"1", b"2", b"3"], pa.binary()), "routing_key": ["k"] * 3}
    return [
        _stream(columns), _stream(alike), _stream(alike, "zstd"), _stream(alike, "lz4"),
        _stream({"body": ["text", None]}), _stream({"body": pa.array([b"x"], pa.large_binary())}),
    ]  # fmt: skip


def _stream(columns: dict[str, object], compression: str | None = None) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded
