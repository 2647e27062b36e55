"""A filter of a link: routing keys by a topic pattern, headers by equality."""

import pytest

from warren.model.message import Message, encode_address
from warren.relay.link_filter import LinkFilter
from warren.wire.properties import BasicProperties
from warren.wire.table import Value


def message(routing_key: str = "", headers: dict[str, Value] | None = None) -> Message:
    properties = BasicProperties(headers=headers)
    return Message.compose(encode_address("x", routing_key), properties, b"\xce", now=0)


@pytest.mark.parametrize(
    ("pattern", "routing_key", "is_accepted"),
    [
        ("orders.*", "orders.eu", True),
        ("orders.*", "orders.eu.late", False),
        ("orders.#", "orders", True),
        ("orders.#", "invoices.eu", False),
        ("#", "", True),
        ("", "", True),
        ("", "a", False),
        (None, "anything.at.all", True),
    ],
)
def test_the_routing_key_matches_as_in_a_topic_exchange(
    pattern: str | None, routing_key: str, is_accepted: bool
) -> None:
    assert LinkFilter(pattern, {}).accepts(message(routing_key)) is is_accepted


@pytest.mark.parametrize(
    ("headers", "is_accepted"),
    [
        ({"region": "eu", "size": 3, "more": 1}, True),
        ({"region": "eu"}, False),
        ({"region": "us", "size": 3}, False),
        ({"region": "eu", "size": "3"}, False),
        (None, False),
    ],
)
def test_all_headers_must_be_equal_as_in_a_headers_exchange(
    headers: dict[str, Value] | None, is_accepted: bool
) -> None:
    wanted = LinkFilter(None, {"region": "eu", "size": 3})
    assert wanted.accepts(message(headers=headers)) is is_accepted


def test_both_conditions_must_be_met() -> None:
    wanted = LinkFilter("a.*", {"b": True})
    assert wanted.accepts(message("a.1", {"b": True}))
    assert not wanted.accepts(message("b.1", {"b": True}))
    assert not wanted.accepts(message("a.1", {"b": 1}))
