"""What the staging of all virtual hosts of a node shares: threads, the lock for receiving, the total size."""

import asyncio
from collections.abc import Callable, Iterable

from warren.limits import STAGED_AT_ONCE_MAX
from warren.runtime.worker_thread import WorkerThread
from warren.session.server import Server
from warren.store.staged.stage_index import StageIndex


class StagingContext:
    """The shared state of a node; `stage_indexes` returns the indexes of all running virtual hosts."""

    def __init__(
        self,
        server: Server,
        now: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        stage_indexes: Callable[[], Iterable[StageIndex]],
    ) -> None:
        self.server = server
        self.now = now
        self.random_bytes = random_bytes
        # Size of the rows that are being received, in bytes.
        self.bytes_coming = 0
        # Held while rows are received.
        self.turn = asyncio.Semaphore(STAGED_AT_ONCE_MAX)
        self._stage_indexes = stage_indexes
        # Neither the event loop nor the threads that confirm messages wait for these threads.
        self._receiver: WorkerThread | None = None
        self._committer: WorkerThread | None = None

    @property
    def receiver(self) -> WorkerThread:
        """The thread that writes received rows."""
        if self._receiver is None:
            self._receiver = WorkerThread("warren-staged")
        return self._receiver

    @property
    def committer(self) -> WorkerThread:
        """The thread that reads the rows of batches that are being committed."""
        if self._committer is None:
            self._committer = WorkerThread("warren-commit")
        return self._committer

    @property
    def byte_count(self) -> int:
        """Size of all stages, with the rows that are being received, in bytes."""
        return self.bytes_coming + sum(index.byte_count for index in self._stage_indexes())

    @property
    def count(self) -> int:
        """Number of stages."""
        return sum(len(index.stages) for index in self._stage_indexes())

    def close(self) -> None:
        """End both threads, after their queued jobs."""
        for worker in (self._receiver, self._committer):
            if worker is not None:
                worker.close()
