"""What one node has published to a quorum queue, by number, until a leader has told what became of it.

Numbers are 1, 2, 3 … in the order of the publishes. A new leader gets all again that are not answered, in
order, and recognises what it has. What is not answered is always this, after a leader is lost:

    what a leader may have placed │ what no leader has placed

A leader that refuses a publish refuses all that follow, until it is told that it resumes (`refuse`). So no
number is left out: those of refused publishes are given again. It may refuse the first that follows as well,
and then answers in one item for publishes that were sent before and after it was told to resume.
"""

from collections import deque

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message, body_size_of


class NumberedPublish:
    """One publish: its message, and who waits for its answer."""

    __slots__ = ("listener", "message", "more", "sequence")

    def __init__(self, message: Message, listener: ConfirmListener | None, sequence: int) -> None:
        self.message = message
        # None if nobody waits.
        self.listener = listener
        self.sequence = sequence
        # Other publishes that are answered with this one: listener, first and last; None for none.
        self.more: list[tuple[ConfirmListener, int, int]] | None = None

    def done(self) -> None:
        """It is safe."""
        if self.listener is not None:
            self.listener.done(self.sequence, self.sequence)
        for listener, first, last in self.more or ():
            listener.done(first, last)

    def refused(self) -> None:
        """It is refused."""
        if self.listener is not None:
            self.listener.refused(self.sequence)
        for listener, first, last in self.more or ():
            for sequence in range(first, last + 1):
                listener.refused(sequence)


class NumberedPublishes(ConfirmListener):
    """The publishes that are not answered; as a listener, a leader on this node answers them by number."""

    __slots__ = ("_publishes", "_refused_count", "byte_count", "first")

    def __init__(self) -> None:
        self._publishes: deque[NumberedPublish] = deque()
        # How many of them the leader is known to refuse: they have no numbers any more.
        self._refused_count = 0
        # The size of the bodies of all.
        self.byte_count = 0
        # The number of the first one that is not known to be refused, or of the next one.
        self.first = 1

    @property
    def count(self) -> int:
        """How many are not answered."""
        return len(self._publishes)

    @property
    def last(self) -> int:
        """The number of the last one that has a number; below `first` if there is none."""
        return self.first + len(self._publishes) - self._refused_count - 1

    def add(self, message: Message, listener: ConfirmListener | None, sequence: int) -> None:
        """Add a publish, with the next number."""
        if listener is not None:
            listener.expect(sequence)
        self._publishes.append(NumberedPublish(message, listener, sequence))
        self.byte_count += body_size_of(message)

    def add_placed(self, number: int, publishes: list[NumberedPublish]) -> None:
        """Add what a leader on this node has placed and not committed, from `number` on; known ones again."""
        if not self._publishes:
            self.first = number
        for known, publish in enumerate(publishes, number):
            if known > self.last:
                self._publishes.append(publish)
                self.byte_count += body_size_of(publish.message)

    def numbered(self) -> list[NumberedPublish]:
        """Those that have numbers, from `first` on."""
        return list(self._publishes)[self._refused_count :]

    def continue_behind(self, number: int) -> None:
        """Give the next numbers behind `number`, the last one that a leader on this node has given."""
        if not self._publishes:
            self.first = number + 1

    def confirm(self, count: int) -> bool:
        """The next `count` are committed; False if there are not so many."""
        if self._refused_count or count > len(self._publishes):
            return False
        self.first += count
        for _ in range(count):
            self._take().done()
        return True

    def refuse(self, count: int) -> int:
        """Refuse the next `count`, as far as the leader is known to refuse them; returns how many that are.

        If that is not all, the leader has begun to refuse again: see `refuse_sent`.
        """
        known = min(count, self._refused_count)
        self._refused_count -= known
        for _ in range(known):
            self._take().refused()
        return known

    @property
    def is_refused(self) -> bool:
        """True if the leader is known to refuse what was sent."""
        return self._refused_count > 0

    def refuse_sent(self) -> None:
        """The leader has refused the next one, and refuses all that were sent, until it is told to resume."""
        self._refused_count = len(self._publishes)

    def forget_refused(self) -> None:
        """Refuse what the lost leader has refused, as far as it was not answered."""
        count, self._refused_count = self._refused_count, 0
        for _ in range(count):
            self._take().refused()

    def refuse_from(self, number: int) -> None:
        """Refuse all from `number` on, of which no leader has any."""
        refused = [self._publishes.pop() for _ in range(number, self.last + 1)]
        for publish in reversed(refused):
            self.byte_count -= body_size_of(publish.message)
            publish.refused()

    def refuse_all(self) -> None:
        """Refuse everything, since no leader will answer."""
        self.forget_refused()
        self.refuse_from(self.first)

    def complete(self) -> None:
        """Confirm everything, since the queue was deleted: a message counts as routed."""
        self.forget_refused()
        self.confirm(len(self._publishes))

    # --- as the listener of a leader on this node ---------------------------------------------------

    def expect(self, sequence: int) -> None:
        """Publish `sequence` will be answered, which is known."""

    def done(self, first: int, last: int) -> None:
        """The publishes up to number `last` are committed."""
        if last >= self.first:
            self.confirm(last - self.first + 1)

    def refused(self, sequence: int) -> None:
        """Not called: a leader that ends returns what it has placed."""
        raise AssertionError(sequence)

    # --- private ------------------------------------------------------------------------------------

    def _take(self) -> NumberedPublish:
        publish = self._publishes.popleft()
        self.byte_count -= body_size_of(publish.message)
        return publish
