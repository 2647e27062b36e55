"""The random exchange: one of the bindings, chosen by the given random bytes."""

from tests.unit.routing.samples import bound, routed

from warren.routing.exchange import BY_CHANCE, Exchange, ExchangeSettings
from warren.routing.random_choice import LocalRandomExchange, RandomExchange


def drawing(kind: type[Exchange], numbers: list[int]) -> Exchange:
    """An exchange that draws `numbers` one after the other."""
    given = iter(numbers)
    return kind("x", ExchangeSettings(), lambda size: next(given).to_bytes(size, "big"))


def test_each_message_is_routed_to_the_drawn_binding() -> None:
    for kind in (RandomExchange, LocalRandomExchange):
        exchange = drawing(kind, [0, 1, 2, 3, 4])
        for queue in ("q0", "q1", "q2"):
            bound(exchange, "ignored", queue)
        assert [routed(exchange, "k") for _ in range(5)] == [["q0"], ["q1"], ["q2"], ["q0"], ["q1"]]
        assert exchange.decides == BY_CHANCE


def test_a_single_binding_needs_no_random_number() -> None:
    exchange = drawing(RandomExchange, [])
    assert routed(exchange, "k") == []
    binding = bound(exchange, "", "q")
    assert routed(exchange, "k") == ["q"]
    exchange.unbind(binding)
    assert routed(exchange, "k") == []


def test_with_a_seed_the_choice_does_not_depend_on_the_order_of_binding() -> None:
    first, second = drawing(RandomExchange, []), drawing(RandomExchange, [])
    names = ("q0", "q1", "q2")
    for queue in names:
        bound(first, "ignored", queue)
    for queue in reversed(names):
        bound(second, "ignored", queue)
    chosen = []
    for number in range(300):
        for exchange in (first, second):
            assert isinstance(exchange, RandomExchange)
            exchange.choice_seed = b"%d" % number
        assert routed(first, "k") == routed(second, "k")
        chosen += routed(first, "k")
    assert all(70 < chosen.count(queue) < 130 for queue in names)
