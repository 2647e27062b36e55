"""Combines output into one write per connection and turn of the event loop."""

import asyncio
from typing import Protocol


class Flushable(Protocol):
    """An object that the flusher calls once after it was marked."""

    def flush(self) -> None:
        """Write the pending output."""

    def process_more(self) -> None:
        """Process another turn's work of what was read."""


class Flusher:
    """Calls each marked connection once, when everything readable has been read."""

    __slots__ = ("_busy", "_call_soon", "_dirty", "_full", "_write")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # The methods that each turn needs, looked up once.
        self._call_soon = loop.call_soon
        self._write = self._flush
        self._dirty: list[Flushable] = []
        self._full: list[Flushable] = []
        self._busy: list[Flushable] = []

    def mark(self, owner: Flushable) -> None:
        """Flush `owner` in the next turn."""
        if not self._dirty:
            self._call_soon(self._write)
        self._dirty.append(owner)

    def mark_full(self, owner: Flushable) -> None:
        """Flush `owner` when the current read has been processed."""
        self._full.append(owner)

    def flush_full(self) -> None:
        """Flush the connections whose outbox is full, once each.

        One socket may be read many times in a turn by a fast publisher; without this, its consumer would get
        one outbox for all that was read.
        """
        if self._full:
            full, self._full = self._full, []
            for owner in full:
                owner.flush()

    def mark_busy(self, owner: Flushable) -> None:
        """Continue `owner` in the next turn, after all others had theirs."""
        if not self._busy:
            self._call_soon(self._process_busy)
        self._busy.append(owner)

    def _process_busy(self) -> None:
        # Output for other clients does not wait for connections with too much work.
        self._flush()
        busy, self._busy = self._busy, []
        for owner in busy:
            owner.process_more()

    def _flush(self) -> None:
        # Connections marked from here on are flushed in the next turn, so that none can prolong this one.
        dirty, self._dirty = self._dirty, []
        for owner in dirty:
            owner.flush()
