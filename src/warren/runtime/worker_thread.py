"""One thread that runs jobs in order.

An executor would create a future with a lock and a condition for each job, which took longer than a small
write.
"""

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

logger = logging.getLogger("warren.worker")


class WorkerThread:
    """A thread named `name`, running until `close`."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A daemon thread: at a refused start or a crash its jobs are dropped, none of which was confirmed.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], None]) -> None:
        """Run `job` in the thread, after all earlier ones. An exception is logged."""
        self._jobs.put(job)

    def close(self) -> None:
        """Wait until all jobs are done, and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                logger.exception("unexpected exception in the thread %s", self._thread.name)
