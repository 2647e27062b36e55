"""Where the messages of this node are kept: a directory with a store for each virtual host.

<data>/vhosts/<first 32 digits of the SHA-256 of its name>/   its segments
                                                   name       what it is called, for people
"""

import asyncio
import hashlib
import logging
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warren.metadata.machine import Metadata
from warren.runtime.disk import DirectoryDisk
from warren.runtime.randomness import random_octets
from warren.session.domain import Domain
from warren.store.message_store import MessageStore, StorePort
from warren.store.recovery import OpeningWorld, Recovered, open_store

logger = logging.getLogger("warren.storage")

_DIRECTORY = "vhosts"
_DIGITS = 32
# How often a batch that found no room is tried again.
_RETRY_S = 1.0
# Recovery that takes longer says how far it is, so often.
_PROGRESS_S = 1.0


class Storage:
    """The stores of one node, by the name of their virtual host."""

    def __init__(self, folder: Path, metadata: Metadata) -> None:
        self._path = folder / _DIRECTORY
        self._metadata = metadata
        # One thread for all, as they share the device: while one syncs, the others gather.
        self._executor = ThreadPoolExecutor(1, "warren-disk")
        self._open: dict[str, tuple[MessageStore, DirectoryDisk]] = {}

    def open(self, domain: Domain) -> None:
        """Recover the messages of `domain`, and keep what comes. SegmentError, OSError: it cannot be used."""
        name = domain.vhost.name
        path = self._path / hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
        path.mkdir(parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        disk = DirectoryDisk(path, loop, self._executor)
        port = _LoopPort(loop, domain)
        started = time.monotonic()
        vhost = self._metadata.vhost(name)
        assert vhost is not None
        numbers = {queue.number for queue in vhost.topology.queues.values()}
        world = OpeningWorld(
            random_octets=random_octets, has_queue=numbers.__contains__, progress=_Progress(name).tell
        )
        recovered = open_store(disk, port, world)
        port.store = recovered.store
        self._open[name] = (recovered.store, disk)
        domain.keep_in(recovered)
        _report(name, recovered, time.monotonic() - started)
        (path / "name").write_text(name + "\n", "utf-8", "surrogateescape")

    async def remove(self, name: str) -> None:
        """The virtual host `name` is gone, and its messages with it."""
        _, disk = self._open[name]
        await self._close(name)
        shutil.rmtree(disk.path, ignore_errors=True)

    async def close(self) -> None:
        """Write what is pending, and let go of everything."""
        await asyncio.gather(*map(self._close, list(self._open)))
        self._executor.shutdown()

    async def _close(self, name: str) -> None:
        store, disk = self._open.pop(name)
        closed = asyncio.get_running_loop().create_future()
        store.close(lambda: closed.set_result(None))
        await closed
        disk.close()


class _LoopPort(StorePort):
    """Commits at the end of a turn of the loop, tries again when the disk was full, and slows publishers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, domain: Domain) -> None:
        self._loop = loop
        self._name = domain.vhost.name
        self._credit = domain.credit
        self.store: MessageStore | None = None

    def dirty(self) -> None:
        assert self.store is not None
        self._loop.call_soon(self.store.commit)

    def failed(self, error: OSError, is_full: bool) -> None:
        assert self.store is not None
        logger.error("nothing is confirmed in vhost '%s': cannot write its messages: %s", self._name, error)
        if is_full:
            self._loop.call_later(_RETRY_S, self.store.retry)

    def recovered(self) -> None:
        logger.info("the messages of vhost '%s' are written again", self._name)

    def is_behind(self) -> None:
        self._credit.spend()

    def has_caught_up(self) -> None:
        self._credit.renew()


class _Progress:
    """Says how far recovery is, when it takes its time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = time.monotonic()

    def tell(self, read: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told >= _PROGRESS_S:
            self._told = now
            logger.info("vhost '%s': %d of %d MiB read", self._name, read >> 20, total >> 20)


def _report(name: str, recovered: Recovered, seconds: float) -> None:
    for damage in recovered.damage:
        logger.error("vhost '%s': damaged: %s", name, damage)
    found = [found for levels in recovered.queues.values() for found in levels.values()]
    count = sum(len(each.messages) for each in found)
    if count:
        logger.info("vhost '%s': %d messages recovered in %.1f s", name, count, seconds)
