"""What a coroutine awaits: the answer of the broker to one method, or the end of the connection."""

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Answer(Generic[Value]):
    """An awaitable for one coroutine of `model/coroutine_driver`: it completes with a value or an error."""

    __slots__ = ("_callback", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: Value | None = None
        self._error: Exception | None = None
        self._callback: Callable[[object], None] | None = None

    def complete(self, value: Value) -> None:
        """Continue the coroutine with `value`; ignored if it was completed before."""
        if not self.is_done:
            self._value = value
            self._end()

    def fail(self, error: Exception) -> None:
        """Raise `error` in the coroutine; ignored if it was completed before."""
        if not self.is_done:
            self._error = error
            self._end()

    def _end(self) -> None:
        self.is_done = True
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(self)

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` once it is completed."""
        self._callback = callback

    def __await__(self) -> Generator["Answer[Value]", None, Value]:
        if not self.is_done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]
