"""Tasks that callers share by a key."""

import asyncio

import pytest

from warren.runtime.shared_tasks import SharedTasks


class Work:
    """Work that lasts until it is told to end."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = asyncio.Event()

    async def run(self) -> int:
        self.count += 1
        await self.may_end.wait()
        if self.count > 1:
            raise ValueError("done already")
        return self.count


def test_callers_with_the_same_key_share_one_task() -> None:
    async def main() -> None:
        tasks: SharedTasks[str, int] = SharedTasks(2)
        work = Work()
        callers = [asyncio.create_task(tasks.result("key", work.run)) for _ in range(3)]
        await asyncio.sleep(0)
        work.may_end.set()
        assert await asyncio.gather(*callers) == [1, 1, 1]
        with pytest.raises(ValueError, match="done already"):
            await tasks.result("key", work.run)

    asyncio.run(main())


def test_a_caller_that_is_cancelled_leaves_the_task_to_the_others() -> None:
    async def main() -> None:
        tasks: SharedTasks[str, int] = SharedTasks(2)
        work = Work()
        first, second = (asyncio.create_task(tasks.result("key", work.run)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        work.may_end.set()
        assert await second == 1

    asyncio.run(main())


def test_as_many_tasks_as_may_be_are_full_for_other_keys_only() -> None:
    async def main() -> None:
        tasks: SharedTasks[str, int] = SharedTasks(1)
        work = Work()
        assert not tasks.is_full_for("key")
        caller = asyncio.create_task(tasks.result("key", work.run))
        await asyncio.sleep(0)
        assert not tasks.is_full_for("key")
        assert tasks.is_full_for("other")
        work.may_end.set()
        await caller
        assert not tasks.is_full_for("other")

    asyncio.run(main())


def test_closing_cancels_what_is_in_progress() -> None:
    async def main() -> None:
        tasks: SharedTasks[str, int] = SharedTasks(1)
        caller = asyncio.create_task(tasks.result("key", Work().run))
        await asyncio.sleep(0)
        await tasks.close()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())
