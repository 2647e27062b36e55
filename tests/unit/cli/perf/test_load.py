"""How a load distributes its queues over producers and consumers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.cli.perf.load import Load
from warren.client.uri import DEFAULT_URI, parse_uri

TARGET = parse_uri(DEFAULT_URI)
SOME = st.integers(1, 30)


@given(SOME, SOME, SOME)
def test_every_queue_has_a_producer_and_a_consumer(producers: int, consumers: int, queues: int) -> None:
    load = Load(target=TARGET, producers=producers, consumers=consumers, queues=queues)
    written = {queue for number in range(producers) for queue in load.producer_queues(number)}
    read = {queue for number in range(consumers) for queue in load.consumer_queues(number)}
    assert written == read == set(range(queues))


def test_a_fanout_makes_one_delivery_per_queue() -> None:
    assert Load(target=TARGET, exchange_type="fanout", queues=10).copies == 10
    assert Load(target=TARGET, queues=10).copies == 1


def test_fewer_large_messages_are_in_flight() -> None:
    assert Load(target=TARGET, size=1 << 20).in_flight_limit < Load(target=TARGET).in_flight_limit
    assert Load(target=TARGET, in_flight_max=7).in_flight_limit == 7


@pytest.mark.parametrize(
    ("settings", "publishes"),
    [
        ({}, 1),
        ({"queues": 100}, 100),
        ({"queues": 100, "producers": 10}, 100),
        ({"queues": 2, "producers": 10}, 10),
        ({"producers": 3, "exchange_type": "topic", "bindings": 7}, 21),
        ({"waiting": 50, "ack_every": 1, "prefetch": 1}, 50),
    ],
)
def test_a_round_is_long_enough_to_write_to_every_queue(settings: dict[str, object], publishes: int) -> None:
    assert Load(target=TARGET, **settings).round == publishes  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"producers": 0},
        {"rate": 10, "size": 15},
        {"prefetch": 10, "ack_every": 11},
        {"exchange_type": "topic"},
    ],
)
def test_an_impossible_load_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Load(target=TARGET, **settings)  # type: ignore[arg-type]
