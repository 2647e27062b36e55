"""The clock: Unix time in milliseconds that never goes backwards."""

import time

_NANOSECONDS = 1_000_000
# Boot time and not monotonic time, so that messages expire while a laptop is suspended.
_read_ns = time.clock_gettime_ns
_BOOT_TIME = time.CLOCK_BOOTTIME


class Clock:
    """Advances with the uptime of the machine, and follows the wall clock only when that is ahead."""

    __slots__ = ("_offset_ms",)

    def __init__(self) -> None:
        self._offset_ms = wall_ms() - _uptime_ms()

    def now(self) -> int:
        """Unix time in milliseconds, never less than before."""
        # The body of `_uptime_ms`, inlined: it is called twice for each read.
        uptime_ns = _read_ns(_BOOT_TIME)
        return uptime_ns // _NANOSECONDS + self._offset_ms

    def follow(self) -> None:
        """Catch up with a wall clock that was set forward; one that was set back is ignored."""
        self._offset_ms = max(self._offset_ms, wall_ms() - _uptime_ms())


def _uptime_ms() -> int:
    return _read_ns(_BOOT_TIME) // _NANOSECONDS


def wall_ms() -> int:
    """Unix time in milliseconds by the wall clock, which may go backwards."""
    return time.time_ns() // _NANOSECONDS
