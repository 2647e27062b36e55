"""What is staged on one node: a room for each virtual host that keeps its messages, while it lives."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from warren.limits import STAGED_AT_ONCE_MAX
from warren.management.staging.vhost_staging import VhostStaging
from warren.runtime.timers import PeriodicTimer
from warren.runtime.worker_thread import WorkerThread
from warren.session.server import Server
from warren.session.vhost_services import VhostServices

logger = logging.getLogger("warren.staged")

# How often it is looked at what has waited too long.
_EXPIRE_S = 60.0


class Staging:
    """The rooms of a node."""

    def __init__(self, server: Server, now: Callable[[], int], random_octets: Callable[[int], bytes]) -> None:
        self.server = server
        self.now = now
        self.random_octets = random_octets
        self.vhost_stagings: dict[str, VhostStaging] = {}
        # Who writes what comes, and who reads what is committed: none of them is waited for by the loop, and
        # none of them by whoever confirms.
        self._receiver: WorkerThread | None = None
        self._committer: WorkerThread | None = None
        # Octets of what is being received.
        self.octets_coming = 0
        self.turn = asyncio.Semaphore(STAGED_AT_ONCE_MAX)
        self._closing: set[asyncio.Task[None]] = set()
        self._expiring: PeriodicTimer | None = None

    def add_vhost(self, services: VhostServices, path: Path) -> None:
        """`services` lives, and what is staged in it is in the directory `path`."""
        if self._expiring is None:
            self._expiring = PeriodicTimer(asyncio.get_running_loop(), _EXPIRE_S, self._expire)
        vhost_staging = self.vhost_stagings[services.vhost.name] = VhostStaging(self, services, path)
        vhost_staging.begin()

    def remove_vhost(self, name: str) -> None:
        """The virtual host `name` does not live any more; what is staged stays on the disk."""
        vhost_staging = self.vhost_stagings.pop(name, None)
        if vhost_staging is not None:
            task = asyncio.get_running_loop().create_task(vhost_staging.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """The node ends: what is under way goes on with its next start."""
        if self._expiring is not None:
            self._expiring.stop()
        for name in list(self.vhost_stagings):
            self.remove_vhost(name)
        await asyncio.gather(*self._closing)
        for worker in (self._receiver, self._committer):
            if worker is not None:
                worker.close()

    @property
    def receiver(self) -> WorkerThread:
        """The thread that writes what comes."""
        if self._receiver is None:
            self._receiver = WorkerThread("warren-staged")
        return self._receiver

    @property
    def committer(self) -> WorkerThread:
        """The thread that reads what is committed, and decides."""
        if self._committer is None:
            self._committer = WorkerThread("warren-commit")
        return self._committer

    @property
    def octets(self) -> int:
        """Of all that is staged, and of what is coming."""
        return self.octets_coming + sum(
            vhost_staging.stage_index.octets for vhost_staging in self.vhost_stagings.values()
        )

    @property
    def count(self) -> int:
        """How many stages there are."""
        return sum(len(vhost_staging.stage_index.stages) for vhost_staging in self.vhost_stagings.values())

    def _expire(self) -> None:
        for vhost_staging in self.vhost_stagings.values():
            vhost_staging.expire(self.now())
