"""The modulus hash exchange: stable, even, and independent of binding keys."""

from collections import Counter

from tests.unit.routing.samples import bound, made, routed

from warren.routing.modulus_hash import ModulusHashExchange

KEYS = [f"key-{number}" for number in range(3000)]


def test_equal_keys_go_to_one_queue_whatever_the_order_of_binding() -> None:
    one, other = made(ModulusHashExchange), made(ModulusHashExchange)
    for number in range(3):
        bound(one, "ignored", f"q{number}")
        bound(other, "", f"q{2 - number}")
    assert [routed(one, key) for key in KEYS] == [routed(other, key) for key in KEYS]


def test_keys_are_shared_evenly() -> None:
    exchange = made(ModulusHashExchange)
    for number in range(3):
        bound(exchange, "", f"q{number}")
    shares = Counter(routed(exchange, key)[0] for key in KEYS)
    assert all(abs(share - 1000) < 120 for share in shares.values())


def test_a_queue_bound_three_times_gets_three_shares() -> None:
    exchange = made(ModulusHashExchange)
    for key in "abc":
        bound(exchange, key, "q1")
    bound(exchange, "a", "q2")
    assert abs(Counter(routed(exchange, key)[0] for key in KEYS)["q1"] - 2250) < 150


def test_a_change_of_bindings_applies_at_once() -> None:
    exchange = made(ModulusHashExchange)
    assert routed(exchange, "k") == []
    binding = bound(exchange, "", "q")
    assert routed(exchange, "k") == ["q"]
    exchange.unbind(binding)
    assert routed(exchange, "k") == []
