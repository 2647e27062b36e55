"""What is staged on one node: a room for each virtual host that keeps its messages, while it lives."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from warren.limits import STAGED_AT_ONCE_MAX
from warren.management.staging.room import Room
from warren.runtime.timers import Periodic
from warren.runtime.worker import Worker
from warren.session.domain import Domain
from warren.session.server import Server

logger = logging.getLogger("warren.staged")

# How often it is looked at what has waited too long.
_EXPIRE_S = 60.0


class Staging:
    """The rooms of a node."""

    def __init__(self, server: Server, now: Callable[[], int], random_octets: Callable[[int], bytes]) -> None:
        self.server = server
        self.now = now
        self.random_octets = random_octets
        self.rooms: dict[str, Room] = {}
        # Who writes what comes, and who reads what is committed: none of them is waited for by the loop, and
        # none of them by whoever confirms.
        self._receiver: Worker | None = None
        self._committer: Worker | None = None
        # Octets of what is being received.
        self.octets_coming = 0
        self.turn = asyncio.Semaphore(STAGED_AT_ONCE_MAX)
        self._closing: set[asyncio.Task[None]] = set()
        self._expiring: Periodic | None = None

    def let_in(self, domain: Domain, path: Path) -> None:
        """`domain` lives, and what is staged in it is in the directory `path`."""
        if self._expiring is None:
            self._expiring = Periodic(asyncio.get_running_loop(), _EXPIRE_S, self._expire)
        room = self.rooms[domain.vhost.name] = Room(self, domain, path)
        room.begin()

    def let_out(self, name: str) -> None:
        """The virtual host `name` does not live any more; what is staged stays on the disk."""
        room = self.rooms.pop(name, None)
        if room is not None:
            task = asyncio.get_running_loop().create_task(room.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """The node ends: what is under way goes on with its next start."""
        if self._expiring is not None:
            self._expiring.stop()
        for name in list(self.rooms):
            self.let_out(name)
        await asyncio.gather(*self._closing)
        for worker in (self._receiver, self._committer):
            if worker is not None:
                worker.close()

    @property
    def receiver(self) -> Worker:
        """The thread that writes what comes."""
        if self._receiver is None:
            self._receiver = Worker("warren-staged")
        return self._receiver

    @property
    def committer(self) -> Worker:
        """The thread that reads what is committed, and decides."""
        if self._committer is None:
            self._committer = Worker("warren-commit")
        return self._committer

    @property
    def octets(self) -> int:
        """Of all that is staged, and of what is coming."""
        return self.octets_coming + sum(room.shelf.octets for room in self.rooms.values())

    @property
    def count(self) -> int:
        """How many stages there are."""
        return sum(len(room.shelf.stages) for room in self.rooms.values())

    def _expire(self) -> None:
        for room in self.rooms.values():
            room.expire(self.now())
