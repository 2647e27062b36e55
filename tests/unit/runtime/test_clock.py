"""The clock."""

import time

from warren.runtime.clock import Clock


def test_it_returns_unix_milliseconds() -> None:
    assert abs(Clock().now() - time.time() * 1000) < 1000


def test_it_never_goes_backwards() -> None:
    clock = Clock()
    readings = []
    for _ in range(1000):
        readings.append(clock.now())
        clock.follow()
    assert readings == sorted(readings)
