"""What a quorum queue knows about its messages that came back: attempts, the time when they are ready, and
why they are held.

    (level, position >> 12) ─▶ page: runs of positions in order, with gaps between them or other values

Messages that come back together, as those of a consumer that failed, are few runs however many they are. A
run ends at the end of its page, so that a change moves at most a page. What a page contains depends on the
values of its positions only, not on the order in which they were set.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from msgspec import Struct

from warren.queues.quorum.batch_codec import HoldReason

_PAGE_SHIFT = 12
_PAGE_SIZE = 1 << _PAGE_SHIFT


class ReturnState(Struct, frozen=True, order=True):
    """What is known about a message that came back."""

    # The order is that of what must not be forgotten.
    hold: HoldReason = HoldReason.NONE
    # Attempts that failed, and all.
    failed: int = 0
    total: int = 0
    # The time (ms) when it is ready again.
    ready_at: int = 0


class ReturnedRange(Struct, frozen=True, order=True):
    """The positions from `first` up to, not including, `end` of `level`, with one state."""

    level: int
    first: int
    end: int
    state: ReturnState


NOT_RETURNED = ReturnState()


class _Page:
    """The runs of one page: their positions within it, and their states."""

    __slots__ = ("ends", "firsts", "states")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.ends: list[int] = []
        self.states: list[ReturnState] = []

    def get(self, at: int) -> ReturnState:
        place = bisect_right(self.firsts, at) - 1
        return self.states[place] if place >= 0 and at < self.ends[place] else NOT_RETURNED

    def replace(self, first: int, end: int, new: list[tuple[int, int, ReturnState]]) -> None:
        """Replace the states from `first` up to `end` by the runs in `new`."""
        low = bisect_right(self.ends, first)
        high = bisect_left(self.firsts, end)
        runs = []
        if low < high and self.firsts[low] < first:
            runs.append((self.firsts[low], first, self.states[low]))
        runs += new
        if low < high and self.ends[high - 1] > end:
            runs.append((end, self.ends[high - 1], self.states[high - 1]))
        # A neighbour that touches may have to be joined.
        if low and runs and self.ends[low - 1] == runs[0][0]:
            low -= 1
            runs.insert(0, (self.firsts[low], self.ends[low], self.states[low]))
        if high < len(self.firsts) and runs and self.firsts[high] == runs[-1][1]:
            runs.append((self.firsts[high], self.ends[high], self.states[high]))
            high += 1
        joined: list[tuple[int, int, ReturnState]] = []
        for run in runs:
            if joined and joined[-1][1] == run[0] and joined[-1][2] == run[2]:
                run = (joined.pop()[0], run[1], run[2])
            joined.append(run)
        self.firsts[low:high] = [run[0] for run in joined]
        self.ends[low:high] = [run[1] for run in joined]
        self.states[low:high] = [run[2] for run in joined]

    def within(self, first: int, end: int) -> Iterator[tuple[int, int, ReturnState]]:
        """The runs from `first` up to `end`, and the gaps between them as not returned."""
        behind = first
        for place in range(bisect_right(self.ends, first), bisect_left(self.firsts, end)):
            start, stop = max(self.firsts[place], first), min(self.ends[place], end)
            if start > behind:
                yield behind, start, NOT_RETURNED
            yield start, stop, self.states[place]
            behind = stop
        if behind < end:
            yield behind, end, NOT_RETURNED


class ReturnedMessages:
    """The states of the messages that came back, by level and position."""

    __slots__ = ("_pages", "run_count")

    def __init__(self) -> None:
        self._pages: dict[tuple[int, int], _Page] = {}
        # Runs in all pages.
        self.run_count = 0

    def get(self, level: int, position: int) -> ReturnState:
        """The state of the message at `position` of `level`, whether or not it came back."""
        page = self._pages.get((level, position >> _PAGE_SHIFT))
        return NOT_RETURNED if page is None else page.get(position & (_PAGE_SIZE - 1))

    def count_attempts(self, run: ReturnedRange) -> None:
        """Set attempts and time of all positions of `run`; those that are held remain so."""
        state = run.state
        self._change(run, lambda old: ReturnState(old.hold, state.failed, state.total, state.ready_at))

    def hold(self, run: ReturnedRange) -> None:
        """Set why the positions of `run` are held; their attempts and times remain."""
        hold = run.state.hold
        self._change(run, lambda old: ReturnState(hold, old.failed, old.total, old.ready_at))

    def remove(self, level: int, first: int, end: int) -> None:
        """Forget the positions from `first` up to `end`."""
        low, high = first >> _PAGE_SHIFT, (end - 1) >> _PAGE_SHIFT
        if high - low < len(self._pages):
            keys = [(level, number) for number in range(low, high + 1) if (level, number) in self._pages]
        else:
            keys = [key for key in self._pages if key[0] == level and low <= key[1] <= high]
        for key in keys:
            base = key[1] << _PAGE_SHIFT
            self._replace(key, max(first - base, 0), min(end - base, _PAGE_SIZE), [])

    def ranges(self) -> Iterator[ReturnedRange]:
        """All positions with a state, in order of level and position, as few ranges as possible."""
        last: ReturnedRange | None = None
        for level, number in sorted(self._pages):
            page, base = self._pages[level, number], number << _PAGE_SHIFT
            for first, end, state in zip(page.firsts, page.ends, page.states, strict=True):
                run = ReturnedRange(level, base + first, base + end, state)
                if last is not None:
                    if (last.level, last.end, last.state) == (level, run.first, state):
                        run = ReturnedRange(level, last.first, run.end, state)
                    else:
                        yield last
                last = run
        if last is not None:
            yield last

    def add(self, run: ReturnedRange) -> None:
        """Set the whole state of all positions of `run`."""
        self._change(run, lambda old: run.state)

    def forget_half(self) -> None:
        """Forget the half of the ranges with the fewest attempts, or those of them that are not held.

        A range that is held is forgotten only if all are: its messages are ready again after a restart.
        """
        found = sorted(self.ranges(), key=lambda run: (run.state, run))
        half = found[: (len(found) + 1) // 2]
        for run in [each for each in half if each.state.hold is HoldReason.NONE] or half:
            self.remove(run.level, run.first, run.end)

    def _change(self, run: ReturnedRange, change: Callable[[ReturnState], ReturnState]) -> None:
        """Replace the state of each position of `run` by what `change` makes of it."""
        first = run.first
        while first < run.end:
            key = run.level, first >> _PAGE_SHIFT
            base = key[1] << _PAGE_SHIFT
            end = min(run.end, base + _PAGE_SIZE)
            page = self._pages.setdefault(key, _Page())
            new = [(low, high, change(old)) for low, high, old in page.within(first - base, end - base)]
            self._replace(key, first - base, end - base, [each for each in new if each[2] != NOT_RETURNED])
            first = end

    def _replace(
        self, key: tuple[int, int], first: int, end: int, new: list[tuple[int, int, ReturnState]]
    ) -> None:
        page = self._pages[key]
        self.run_count -= len(page.firsts)
        page.replace(first, end, new)
        self.run_count += len(page.firsts)
        if not page.firsts:
            del self._pages[key]
