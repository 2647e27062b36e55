"""Messages encoded as Arrow record batches, column by column."""

import itertools
from array import array
from collections.abc import Iterator

import pyarrow as pa
import pytest

from warren.arrow.columns import COLUMN_NAMES, parse_columns
from warren.arrow.encoder import ArrowEncoder
from warren.arrow.message_rows import MessageRows, rows_of_messages
from warren.limits import ARROW_BATCH_SIZE_MAX, ARROW_DECODED_PER_TURN
from warren.management.arrow_responses import END
from warren.model.message import Message, encode_address
from warren.wire.properties import BasicProperties
from warren.wire.table import Int32

NOW = 1_700_000_000_123
FULL = BasicProperties(
    content_type="application/json",
    content_encoding="utf-8",
    headers={"n": Int32(5), "none": None},
    delivery_mode=2,
    priority=3,
    correlation_id="c-1",
    reply_to="answers",
    expiration="60000",
    message_id="m-1",
    timestamp=1_600_000_000,
    type="order",
    user_id="guest",
    app_id="shop",
)


def message(body: bytes, properties: BasicProperties | None = None, key: str = "eu.1") -> Message:
    address = encode_address("orders", key)
    return Message.compose(address, properties or BasicProperties(), body + b"\xce", now=NOW)


def rows_of(messages: list[Message], queue: str = "q") -> MessageRows:
    return rows_of_messages(queue, [(10 + place, each, False) for place, each in enumerate(messages)])


def bytes_of(encoder: ArrowEncoder, all_rows: list[MessageRows]) -> Iterator[bytes]:
    yield encoder.head().to_pybytes()
    for rows in all_rows:
        for batch in encoder.batches([rows]):
            yield encoder.encode(batch).to_pybytes()
    yield END


def table_of(
    rows: list[MessageRows], names: tuple[str, ...] = COLUMN_NAMES, compression: str | None = None
) -> pa.Table:
    data = b"".join(bytes_of(ArrowEncoder("q", names, compression), rows))
    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)
    return table


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_a_row_contains_every_field_of_a_message(compression: str | None) -> None:
    table = table_of([rows_of([message(b"\x00body", FULL)])], compression=compression)
    [row] = table.to_pylist()
    assert {name: value for name, value in row.items() if "time" not in name} == {
        "queue": "q", "offset": 10, "exchange": "orders", "routing_key": "eu.1", "redelivered": False,
        "message_id": "m-1", "correlation_id": "c-1", "content_type": "application/json",
        "content_encoding": "utf-8", "type": "order", "app_id": "shop", "user_id": "guest",
        "reply_to": "answers", "expiration": "60000", "priority": 3, "delivery_mode": 2,
        "headers": [("n", "5"), ("none", None)], "headers_json": '{"n":{"$I":5},"none":null}',
        "body": b"\x00body",
    }  # fmt: skip
    assert row["timestamp"].timestamp() == 1_600_000_000
    assert row["broker_timestamp"].timestamp() == pytest.approx(NOW / 1000)
    assert tuple(row) == COLUMN_NAMES


def test_the_column_types_are_those_of_spark() -> None:
    schema = table_of([rows_of([message(b"")])]).schema
    time = pa.timestamp("us", tz="UTC")
    special = {
        "offset": pa.int64(), "redelivered": pa.bool_(), "priority": pa.int32(), "delivery_mode": pa.int32(),
        "timestamp": time, "broker_timestamp": time, "headers": pa.map_(pa.string(), pa.string()),
        "body": pa.binary(),
    }  # fmt: skip
    assert {field.name: field.type for field in schema} == {
        name: special.get(name, pa.string()) for name in COLUMN_NAMES
    }
    assert [field.name for field in schema if not field.nullable] == ["offset", "body"]


def test_missing_properties_are_null() -> None:
    [row] = table_of([rows_of([message(b"x")])]).to_pylist()
    there = {name for name, value in row.items() if value is not None}
    assert there == {"queue", "offset", "exchange", "routing_key", "redelivered", "broker_timestamp", "body"}


def test_empty_headers_are_not_null() -> None:
    [row] = table_of([rows_of([message(b"x", BasicProperties(headers={}))])]).to_pylist()
    assert (row["headers"], row["headers_json"]) == ([], "{}")


def test_messages_of_one_shape_have_its_columns_in_each_row() -> None:
    bodies = [b"", b"a", b"bcd", b""] * 50
    table = table_of([rows_of([message(body, FULL) for body in bodies])])
    assert table["body"].to_pylist() == bodies
    assert table["offset"].to_pylist() == [*range(10, 210)]
    assert table["message_id"].to_pylist() == ["m-1"] * 200


def test_messages_of_several_shapes_have_their_own_columns() -> None:
    keys = ["a", "b", "a", "c", "b"] * 30
    table = table_of([rows_of([message(key.encode(), key=key) for key in keys])])
    assert table["routing_key"].to_pylist() == keys
    assert table["body"].to_pylist() == [key.encode() for key in keys]


