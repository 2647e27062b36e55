"""Where the messages of this node are kept: a directory with a store for each virtual host.

<data>/vhosts/<first 32 digits of the SHA-256 of its name>/   its segments
                                                   name       what it is called, for people
                                                   transient/ segments of what no start reads
                                                   streams/   the streams
                                                   staged/    rows that wait for their commit, and plans
              <digits>.<a number>.deleted/                    what is left of one that is deleted
"""

import asyncio
import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from warren.flow.credit import Credit
from warren.limits import QUEUE_MEMORY_MAX, STREAM_DAMAGE_TOLD_MAX
from warren.management.managed import Loss
from warren.metadata.machine import Metadata
from warren.node.known_stores import KnownStores
from warren.node.losses import LossRecord
from warren.node.quarantine import Quarantine
from warren.node.vhost_folders import METADATA, NAME, STREAMS, VHOSTS, digits_of, set_aside
from warren.runtime.clock import wall_ms
from warren.runtime.disk import DirectoryDisk
from warren.runtime.folder import make_folder
from warren.runtime.memory_disk import MemoryDisk
from warren.runtime.randomness import random_octets
from warren.runtime.supervisor import contain
from warren.runtime.timers import Periodic
from warren.runtime.worker import Worker
from warren.runtime.writer import IS_AVAILABLE, Writer
from warren.session.domain import Domain
from warren.store.disk import PASSING, Disk
from warren.store.found import Found
from warren.store.message_store import MessageStore, StorePort
from warren.store.recovery import OpeningWorld, Recovered, open_erased, open_store
from warren.store.segment import SegmentError
from warren.store.stores import Stores
from warren.store.streams.log import StreamFiles
from warren.store.streams.recovery import OpenStreams, open_streams
from warren.store.streams.store import StreamStore

logger = logging.getLogger("warren.storage")

_TRANSIENT = "transient"
_STAGED = "staged"
# How often a batch that found no room is tried again.
_RETRY_S = 1.0
# How long what is done with may wait to be written, unless something comes for which somebody waits.
_SETTLED_S = 0.02
# How often queues let go of what was written since it was published to them.
_TEND_S = 1.0
# Recovery that takes longer says how far it is, so often.
_PROGRESS_S = 1.0
# What a system answers that has no room for one more open file.
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
# What comes of a full disk for either store of a virtual host.
_NO_CONFIRMS = "publishers to vhost '%s' get no confirms until there is room"
_NO_PAGING = "transient messages of vhost '%s' stay in memory, and publishers wait, until there is room"


@dataclass(kw_only=True)
class Keeping:
    """The open store of one virtual host."""

    recovered: Recovered
    persistent: "_Shelf[MessageStore]"
    transient: "_Shelf[MessageStore]"
    streams: "_Shelf[StreamStore]"
    # What it has of queues that the metadata do not name and no command has deleted, by number.
    unnamed: dict[int, dict[int, Found]]
    # What could not be read.
    damage: list[SegmentError]
    # How many messages are in it, and how long it took to open it.
    count: int
    seconds: float

    @cached_property
    def stores(self) -> Stores:
        """What its queues need of it."""
        return Stores(self.persistent.store, self.transient.store)

    @property
    def failure(self) -> Exception | None:
        """Why it cannot be used any more, if that is so."""
        return next((shelf.port.failure for shelf in self.shelves if shelf.port.failure is not None), None)

    @property
    def shelves(self) -> "tuple[_Shelf[MessageStore], _Shelf[MessageStore], _Shelf[StreamStore]]":
        """All that it has."""
        return self.persistent, self.transient, self.streams


S = TypeVar("S", MessageStore, StreamStore)


@dataclass(slots=True)
class _Shelf(Generic[S]):
    """One of its stores."""

    store: S
    disk: DirectoryDisk
    port: "_LoopPort"


