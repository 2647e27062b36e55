"""The pauses between attempts to connect: they double, have a bound, and are not the same everywhere."""

import pytest

from warren.cluster.redial import Redial
from warren.limits_cluster import (
    CLUSTER_CONNECTION_GOOD_MS,
    CLUSTER_REDIAL_MAX_MS,
    CLUSTER_REDIAL_MIN_MS,
)


def test_the_first_attempt_is_due_at_once() -> None:
    assert Redial(bytes, 7).due == 7


def test_each_pause_is_twice_the_one_before_up_to_a_bound() -> None:
    redial = Redial(bytes, 0)
    pauses = []
    for _ in range(7):
        redial.failed(0)
        pauses.append(redial.due)
    assert pauses == [50, 100, 200, 400, 800, CLUSTER_REDIAL_MAX_MS, CLUSTER_REDIAL_MAX_MS]


@pytest.mark.parametrize(("octet", "pause"), [(0, 50), (128, 38), (255, 26)])
def test_chance_takes_up_to_a_half_of_a_pause(octet: int, pause: int) -> None:
    redial = Redial(lambda _: bytes((octet,)), 0)
    redial.failed(0)
    assert redial.due == pause


def test_only_a_connection_that_has_lasted_makes_the_next_pause_short() -> None:
    redial = Redial(bytes, 0)
    for _ in range(4):
        redial.failed(0)
    redial.connected(0)
    redial.lost(CLUSTER_CONNECTION_GOOD_MS - 1)
    assert redial.due == CLUSTER_CONNECTION_GOOD_MS - 1 + 800
    redial.connected(10_000)
    redial.lost(10_000 + CLUSTER_CONNECTION_GOOD_MS)
    assert redial.due == 10_000 + CLUSTER_CONNECTION_GOOD_MS + CLUSTER_REDIAL_MIN_MS
