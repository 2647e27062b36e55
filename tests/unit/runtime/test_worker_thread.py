"""A thread that runs jobs in order."""

import threading
from contextlib import closing

import pytest

from warren.runtime.worker_thread import WorkerThread


def test_jobs_run_in_order_in_one_thread_and_all_before_it_closes() -> None:
    done: list[tuple[int, str]] = []
    with closing(WorkerThread("jobs")) as worker:
        for number in range(100):
            worker.do(lambda number=number: done.append((number, threading.current_thread().name)))  # type: ignore[misc]
    assert done == [(number, "jobs") for number in range(100)]
    assert "jobs" not in {thread.name for thread in threading.enumerate()}


def test_a_failing_job_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    with closing(WorkerThread("jobs")) as worker:
        worker.do(lambda: done.append(1 // 0))
        worker.do(lambda: done.append(2))
    assert done == [2]
    assert "unexpected exception in the thread jobs" in caplog.text
    assert "ZeroDivisionError" in caplog.text
