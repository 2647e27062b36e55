"""Background jobs of a node: how they end, how many run, and how many are remembered."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from warren.jobs.job import Job, JobKind, JobState
from warren.jobs.jobs import Jobs
from warren.limits import JOBS_KEPT_MAX, JOBS_RUNNING_MAX


class FakeJob(Job, kw_only=True):
    """A job that awaits the given function."""

    work: Callable[["FakeJob"], Awaitable[JobState]]

    async def run(self) -> JobState:
        return await self.work(self)


async def done(job: FakeJob) -> JobState:
    return JobState.DONE


async def until_stopped(job: FakeJob) -> JobState:
    await job.woken.wait()
    return JobState.STOPPED


async def broken(job: FakeJob) -> JobState:
    raise ValueError("nobody expected that")


class Node:
    """The jobs of a node whose time is set by the test."""

    def __init__(self) -> None:
        self.now = 5
        # The virtual host of each job that an unexpected exception has ended.
        self.failed_in: list[str] = []
        numbers = count()
        self.jobs = Jobs(
            lambda size: next(numbers).to_bytes(size, "big"), lambda: self.now, self.failed_in.append
        )

    def start(self, work: Callable[[FakeJob], Awaitable[JobState]]) -> FakeJob:
        job = FakeJob(
            id=self.jobs.new_id(), kind=JobKind.MOVE, user="guest", vhost="/", queue="q", target={}, steps=[],
            work=work,
        )  # fmt: skip
        self.jobs.start(job)
        return job


def run(work: Callable[[Node], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20):
            await work(Node())

    asyncio.run(whole())


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_a_finished_job_is_remembered() -> None:
    async def work(node: Node) -> None:
        job = node.start(done)
        assert (job.started_at, job.is_over) == (5, False)
        node.now = 9
        await turns()
        assert (job.state, job.ended_at) == (JobState.DONE, 9)
        assert node.jobs.by_id[job.id] is job

    run(work)


def test_an_unexpected_exception_fails_one_job_only(caplog: pytest.LogCaptureFixture) -> None:
    async def work(node: Node) -> None:
        job, other = node.start(broken), node.start(until_stopped)
        await turns()
        assert (job.state, job.reason) == (JobState.FAILED, "an error of the broker: see its log")
        assert not other.is_over
        assert node.failed_in == ["/"]
        await node.jobs.close()

    run(work)
    assert "move 0000000000000000 of queue 'q' in vhost '/' has failed" in caplog.text
    assert "nobody expected that" in caplog.text


def test_the_number_of_running_jobs_is_bounded() -> None:
    async def work(node: Node) -> None:
        started = [node.start(until_stopped) for _ in range(JOBS_RUNNING_MAX)]
        assert node.jobs.is_full
        started[0].stop("enough")
        await turns()
        assert (started[0].state, started[0].reason) == (JobState.STOPPED, "enough")
        assert not node.jobs.is_full
        await node.jobs.close()

    run(work)


def test_the_oldest_finished_job_is_evicted_and_no_running_one() -> None:
    async def work(node: Node) -> None:
        running, eldest = node.start(until_stopped), node.start(done)
        for _ in range(JOBS_KEPT_MAX):
            node.start(done)
            await turns()
        assert running.id in node.jobs.by_id
        assert eldest.id not in node.jobs.by_id
        assert sum(job.is_over for job in node.jobs.by_id.values()) == JOBS_KEPT_MAX
        await node.jobs.close()

    run(work)


def test_a_stopping_node_stops_its_jobs_and_accepts_no_more() -> None:
    async def work(node: Node) -> None:
        job = node.start(until_stopped)
        await turns()
        await node.jobs.close()
        assert (job.state, job.reason) == (JobState.STOPPED, "the node was stopped")
        assert node.jobs.is_full

    run(work)
