"""Elapsed time follows a clock, and not its jumps."""

from warren.cluster.elapsed_time import ElapsedTime
from warren.limits_cluster import CLUSTER_ELAPSED_MS_MAX


def test_time_passes_as_on_the_clock() -> None:
    time = ElapsedTime(1_000)
    for clock in (1_000, 1_007, 1_200):
        time.follow(clock)
    assert time.now == 200


def test_a_clock_that_is_set_back_or_far_forward_changes_little() -> None:
    time = ElapsedTime(10_000_000)
    time.follow(10_000_000 - 3_600_000)
    assert time.now == 0
    time.follow(10_000_000)
    assert time.now == CLUSTER_ELAPSED_MS_MAX


def test_a_time_is_converted_to_what_the_clock_will_show() -> None:
    time = ElapsedTime(1_000)
    time.follow(1_100)
    assert time.clock_at(150) == 1_150
    assert time.clock_at(40) == 1_100
