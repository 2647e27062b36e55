"""The publishes to one remote queue that its home has not answered yet, in order.

The home answers in the order of the publishes, so that they need no numbers. Those of one channel usually
follow one another: a run of them is stored as its two ends.
"""

from collections import deque

from warren.model.confirm_listener import ConfirmListener


class UnconfirmedPublishes:
    """Publishes that wait for an answer, `count` of them."""

    __slots__ = ("_last", "_runs", "count")

    def __init__(self) -> None:
        self.count = 0
        self._runs: deque[PublishRun] = deque()
        # The last run, which may be continued.
        self._last: PublishRun | None = None

    def add(self, listener: ConfirmListener, sequence: int) -> None:
        """Add publish `sequence` of `listener`."""
        listener.expect(sequence)
        self.count += 1
        last = self._last
        if last is not None and last.listener is listener and sequence == last.end:
            last.end = sequence + 1
            return
        self._last = PublishRun(listener, sequence)
        self._runs.append(self._last)

    def confirm(self, count: int) -> None:
        """The next `count` publishes are safe; there are so many."""
        self.count -= count
        while count:
            run = self._runs[0]
            first = run.first
            done = min(count, run.end - first)
            count -= done
            self._pass(run, done)
            run.listener.done(first, first + done - 1)

    def refuse(self, count: int) -> None:
        """The next `count` publishes are refused; there are so many."""
        self.count -= count
        while count:
            run = self._runs[0]
            sequence = run.first
            count -= 1
            self._pass(run, 1)
            run.listener.refused(sequence)

    def _pass(self, run: "PublishRun", count: int) -> None:
        """Remove the first `count` publishes of `run`, the first one, before its listener is called."""
        run.first += count
        if run.first == run.end:
            self._runs.popleft()
            if run is self._last:
                self._last = None


class PublishRun:
    """The publishes [first, end) of one listener."""

    __slots__ = ("end", "first", "listener")

    def __init__(self, listener: ConfirmListener, sequence: int) -> None:
        self.listener = listener
        self.first = sequence
        self.end = sequence + 1
