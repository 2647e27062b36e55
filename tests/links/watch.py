"""Waits for what a proof needs, tells how far it is, and ends it when it takes too long."""

import time
from collections.abc import Callable, Sequence

from tests.links.traffic import Collector, Publisher

PROGRESS_S = 5
_POLL_S = 0.05


class Watch:
    """The publishers and consumers of one proof."""

    def __init__(self, seconds_max: float, say: Callable[[str], None]) -> None:
        self._started = time.monotonic()
        self._seconds_max = seconds_max
        self._said_at = self._started
        self.say = say
        self.publishers: Sequence[Publisher] = ()
        self.collectors: Sequence[Collector] = ()

    @property
    def seconds(self) -> float:
        """Seconds since the begin."""
        return time.monotonic() - self._started

    def wait(self, what: str, is_there: Callable[[], bool]) -> None:
        """Wait until `is_there`. Raises AssertionError if the time is over, and the error of a thread."""
        while not is_there():
            for worker in (*self.publishers, *self.collectors):
                if worker.error is not None:
                    raise worker.error
            assert self.seconds < self._seconds_max, f"{self._state()}; still waiting for {what}"
            if time.monotonic() - self._said_at > PROGRESS_S:
                self._said_at = time.monotonic()
                self.say(f"{self._state()}; waiting for {what}")
            time.sleep(_POLL_S)

    def sleep(self, seconds: float) -> None:
        """Wait for so long."""
        until = time.monotonic() + seconds
        self.wait("the end of a pause", lambda: time.monotonic() >= until)

    def wait_for_all(self) -> None:
        """Wait until everything is confirmed, and each consumer has it in its present session."""
        self.wait("confirms", lambda: all(each.is_done for each in self.publishers))
        wanted = {(each.source, serial) for each in self.publishers for serial in each.confirmed}
        for collector in self.collectors:
            self.wait("messages", lambda c=collector: c.has(wanted))

    def _state(self) -> str:
        confirmed = sum(len(each.confirmed) for each in self.publishers)
        arrived = " and ".join(f"{len(each.seen):,}" for each in self.collectors)
        return f"{self.seconds:.0f} s: {confirmed:,} confirmed, {arrived} arrived"