class Storage:
    """The stores of one node, by the name of their virtual host."""

    def __init__(
        self, folder: Path, metadata: Metadata, quarantine: Quarantine, adopted: Callable[[], None]
    ) -> None:
        """The stores in `folder`, none of them open. Belongs to the running loop.

        `adopted` is called when one is opened, and `quarantine` knows what of it nobody owns.
        """
        self.path = folder / VHOSTS
        self._metadata = metadata
        self._quarantine = quarantine
        self._adopted = adopted
        # What of it was lost.
        self.losses = LossRecord(folder, self._queue_name)
        self._known = KnownStores(folder / METADATA, metadata.vhosts.by_name)
        self._loop = asyncio.get_running_loop()
        # One thread for the batches of all, as they share the device: while one syncs, the others gather.
        # Where that is the writer, the worker does what else is synced, as when a segment begins. What is
        # written without a sync is no confirm's affair, may be much, and has another.
        self._worker = Worker("warren-disk")
        self._writer = Writer("warren-sync", self._loop) if IS_AVAILABLE else None
        self._spiller = Worker("warren-spill")
        self._open: dict[str, Keeping] = {}
        self._tending = Periodic(self._loop, _TEND_S, self._tend)
        # Octets of messages that a queue may have in memory.
        self.queue_memory = QUEUE_MEMORY_MAX

    def path_of(self, name: str) -> Path:
        """The directory of the virtual host `name`."""
        return self.path / digits_of(name)

    def staged_path_of(self, name: str) -> Path:
        """The directory of what is staged in it."""
        return self.path_of(name) / _STAGED

    async def recover(self, name: str, failed: Callable[[Exception], None], *, is_doubted: bool) -> Keeping:
        """Open the store of `name`, while others go on. SegmentError, OSError: it cannot be used.

        `failed` is called when it cannot be used any more; `is_doubted` after it failed before.
        """
        return await asyncio.to_thread(self._recover, name, failed, is_doubted=is_doubted)

    async def abandon(self, keeping: Keeping) -> None:
        """`keeping` is not wanted after all."""
        for shelf in keeping.shelves:
            shelf.port.is_over = True
            await shelf.disk.close_behind()

    def _recover(self, name: str, failed: Callable[[Exception], None], *, is_doubted: bool) -> Keeping:
        """The same, in a thread of its own."""
        path = self.path_of(name)
        numbers, streams = (self._numbers(name, is_stream=is_stream) for is_stream in (False, True))
        missing = self._known.missing(name, path, numbers | streams)
        for folder in (self.path, path, path / _STAGED, path / STREAMS):
            make_folder(folder)
        port = _LoopPort(self._loop, name, failed, _NO_CONFIRMS)
        disk = self._disk(path, port)
        started = time.monotonic()
        was_deleted = self._metadata.was_deleted
        world = OpeningWorld(
            random_octets=random_octets,
            has_queue=lambda number: number in numbers or not was_deleted(number),
            progress=_Progress(name).tell,
        )
        try:
            if is_doubted:
                disk.doubt()
            recovered = open_store(disk, port, world)
            (path / NAME).write_text(name + "\n", "utf-8", "surrogateescape")
            transient = self._erased(path / _TRANSIENT, _LoopPort(self._loop, name, failed, _NO_PAGING))
            opened = self._streams(name, streams, _LoopPort(self._loop, name, failed, _NO_CONFIRMS))
            self._known.add(name)
        except BaseException:
            disk.close()
            raise
        port.store = recovered.store
        persistent = _Shelf(recovered.store, disk, port)
        unnamed = {number: recovered.queues.pop(number) for number in {*recovered.queues} - numbers}
        seconds = time.monotonic() - started
        count = sum(found.count for levels in recovered.queues.values() for found in levels.values())
        return Keeping(
            recovered=recovered,
            persistent=persistent,
            transient=transient,
            streams=opened[1],
            unnamed=unnamed,
            damage=[*missing, *recovered.damage, *opened[0]],
            count=count,
            seconds=seconds,
        )

    def _disk(self, path: Path, port: "_LoopPort") -> DirectoryDisk:
        """The directory `path`, of which all that is written is synced."""
        return DirectoryDisk(path, self._loop, self._worker, writer=self._writer, guard=port.guard)

    def _streams(
        self, name: str, numbers: set[int], port: "_LoopPort"
    ) -> "tuple[list[SegmentError], _Shelf[StreamStore]]":
        """The streams of `name`, which have these `numbers`, and what of them is damaged."""
        path = self.path_of(name) / STREAMS
        self._quarantine.sort_streams(name, path, numbers)
        disk = self._disk(path, port)
        try:
            opened = _opened_streams(name, disk, port, numbers, losses=self.losses)
        except BaseException:
            disk.close()
            raise
        return opened.damage, _Shelf(opened.store, disk, port)

    def _erased(self, path: Path, port: "_LoopPort") -> "_Shelf[MessageStore]":
        """A store in `path` for what no start reads."""
        path.mkdir(exist_ok=True)
        port.is_transient = True
        disk = DirectoryDisk(path, self._loop, self._spiller, guard=port.guard, is_synced=False)
        try:
            store = port.store = open_erased(disk, port, random_octets)
        except BaseException:
            disk.close()
            raise
        return _Shelf(store, disk, port)

    def adopt(self, domain: Domain, keeping: Keeping) -> None:
        """Have `domain`, in which there is nothing yet, keep what comes; say what was found."""
        name = domain.vhost.name
        self._open[name] = keeping
        for shelf in keeping.shelves:
            shelf.port.credit = domain.credit
        keeping.stores.queue_memory_max = self.queue_memory
        domain.vhost.keep_in(keeping.stores)
        domain.vhost.keep_streams_in(keeping.streams.store)
        self._quarantine.pin(name, keeping.unnamed)
        self._adopted()
        for loss in self.losses.add(name, keeping.damage):
            logger.error(
                "vhost '%s' runs without what is damaged: %s, octet %d: %s (in %s): %s%s",
                name, loss.file, loss.offset, loss.reason, self.path_of(name), _extent(loss),
                ", which is acknowledged" if loss.acknowledged else "",
            )  # fmt: skip
        if keeping.count:
            logger.info("vhost '%s': %d messages recovered in %.1f s", name, keeping.count, keeping.seconds)

    async def let_go(self, name: str) -> None:
        """The store of `name` has failed: nothing more is written or confirmed by it."""
        keeping = self._open.pop(name, None)
        self._quarantine.unpin(name)
        if keeping is not None:
            await self.abandon(keeping)

    def remove(self, name: str) -> Coroutine[object, object, None]:
        """The virtual host `name` is gone, another may have its name at once; to be awaited: its messages."""
        self.losses.forget(name)
        self._known.forget(name)
        keeping = self._open.pop(name, None)
        self._quarantine.unpin(name)
        return self._destroy(keeping, self._set_aside(name))

    async def _destroy(self, keeping: Keeping | None, path: Path | None) -> None:
        if keeping is not None:
            await self.abandon(keeping)
        if path is not None:
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    def is_full(self, name: str) -> bool:
        """Whether the messages of `name` wait for room on the disk."""
        keeping = self._open.get(name)
        return keeping is not None and any(shelf.port.is_full for shelf in keeping.shelves)

    def damage_of(self, name: str) -> list[SegmentError]:
        """What could not be read when the store of `name` was opened."""
        return self._open[name].damage if name in self._open else []

    async def close(self) -> None:
        """Write what is pending, and let go of everything."""
        self._tending.stop()
        await asyncio.gather(*map(self._close, list(self._open)))
        self._worker.close()
        if self._writer is not None:
            self._writer.close()
        self._spiller.close()

    async def _close(self, name: str) -> None:
        keeping = self._open.pop(name)
        for shelf in (keeping.persistent, keeping.streams):
            # One that has failed is deaf, and has nothing to write any more.
            if not shelf.port.is_over:
                await self._write_rest(name, shelf.store)
        await self.abandon(keeping)

    async def _write_rest(self, name: str, store: MessageStore | StreamStore) -> None:
        closed = self._loop.create_future()
        store.close(lambda: closed.set_result(None))
        await closed
        if store.failure is not None:
            logger.error("the last messages of vhost '%s' were not written: %s", name, store.failure)

    def press(self, octets: int) -> None:
        """Let no queue have more than `octets` of messages in memory, of what comes from here on."""
        self.queue_memory = octets
        for keeping in self._open.values():
            keeping.stores.queue_memory_max = octets

    def _tend(self) -> None:
        for keeping in self._open.values():
            keeping.stores.tend()
            keeping.streams.store.tend(wall_ms())

    def _numbers(self, name: str, *, is_stream: bool) -> set[int]:
        """The numbers of the queues of `name` that are streams, or that are not."""
        vhost = self._metadata.vhost(name)
        # A list of its own: in another thread, queues may come and go meanwhile.
        queues = [] if vhost is None else list(vhost.topology.queues.values())
        return {queue.number for queue in queues if (queue.kind == "stream") == is_stream}

    def _queue_name(self, vhost: str, number: int) -> str:
        """What the queue with `number` is called; its number if it does not exist any more."""
        found = self._metadata.vhost(vhost)
        queues = () if found is None else found.topology.queues.values()
        return next((queue.name for queue in queues if queue.number == number), f"#{number}")

    def _set_aside(self, name: str) -> Path | None:
        """Give the directory of `name` a name that nobody else asks for; None if that cannot be done."""
        path = self.path_of(name)
        aside = set_aside(path)
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.error("vhost '%s' is deleted, its messages are not until the next start: %s", name, error)
            return None
        return aside


