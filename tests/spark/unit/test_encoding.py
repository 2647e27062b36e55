"""Rows become frames with the values of their columns."""

import re
from typing import Any

import pyarrow as pa
import pytest

from pyspark_warren.encoding import PublishEncoder
from warren.wire.frames import FrameReader
from warren.wire.methods import BasicPublish, decode_method
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32

FRAME_SIZE = 64


def decoded(data: bytes) -> tuple[BasicPublish, BasicProperties, bytes]:
    reader = FrameReader()
    reader.frame_size_max = 4096
    reader.feed(data)
    payloads = {1: b"", 2: b"", 3: b""}
    while reader.advance():
        assert reader.kind != 3 or reader.size <= FRAME_SIZE - 8
        payloads[reader.kind] += reader.payload()
    method = decode_method(payloads[1])
    assert isinstance(method, BasicPublish)
    assert int.from_bytes(payloads[2][4:12], "big") == len(payloads[3])
    return method, BasicProperties.decode(payloads[2]), payloads[3]


def encoder(**changed: bool) -> PublishEncoder:
    settings = {"is_mandatory": True, "is_persistent": True} | changed
    return PublishEncoder(channel=1, frame_size_max=FRAME_SIZE, **settings)  # type: ignore[arg-type]


def test_columns_become_properties_and_headers() -> None:
    batch = pa.record_batch(
        {
            "body": [b"x" * 200, None],
            "content_type": ["t", None],
            "content_encoding": ["e", None],
            "priority": pa.array([3, None], pa.int64()),
            "timestamp": pa.array([7_999_999, None], pa.timestamp("us", "UTC")),
            "headers": pa.array([[("a", "plain"), ("b", "2")], None], pa.map_(pa.string(), pa.string())),
            "headers_json": ['{"a":{"$I":1}}', None],
            "exchange": ["e1", None],
            "offset": [1, 2],
        }
    )
    first, second = map(decoded, encoder().encode(batch, (None, "key"), [b"q:1", b"q:2"]))
    assert first[0] == BasicPublish(exchange="e1", routing_key="key", mandatory=True)
    assert first[1] == BasicProperties(
        content_type="t", content_encoding="e", priority=3, timestamp=7, delivery_mode=2,
        headers={"a": 1, "b": "2", "x-spark-txn": "q:1"},
    )  # fmt: skip
    assert isinstance(first[1].headers["a"], Int32)  # type: ignore[index]
    assert first[2] == b"x" * 200
    assert second[1] == BasicProperties(delivery_mode=2, headers={"x-spark-txn": "q:2"})
    assert (second[0].exchange, second[2]) == ("", b"")


def test_without_header_names_only_the_given_headers_are_sent() -> None:
    batch = pa.record_batch({"body": ["text"], "routing_key": ["k"], "delivery_mode": [2]})
    (message,) = encoder(is_mandatory=False, is_persistent=False).encode(batch, ("", None), None)
    method, properties, body = decoded(message)
    assert (method.mandatory, method.routing_key, body) == (False, "k", b"text")
    assert properties == BasicProperties(delivery_mode=2)


def test_an_address_is_required() -> None:
    batch = pa.record_batch({"body": [b"x"]})
    with pytest.raises(ValueError, match="the option 'exchange' or a column 'exchange'"):
        encoder().encode(batch, (None, "k"), None)
    with pytest.raises(ValueError, match="the option 'routingKey' or a column 'routing_key'"):
        encoder().encode(batch, ("x", None), None)


@pytest.mark.parametrize(
    ("column", "value", "reported"),
    [
        (
            "priority",
            300,
            "the column 'priority' has the value 300, which cannot be sent: number 300 does not fit 1 bytes",
        ),
        (
            "headers_json",
            "nope",
            "the column 'headers_json' has the value 'nope', which cannot be sent: headers are not JSON",
        ),
        ("message_id", "x" * 300, "short string of 300 bytes is longer than 255"),
        ("routing_key", "x" * 300, "short string of 300 bytes is longer than 255"),
    ],
)
def test_a_value_that_cannot_be_sent_is_named(column: str, value: Any, reported: str) -> None:
    batch = pa.record_batch({"body": [b"x"], "content_type": ["t"], column: [value]})
    with pytest.raises(ValueError, match=re.escape(reported)) as wrong:
        encoder().encode(batch, ("", None if column == "routing_key" else "k"), None)
    assert len(str(wrong.value)) < 300
