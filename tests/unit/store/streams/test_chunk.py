"""Chunks are decoded as they were encoded, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from warren.model.message import HAS_HEADERS, Message, encode_address
from warren.store.streams.chunk import (
    FOLLOWS_SYNC,
    HEAD_SIZE,
    Chunk,
    ChunkBuilder,
    is_whole,
    read_head,
)

MARK = 0x01020304
SEED = 77
NOW = 1_700_000_000_000


def message(key: str, body: bytes, *, property_list: bytes = b"\0\0", priority: int = 0) -> Message:
    made = Message(encode_address("x", key), property_list, body + b"\xce", NOW)
    made.priority = priority
    return made


def built(messages: list[Message], first: int = 0) -> bytes:
    builder = ChunkBuilder(first)
    for one in messages:
        builder.add(one)
    assert builder.count == len(messages)
    return builder.encode(MARK, SEED, FOLLOWS_SYNC)


def read(data: bytes, at: int = 0) -> Chunk:
    head = read_head(data, at, MARK, SEED)
    assert head is not None
    assert is_whole(data, at, head, SEED)
    return Chunk(data, at, head)


@given(some.lists(some.tuples(some.sampled_from("abc"), some.binary(max_size=300)), min_size=1))
def test_every_message_is_decoded_as_it_was_encoded(messages: list[tuple[str, bytes]]) -> None:
    data = built([message(key, body) for key, body in messages], first=5)
    chunk = read(b"before" + data + b"behind", at=6)
    assert (chunk.first, chunk.count, chunk.end, chunk.time) == (5, len(messages), 5 + len(messages), NOW)
    assert chunk.size == len(data)
    found = [chunk.message(place) for place in range(chunk.count)]
    assert [(one.routing_key, one.body) for one in found] == messages
    assert {one.published_at for one in found} == {NOW}


def test_flags_and_priority_are_those_of_the_message() -> None:
    with_headers = message("a", b"1", property_list=b"\x20\0\0\0\0\0", priority=9)
    with_headers.flags = HAS_HEADERS
    found = read(built([message("a", b""), with_headers])).message(1)
    assert (found.flags, found.priority, found.property_list) == (HAS_HEADERS, 9, b"\x20\0\0\0\0\0")


def test_common_parts_of_messages_are_stored_once() -> None:
    alike = read(built([message("a", bytes((n,))) for n in range(100)]))
    assert len(alike.shapes) == 1
    # For each message four bytes for the end offset, and one byte of body.
    assert alike.size < HEAD_SIZE + 100 * 5 + 30
    mixed = read(built([message(f"k{n % 3}", b"") for n in range(100)]))
    assert len(mixed.shapes) == 3


def test_end_offsets_are_the_offsets_of_an_arrow_binary_column() -> None:
    chunk = read(built([message("a", b"one"), message("a", b""), message("b", b"three")]))
    assert list(chunk.ends) == [0, 3, 3, 8]


@pytest.mark.parametrize("at", [0, 5, 20, HEAD_SIZE - 1])
def test_a_header_with_any_changed_byte_is_refused(at: int) -> None:
    data = bytearray(built([message("a", b"body")]))
    data[at] ^= 1
    assert read_head(bytes(data), 0, MARK, SEED) is None


def test_a_header_of_another_file_or_a_truncated_one_is_refused() -> None:
    data = built([message("a", b"body")])
    assert read_head(data, 0, MARK, SEED + 1) is None
    assert read_head(data, 0, MARK + 1, SEED) is None
    assert read_head(data[: HEAD_SIZE - 1], 0, MARK, SEED) is None


def test_a_damaged_or_truncated_body_is_detected() -> None:
    data = built([message("a", b"body")])
    head = read_head(data, 0, MARK, SEED)
    assert head is not None
    assert not is_whole(data[:-1], 0, head, SEED)
    assert not is_whole(data[:-1] + b"?", 0, head, SEED)
