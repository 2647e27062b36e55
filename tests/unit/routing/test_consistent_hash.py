"""The consistent hash exchange: shares, movement when bindings change, and RabbitMQ's refusals."""

from collections import Counter

import pytest
from tests.unit.routing.samples import PLAIN, bound, made, routed, sent

from warren.errors import PreconditionFailed
from warren.limits import CONSISTENT_HASH_WEIGHT_MAX
from warren.routing.consistent_hash import ConsistentHashExchange
from warren.routing.exchange import BY_PROPERTIES, Exchange
from warren.wire.table import Int32

KEYS = [f"key-{number}" for number in range(10_000)]


def owners(exchange: Exchange) -> dict[str, object]:
    """The queue of each key."""
    return {key: next(iter(exchange.route(key, PLAIN))) for key in KEYS}


def test_ten_thousand_keys_are_shared_in_proportion_to_the_weights() -> None:
    exchange = made(ConsistentHashExchange)
    for queue, weight in (("q1", "1"), ("q2", "2"), ("q3", "1")):
        bound(exchange, weight, queue)
    shares = Counter(owners(exchange).values())
    assert abs(shares["q1"] - 2500) < 200
    assert abs(shares["q2"] - 5000) < 200
    assert abs(shares["q3"] - 2500) < 200


def test_a_key_is_always_routed_to_one_queue() -> None:
    exchange = made(ConsistentHashExchange)
    for number in range(5):
        bound(exchange, "1", f"q{number}")
    assert len(routed(exchange, "some key")) == 1
    assert owners(exchange) == owners(exchange)


def test_a_new_queue_receives_its_share_and_no_other_key_moves() -> None:
    exchange = made(ConsistentHashExchange)
    for number in range(4):
        bound(exchange, "1", f"q{number}")
    before = owners(exchange)
    bound(exchange, "1", "new")
    after = owners(exchange)
    moved = [key for key in KEYS if before[key] != after[key]]
    assert {after[key] for key in moved} == {"new"}
    assert abs(len(moved) - 2000) < 200


def test_only_the_keys_of_a_removed_queue_move() -> None:
    exchange = made(ConsistentHashExchange)
    bindings = [bound(exchange, "1", f"q{number}") for number in range(4)]
    before = owners(exchange)
    exchange.unbind(bindings[2])
    after = owners(exchange)
    assert all(before[key] == "q2" for key in KEYS if before[key] != after[key])
    assert "q2" not in after.values()


def test_a_heavier_queue_only_gains_keys_and_a_lighter_one_only_loses_them() -> None:
    exchange = made(ConsistentHashExchange)
    light = bound(exchange, "1", "q0")
    for number in range(1, 4):
        bound(exchange, "1", f"q{number}")
    before = owners(exchange)
    exchange.unbind(light)
    bound(exchange, "3", "q0")
    after = owners(exchange)
    assert {after[key] for key in KEYS if before[key] != after[key]} == {"q0"}


def test_the_order_of_binding_does_not_matter() -> None:
    one, other = made(ConsistentHashExchange), made(ConsistentHashExchange)
    for number in range(6):
        bound(one, "1", f"q{number}")
        bound(other, "1", f"q{5 - number}")
    assert owners(one) == owners(other)


def test_the_oldest_binding_of_a_queue_determines_its_weight() -> None:
    exchange = made(ConsistentHashExchange)
    first = bound(exchange, "1", "q0")
    bound(exchange, "3", "q0")
    bound(exchange, "1", "q1")
    assert abs(Counter(owners(exchange).values())["q0"] - 5000) < 300
    exchange.unbind(first)
    assert abs(Counter(owners(exchange).values())["q0"] - 7500) < 300


def test_without_bindings_it_routes_nowhere() -> None:
    exchange = made(ConsistentHashExchange)
    assert routed(exchange, "k") == []
    exchange.unbind(bound(exchange, "1", "q"))
    assert routed(exchange, "k") == []


def test_a_header_can_be_hashed_instead_of_the_key() -> None:
    exchange = made(ConsistentHashExchange, hash_header="id")
    for number in range(20):
        bound(exchange, "1", f"q{number}")
    assert exchange.decides == BY_PROPERTIES
    reached = {tuple(routed(exchange, key, sent({"id": "seven"}))) for key in KEYS[:20]}
    assert len(reached) == 1
    spread = {tuple(routed(exchange, "", sent({"id": Int32(number)}))) for number in range(100)}
    assert len(spread) > 10


def test_messages_without_the_header_or_property_go_to_one_queue() -> None:
    for argument in ({"hash_header": "id"}, {"hash_property": "message_id"}):
        exchange = made(ConsistentHashExchange, **argument)
        for number in range(20):
            bound(exchange, "1", f"q{number}")
        assert len({tuple(routed(exchange, key)) for key in KEYS[:20]}) == 1


def test_a_property_can_be_hashed_instead_of_the_key() -> None:
    exchange = made(ConsistentHashExchange, hash_property="correlation_id")
    for number in range(20):
        bound(exchange, "1", f"q{number}")
    one = sent(correlation_id="one")
    assert len({tuple(routed(exchange, key, one)) for key in KEYS[:20]}) == 1
    assert len({tuple(routed(exchange, "", sent(correlation_id=key))) for key in KEYS[:100]}) > 10


@pytest.mark.parametrize("key", ["1", "99", "+1", "01", str(CONSISTENT_HASH_WEIGHT_MAX)])
def test_a_weight_is_a_positive_integer_as_erlang_parses_it(key: str) -> None:
    made(ConsistentHashExchange).validate_binding(key, {})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("abc", 'The binding key must be an integer: <<"abc">>'),
        ("", "The binding key must be an integer: <<>>"),
        ("1.5", 'The binding key must be an integer: <<"1.5">>'),
        (" 1", 'The binding key must be an integer: <<" 1">>'),
        ("1_0", 'The binding key must be an integer: <<"1_0">>'),
        ("0", "The binding key must be greater than 0"),
        ("-1", "The binding key must be greater than 0"),
        ("1000001", "The binding key must not be greater than 1000000"),
        ("9" * 255, "The binding key must not be greater than 1000000"),
    ],
)
def test_any_other_weight_is_refused(key: str, message: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        made(ConsistentHashExchange).validate_binding(key, {})
    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"hash-header": "h", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-property": "user_id"}, "Unsupported property: user_id"),
        ({"hash-property": ""}, "Unsupported property: "),
        ({"hash-header": 5}, "hash-header must be a string"),
        ({"hash-property": None}, "hash-property must be a string"),
    ],
)
def test_the_argument_of_what_to_hash_must_be_single_and_known(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        ConsistentHashExchange.validate_arguments(arguments)
    assert refusal.value.message == message


def test_valid_arguments_of_what_to_hash_are_accepted() -> None:
    for name in ("message_id", "correlation_id", "timestamp"):
        ConsistentHashExchange.validate_arguments({"hash-property": name})
    ConsistentHashExchange.validate_arguments({"hash-header": ""})
    ConsistentHashExchange.validate_arguments({})
