"""What a virtual host remembers of the positions of other brokers' queues."""

import random

import pytest
from tests.clock import ManualClock
from tests.sim.durable_broker import DurableBroker

from warren import limits_relay
from warren.vhost import published_positions
from warren.vhost.published_positions import PublishedPositions


@pytest.fixture
def broker() -> DurableBroker:
    return DurableBroker(random.Random(1))


def opened(broker: DurableBroker) -> PublishedPositions:
    return PublishedPositions(broker.store, broker.clock.turn)


def add(positions: PublishedPositions, user: str, origin: bytes, place: int) -> None:
    positions.begin()
    positions.of(user, origin).add(1, place)
    positions.end(user, origin)


def origin(number: int) -> bytes:
    return number.to_bytes(16, "big")


def users_with(positions: PublishedPositions, users: list[str], number: int) -> list[str]:
    return [user for user in users if positions.of(user, origin(number)).has(1, 1)]


def test_a_set_is_known_after_a_restart(broker: DurableBroker) -> None:
    add(opened(broker), "u", origin(1), 1)
    broker.sync()
    broker.crash(is_power_lost=True)
    found = opened(broker)
    assert found.of("u", origin(1)).has(1, 1)
    assert not found.of("u", origin(2)).has(1, 1)


def test_each_user_has_sets_of_its_own(broker: DurableBroker) -> None:
    positions = opened(broker)
    add(positions, "u", origin(1), 1)
    assert users_with(positions, ["u", "v"], 1) == ["u"]


def test_the_set_of_a_user_that_was_unused_for_the_longest_time_is_forgotten(
    broker: DurableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_positions, "POSITION_SOURCES_OF_USER_MAX", 3)
    positions = opened(broker)
    add(positions, "other", origin(9), 1)
    for number in (1, 2, 3):
        add(positions, "u", origin(number), 1)
    add(positions, "u", origin(1), 2)
    add(positions, "u", origin(4), 1)
    assert len(broker.store.markers) == 4
    assert [number for number in (1, 3, 4) if positions.of("u", origin(number)).has(1, 1)] == [1, 3, 4]
    assert not positions.of("u", origin(2)).has(1, 1)
    assert positions.of("other", origin(9)).has(1, 1)


def test_a_full_virtual_host_forgets_a_set_of_the_user_with_the_most(
    broker: DurableBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_positions, "POSITION_SOURCES_MAX", 3)
    positions = opened(broker)
    add(positions, "one", origin(1), 1)
    for number in (1, 2, 3):
        add(positions, "many", origin(number), 1)
    assert positions.of("one", origin(1)).has(1, 1)
    assert len(broker.store.markers) == 3


def test_a_set_that_was_unused_for_long_is_forgotten_at_the_next_start(broker: DurableBroker) -> None:
    add(opened(broker), "u", origin(1), 1)
    broker.sync()
    broker.clock.now += limits_relay.POSITION_SOURCE_AGE_MS_MAX
    broker.crash(is_power_lost=False)
    assert not opened(broker).of("u", origin(1)).has(1, 1)


def test_without_a_store_the_sets_are_in_memory() -> None:
    positions = PublishedPositions(None, ManualClock().turn)
    add(positions, "u", origin(1), 1)
    assert positions.of("u", origin(1)).has(1, 1)
