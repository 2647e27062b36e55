"""The prepared bytes that a producer sends repeatedly, in pieces that end on a message boundary."""

import pytest

from warren.cli.perf.publish_ring import CHUNK_BYTES, Content, PublishRing, encode_publish

CONTENT = Content(body=b"0123456789abcdef", is_persistent=False, frame_size_max=4096)
ROUTES = [("", "one"), ("", "two"), ("", "six")]


def test_routing_keys_rotate_from_any_start() -> None:
    publish_ring = PublishRing(ROUTES, CONTENT)
    expected = b"".join(encode_publish(ROUTES[number % 3], CONTENT) for number in range(4, 9))
    assert bytes(publish_ring.take(4, 5)) == expected


def test_a_piece_ends_with_the_ring_and_the_next_continues_at_its_start() -> None:
    publish_ring = PublishRing(ROUTES, CONTENT)
    taken = 0
    data = b""
    while taken < 20_000:
        piece = bytes(publish_ring.take(taken, 20_000 - taken))
        data += piece
        taken += len(piece) // publish_ring.length
    assert data == (b"".join(encode_publish(route, CONTENT) for route in ROUTES) * 7_000)[: len(data)]


def test_a_piece_is_at_most_a_chunk_and_at_least_a_message() -> None:
    small = PublishRing(ROUTES, CONTENT)
    large = PublishRing(
        [("", "q")], Content(body=bytes(CHUNK_BYTES), is_persistent=True, frame_size_max=4096)
    )
    assert len(small.take(0, 1 << 30)) <= CHUNK_BYTES
    assert len(large.take(5, 10)) == large.length > CHUNK_BYTES


def test_the_body_is_found() -> None:
    publish_ring = PublishRing(ROUTES, CONTENT)
    assert bytes(publish_ring.take(0, 1))[publish_ring.body_at :].startswith(CONTENT.body)


def test_a_long_body_is_split_by_the_frame_size() -> None:
    long = Content(body=bytes(10_000), is_persistent=False, frame_size_max=4096)
    assert len(encode_publish(ROUTES[0], long)) == len(encode_publish(ROUTES[0], CONTENT)) - 16 + 10_000 + 16


def test_messages_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        PublishRing([("", "a"), ("", "ab")], CONTENT)
