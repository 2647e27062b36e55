"""One thread that does jobs in the order in which they came.

An executor would make a future for each, with a lock and a condition of its own: that took longer than a
small write.
"""

import logging
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

logger = logging.getLogger("warren.worker")


class WorkerThread:
    """A thread named `name`, from now until `close`."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # A start that is refused, or a crash, ends without it: nothing that it has not done was confirmed.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], None]) -> None:
        """Have `job` called in the thread, after all before it. Whatever it raises is logged."""
        self._jobs.put(job)

    def close(self) -> None:
        """Wait until everything is done, and have no thread any more."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                logger.exception("unexpected exception in the thread %s", self._thread.name)
