"""The answers that a home owes for the publishes of one node to one queue, in the order of the publishes.

Publishes are numbered from 1 on. Those that the queue has to write first are due, until it says that they are
safe or refused. Most queues do so in order, so that the due ones are one run, of which the ends are stored.

    answered │ settled │ run: due │ others: due, except those that were answered ahead │ last
"""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener


class PublishAnswers(ConfirmListener):
    """Collects the answers of one queue, until `take` returns them."""

    __slots__ = ("_answered", "_changed", "_is_told", "_others", "_refused", "_run_end", "_run_first", "last")

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called when there may be answers, once until they are taken."""
        self._changed = changed
        self._is_told = False
        # The number of the latest publish, and of the latest one whose answer was taken.
        self.last = 0
        self._answered = 0
        # The run [first, end) of those that are due, and due ones behind it, in order.
        self._run_first = 0
        self._run_end = 0
        self._others: dict[int, None] = {}
        self._refused: set[int] = set()

    def next(self) -> int:
        """The number of the message that is being published."""
        self.last += 1
        if not self._is_told:
            self._tell()
        return self.last

    def expect(self, sequence: int) -> None:
        """The queue will say later what becomes of publish `sequence`, the latest."""
        if self._others:
            self._others[sequence] = None
        elif self._run_first == self._run_end:
            self._run_first = sequence
            self._run_end = sequence + 1
        elif sequence == self._run_end:
            self._run_end = sequence + 1
        else:
            self._others[sequence] = None

    def done(self, first: int, last: int) -> None:
        """The publishes from `first` to `last` are safe."""
        if not self._is_told:
            self._tell()
        if first == self._run_first and last < self._run_end:
            self._run_first = last + 1
        else:
            self._end_run()
            for sequence in range(first, last + 1):
                del self._others[sequence]
        if self._run_first == self._run_end and self._others:
            self._begin_run()

    def refused(self, sequence: int) -> None:
        """Publish `sequence` is refused, which was expected."""
        self._refused.add(sequence)
        self.done(sequence, sequence)

    def refuse(self, sequence: int) -> None:
        """Publish `sequence`, the latest, is refused at once."""
        self._refused.add(sequence)

    def take(self) -> list[tuple[bool, int]]:
        """The answers to the next publishes, as runs: whether they are refused, and how many."""
        self._is_told = False
        settled = self.last if self._run_first == self._run_end else self._run_first - 1
        count = settled - self._answered
        first, self._answered = self._answered + 1, settled
        if count <= 0:
            return []
        if not self._refused:
            return [(False, count)]
        runs: list[tuple[bool, int]] = []
        for sequence in range(first, settled + 1):
            is_refused = sequence in self._refused
            if runs and runs[-1][0] == is_refused:
                runs[-1] = is_refused, runs[-1][1] + 1
            else:
                runs.append((is_refused, 1))
        self._refused.difference_update(range(first, settled + 1))
        return runs

    def _tell(self) -> None:
        self._is_told = True
        self._changed()

    def _end_run(self) -> None:
        """Make the run part of the others, in front of them."""
        if self._run_first < self._run_end:
            self._others = dict.fromkeys(range(self._run_first, self._run_end)) | self._others
        self._run_first = self._run_end = 0

    def _begin_run(self) -> None:
        """Make the first of the others the run, with those that follow it."""
        first = end = next(iter(self._others))
        while end in self._others:
            del self._others[end]
            end += 1
        self._run_first = first
        self._run_end = end
