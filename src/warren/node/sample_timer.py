"""Samples the metrics of a node at whole intervals, one part of a pass in each turn of the loop."""

import asyncio
import logging

from warren.metrics.sampler import Sampler
from warren.model.coroutine_driver import Later
from warren.runtime.clock import Clock
from warren.runtime.turns import piece_by_piece

logger = logging.getLogger("warren.management")


class SampleTimer:
    """The timer of one sampler."""

    def __init__(self, sampler: Sampler, clock: Clock, later: Later) -> None:
        self._sampler = sampler
        self._clock = clock
        self._later = later
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start sampling at the next whole interval."""
        delay_ms = self._sampler.due_in(self._clock.now())
        self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._sample)

    def stop(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sample(self) -> None:
        over = piece_by_piece(self._sampler.sample(self._clock.now()), self._later)
        over.add_done_callback(self._sampled)

    def _sampled(self, over: "asyncio.Future[None]") -> None:
        error = over.exception()
        if error is not None:
            logger.error("cannot take samples of the statistics", exc_info=error)
        if self._timer is not None:
            self.begin()
