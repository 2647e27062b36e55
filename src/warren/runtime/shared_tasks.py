"""Tasks with a key: callers that ask for the same at the same time share one task, and tasks are bounded."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class SharedTasks(Generic[Key, Result]):
    """Up to `count_max` tasks, each with a key of its own."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._tasks: dict[Key, asyncio.Task[Result]] = {}

    def is_full_for(self, key: Key) -> bool:
        """True if there are as many tasks as may be, none of them with `key`."""
        return len(self._tasks) >= self._count_max and key not in self._tasks

    async def result(self, key: Key, work: Callable[[], Coroutine[object, object, Result]]) -> Result:
        """The result of the task of `key`, which does `work` if there is none.

        A caller that is cancelled ends no task. The errors of `work` are raised to each caller.
        """
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(work())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel the tasks, and wait for their ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, key: Key, done: "asyncio.Task[Result]") -> None:
        del self._tasks[key]
        if not done.cancelled():
            # No caller may be left waiting for it.
            done.exception()
