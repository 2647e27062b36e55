"""An awaitable that completes when everything appended to a store before was synced."""

from collections.abc import Callable, Generator

from warren.model.confirm_listener import ConfirmListener
from warren.store.message_store import MessageStore
from warren.store.streams.stream_store import StreamStore


class WriteBarrier(ConfirmListener):
    """A confirm listener without a message, which is called when all earlier writes were synced."""

    def __init__(self, store: MessageStore | StreamStore) -> None:
        self._callbacks: list[Callable[[object], None]] = []
        self._is_done = False
        store.confirm(self, 0)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once, when all earlier writes were synced."""
        self._callbacks.append(callback)

    def expect(self, sequence: int) -> None:
        """Nothing to do: it waits already."""

    def done(self, first: int, last: int) -> None:
        """Complete the awaitable."""
        self._is_done = True
        for callback in self._callbacks:
            callback(self)

    def __await__(self) -> Generator["WriteBarrier", None, None]:
        if not self._is_done:
            yield self
