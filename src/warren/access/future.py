"""Futures that code below the waterline can await without an event loop."""

from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

Value_co = TypeVar("Value_co", covariant=True)


class Future(Protocol[Value_co]):
    """Port: a future that several coroutines can await."""

    def __await__(self) -> Generator[object, None, Value_co]:
        """Wait for the result."""

    def add_done_callback(self, callback: Callable[[object], None], /) -> object:
        """Call `callback` once, when the result is available."""
