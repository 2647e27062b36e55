"""Deliveries become rows wherever the data is cut, and encoded values are decoded unchanged."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_warren.batches import to_batch
from pyspark_warren.deliveries import NO_OFFSET, DeliveryReader, MalformedDelivery
from pyspark_warren.schema import COLUMNS
from warren.wire.methods import BasicCancel, BasicDeliver
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32

FRAME = struct.Struct(">BHI")


def frame(kind: int, payload: bytes) -> bytes:
    return FRAME.pack(kind, 1, len(payload)) + payload + b"\xce"


def delivery(
    tag: int, body: bytes, properties: BasicProperties | None = None, *, piece: int = 100, exchange: str = "x"
) -> bytes:
    method = BasicDeliver(
        consumer_tag="spark", delivery_tag=tag, redelivered=tag % 2 == 0, exchange=exchange, routing_key="ü"
    )
    header = (properties or BasicProperties()).encode(len(body))
    bodies = b"".join(frame(3, body[at : at + piece]) for at in range(0, len(body), piece))
    return frame(1, method.encode()) + frame(2, header) + bodies


def offset(number: int, **headers: object) -> BasicProperties:
    return BasicProperties(headers={"a": 1, "x-stream-offset": number, **headers}, message_id="m")


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 400))
def test_deliveries_become_rows_however_they_are_cut(bodies: list[bytes], piece: int) -> None:
    data = b"".join(delivery(tag, body) for tag, body in enumerate(bodies, 1))
    reader = DeliveryReader(is_stream=False)
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    assert reader.body_bytes == sum(map(len, bodies))
    rows = reader.take()
    assert rows.body == bodies
    assert rows.tag == list(range(1, len(bodies) + 1))
    assert rows.redelivered == [tag % 2 == 0 for tag in rows.tag]
    assert rows.offset == [NO_OFFSET] * len(bodies)
    assert (reader.last_tag(), len(reader)) == (len(bodies), 0)


def test_other_frames_are_returned_separately() -> None:
    cancel = BasicCancel(consumer_tag="spark").encode()
    reader = DeliveryReader(is_stream=False)
    reader.feed(delivery(1, b"a") + frame(8, b"") + frame(1, cancel) + delivery(2, b"b"))
    assert reader.take().body == [b"a", b"b"]
    assert reader.methods == [cancel]


def test_a_frame_without_its_end_marker_is_an_error() -> None:
    with pytest.raises(MalformedDelivery):
        DeliveryReader(is_stream=False).feed(frame(1, b"\0\x3c\0\x3c")[:-1] + b"\0" * 20)


def test_different_stream_offsets_leave_equal_properties_shared() -> None:
    reader = DeliveryReader(is_stream=True)
    reader.feed(b"".join(delivery(number, b"b", offset(number)) for number in range(5)))
    assert reader.last_offset() == 4
    rows = reader.take()
    assert rows.offset == [0, 1, 2, 3, 4]
    assert len(rows.property_lists) == 1
    batch = to_batch(rows, "q", tuple(COLUMNS)).to_pylist()
    assert [row["headers"] for row in batch] == [[("a", "1")]] * 5
    assert {row["headers_json"] for row in batch} == {'{"a":1}'}
    assert {(row["message_id"], row["exchange"], row["routing_key"]) for row in batch} == {("m", "x", "ü")}


def test_each_different_message_keeps_its_properties() -> None:
    reader = DeliveryReader(is_stream=False)
    first = BasicProperties(
        content_type="t", content_encoding="e", headers={"n": Int32(5)}, delivery_mode=2, priority=3,
        correlation_id="c", reply_to="r", expiration="60", message_id="m", timestamp=7, type="k", user_id="u",
        app_id="p",
    )  # fmt: skip
    reader.feed(delivery(1, b"1", first) + delivery(2, b"2", exchange="") + delivery(3, b"3", first))
    rows = to_batch(reader.take(), "q", tuple(COLUMNS))
    assert rows.column("exchange").to_pylist() == ["x", "", "x"]
    assert rows.column("headers_json").to_pylist() == ['{"n":{"$I":5}}', None, '{"n":{"$I":5}}']
    assert rows.column("priority").to_pylist() == [3, None, 3]
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [7_000_000, None, 7_000_000]
    for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "type"):
        assert rows.column(name).null_count == 1, name
    assert rows.column("queue").to_pylist() == ["q"] * 3


def test_a_time_out_of_range_is_null() -> None:
    reader = DeliveryReader(is_stream=False)
    last = 2**63 // 1_000_000
    for tag, time in enumerate((7, last, last + 1, 2**64 - 1), 1):
        headers = {"timestamp_in_ms": min(time * 1_000, 2**63 - 1)}
        reader.feed(delivery(tag, b"", BasicProperties(timestamp=time, headers=headers)))
    rows = to_batch(reader.take(), "q", tuple(COLUMNS))
    for column in ("timestamp", "broker_timestamp"):
        seconds = [
            None if one is None else one // 1_000_000 for one in rows[column].cast("int64").to_pylist()
        ]
        assert seconds == [7, last, None, None]


def fed(data: bytes, piece: int) -> DeliveryReader:
    reader = DeliveryReader(is_stream=False)
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    return reader


HEAD = frame(1, BasicDeliver(consumer_tag="spark", delivery_tag=1, exchange="x", routing_key="k").encode())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (FRAME.pack(1, 1, 2**32 - 1) + b"\0", "a frame of 4294967295 bytes, more than the agreed 131072"),
        (HEAD + frame(3, b"body" + bytes(20)), "followed by a frame of type 3, 24 bytes"),
        (HEAD + FRAME.pack(2, 1, 2**32 - 1) + bytes(20), "followed by a frame of type 2, 4294967295 bytes"),
        (HEAD + frame(2, BasicProperties().encode(2**40)), "a header of 1099511627776 bytes"),
        (
            HEAD + frame(2, BasicProperties().encode(4)) + frame(1, b"abcd"),
            "4 bytes of a body are followed by",
        ),
        (
            HEAD + frame(2, BasicProperties().encode(4)) + frame(3, b"ab") + frame(3, b"cde") + bytes(9),
            "2 bytes of a body",
        ),
        (HEAD + frame(2, BasicProperties().encode(4)) + frame(3, b"") + bytes(5), "4 bytes of a body"),
        (HEAD + frame(2, BasicProperties().encode(1)) + frame(3, b"a")[:-1] + b"\0", "a body without an end"),
        (
            frame(1, b"\0\x3c\0\x3c\xff") + frame(2, BasicProperties().encode(0)) + bytes(9),
            "longer than its frames",
        ),
        (HEAD[:-2] + b"kk\xce" + frame(2, BasicProperties().encode(0)), "instead of 0xce"),
    ],
)
@pytest.mark.parametrize("piece", [7, 1000])
def test_a_delivery_that_is_not_one_is_refused_and_not_waited_for(data: bytes, text: str, piece: int) -> None:
    with pytest.raises(MalformedDelivery, match=text):
        fed(data, piece)


def test_an_address_longer_than_its_frame_is_refused() -> None:
    method = b"\0\x3c\0\x3c\x05spark" + bytes(8) + b"\0" + b"\x01x\x09k"
    reader = DeliveryReader(is_stream=False)
    reader.feed(frame(1, method) + frame(2, BasicProperties().encode(0)))
    with pytest.raises(MalformedDelivery, match="does not end behind its routing key"):
        to_batch(reader.take(), "q", ("exchange",))


def test_properties_that_cannot_be_decoded_are_refused_when_the_rows_are_taken() -> None:
    header = BasicProperties().encode(0)[:-2] + b"\x80\0\xff"
    reader = DeliveryReader(is_stream=False)
    reader.feed(HEAD + frame(2, header))
    with pytest.raises(MalformedDelivery, match="the properties of a message cannot be decoded"):
        to_batch(reader.take(), "q", tuple(COLUMNS))
