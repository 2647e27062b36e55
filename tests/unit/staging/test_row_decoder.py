"""Rows become messages, or are refused with the number of the row and the column."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from warren.model.message import BODY_END, HAS_EXPIRATION, HAS_HEADERS, PERSISTENT, Message
from warren.staging.row_decoder import RowDecoder, RowRefused
from warren.store.streams.chunk import MessageRun


def decoded(table: pa.Table, *, may_impersonate: bool = False) -> list[Message]:
    rows = RowDecoder(pa, "exchange", "user", may_impersonate=may_impersonate)
    rows.begin(table.schema.serialize().to_pybytes())
    messages = []
    for batch in table.to_batches(max_chunksize=200):
        for some in rows.take(batch.serialize().to_pybytes()):
            messages += [*unrolled(some)] if isinstance(some, MessageRun) else some
    assert rows.count == len(messages)
    return messages


def unrolled(run: MessageRun) -> Iterator[Message]:
    """The messages of a run, one by one."""
    for begin, end in pairwise(run.ends[run.place : run.place + run.count + 1]):
        message = Message(
            run.like.address, run.like.property_list, bytes(run.bodies[begin:end]) + BODY_END, 0
        )
        message.flags = run.like.flags
        yield message


def one(**columns: Any) -> Message:
    [message] = decoded(pa.table({"body": pa.array([b"body"], pa.binary()), **columns}))
    return message


def test_a_row_becomes_a_persistent_message_to_the_exchange() -> None:
    message = one(routing_key=["key"])
    assert (message.exchange, message.routing_key, message.body) == ("exchange", "key", b"body")
    assert message.flags == PERSISTENT
    assert message.properties().delivery_mode == 2


def test_a_row_without_a_routing_key_has_an_empty_one() -> None:
    assert one().routing_key == one(routing_key=pa.array([None], pa.string())).routing_key == ""


def test_a_row_may_be_transient_and_have_an_expiration() -> None:
    message = one(delivery_mode=[1], expiration=["5"], priority=[4])
    assert (message.flags, message.priority) == (HAS_EXPIRATION, 4)


def test_headers_may_be_typed_values_or_strings() -> None:
    typed = one(headers_json=['{"n": {"$I": 5}, "x": {"$x": "AQI="}, "s": "text"}'])
    assert typed.headers() == {"n": 5, "x": b"\x01\x02", "s": "text"}
    assert typed.flags == PERSISTENT | HAS_HEADERS
    texts = pa.array([[("a", "b"), ("c", None)]], pa.map_(pa.string(), pa.string()))
    assert one(headers=texts).headers() == {"a": "b", "c": None}
    both = one(headers=texts, headers_json=['{"a": {"$I": 5}, "t": true}'])
    assert both.headers() == {"a": 5, "c": None, "t": True}


@pytest.mark.parametrize(
    ("unit", "moment"), [("s", 5), ("ms", 5_999), ("us", 5_999_999), ("ns", 5_000_000_001)]
)
def test_a_timestamp_has_whole_seconds(unit: str, moment: int) -> None:
    assert one(timestamp=pa.array([moment], pa.timestamp(unit, "UTC"))).properties().timestamp == 5


def test_equal_properties_are_shared() -> None:
    first, second, third = decoded(pa.table({"body": [b"1", b"2", b"3"], "type": ["a", "a", "b"]}))
    assert first.property_list is second.property_list
    assert first.address is third.address
    assert third.property_list != first.property_list


def test_many_rows_are_decoded_in_pieces_and_in_order() -> None:
    texts = [b"%d" % number for number in range(1_000)]
    assert [message.body for message in decoded(pa.table({"body": texts}))] == texts


def test_a_user_with_the_tag_impersonator_may_set_any_user_id() -> None:
    table = pa.table({"body": [b""], "user_id": ["other"]})
    [message] = decoded(table, may_impersonate=True)
    assert message.properties().user_id == "other"
    with pytest.raises(RowRefused, match="'other' is not the user 'user'"):
        decoded(table)


def test_a_refused_row_is_named_by_its_number_in_the_stream() -> None:
    bodies = [b""] * 450
    priorities = [1] * 449 + [300]
    with pytest.raises(RowRefused, match="row 449, column 'priority': 300 is not between 0 and 255"):
        decoded(pa.table({"body": bodies, "priority": priorities}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (pa.schema([("body", pa.list_(pa.int8()))]), "column 'body' cannot be list"),
        (pa.schema([("body", pa.binary()), ("body", pa.binary())]), "two columns have the same name"),
        (pa.schema([("body", pa.null())]), "there is no column 'body'"),
        (pa.schema([("body", pa.binary()), ("priority", pa.string())]), "column 'priority' cannot be string"),
        (pa.schema([("body", pa.binary()), ("headers", pa.string())]), "column 'headers' cannot be string"),
    ],
)
def test_an_invalid_column_is_refused_before_its_rows_are_read(schema: pa.Schema, reason: str) -> None:
    rows = RowDecoder(pa, "", "user", may_impersonate=False)
    with pytest.raises(RowRefused, match=reason):
        rows.begin(schema.serialize().to_pybytes())


def test_bytes_that_are_not_valid_arrow_are_refused() -> None:
    rows = RowDecoder(pa, "", "user", may_impersonate=False)
    with pytest.raises(RowRefused, match="the schema cannot be read"):
        rows.begin(b"\xff\xff\xff\xff\x08\0\0\0abcdefgh")
    with pytest.raises(RowRefused, match="comes before a schema"):
        list(rows.take(b""))
    table = pa.table({"body": [b"12", b"345"]})
    rows.begin(table.schema.serialize().to_pybytes())
    data = bytearray(table.to_batches()[0].serialize().to_pybytes())
    # The end of the last body lies outside the body data.
    at = data.rindex((5).to_bytes(4, "little"))
    data[at : at + 4] = (1 << 20).to_bytes(4, "little")
    with pytest.raises(RowRefused, match="a batch cannot be read"):
        list(rows.take(bytes(data)))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()])
def test_rows_that_differ_only_in_their_bodies_become_one_run(kind: pa.DataType) -> None:
    texts = [f"{number}" * (number % 7) for number in range(150)]
    bodies = pa.array(["not sent", *texts], pa.string()).cast(kind).slice(1)
    headers = pa.array([[("a", "b"), ("c", None)]] * 150, pa.map_(pa.string(), pa.string()))
    batch = pa.record_batch({"body": bodies, "headers": headers, "type": pa.nulls(150, pa.string())})
    rows = RowDecoder(pa, "exchange", "user", may_impersonate=False)
    rows.begin(batch.schema.serialize().to_pybytes())
    [run] = rows.take(batch.serialize().to_pybytes())
    assert isinstance(run, MessageRun)
    assert [message.body.decode() for message in unrolled(run)] == texts
    assert run.like.headers() == {"a": "b", "c": None}
    assert rows.count == 150


def test_a_column_name_that_is_not_utf_8_is_refused() -> None:
    data = pa.schema([("body", pa.binary()), ("name", pa.string())]).serialize().to_pybytes()
    rows = RowDecoder(pa, "exchange", "user", may_impersonate=False)
    with pytest.raises(RowRefused, match="the schema cannot be read"):
        rows.begin(data.replace(b"name", b"\xffame"))
