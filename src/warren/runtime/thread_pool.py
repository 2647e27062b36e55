"""A pool of a few threads for long computations, such as password hashes, with a bounded queue."""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from warren.errors import ResourceError

Result = TypeVar("Result")


class PendingResult(Generic[Result]):
    """The result of a job; several coroutines can await it, and cancelling one does not affect the others."""

    __slots__ = ("_future",)

    def __init__(self, future: "asyncio.Future[Result]") -> None:
        self._future = future

    def __await__(self) -> Generator[object, None, Result]:
        return asyncio.shield(self._future).__await__()

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` in a later turn, when the job is done."""
        self._future.add_done_callback(callback)


class ThreadPool:
    """Runs up to `thread_count` jobs at once, with up to `waiting_max` waiting; threads start on demand."""

    def __init__(self, *, thread_count: int, waiting_max: int) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="labour")
        self._count_max = thread_count + waiting_max
        self._count = 0

    def do(self, job: Callable[[], Result]) -> PendingResult[Result]:
        """Run `job` in a thread; ResourceError if too many jobs wait already."""
        if self._count >= self._count_max:
            raise ResourceError("too many computations are waiting: retry later")
        self._count += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        future.add_done_callback(self._done)
        return PendingResult(future)

    def close(self) -> None:
        """End without running the waiting jobs."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: object) -> None:
        self._count -= 1
