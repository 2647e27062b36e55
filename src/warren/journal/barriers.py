"""Waits until this node has applied everything that the metadata group had committed before.

So what a client was answered by any node is seen by who waits here afterwards.

One read of the group serves all who asked before it began. Those who ask meanwhile share the next one, so
that a node has one read under way, however many clients wait.
"""

from collections.abc import Callable

from warren.errors import AmqpError, MetadataTimeout
from warren.journal.journal_dependencies import ReplyFuture
from warren.journal.metadata_group import MetadataGroup
from warren.limits_metadata import METADATA_TIMEOUT_TICKS


class Barriers:
    """Those that wait for the read under way, and for the next one."""

    __slots__ = ("_make_future", "_name", "_next", "_waiting")

    def __init__(self, make_future: Callable[[], ReplyFuture]) -> None:
        self._make_future = make_future
        # The name of the read under way in the group; empty without one.
        self._name = b""
        self._waiting: list[_Barrier] = []
        self._next: list[_Barrier] = []

    async def wait(
        self, group: MetadataGroup, begin: Callable[[], None], ticks_max: int = METADATA_TIMEOUT_TICKS
    ) -> None:
        """Wait; `begin` is called when the group was asked.

        MetadataTimeout if no majority answers within `ticks_max` ticks.
        """
        barrier = _Barrier(ticks_max)
        if self._name:
            self._next.append(barrier)
        else:
            self._waiting.append(barrier)
            self._read(group)
            begin()
        if not barrier.is_over:
            barrier.future = self._make_future()
            await barrier.future
        if barrier.error is not None:
            raise barrier.error

    def tick(self, group: MetadataGroup) -> None:
        """Note that a tick has passed, and end those that have waited too long; `hand_over` follows."""
        for barrier in (*self._waiting, *self._next):
            barrier.ticks += 1
            if barrier.ticks >= barrier.ticks_max:
                barrier.error = timed_out()
                barrier.end()
        self._waiting = [barrier for barrier in self._waiting if not barrier.is_over]
        self._next = [barrier for barrier in self._next if not barrier.is_over]
        if self._name and not self._waiting:
            group.forget_read(self._name)
            self._end_read(group)

    def _read(self, group: MetadataGroup) -> None:
        """Ask the group for those that wait."""
        self._name = group.read(lambda: self._end_read(group))

    def _end_read(self, group: MetadataGroup) -> None:
        """End those that have waited for the read under way, and ask for the next ones.

        The group is told of something then, so that it sends what is asked.
        """
        ended, self._waiting, self._next = self._waiting, self._next, []
        self._name = b""
        if self._waiting:
            self._read(group)
        for barrier in ended:
            barrier.end()


class _Barrier:
    """One that waits."""

    __slots__ = ("error", "future", "is_over", "ticks", "ticks_max")

    def __init__(self, ticks_max: int) -> None:
        self.ticks_max = ticks_max
        self.future: ReplyFuture | None = None
        self.error: AmqpError | None = None
        self.is_over = False
        self.ticks = 0

    def end(self) -> None:
        """Continue who waits."""
        self.is_over = True
        if self.future is not None and not self.future.done():
            self.future.set_result(None)


def timed_out(*, may_take_effect: bool = False) -> MetadataTimeout:
    """Return the error of what no majority of the members has agreed on in time."""
    return MetadataTimeout(
        "the metadata store operation timed out: no majority of the members has agreed on it",
        may_take_effect=may_take_effect,
    )
