"""One write per connection and turn of the loop, however many messages made its output."""

import asyncio
from typing import Protocol


class Flushable(Protocol):
    """What the flusher calls once after it was marked."""

    def flush(self) -> None:
        """Write what there is."""

    def process_more(self) -> None:
        """Do another turn's work of what was read."""


class Flusher:
    """Remembers who has output, and calls each once when everything readable has been read."""

    __slots__ = ("_busy", "_dirty", "_full", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._dirty: list[Flushable] = []
        self._full: list[Flushable] = []
        self._busy: list[Flushable] = []

    def mark(self, owner: Flushable) -> None:
        """Flush `owner` in the next turn."""
        if not self._dirty:
            self._loop.call_soon(self._flush)
        self._dirty.append(owner)

    def mark_full(self, owner: Flushable) -> None:
        """Flush `owner` when the read that is being obeyed is over."""
        self._full.append(owner)

    def flush_full(self) -> None:
        """Flush those that can take no more, once each.

        One socket may be read many times in a turn, which a fast publisher keeps up for ever: without this,
        its consumer would get one outbox for all that was read.
        """
        if self._full:
            full, self._full = self._full, []
            for owner in full:
                owner.flush()

    def mark_busy(self, owner: Flushable) -> None:
        """Let `owner` go on in the next turn, after everybody else had theirs."""
        if not self._busy:
            self._loop.call_soon(self._process_busy)
        self._busy.append(owner)

    def _process_busy(self) -> None:
        # What others are owed does not wait for the work of those who have too much.
        self._flush()
        busy, self._busy = self._busy, []
        for owner in busy:
            owner.process_more()

    def _flush(self) -> None:
        # Who is marked from here on is flushed in the turn after: nobody can keep this one busy.
        dirty, self._dirty = self._dirty, []
        for owner in dirty:
            owner.flush()
