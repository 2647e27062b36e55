"""A message keeps the octets of its publisher, and says what is in them when it is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.model.message import Message, body_size_of, encode_address, frame_content, new_message
from warren.wire.properties import BasicProperties


def test_it_says_what_it_was_published_with() -> None:
    properties = BasicProperties(delivery_mode=2, headers={"a": 1}, priority=7, expiration="5")
    message = Message.compose(encode_address("ex", "a.b"), properties, b"body", now=9)
    assert (message.exchange, message.routing_key, message.body, message.body_size) == (
        "ex",
        "a.b",
        b"body",
        4,
    )
    assert (message.properties(), message.headers()) == (properties, {"a": 1})
    assert (message.is_persistent, message.priority, message.published_at) == (True, 7, 9)
    assert message.header == properties.encode(4)


def test_without_properties_it_says_nothing() -> None:
    message = Message.compose(encode_address("", ""), BasicProperties(), b"", now=0)
    assert (message.exchange, message.routing_key, message.body, message.headers()) == ("", "", b"", {})
    assert (message.is_persistent, message.priority, message.body_size) == (False, 0, 0)


def test_a_header_table_that_was_sent_empty_is_one() -> None:
    message = Message.compose(encode_address("", ""), BasicProperties(headers={}), b"", now=0)
    assert message.headers() == {}
    assert message.properties().headers == {}


def test_the_two_ways_to_make_one_are_the_same() -> None:
    header = BasicProperties().encode(1)
    content = frame_content(header, b"x", 3)
    for message in (Message(b"\0\0", content, len(header), 5), new_message(b"\0\0", content, len(header), 5)):
        assert (message.header, message.body, message.published_at) == (header, b"x", 5)
        assert (message.channel, message.flags, message.priority) == (0, 0, 0)


def test_the_content_is_the_frames_behind_the_head_of_the_first() -> None:
    assert frame_content(b"HEAD", b"", 1) == b"HEAD\xce"
    assert frame_content(b"HEAD", b"xy", 258) == b"HEAD\xce\x03\x01\x02\x00\x00\x00\x02xy\xce"


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128])
def test_names_of_more_than_255_octets_have_no_address(name: str) -> None:
    with pytest.raises(ValueError, match="range"):
        encode_address(name, "")


@given(st.binary(max_size=255), st.binary(max_size=255), st.binary(max_size=300))
def test_any_octets_come_out_as_they_went_in(exchange: bytes, key: bytes, body: bytes) -> None:
    names = [octets.decode("utf-8", "surrogateescape") for octets in (exchange, key)]
    message = Message.compose(encode_address(*names), BasicProperties(), body, now=0)
    assert [message.exchange, message.routing_key] == names
    assert message.body == body
    assert body_size_of(message) == len(body)
