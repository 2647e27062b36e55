"""Writes and syncs single pieces of open files in a thread that does not need the interpreter lock.

A Python thread takes the interpreter lock from the event loop around each system call of a job, between a
write and its sync and before the callback, which took longer than the calls themselves. This thread exists in
the compiled version only; otherwise `WorkerThread` does these jobs.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from msgspec import Struct

try:
    from warren.runtime.write_thread import WriteThread
except ImportError:  # not compiled
    IS_AVAILABLE = False
else:
    IS_AVAILABLE = True


class WriteRequest(Struct):
    """Write `chunks` into the open `file` from byte `at` on; `done` is called with the errno, or 0."""

    file: int
    at: int
    chunks: list[bytes]
    is_synced: bool
    done: Callable[[int], None]


class FileWriter:
    """Writes pieces one after the other until `close`; belongs to `loop`."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = WriteThread(name)
        # The first of them is in progress.
        self._pieces: deque[WriteRequest] = deque()
        loop.add_reader(self._thread.fileno(), self._tell)

    def write(self, request: WriteRequest) -> None:
        """Write `request` after all earlier ones, then call its `done`."""
        self._pieces.append(request)
        if len(self._pieces) == 1:
            self._begin(request)

    def close(self) -> None:
        """End the thread after the write in progress; its `done` is not called."""
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
