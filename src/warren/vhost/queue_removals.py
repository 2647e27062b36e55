"""The queues of a virtual host on this node whose deletion is being agreed on.

In a cluster that takes a moment, in which the queue is still there. A client that has ended its last
consumer, and declares it again, must get another queue rather than the one that is about to go.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

T = TypeVar("T")


class QueueRemovals:
    """The deletions that have begun here and are not over, by name of the queue."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: dict[str, _Removal] = {}

    async def run(self, name: str, removal: Awaitable[T]) -> T:
        """The result of `removal`, which deletes the queue `name`; `wait` waits for it meanwhile."""
        begun = self._begun[name] = _Removal()
        try:
            return await removal
        finally:
            if self._begun.get(name) is begun:
                del self._begun[name]
            begun.finish()

    async def wait(self, name: str) -> bool:
        """Wait until the deletion of the queue `name` is over, done or failed; False if there is none."""
        begun = self._begun.get(name)
        if begun is None:
            return False
        await begun
        return True


class _Removal:
    """An awaitable that completes when one deletion is over."""

    __slots__ = ("_callbacks", "_is_over")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[object], None]] = []
        self._is_over = False

    def __await__(self) -> Generator["_Removal", None, None]:
        if not self._is_over:
            yield self

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` when the deletion is over."""
        self._callbacks.append(callback)

    def finish(self) -> None:
        """The deletion is over."""
        self._is_over = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
