"""Starts a real Celery worker as a process, and ends it."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from celery import Celery, Signature
from tests.clients.celery_application.queue_settings import queue_settings
from tests.clients.harness.catalogue import ROOT
from tests.patience import patient

MODULE = "tests.clients.celery_application.application"
START_S_MAX = patient(60)
STOP_S_MAX = patient(20)


@dataclasses.dataclass(frozen=True, slots=True)
class Worker:
    """A running worker: its node name, its own queue, and the application that talks to it."""

    name: str
    queue: str
    app: Celery
    process: subprocess.Popen[bytes]
    log: Path

    def task(self, name: str, *arguments: object) -> Signature:
        """Return the signature of one of the application's tasks, to be sent or composed."""
        return self.app.signature(name, arguments)

    def stats(self) -> dict[str, object]:
        """Return the worker's statistics."""
        found = self.app.control.inspect([self.name], timeout=10).stats()
        assert found is not None, self.log.read_text()
        stats: dict[str, object] = found[self.name]
        return stats

    def kill(self) -> None:
        """Kill the worker and its pool at once, as a crash of the machine would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def running_worker(
    folder: Path, broker: str, backend: str, *options: str, queue: str = "", queue_type: str = "classic"
) -> Iterator[Worker]:
    """Run a worker of the application with `options`; it responds when the block begins."""
    identity = uuid.uuid4().hex[:8]
    queue = queue or f"celery-{identity}"
    name = f"worker-{identity}@test"
    environment = {
        **os.environ,
        "CELERY_TEST_BROKER": broker,
        "CELERY_TEST_BACKEND": backend,
        "CELERY_TEST_QUEUE": queue,
        "CELERY_TEST_QUEUE_TYPE": queue_type,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))),
    }
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        MODULE,
        "worker",
        "-n",
        name,
        "-l",
        "info",
        "-E",
        *options,
    ]
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    worker = Worker(name, queue, client(broker, backend, queue, queue_type), process, log)
    try:
        wait_until_it_answers(worker)
        yield worker
    finally:
        stop(process)


def client(broker: str, backend: str, queue: str, queue_type: str) -> Celery:
    """Return the application of a program that only sends; it knows the tasks by name."""
    app = Celery("client", broker=broker, backend=backend, set_as_current=False)
    app.conf.update(
        task_send_sent_event=True,
        control_exchange="warren-clients-control",
        event_exchange="warren-clients-events",
        **queue_settings(queue, queue_type),
    )
    return app


def wait_until_it_answers(worker: Worker) -> None:
    """Wait until the worker answers a ping."""
    deadline = time.monotonic() + START_S_MAX
    while time.monotonic() < deadline and worker.process.poll() is None:
        if worker.app.control.ping([worker.name], timeout=1):
            return
    raise RuntimeError(f"the worker does not answer:\n{worker.log.read_text()}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the worker to finish, then end what is left of its group."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S_MAX)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
