"""Wakes a virtual host when messages or queues in it are due to expire, even without traffic."""

import asyncio

from warren.runtime.timers import Timer
from warren.vhost.vhost import VirtualHost


class VhostExpiry:
    """The expiry timer of one virtual host, which the virtual host sets."""

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self._timer = Timer(asyncio.get_running_loop(), vhost.turn, self._ring)
        vhost.expiry.notify = self._timer.set
        earliest = vhost.expiry.earliest()
        if earliest is not None:
            self._timer.set(earliest)

    def stop(self) -> None:
        """Stop the timer: the virtual host was deleted or stopped."""
        self._timer.stop()

    def _ring(self, _: int) -> int | None:
        self._vhost.expire()
        return self._vhost.expiry.earliest()
