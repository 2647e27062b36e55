"""Staged publishing on one node."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from warren.runtime.timers import PeriodicTimer
from warren.session.server import Server
from warren.session.vhost_services import VhostServices
from warren.staging.staging_context import StagingContext
from warren.staging.vhost_staging import VhostStaging
from warren.store.staged.stage_index import StageIndex

logger = logging.getLogger("warren.staged")

# Interval at which stages are checked for expiry.
_EXPIRE_S = 60.0


class Staging:
    """Staged publishing on one node: one `VhostStaging` for each running virtual host with a store."""

    def __init__(self, server: Server, now: Callable[[], int], random_bytes: Callable[[int], bytes]) -> None:
        self.vhost_stagings: dict[str, VhostStaging] = {}
        self.context = StagingContext(server, now, random_bytes, self._stage_indexes)
        self._closing: set[asyncio.Task[None]] = set()
        self._expiring: PeriodicTimer | None = None

    def add_vhost(self, services: VhostServices, path: Path) -> None:
        """Start staging for `services`, a virtual host that has started, in the directory `path`."""
        if self._expiring is None:
            self._expiring = PeriodicTimer(asyncio.get_running_loop(), _EXPIRE_S, self._expire)
        vhost_staging = self.vhost_stagings[services.vhost.name] = VhostStaging(self.context, services, path)
        vhost_staging.begin()

    def remove_vhost(self, name: str) -> None:
        """Stop staging for the virtual host `name`, which has stopped; stages stay on the disk."""
        vhost_staging = self.vhost_stagings.pop(name, None)
        if vhost_staging is not None:
            task = asyncio.get_running_loop().create_task(vhost_staging.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Stop all staging; the next start continues commits in progress."""
        if self._expiring is not None:
            self._expiring.stop()
        for name in list(self.vhost_stagings):
            self.remove_vhost(name)
        await asyncio.gather(*self._closing)
        self.context.close()

    def _stage_indexes(self) -> Iterator[StageIndex]:
        return (vhost_staging.stage_index for vhost_staging in self.vhost_stagings.values())

    def _expire(self) -> None:
        for vhost_staging in self.vhost_stagings.values():
            vhost_staging.expire(self.context.now())
