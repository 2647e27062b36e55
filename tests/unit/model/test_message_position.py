"""The position of a message as a header that is added and removed byte for byte."""

import random

import pytest
from tests.seeds import SEEDS

from warren.model.message import BODY_END, Message
from warren.model.message_position import MessagePosition, take_position, with_position
from warren.wire.properties import BasicProperties

POSITION = MessagePosition(b"0123456789abcdef", 2**64 - 1, 2**56 - 1)


def message_with(property_list: bytes) -> Message:
    return Message(b"\0\1q", property_list, b"body" + BODY_END, 5)


@pytest.mark.parametrize(
    "properties",
    [
        BasicProperties(),
        BasicProperties(headers={}),
        BasicProperties(headers={"a": 1, "x-warren-position": "of a client"}),
        BasicProperties(content_type="text/plain", delivery_mode=2),
        BasicProperties(content_encoding="gzip", headers={"a": [1, {"b": None}]}, priority=3),
        BasicProperties(
            content_type="t", content_encoding="e", headers={"h": b"x"}, message_id="m", timestamp=1
        ),
    ],
)
def test_a_property_list_is_the_same_after_its_position_was_added_and_removed(
    properties: BasicProperties,
) -> None:
    before = message_with(properties.encode_list())
    passed_on = with_position(before, POSITION)
    headers = BasicProperties.decode_list(passed_on.property_list).headers
    assert headers is not None
    assert next(iter(headers)) == "x-warren-position"
    assert take_position(passed_on.property_list) == (before.property_list, POSITION)
    assert (passed_on.address, passed_on.body, passed_on.published_at) == (b"\0\1q", b"body", 5)


def test_a_message_that_was_passed_on_twice_has_the_position_of_the_first_source_left() -> None:
    once = with_position(message_with(b"\0\0"), POSITION)
    again = with_position(once, MessagePosition(bytes(16), 1, 2))
    taken = take_position(again.property_list)
    assert taken == (once.property_list, MessagePosition(bytes(16), 1, 2))


@pytest.mark.parametrize(
    "property_list",
    [
        b"\0\0",
        BasicProperties(headers={"a": 1}).encode_list(),
        BasicProperties(headers={"x-warren-position": b"short"}).encode_list(),
        BasicProperties(headers={"a": 1, "x-warren-position": bytes(33)}).encode_list(),
    ],
)
def test_a_list_whose_first_header_is_no_position_has_none(property_list: bytes) -> None:
    assert take_position(property_list) is None


@pytest.mark.seeds(SEEDS)
def test_a_malformed_list_raises_nothing(seed: int) -> None:
    chance = random.Random(seed)
    properties = BasicProperties(content_type="t", headers={"a": 1})
    data = bytearray(with_position(message_with(properties.encode_list()), POSITION).property_list)
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    for end in range(len(data) + 1):
        take_position(bytes(data[:end]))
