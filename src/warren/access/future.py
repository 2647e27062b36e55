"""What somebody waits for without a loop."""

from collections.abc import Callable, Generator
from typing import Protocol, TypeVar

Value_co = TypeVar("Value_co", covariant=True)


class Future(Protocol[Value_co]):
    """Port: a future; several may await it."""

    def __await__(self) -> Generator[object, None, Value_co]:
        """Wait until it is there."""

    def add_done_callback(self, callback: Callable[[object], None], /) -> object:
        """Call `callback` once, when it is there."""
