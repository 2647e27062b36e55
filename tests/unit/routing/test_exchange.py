"""Common to all exchange types: bindings, their identity and their index."""

from decimal import Decimal

import pytest
from tests.unit.routing.samples import bound, made

from warren.routing.direct import DirectExchange
from warren.routing.exchange import Binding, fingerprint
from warren.wire.table import Int32

VALUES = [1, Int32(1), 1.0, True, "1", b"1", None, Decimal(1), [1], [Int32(1)], {"a": 1}, {"a": "1"}, [], {}]


def test_bindings_that_differ_in_one_part_are_different() -> None:
    one, other = made(DirectExchange), made(DirectExchange)
    binding = Binding(one, "k", {"a": 1}, "q")
    assert binding == Binding(one, "k", {"a": 1}, "q")
    assert hash(binding) == hash(Binding(one, "k", {"a": 1}, "q"))
    for different in (
        Binding(other, "k", {"a": 1}, "q"),
        Binding(one, "K", {"a": 1}, "q"),
        Binding(one, "k", {"a": 2}, "q"),
        Binding(one, "k", {}, "q"),
        Binding(one, "k", {"a": 1}, "r"),
    ):
        assert binding != different
    assert binding != "k"


def test_the_order_of_arguments_does_not_matter() -> None:
    exchange = made(DirectExchange)
    one = Binding(exchange, "", {"a": 1, "b": 2}, "q")
    assert one == Binding(exchange, "", {"b": 2, "a": 1}, "q")


def test_values_of_different_types_have_different_fingerprints() -> None:
    for at, one in enumerate(VALUES):
        for place, other in enumerate(VALUES):
            assert (fingerprint(one) == fingerprint(other)) is (at == place), (one, other)


def test_a_binding_with_nan_can_be_found_again() -> None:
    exchange = made(DirectExchange)
    bound(exchange, "k", "q", a=float("nan"))
    assert not exchange.bind(Binding(exchange, "k", {"a": float("nan")}, "q"))
    assert exchange.unbind(Binding(exchange, "k", {"a": float("nan")}, "q"))


def test_the_alternate_exchange_is_read_from_the_arguments_and_can_be_set() -> None:
    exchange = made(DirectExchange, alternate_exchange="spare")
    assert exchange.alternate == "spare"
    exchange.alternate = None
    assert exchange.alternate is None
    assert made(DirectExchange).alternate is None
    assert made(DirectExchange, alternate_exchange=7).alternate is None


def test_a_watcher_is_notified_of_changes_only() -> None:
    exchange = made(DirectExchange)
    reported: list[str] = []
    exchange.watch(lambda: reported.append("change"))
    binding = bound(exchange, "k", "q")
    exchange.bind(binding)
    exchange.unbind(binding)
    exchange.unbind(binding)
    exchange.alternate = "x"
    assert len(reported) == 3


def test_an_exchange_counts_and_lists_its_bindings() -> None:
    exchange = made(DirectExchange)
    bindings = [bound(exchange, key, "q") for key in "abc"]
    assert exchange.bindings == 3
    assert list(exchange.each_binding()) == bindings


@pytest.mark.parametrize("text", ["", "k", "a.b"])
def test_any_key_and_arguments_are_valid_unless_the_type_refuses_them(text: str) -> None:
    made(DirectExchange).validate_binding(text, {"x-match": 5})
