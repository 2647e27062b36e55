"""An application on Celery with real worker processes: the features of a broker that Celery uses."""

import collections
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import chain, chord, group
from celery.exceptions import TaskRevokedError
from tests.clients.celery_application.workers import Worker, running_worker
from tests.patience import patient

RESULT_S_MAX = patient(40)
IDLE_PREFETCH = 2  # One task for each process of the pool.


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, broker_uri: str) -> Iterator[Worker]:
    """A worker with two processes and results through the broker."""
    with running_worker(tmp_path_factory.mktemp("rpc"), broker_uri, "rpc://", "-c", "2") as started:
        yield started


@pytest.fixture(scope="module")
def chord_worker(tmp_path_factory: pytest.TempPathFactory, broker_uri: str) -> Iterator[Worker]:
    """A pool that scales by itself, with results in files: the rpc backend refuses chords."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "results").mkdir()
    backend = f"file://{folder / 'results'}"
    with running_worker(folder, broker_uri, backend, "--autoscale=3,1") as started:
        yield started


def test_a_task_returns_its_result(worker: Worker) -> None:
    assert worker.task("add", 2, 3).delay().get(RESULT_S_MAX) == 5


def test_a_burst_of_tasks_returns_every_result(worker: Worker) -> None:
    results = [worker.task("add", number, 1).delay() for number in range(300)]
    assert [result.get(RESULT_S_MAX) for result in results] == list(range(1, 301))


def test_a_chain_and_a_group_hand_on_their_results(worker: Worker) -> None:
    assert chain(worker.task("add", 1, 1), worker.task("add", 10)).apply_async().get(RESULT_S_MAX) == 12
    calls = group([worker.task("add", number, number) for number in range(10)], app=worker.app)
    assert calls.apply_async().get(RESULT_S_MAX) == [2 * number for number in range(10)]


def test_an_exception_reaches_the_caller(worker: Worker) -> None:
    with pytest.raises(ValueError, match="on purpose"):
        worker.task("fail").delay().get(RESULT_S_MAX)


def test_a_task_is_retried_until_it_succeeds(worker: Worker) -> None:
    assert worker.task("succeed_at", 3).delay().get(RESULT_S_MAX) == 3


def test_a_task_fails_when_its_retries_are_used_up(worker: Worker) -> None:
    with pytest.raises(ValueError, match="as always"):
        worker.task("never_succeed").delay().get(RESULT_S_MAX)


def test_a_task_with_an_eta_waits_for_it(worker: Worker) -> None:
    due = time.time() + 2
    assert worker.task("now").apply_async(countdown=2).get(RESULT_S_MAX) >= due - 0.1


def test_waiting_tasks_do_not_block_the_next(worker: Worker) -> None:
    # A task with an ETA is kept unacknowledged, so the worker raises the prefetch count of its channel.
    before = worker.stats()["prefetch_count"]
    waiting = [worker.task("now").apply_async(countdown=8) for _ in range(20)]
    due = time.time() + 8
    assert worker.task("add", 1, 1).delay().get(RESULT_S_MAX) == 2
    assert time.time() < due
    assert all(result.get(RESULT_S_MAX) >= due - 1 for result in waiting)
    wait_for(lambda: worker.stats()["prefetch_count"] == before)


def test_a_revoked_task_never_runs(worker: Worker) -> None:
    result = worker.task("now").apply_async(countdown=2)
    result.revoke()
    with pytest.raises(TaskRevokedError):
        result.get(RESULT_S_MAX)


def test_a_running_task_can_be_terminated(worker: Worker) -> None:
    result = worker.task("sleep", 60).delay()
    wait_for(lambda: is_active(worker, result.id))
    result.revoke(terminate=True)
    with pytest.raises(TaskRevokedError):
        result.get(RESULT_S_MAX)
    assert worker.task("add", 4, 4).delay().get(RESULT_S_MAX) == 8


def test_events_report_the_states_of_a_task(worker: Worker) -> None:
    seen: dict[str, set[str]] = collections.defaultdict(set)
    is_listening, is_over = threading.Event(), threading.Event()

    listener = threading.Thread(target=listen, args=(worker, seen, is_listening, is_over), daemon=True)
    listener.start()
    assert is_listening.wait(10)
    result = worker.task("add", 1, 2).delay()
    result.get(RESULT_S_MAX)
    wait_for(lambda: seen[result.id] >= {"task-sent", "task-received", "task-started", "task-succeeded"})
    is_over.set()
    listener.join(10)


def test_workers_answer_remote_control_requests(worker: Worker) -> None:
    inspect = worker.app.control.inspect([worker.name], timeout=10)
    assert inspect.ping() == {worker.name: {"ok": "pong"}}
    assert [queue["name"] for queue in inspect.active_queues()[worker.name]] == [worker.queue]
    assert "add" in inspect.registered()[worker.name]


def test_a_queue_is_added_and_removed_at_run_time(worker: Worker) -> None:
    extra = f"{worker.queue}-extra"
    worker.app.control.add_consumer(extra, destination=[worker.name], reply=True, timeout=10)
    assert worker.task("add", 7, 7).apply_async(queue=extra).get(RESULT_S_MAX) == 14
    worker.app.control.cancel_consumer(extra, destination=[worker.name], reply=True, timeout=10)
    wait_for(lambda: extra not in queues_of(worker))
    left = worker.task("add", 8, 8).apply_async(queue=extra)
    assert worker.task("add", 9, 9).delay().get(RESULT_S_MAX) == 18
    assert not left.ready()


def has_shrunk(worker: Worker) -> bool:
    """Ask the pool of `worker` to give up two processes; False if it refuses."""
    reply = worker.app.control.pool_shrink(2, destination=[worker.name], reply=True, timeout=10)
    return bool(reply[0][worker.name] == {"ok": "pool will shrink"})


def test_the_prefetch_count_follows_the_pool_at_run_time(tmp_path: Path, worker: Worker) -> None:
    go = tmp_path / "go"
    wait_for(lambda: worker.stats()["prefetch_count"] == IDLE_PREFETCH)
    worker.app.control.pool_grow(2, destination=[worker.name], reply=True, timeout=10)
    wait_for(lambda: worker.stats()["prefetch_count"] == IDLE_PREFETCH + 2)
    results = [worker.task("wait_for_file", str(go)).delay() for _ in range(IDLE_PREFETCH + 6)]
    # An answer of the worker may come after it has asked for the new count and before it has the tasks.
    wait_for(lambda: held_by(worker, "wait_for_file") == IDLE_PREFETCH + 2)
    go.touch()
    assert [result.get(RESULT_S_MAX) for result in results] == [None] * (IDLE_PREFETCH + 6)
    # A pool refuses to shrink while its processes have tasks, which is a moment after they have returned.
    wait_for(lambda: has_shrunk(worker))
    wait_for(lambda: worker.stats()["prefetch_count"] == IDLE_PREFETCH)
    assert worker.task("add", 5, 5).delay().get(RESULT_S_MAX) == 10


def test_a_task_of_a_killed_worker_is_done_by_another(tmp_path: Path, broker_uri: str) -> None:
    notes = tmp_path / "notes"
    with running_worker(tmp_path, broker_uri, "rpc://", "-c", "1") as mortal:
        result = mortal.task("note_and_sleep", str(notes), 3).delay()
        wait_for(notes.exists)
        mortal.kill()
    with running_worker(tmp_path, broker_uri, "rpc://", "-c", "1", queue=mortal.queue):
        result.get(RESULT_S_MAX)
    assert notes.read_text().split() == ["False", "True"]


def test_a_chord_ends_when_all_its_tasks_have(chord_worker: Worker) -> None:
    header = [chord_worker.task("add", number, number) for number in range(10)]
    assert chord(header, app=chord_worker.app)(chord_worker.task("total")).get(RESULT_S_MAX) == 90


def test_a_chord_within_a_chain_hands_on_its_result(chord_worker: Worker) -> None:
    header = [chord_worker.task("add", number, 1) for number in range(3)]
    steps = chain(
        chord(header, chord_worker.task("total"), app=chord_worker.app), chord_worker.task("add", 100)
    )
    assert steps.apply_async().get(RESULT_S_MAX) == 106


def test_a_pool_that_scales_itself_keeps_its_prefetch_count_in_step(chord_worker: Worker) -> None:
    results = [chord_worker.task("sleep", 1.5).delay() for _ in range(6)]
    wait_for(lambda: len(chord_worker.stats()["pool"]["processes"]) == 3)  # type: ignore[index, call-overload]
    assert [result.get(RESULT_S_MAX) for result in results] == [1.5] * 6
    reply = chord_worker.app.control.autoscale(5, 2, destination=[chord_worker.name], reply=True, timeout=10)
    assert reply[0][chord_worker.name] == {"ok": "autoscale now max=5 min=2"}
    assert chord_worker.task("add", 6, 6).delay().get(RESULT_S_MAX) == 12


def listen(
    worker: Worker, seen: dict[str, set[str]], is_listening: threading.Event, is_over: threading.Event
) -> None:
    """Collect the types of events of each task until `is_over`."""
    with worker.app.connection_for_read() as connection:
        receiver = worker.app.events.Receiver(
            connection, handlers={"*": lambda event: seen[event.get("uuid", "")].add(event["type"])}
        )
        with receiver.consumer_context() as (opened, _channel, _consumers):
            is_listening.set()
            while not is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    opened.drain_events(timeout=0.5)


def is_active(worker: Worker, identity: str) -> bool:
    """True if the worker runs that task now."""
    active = worker.app.control.inspect([worker.name], timeout=5).active() or {}
    return any(task["id"] == identity for task in active.get(worker.name, []))


def held_by(worker: Worker, name: str) -> int:
    """Return the number of tasks of that name that the worker has received and not acknowledged."""
    inspect = worker.app.control.inspect([worker.name], timeout=5)
    running, waiting = inspect.active() or {}, inspect.reserved() or {}
    tasks = [*running.get(worker.name, []), *waiting.get(worker.name, [])]
    return len({task["id"] for task in tasks if task["name"] == name})


def queues_of(worker: Worker) -> list[str]:
    """Return the queues that the worker consumes from."""
    queues = worker.app.control.inspect([worker.name], timeout=5).active_queues() or {}
    return [queue["name"] for queue in queues.get(worker.name, [])]


def wait_for(condition: object) -> None:
    """Return once `condition()` is true; fails if it never is."""
    deadline = time.monotonic() + RESULT_S_MAX
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.1)
