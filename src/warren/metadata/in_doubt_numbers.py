"""Which queues were certainly deleted by a command, so that what a disk still has of them may go.

A queue that survives has the index of its declaration for its number. As long as the log is all there, each
number up to its last index that no queue has was given up by a command, or is none. Once a part of the log is
lost, nobody knows of the numbers up to there: they are in doubt, but for those that are settled later, since
their queues were deleted or an operator has let them go.
"""

from collections.abc import Iterable

from warren.metadata.commands import DONE, DoubtNumbers, Reply, SettleNumbers
from warren.metadata.events import Event, QueueDeleted
from warren.metadata.records import QueueRecord


class InDoubtNumbers:
    """The numbers of queues of which nobody knows whether they were deleted."""

    __slots__ = ("settled", "until")

    def __init__(self) -> None:
        # All up to this one are in doubt, but for those that are settled; 0: none.
        self.until = 0
        self.settled: set[int] = set()

    def doubt(self, command: DoubtNumbers) -> Reply:
        """Doubt all numbers up to one."""
        self.until = max(self.until, command.until)
        return DONE

    def settle(self, command: SettleNumbers) -> Reply:
        """Some numbers are nobody's any more."""
        self.settled.update(command.numbers)
        return DONE

    def settle_deleted(self, events: Iterable[Event]) -> None:
        """Queues that were deleted by a command are settled."""
        self.settle_queues(event.queue for event in events if isinstance(event, QueueDeleted))

    def settle_queues(self, queues: Iterable[QueueRecord]) -> None:
        """The same of `queues`."""
        self.settled.update(queue.number for queue in queues if 0 < queue.number <= self.until)

    def is_deleted(self, number: int, index: int) -> bool:
        """True if `number`, which no queue has, was given up in a log that goes up to `index`."""
        if not number:
            # It is what queues have that do not survive.
            return True
        return number <= index and (number > self.until or number in self.settled)
