"""A message stores the bytes that were published, and decodes them on demand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.model.message import BODY_END, NO_PROPERTIES, Message, body_size_of, encode_address, new_message
from warren.wire.properties import BasicProperties


def test_fields_are_those_that_were_published() -> None:
    properties = BasicProperties(delivery_mode=2, headers={"a": 1}, priority=7, expiration="5")
    message = Message.compose(encode_address("ex", "a.b"), properties, b"body" + BODY_END, now=9)
    assert (message.exchange, message.routing_key, message.body, message.body_size) == (
        "ex",
        "a.b",
        b"body",
        4,
    )
    assert (message.properties(), message.headers()) == (properties, {"a": 1})
    assert (message.is_persistent, message.priority, message.published_at) == (True, 7, 9)
    assert (message.property_list, message.content) == (properties.encode_list(), b"body\xce")


def test_a_message_without_properties_has_none() -> None:
    message = Message.compose(encode_address("", ""), BasicProperties(), BODY_END, now=0)
    assert (message.exchange, message.routing_key, message.body, message.headers()) == ("", "", b"", {})
    assert (message.is_persistent, message.priority, message.body_size) == (False, 0, 0)


def test_an_empty_header_table_is_preserved() -> None:
    message = Message.compose(encode_address("", ""), BasicProperties(headers={}), BODY_END, now=0)
    assert message.headers() == {}
    assert message.properties().headers == {}


def test_both_constructors_make_equal_messages() -> None:
    for make in (Message, new_message):
        message = make(b"\0\0", NO_PROPERTIES, b"x\xce", 5)
        assert (message.address, message.body, message.published_at) == (b"\0\0", b"x", 5)
        assert (message.properties(), message.flags, message.priority) == (BasicProperties(), 0, 0)


@pytest.mark.parametrize("now", [0, 0xFFFF, 0x10000, 1_763_700_000_123, 2**48 - 1])
def test_the_arrival_time_has_milliseconds(now: int) -> None:
    for make in (Message, new_message):
        message = make(b"\0\0", NO_PROPERTIES, BODY_END, now)
        assert message.published_at == now
        message.published_at = now // 2
        assert message.published_at == now // 2


def test_a_message_with_other_properties_has_the_same_address_and_body() -> None:
    properties = BasicProperties(delivery_mode=2, priority=3, headers={"a": 1})
    message = Message.compose(encode_address("ex", "k"), properties, b"x" + BODY_END, now=7)
    changed = message.with_property_list(BasicProperties(headers={}).encode_list())
    assert changed.properties() == BasicProperties(headers={})
    assert changed.content is message.content
    for name in ("address", "published_at", "flags", "priority"):
        assert getattr(changed, name) == getattr(message, name)


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128])
def test_names_of_more_than_255_bytes_cannot_be_encoded(name: str) -> None:
    with pytest.raises(ValueError, match="range"):
        encode_address(name, "")


@given(st.binary(max_size=255), st.binary(max_size=255), st.binary(max_size=300))
def test_any_names_and_bodies_are_preserved(exchange: bytes, key: bytes, body: bytes) -> None:
    names = [data.decode("utf-8", "surrogateescape") for data in (exchange, key)]
    message = Message.compose(encode_address(*names), BasicProperties(), body + BODY_END, now=0)
    assert [message.exchange, message.routing_key] == names
    assert message.body == body
    assert body_size_of(message) == len(body)
