"""A Celery application on quorum queues: tasks that wait for their time in the broker outlive its kill."""

import time
from pathlib import Path

from celery.exceptions import TimeoutError
from tests.clients.celery_application.workers import running_worker
from tests.integration.broker_process import broker
from tests.patience import patient
from tests.warren_process import free_port

TASKS = 30
COUNTDOWN_S = 6
RESULT_S_MAX = patient(60)


def test_delayed_tasks_run_once_although_the_broker_was_killed_while_they_waited(tmp_path: Path) -> None:
    port = free_port()
    address = ("--data-dir", str(tmp_path / "data"), "--port", str(port))
    results = tmp_path / "results"
    results.mkdir()
    uri, backend = f"amqp://guest:guest@127.0.0.1:{port}//", f"file://{results}"
    with (
        broker(*address) as node,
        running_worker(tmp_path, uri, backend, "-c", "2", queue_type="quorum") as worker,
    ):
        due = time.time() + COUNTDOWN_S
        notes = [tmp_path / f"note-{number}" for number in range(TASKS)]
        sent = [
            worker.task("note_and_sleep", str(note), 0).apply_async(countdown=COUNTDOWN_S) for note in notes
        ]
        node.process.kill()
        node.process.wait()
        assert time.time() < due
        with broker(*address):
            try:
                for result in sent:
                    result.get(RESULT_S_MAX)
            except TimeoutError:
                done = sum(result.ready() for result in sent)
                raise AssertionError(f"{done} of {TASKS} tasks ran:\n{worker.log.read_text()}") from None
            assert [len(note.read_text().split()) for note in notes] == [1] * TASKS
            assert all(note.stat().st_mtime >= due - 1 for note in notes)
