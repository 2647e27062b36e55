"""A thread pool for long computations."""

import asyncio
import threading

import pytest

from warren.errors import ResourceError
from warren.runtime.thread_pool import ThreadPool


def test_a_job_runs_in_a_thread_and_all_waiters_get_its_result() -> None:
    async def work() -> None:
        thread_pool = ThreadPool(thread_count=1, waiting_max=1)
        job = thread_pool.do(threading.get_ident)
        first, second = await asyncio.gather(asyncio.ensure_future(_of(job)), asyncio.ensure_future(_of(job)))
        assert first == second != threading.get_ident()
        thread_pool.close()

    asyncio.run(work())


def test_a_cancelled_waiter_does_not_cancel_others() -> None:
    async def work() -> None:
        thread_pool = ThreadPool(thread_count=1, waiting_max=1)
        go_on = threading.Event()
        job = thread_pool.do(lambda: go_on.wait(10))
        impatient = asyncio.ensure_future(_of(job))
        patient = asyncio.ensure_future(_of(job))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        go_on.set()
        assert await patient
        thread_pool.close()

    asyncio.run(work())


def test_the_queue_is_bounded_and_accepts_jobs_again() -> None:
    async def work() -> None:
        thread_pool = ThreadPool(thread_count=1, waiting_max=1)
        go_on = threading.Event()
        jobs = [thread_pool.do(lambda: go_on.wait(10)) for _ in range(2)]
        with pytest.raises(ResourceError):
            thread_pool.do(lambda: True)
        go_on.set()
        for job in jobs:
            await job
        assert await thread_pool.do(lambda: True)
        thread_pool.close()

    asyncio.run(work())


async def _of(job: object) -> object:
    return await job
