"""Messages of chunks and of queues as rows: selection, splitting and joining."""

from array import array
from collections.abc import Iterator

import pytest
from tests.unit.queues.samples import sent

from warren.arrow.message_rows import MessageRows, RowFilter, combined, rows_of_chunk, rows_of_messages
from warren.model.message import NO_PROPERTIES, Message, encode_address
from warren.store.streams.chunk import Chunk, ChunkBuilder, read_head
from warren.wire.properties import BasicProperties

KEYS = ["a", "b", "a", "a", "c"]
FIRST = 100


def messages(keys: list[str] = KEYS) -> list[Message]:
    return [
        Message(encode_address("x", key), NO_PROPERTIES, f"{key}{number}".encode() + b"\xce", 5_000)
        for number, key in enumerate(keys)
    ]


def chunk(keys: list[str] = KEYS) -> Chunk:
    builder = ChunkBuilder(FIRST)
    for each in messages(keys):
        builder.add(each)
    data = builder.encode(1, 2, 0)
    head = read_head(data, 0, 1, 2)
    assert head is not None
    return Chunk(data, 0, head)


def bodies(rows: MessageRows) -> list[bytes]:
    places = rows.places if rows.places is not None else range(rows.at, rows.at + rows.count)
    return [bytes(rows.bodies[rows.ends[place] : rows.ends[place + 1]]) for place in places]


def keys(rows: MessageRows) -> list[bytes]:
    kinds = rows.kinds if rows.kinds is not None else [0] * rows.count
    return [rows.shapes[kind][0][3:] for kind in kinds]


def test_a_chunk_becomes_rows_without_copying() -> None:
    rows = rows_of_chunk("q", chunk(), 0, 1_000)
    assert list(rows.offsets) == [100, 101, 102, 103, 104]
    assert bodies(rows) == [b"a0", b"b1", b"a2", b"a3", b"c4"]
    assert keys(rows) == [b"a", b"b", b"a", b"a", b"c"]
    assert (rows.count, rows.byte_count, rows.times, rows.redelivered) == (5, 10, 5_000, None)


@pytest.mark.parametrize(("start", "end"), [(102, 104), (100, 101), (104, 900), (0, 103), (104, 104), (0, 5)])
def test_rows_of_a_chunk_are_limited_to_the_range(start: int, end: int) -> None:
    rows = rows_of_chunk("q", chunk(), start, end)
    wanted = [offset for offset in range(100, 105) if start <= offset < end]
    assert list(rows.offsets) == wanted
    assert bodies(rows) == [f"{KEYS[at - 100]}{at - 100}".encode() for at in wanted]
    assert keys(rows) == [KEYS[at - 100].encode() for at in wanted]


def test_rows_that_do_not_match_are_left_out() -> None:
    rows = rows_of_chunk("q", chunk(), 101, 105, wanted=RowFilter(routing_keys=(b"a", b"c")))
    assert list(rows.offsets) == [102, 103, 104]
    assert bodies(rows) == [b"a2", b"a3", b"c4"]
    assert keys(rows) == [b"a", b"a", b"c"]
    assert rows.byte_count == 6


def test_a_chunk_of_one_shape_matches_as_a_whole() -> None:
    one = chunk(["k", "k", "k"])
    assert (
        rows_of_chunk("q", one, 0, 900, wanted=RowFilter(exchanges=(b"x",), routing_keys=(b"k",))).count == 3
    )
    assert (
        rows_of_chunk("q", one, 0, 900, wanted=RowFilter(exchanges=(b"y",), routing_keys=(b"k",))).count == 0
    )
    assert (
        rows_of_chunk("q", one, 0, 900, wanted=RowFilter(exchanges=(b"x",), routing_keys=(b"",))).count == 0
    )


def test_a_slice_of_rows_has_all_their_fields() -> None:
    for rows in (
        rows_of_chunk("q", chunk(), 101, 105),
        rows_of_chunk("q", chunk(), 100, 105, wanted=RowFilter(routing_keys=(b"a", b"c"))),
        rows_of_messages("q", [(at, each, at == 2) for at, each in enumerate(messages())]),
    ):
        part = rows.part(1, 2)
        assert list(part.offsets) == list(rows.offsets)[1:3]
        assert bodies(part) == bodies(rows)[1:3]
        assert keys(part) == keys(rows)[1:3]
        assert part.byte_count == 4
        assert rows.part(2, 100).count == rows.count - 2
        if rows.redelivered is not None:
            assert part.redelivered == rows.redelivered[1:3]


def test_rows_are_limited_by_bytes_but_have_at_least_one() -> None:
    rows = rows_of_chunk("q", chunk(), 0, 1_000)
    assert [rows.within(most).count for most in (0, 1, 2, 3, 4, 9, 10, 11)] == [1, 1, 1, 1, 2, 4, 5, 5]
    chosen = rows_of_chunk("q", chunk(), 0, 1_000, wanted=RowFilter(routing_keys=(b"a",)))
    assert [chosen.within(most).count for most in (0, 4, 5, 6)] == [1, 2, 2, 3]
    assert bodies(chosen.within(4)) == [b"a0", b"a2"]


def test_single_messages_become_rows() -> None:
    given = [(3, message, False) for message in messages()]
    rows = rows_of_messages("q", given, RowFilter(exchanges=(b"x",)))
    assert rows.offsets == array("q", [3] * 5)
    assert bodies(rows) == [b"a0", b"b1", b"a2", b"a3", b"c4"]
    assert keys(rows) == [b"a", b"b", b"a", b"a", b"c"]
    assert list(rows.times) == [5_000] * 5  # type: ignore[arg-type]
    assert rows_of_messages("q", given, RowFilter(exchanges=(b"y",))).count == 0
    assert rows_of_messages("q", given[:1]).kinds is None


def test_rows_do_not_contain_bcc() -> None:
    rows = rows_of_messages("q", [(0, sent("a", headers={"BCC": ["hidden"], "n": 1}), False)])
    [(_, property_list)] = rows.shapes
    assert BasicProperties.decode_list(property_list).headers == {"n": 1}


def test_rows_are_joined_up_to_a_size() -> None:
    each = rows_of_chunk("q", chunk(), 0, 1_000)
    size = each.memory
    for size_max, counts in [(0, [1] * 7), (size, [1] * 7), (2 * size, [2, 2, 2, 1]), (10 * size - 1, [7])]:
        found = list(combined(iter([each] * 7), lambda size_max=size_max: size_max))
        assert [len(many) for many in found if many is not None] == counts


def test_an_item_without_rows_is_passed_on_separately() -> None:
    some, none = rows_of_chunk("q", chunk(), 0, 1_000), rows_of_chunk("q", chunk(), 0, 0)
    found = list(combined(iter([none, some, some, None, none, some]), lambda: 1_000_000))
    assert [many and len(many) for many in found] == [None, 2, None, None, 1]


def test_an_exception_is_raised_after_the_rows_before_it() -> None:
    some = rows_of_chunk("q", chunk(), 0, 1_000)

    def source() -> Iterator[MessageRows]:
        yield some
        yield some
        raise ValueError("damaged")

    found = combined(source(), lambda: 1_000_000)
    assert next(found) == [some, some]
    with pytest.raises(ValueError, match="damaged"):
        next(found)


def test_rows_are_read_lazily() -> None:
    some = rows_of_chunk("q", chunk(), 0, 1_000)
    read = 0

    def source() -> Iterator[MessageRows]:
        nonlocal read
        while True:
            read += 1
            yield some

    found = combined(source(), lambda: 0)
    for count in range(1, 4):
        next(found)
        assert read == count
