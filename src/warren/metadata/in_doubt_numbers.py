"""Tracks which queue numbers were certainly deleted by a command, so that their files may be deleted.

While the log is complete, each number up to the last one given whose queue does not exist was deleted by a
command. If a part of the log is
lost, nothing is known of the numbers up to there: they are in doubt, except those settled later because their
queue was deleted or an operator released them.
"""

from collections.abc import Iterable

from warren.metadata.commands import DONE, DoubtNumbers, Reply, SettleNumbers
from warren.metadata.events import Event, QueueDeleted
from warren.metadata.records import QueueRecord


class InDoubtNumbers:
    """The numbers of queues that may or may not have been deleted."""

    __slots__ = ("settled", "until")

    def __init__(self) -> None:
        # All numbers up to this one are in doubt unless they are settled; 0: none are.
        self.until = 0
        self.settled: set[int] = set()

    def doubt(self, command: DoubtNumbers) -> Reply:
        """Mark all numbers up to one as in doubt."""
        self.until = max(self.until, command.until)
        return DONE

    def settle(self, command: SettleNumbers) -> Reply:
        """Record that some numbers belong to no queue any more."""
        self.settled.update(command.numbers)
        return DONE

    def settle_deleted(self, events: Iterable[Event]) -> None:
        """Settle the numbers of queues that were deleted by a command."""
        self.settle_queues(event.queue for event in events if isinstance(event, QueueDeleted))

    def settle_queues(self, queues: Iterable[QueueRecord]) -> None:
        """Settle the numbers of `queues`."""
        self.settled.update(queue.number for queue in queues if 0 < queue.number <= self.until)

    def is_deleted(self, number: int, last: int) -> bool:
        """True if `number`, which no queue has, was deleted according to a log with numbers up to `last`."""
        if not number:
            # 0 is the number of queues that do not survive a restart.
            return True
        return number <= last and (number > self.until or number in self.settled)
