"""The time: Unix milliseconds that never go backwards."""

import time

_NANOSECONDS = 1_000_000


class Clock:
    """Advances with the machine's uptime, and follows the wall clock only when that is ahead."""

    __slots__ = ("_offset_ms",)

    def __init__(self) -> None:
        self._offset_ms = wall_ms() - _uptime_ms()

    def now(self) -> int:
        """Unix time in milliseconds, never less than before."""
        # What `_uptime_ms` does, without the call: it is asked twice for each read.
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _NANOSECONDS + self._offset_ms

    def follow(self) -> None:
        """Catch up with a wall clock that was set forward; one that was set back is waited for."""
        self._offset_ms = max(self._offset_ms, wall_ms() - _uptime_ms())


def _uptime_ms() -> int:
    # Boot time and not monotonic time: a suspended laptop's messages expire while it sleeps.
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _NANOSECONDS


def wall_ms() -> int:
    """Unix time in milliseconds, as it is said: it may go backwards."""
    return time.time_ns() // _NANOSECONDS