class _LoopPort(StorePort):
    """Commits at the end of a turn of the loop, tries again when the disk was full, and slows publishers."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        on_failed: Callable[[Exception], None],
        when_full: str,
    ) -> None:
        self._loop = loop
        self._name = name
        self._on_failed = on_failed
        self._when_full = when_full
        self.store: MessageStore | StreamStore | None = None
        # Of the virtual host, once it lives.
        self.credit: Credit | None = None
        self._is_behind = False
        # True while a commit is due for what nobody waits for.
        self._is_settling = False
        # True for the store of messages that are not persistent.
        self.is_transient = False
        self.is_full = False
        # True when the store is let go: whatever it still does is of no interest.
        self.is_over = False
        # What was the end of it.
        self.failure: Exception | None = None

    def dirty(self) -> None:
        self._loop.call_soon(self.guard, self._commit)

    def settled(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_later(_SETTLED_S, self.guard, self._settle)

    def failed(self, error: OSError, is_full: bool) -> None:
        if not is_full:
            self._fail(error)
            return
        if not self.is_full:
            self.is_full = True
            logger.error("%s: %s: %s", lack(error), self._when_full % self._name, error)
        self._loop.call_later(_RETRY_S, self.guard, self._retry)

    def recovered(self) -> None:
        self.is_full = False
        logger.info("the messages of vhost '%s' are written again", self._name)

    def is_behind(self) -> None:
        if self.credit is not None and not self._is_behind:
            self._is_behind = True
            self.credit.spend(for_all=self.is_transient)

    def has_caught_up(self) -> None:
        if self.credit is not None and self._is_behind:
            self._is_behind = False
            self.credit.renew(for_all=self.is_transient)

    def unreadable(self, error: OSError | SegmentError) -> None:
        self._fail(error)

    def guard(self, action: Callable[[], None]) -> None:
        """Do `action`, unless the store is let go; what it did not expect is the end of the store."""
        if not self.is_over:
            contain(action, self._fail)

    def _commit(self) -> None:
        assert self.store is not None
        self.store.commit()

    def _settle(self) -> None:
        self._is_settling = False
        self._commit()

    def _retry(self) -> None:
        assert self.store is not None
        self.store.retry()

    def _fail(self, error: Exception) -> None:
        if not self.is_over:
            self.is_over = True
            self.failure = error
            self._on_failed(error)


class StreamsInMemory:
    """Where the streams of one virtual host are without a data directory. Belongs to the running loop."""

    def __init__(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        port = _LoopPort(loop, name, _raise, _NO_CONFIRMS)
        self.store = _opened_streams(name, MemoryDisk(loop), port, set()).store
        self._tending = Periodic(loop, _TEND_S, lambda: self.store.tend(wall_ms()))

    def close(self) -> None:
        """The virtual host is gone."""
        self._tending.stop()


def _raise(error: Exception) -> None:
    """There is nothing that could be started again."""
    raise error


def _opened_streams(
    name: str, disk: Disk, port: _LoopPort, numbers: set[int], *, losses: LossRecord | None = None
) -> OpenStreams:
    """The streams with these `numbers`, of which there are files on `disk`."""
    files = StreamFiles(disk=disk, random_octets=random_octets, report=_Reporter(name, losses).report)
    opened = open_streams(files, port, numbers.__contains__)
    port.store = opened.store
    return opened


class _Reporter:
    """Says what of a stream cannot be read: once for each place, however many readers come by."""

    def __init__(self, name: str, losses: LossRecord | None = None) -> None:
        self._name = name
        self._losses = losses
        self._told: set[str] = set()

    def report(self, error: OSError | SegmentError) -> None:
        if self._losses is not None and isinstance(error, SegmentError) and str(error) not in self._told:
            self._losses.add(self._name, [error])
        text = str(error)
        if text not in self._told and len(self._told) < STREAM_DAMAGE_TOLD_MAX:
            self._told.add(text)
            logger.error("vhost '%s': readers of a stream go on behind what is damaged: %s", self._name, text)


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


def lack(error: OSError) -> str:
    """What there is not enough of."""
    return "no file can be opened" if error.errno in _NO_DESCRIPTOR else "the disk is full"


def _extent(loss: Loss) -> str:
    """What was lost, in words."""
    count = "nobody knows how many" if loss.messages is None else f"at most {loss.messages}"
    names = ", ".join(f"'{name}'" for name in loss.queues) or "queues that nobody knows"
    return "no message is lost" if loss.messages == 0 else f"{count} messages are lost, of {names}"


def is_full(error: Exception) -> bool:
    """Whether `error` says that there is no room now, on the disk or for an open file."""
    return isinstance(error, OSError) and error.errno in PASSING
