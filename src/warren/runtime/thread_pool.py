"""Threads for what computes long, such as comparing passwords: a few, and a bounded line before them."""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from warren.errors import ResourceError

Result = TypeVar("Result")


class PendingResult(Generic[Result]):
    """A job under way; several may await it, and one of them who gives up stops nobody else."""

    __slots__ = ("_future",)

    def __init__(self, future: "asyncio.Future[Result]") -> None:
        self._future = future

    def __await__(self) -> Generator[object, None, Result]:
        return asyncio.shield(self._future).__await__()

    def add_done_callback(self, callback: Callable[[object], None], /) -> None:
        """Call `callback` in a later turn, once it is done."""
        self._future.add_done_callback(callback)


class ThreadPool:
    """Up to `thread_count` jobs at once, and `waiting_max` that wait; threads begin when they are needed."""

    def __init__(self, *, thread_count: int, waiting_max: int) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="labour")
        self._count_max = thread_count + waiting_max
        self._count = 0

    def do(self, job: Callable[[], Result]) -> PendingResult[Result]:
        """Have `job` done in a thread; ResourceError if too much waits already."""
        if self._count >= self._count_max:
            raise ResourceError("too much waits to be computed")
        self._count += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, job)
        future.add_done_callback(self._done)
        return PendingResult(future)

    def close(self) -> None:
        """End without what waits."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _done(self, _: object) -> None:
        self._count -= 1