def test_messages_without_a_common_shape_are_decoded_in_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warren.arrow.encoder.IS_COMPILED", False)
    count = 3 * ARROW_DECODED_PER_TURN
    rows = rows_of([message(b"x", BasicProperties(message_id=str(number))) for number in range(count)])
    batches = list(ArrowEncoder("q", COLUMN_NAMES).batches([rows]))
    assert [batch.num_rows for batch in batches] == [ARROW_DECODED_PER_TURN] * 3
    assert pa.concat_batches(batches)["message_id"].to_pylist() == [str(number) for number in range(count)]


def test_joined_rows_are_encoded_as_if_they_were_separate() -> None:
    alike = [message(f"a{number}".encode(), FULL) for number in range(5)]
    unlike = [message(b"b", BasicProperties(message_id=str(number)), key=str(number)) for number in range(4)]
    mixed = [alike[0], unlike[1], alike[0], unlike[1], message(b"")]
    kinds = [alike, alike, unlike, mixed, unlike, alike[:1]]
    pieces = [rows_of(each) for each in kinds]
    pieces += [pieces[2].part(1, 2), pieces[3].part(1, 3), pieces[3].part(2, 1), pieces[0].part(3, 9)]
    pieces.append(rows_of_messages("q", [(3, message(b"again"), True), (4, message(b"new"), False)]))
    for begin, end in itertools.combinations(range(len(pieces) + 1), 2):
        (together,) = ArrowEncoder("q", COLUMN_NAMES).batches(pieces[begin:end])
        together.validate(full=True)
        alone = table_of(pieces[begin:end])
        assert pa.Table.from_batches([together]).to_pylist() == alone.to_pylist()


def test_an_encoder_accepts_all_kinds_of_rows_in_turn() -> None:
    some = [message(b"1", FULL), message(b"2", FULL), message(b"3", FULL)]
    other = [message(b"4", key="x")]
    mixed = [message(b"5", FULL), message(b"6", key="x"), message(b"7", key="x")]
    table = table_of([rows_of(some), rows_of(other), rows_of(mixed), rows_of(some[:2]), rows_of(some)])
    assert b"".join(table["body"].to_pylist()) == b"123456712123"
    assert table["type"].to_pylist() == [
        *["order"] * 3, None, "order", None, None, *["order"] * 5
    ]  # fmt: skip


def test_columns_that_were_not_selected_are_absent() -> None:
    names = parse_columns("body,routing_key")
    table = table_of([rows_of([message(b"1"), message(b"2")])], names)
    assert table.to_pylist() == [
        {"routing_key": "eu.1", "body": b"1"},
        {"routing_key": "eu.1", "body": b"2"},
    ]


def test_strings_that_are_not_utf_8_have_replacement_characters() -> None:
    odd = b"a\xff".decode("utf-8", "surrogateescape")
    properties = BasicProperties(message_id=odd, headers={odd: odd})
    [row] = table_of([rows_of([message(b"x", properties, key=odd)], queue=odd)]).to_pylist()
    assert (row["message_id"], row["routing_key"]) == ("a\ufffd", "a\ufffd")
    assert row["headers"] == [("a\ufffd", "a\ufffd")]


def test_a_time_outside_the_range_of_arrow_is_null() -> None:
    late = BasicProperties(timestamp=(1 << 64) - 1)
    assert table_of([rows_of([message(b"x", late)])])["timestamp"].to_pylist() == [None]


def test_the_redelivered_column_shows_earlier_deliveries() -> None:
    rows = rows_of_messages("q", [(1, message(b"a"), True), (7, message(b"b"), False)])
    table = table_of([rows])
    assert table["redelivered"].to_pylist() == [True, False]
    assert table["offset"].to_pylist() == [1, 7]


def test_the_memory_of_a_batch_is_bounded() -> None:
    headers = BasicProperties(headers={"long": "x" * 100_000})
    one = message(b"x", headers)
    rows = MessageRows(
        queue="q", offsets=range(1_000), shapes=[(one.address, one.property_list)], kinds=None, times=NOW,
        redelivered=None, ends=array("I", range(1_001)), bodies=memoryview(bytes(1_000)),
    )  # fmt: skip
    encoder = ArrowEncoder("q", COLUMN_NAMES)
    sizes, count = [], 0
    for batch in encoder.batches([rows]):
        sizes.append(encoder.encode(batch).size)
        count += batch.num_rows
    assert count == 1_000
    assert max(sizes) <= ARROW_BATCH_SIZE_MAX
    # As few batches as the bound allows.
    assert len(sizes) <= 200


def test_no_rows_make_no_batch() -> None:
    assert list(ArrowEncoder("q", COLUMN_NAMES).batches([rows_of([])])) == []
    assert table_of([]).num_rows == 0
