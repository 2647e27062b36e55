"""What is written and synced most often: one piece of one open file, by a thread that never stops the loop.

A thread of Python's takes the interpreter's lock from the loop, and gives it back, around each call of the
system that a job makes: between a write and its sync, and from the sync to whoever waits for it, that took
longer than the calls themselves. Interpreted there is no such thread, and `Worker` does these jobs as well.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

try:
    from warren.runtime.write_thread import WriteThread
except ImportError:  # not compiled
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True


@dataclass(slots=True)
class WriteRequest:
    """`chunks` belong into the open `file` from octet `at` on; `done` is told the errno, or 0."""

    file: int
    at: int
    chunks: list[bytes]
    is_synced: bool
    done: Callable[[int], None]


class FileWriter:
    """Writes pieces one after the other, from now until `close`; belongs to `loop`."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = WriteThread(name)
        # The first of them is being written.
        self._pieces: deque[WriteRequest] = deque()
        loop.add_reader(self._thread.fileno(), self._tell)

    def write(self, request: WriteRequest) -> None:
        """Write `request`, after all before it, and then tell its `done`."""
        self._pieces.append(request)
        if len(self._pieces) == 1:
            self._begin(request)

    def close(self) -> None:
        """Have no thread any more; what is being written is waited for, and nobody is told."""
        self._loop.remove_reader(self._thread.fileno())
        self._thread.close()

    def _begin(self, request: WriteRequest) -> None:
        self._thread.submit(request.file, request.at, request.chunks, request.is_synced)

    def _tell(self) -> None:
        number = self._thread.result()
        if number is None:
            return
        done = self._pieces.popleft().done
        if self._pieces:
            self._begin(self._pieces[0])
        done(number)
