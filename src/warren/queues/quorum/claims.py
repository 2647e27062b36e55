"""What nodes hold of a quorum queue whose leader has changed, until all of them have said so.

Consumers and deliveries are not in the log. Whoever leads next hands out nothing until each node that is up
has attached its consumers again and said which messages they hold, or a time is over: then the messages below
the reach that nobody holds are ready again.
"""

from collections.abc import Callable, Iterable

from warren.client.answer import Answer
from warren.queues.queue import Consumer

# What is awaited beside the nodes, which are counted from 1: messages of leases, which are in the metadata.
LEASES = 0


class Claims:
    """The nodes that are awaited, and the consumers that begin when none is awaited any more."""

    __slots__ = ("_add", "_awaited", "_consumers", "_waiting", "is_complete")

    def __init__(self, add: Callable[[Consumer], None], awaited: Iterable[int] = ()) -> None:
        """`add` adds a consumer to the queue; `awaited` are the numbers of nodes, and LEASES."""
        self._add = add
        self._awaited = set(awaited)
        # In the order in which they came: the stamp of each consumer.
        self._consumers: dict[Consumer, int] = {}
        self._waiting: list[Answer[None]] = []
        # True when messages may be handed out.
        self.is_complete = not self._awaited

    def attach(self, consumer: Consumer, stamp: int) -> None:
        """Add `consumer`, which was attached to an earlier leader, in the order of stamps.

        The active one of a queue with single active consumer is the one with the lowest.
        """
        if self.is_complete:
            self._add(consumer)
        else:
            self._consumers[consumer] = stamp

    def discard(self, consumer: Consumer) -> None:
        """Forget `consumer`, if it waits to begin."""
        self._consumers.pop(consumer, None)

    def told(self, *nodes: int) -> None:
        """These `nodes` have said everything that they hold, have ended, or are not awaited any longer."""
        self._awaited.difference_update(nodes)
        if not self._awaited:
            self.complete()

    def complete(self) -> None:
        """Await nobody any more: consumers begin, and those go on that have waited."""
        if self.is_complete:
            return
        self.is_complete = True
        self._awaited.clear()
        consumers, self._consumers = self._consumers, {}
        for consumer in sorted(consumers, key=consumers.__getitem__):
            self._add(consumer)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.complete(None)

    async def wait(self) -> None:
        """Return when messages may be handed out."""
        if not self.is_complete:
            waiting: Answer[None] = Answer()
            self._waiting.append(waiting)
            await waiting

    def end(self, error: Exception) -> None:
        """Raise `error` in those that wait, since the queue does not lead any more."""
        self._consumers.clear()
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.fail(error)
