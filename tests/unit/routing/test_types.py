"""The exchange types by name."""

import pytest

from warren.errors import CommandInvalid
from warren.routing.exchange import ExchangeSettings
from warren.routing.types import EXCHANGE_TYPES, exchange_type


def test_each_type_is_found_by_its_name() -> None:
    assert set(EXCHANGE_TYPES) == {
        "direct",
        "fanout",
        "topic",
        "x-jms-topic",
        "x-recent-history",
        "headers",
        "x-consistent-hash",
        "x-modulus-hash",
        "x-random",
        "x-local-random",
        "x-federation-upstream",
    }
    for name in EXCHANGE_TYPES:
        exchange = exchange_type(name)("x", ExchangeSettings())
        assert exchange.type_name == name
        exchange_type(name).validate_arguments({"x-max-hops": 1})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "unknown exchange type 'nonsense'"),
        ("Direct", "unknown exchange type 'Direct'"),
        ("", "invalid exchange type ''"),
    ],
)
def test_an_unknown_type_closes_the_connection(name: str, message: str) -> None:
    with pytest.raises(CommandInvalid) as refusal:
        exchange_type(name)
    assert refusal.value.message == message
