"""Wakes a virtual host when something in it is due: messages and queues expire without traffic, too."""

import asyncio

from warren.runtime.clock import Clock
from warren.runtime.timers import Timer
from warren.vhost.vhost import VirtualHost


class VhostExpiry:
    """The alarm of one virtual host, set by it."""

    def __init__(self, vhost: VirtualHost, clock: Clock) -> None:
        self._vhost = vhost
        self._timer = Timer(asyncio.get_running_loop(), clock, self._ring)
        vhost.expiry.notify = self._timer.set
        earliest = vhost.expiry.earliest()
        if earliest is not None:
            self._timer.set(earliest)

    def stop(self) -> None:
        """The virtual host is gone."""
        self._timer.stop()

    def _ring(self, now: int) -> int | None:
        self._vhost.expire(now)
        return self._vhost.expiry.earliest()
