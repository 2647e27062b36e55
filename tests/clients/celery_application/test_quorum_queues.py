"""An application on Celery whose queues are quorum queues, with its delays in the broker.

Celery sees a quorum queue by its declaration. It uses no global prefetch then, and tasks with an ETA wait in
28 quorum queues of kombu, one for each bit of the delay, from which they expire to the next one.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import chain
from celery.exceptions import TaskRevokedError
from kombu import Connection
from tests.clients.celery_application.test_celery import RESULT_S_MAX, wait_for
from tests.clients.celery_application.workers import Worker, running_worker

LEVELS = 28
BURST = 300


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, broker_uri: str) -> Iterator[Worker]:
    """A worker with two processes and results through the broker, whose queue is a quorum queue."""
    folder = tmp_path_factory.mktemp("quorum")
    with running_worker(folder, broker_uri, "rpc://", "-c", "2", queue_type="quorum") as started:
        yield started


def waiting(broker_uri: str, queue: str) -> int:
    """The number of ready messages of `queue`."""
    with Connection(broker_uri) as connection:
        count: int = connection.channel().queue_declare(queue, passive=True).message_count
        return count


def is_quorum(broker_uri: str, queue: str, **arguments: object) -> bool:
    """True if the queue with these arguments is no classic queue, but a quorum queue."""
    with Connection(broker_uri) as connection:
        channel = connection.channel()
        classic = {"x-queue-type": "classic", **arguments}
        with pytest.raises(channel.connection.channel_errors) as refusal:
            channel.queue_declare(queue, durable=True, auto_delete=False, arguments=classic)
        return "'x-queue-type'" in str(refusal.value) and "'quorum'" in str(refusal.value)


def delivers_expired_messages_again(broker_uri: str) -> bool:
    """False for RabbitMQ before 4.0, which drops a message that expires twice from a queue."""
    with Connection(broker_uri) as connection:
        connection.connect()
        properties = connection.connection.server_properties
        return "warren" in properties or int(properties["version"].split(".")[0]) >= 4


def test_the_worker_declares_its_queue_and_those_of_the_delays_as_quorum_queues(
    worker: Worker, broker_uri: str
) -> None:
    assert is_quorum(broker_uri, worker.queue)
    for level in range(LEVELS):
        arguments = {
            "x-message-ttl": 2**level * 1_000,
            "x-overflow": "reject-publish",
            "x-dead-letter-exchange": f"celery_delayed_{level - 1}" if level else "celery_delayed_delivery",
            "x-dead-letter-strategy": "at-least-once",
        }
        assert is_quorum(broker_uri, f"celery_delayed_{level}", **arguments)
    assert "Global QoS is disabled" in worker.log.read_text()


def test_a_burst_of_tasks_returns_every_result(worker: Worker) -> None:
    results = [worker.task("add", number, 1).delay() for number in range(BURST)]
    assert [result.get(RESULT_S_MAX) for result in results] == list(range(1, BURST + 1))


def test_tasks_with_a_countdown_run_when_they_are_due(worker: Worker) -> None:
    now = time.time()
    ran = {delay: worker.task("now").apply_async(countdown=delay) for delay in (3, 1, 2, 5)}
    for delay, result in ran.items():
        # Celery rounds a delay down to whole seconds, and the worker waits for the rest.
        assert now + delay - 0.1 <= result.get(RESULT_S_MAX)


def test_many_tasks_that_are_due_at_once_all_run(worker: Worker) -> None:
    due = time.time() + 2
    results = [worker.task("now").apply_async(countdown=2) for _ in range(100)]
    assert all(result.get(RESULT_S_MAX) >= due - 0.1 for result in results)


def test_waiting_tasks_are_in_the_broker_and_do_not_block_the_next(worker: Worker, broker_uri: str) -> None:
    results = [worker.task("now").apply_async(countdown=4) for _ in range(20)]
    due = time.time() + 4
    assert waiting(broker_uri, "celery_delayed_2") == 20
    assert worker.task("add", 1, 1).delay().get(RESULT_S_MAX) == 2
    assert time.time() < due
    assert all(result.get(RESULT_S_MAX) >= due - 1 for result in results)


def test_a_task_of_tomorrow_waits_at_its_level(worker: Worker, broker_uri: str) -> None:
    result = worker.task("now").apply_async(countdown=25 * 3_600)
    # 25 hours are 2^16 s and more.
    wait_for(lambda: waiting(broker_uri, "celery_delayed_16") == 1)
    assert not result.ready()
    with Connection(broker_uri) as connection:
        assert connection.channel().queue_purge("celery_delayed_16") == 1


def test_steps_of_a_chain_can_be_delayed(worker: Worker) -> None:
    steps = chain(worker.task("add", 1, 1).set(countdown=1), worker.task("add", 10).set(countdown=2))
    started = time.time()
    assert steps.apply_async().get(RESULT_S_MAX) == 12
    assert time.time() >= started + 2.9


def test_a_task_is_delayed_by_the_same_time_again_and_again(worker: Worker, broker_uri: str) -> None:
    if not delivers_expired_messages_again(broker_uri):
        pytest.skip("RabbitMQ before 4.0 drops it as a cycle")
    assert worker.task("succeed_after_delays", 3).apply_async(countdown=1).get(RESULT_S_MAX) == 3


def test_a_revoked_task_never_runs(worker: Worker) -> None:
    result = worker.task("now").apply_async(countdown=2)
    result.revoke()
    with pytest.raises(TaskRevokedError):
        result.get(RESULT_S_MAX)


def test_a_task_of_a_killed_worker_is_done_by_another(tmp_path: Path, broker_uri: str) -> None:
    notes = tmp_path / "notes"
    with running_worker(tmp_path, broker_uri, "rpc://", "-c", "1", queue_type="quorum") as mortal:
        result = mortal.task("note_and_sleep", str(notes), 3).delay()
        wait_for(notes.exists)
        mortal.kill()
    with running_worker(tmp_path, broker_uri, "rpc://", "-c", "1", queue=mortal.queue, queue_type="quorum"):
        result.get(RESULT_S_MAX)
    assert notes.read_text().split() == ["False", "True"]
