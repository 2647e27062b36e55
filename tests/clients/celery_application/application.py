"""A Celery application, as its worker imports it; broker and result backend are set by the environment."""

import os
import time

from celery import Celery, Task
from tests.clients.celery_application.queue_settings import queue_settings

app = Celery("warren-clients")
app.conf.update(
    broker_url=os.environ.get("CELERY_TEST_BROKER", "amqp://"),
    result_backend=os.environ.get("CELERY_TEST_BACKEND", "rpc://"),
    broker_connection_retry_on_startup=True,
    # Unique names, so that no other worker on the same broker receives the tasks.
    control_exchange="warren-clients-control",
    event_exchange="warren-clients-events",
    worker_prefetch_multiplier=1,
    worker_send_task_events=True,
    task_send_sent_event=True,
    task_track_started=True,
    worker_hijack_root_logger=False,
    **queue_settings(
        os.environ.get("CELERY_TEST_QUEUE", "celery-test"),
        os.environ.get("CELERY_TEST_QUEUE_TYPE", "classic"),
    ),
)


@app.task(name="add")
def add(one: int, other: int) -> int:
    """Return the sum of two numbers."""
    return one + other


@app.task(name="total")
def total(numbers: list[int]) -> int:
    """Return the sum of many numbers: the end of a chord."""
    return sum(numbers)


@app.task(name="sleep")
def sleep(seconds: float) -> float:
    """Keep a process of the pool busy."""
    time.sleep(seconds)
    return seconds


@app.task(name="wait_for_file", acks_late=True)
def wait_for_file(path: str) -> None:
    """Keep a process of the pool busy until there is such a file; acknowledged at the end."""
    while not os.path.exists(path):
        time.sleep(0.05)


@app.task(name="now")
def now() -> float:
    """Return when the task ran."""
    return time.time()


@app.task(name="succeed_at", bind=True, max_retries=5, default_retry_delay=0.05)
def succeed_at(task: Task, attempt: int) -> int:
    """Retry until the attempt with that number."""
    if task.request.retries < attempt:
        raise task.retry()
    return task.request.retries


@app.task(name="succeed_after_delays", bind=True, max_retries=5)
def succeed_after_delays(task: Task, attempt: int) -> int:
    """Retry until the attempt with that number, each time after a second."""
    if task.request.retries < attempt:
        raise task.retry(countdown=1)
    return task.request.retries


@app.task(name="never_succeed", bind=True, max_retries=2, default_retry_delay=0.05)
def never_succeed(task: Task) -> None:
    """Retry as often as allowed, then fail."""
    try:
        raise ValueError("as always")
    except ValueError as error:
        raise task.retry(exc=error) from error


@app.task(name="note_and_sleep", bind=True, acks_late=True)
def note_and_sleep(task: Task, path: str, seconds: float) -> None:
    """Record that an attempt with this mark began, then wait; acknowledged at the end."""
    with open(path, "a") as notes:
        notes.write(f"{task.request.delivery_info['redelivered']}\n")
    time.sleep(seconds)


@app.task(name="fail")
def fail() -> None:
    """Raise."""
    raise ValueError("on purpose")
