"""The message stores of a node: a directory with a store for each virtual host.

<data>/vhosts/<first 32 digits of the SHA-256 of its name>/   segments
                                                   name       the name of the virtual host, for operators
                                                   transient/ transient messages, not read by a start
                                                   streams/   the streams
                                                   staged/    rows of uncommitted transactions, and plans
              <digits>.<a number>.deleted/                    the rest of a deleted one
"""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from warren.limits import QUEUE_MEMORY_MAX
from warren.management.managed_node import Loss
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUORUM
from warren.node.known_stores import KnownStores
from warren.node.loop_store_port import LoopStorePort
from warren.node.loss_file import LossFile
from warren.node.quarantine import Quarantine
from warren.node.recovery_log import RecoveryProgress, StreamDamageLog
from warren.node.vhost_folders import METADATA, NAME, STREAMS, VHOSTS, directory_name, set_aside
from warren.queues.quorum.raft_storage import PAYLOAD_VERSIONS
from warren.runtime.clock import wall_ms
from warren.runtime.disk import DirectoryDisk
from warren.runtime.file_writer import IS_AVAILABLE, FileWriter
from warren.runtime.locked_directory import make_directory
from warren.runtime.memory_disk import MemoryDisk
from warren.runtime.randomness import random_bytes
from warren.runtime.timers import PeriodicTimer
from warren.runtime.worker_thread import WorkerThread
from warren.session.vhost_services import VhostServices
from warren.store.disk import TRANSIENT_ERRNOS, Disk
from warren.store.message_store import MessageStore
from warren.store.reach import FOLDER as REACHED
from warren.store.reach import NAME as REACH
from warren.store.reach import ReachFile, StoreReach
from warren.store.recovered_queue import RecoveredQueue
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.segment import StoreFileError
from warren.store.stores import Stores
from warren.store.streams.recovery import RecoveredStreams, open_streams
from warren.store.streams.stream_log import StreamLogDependencies
from warren.store.streams.stream_store import StreamStore

logger = logging.getLogger("warren.storage")

_TRANSIENT = "transient"
_STAGED = "staged"
# Interval at which queues release the memory of messages that have been written since.
_MAINTENANCE_S = 1.0
# The consequence of a full disk, for the message store and the stream store of a virtual host.
_NO_CONFIRMS = "publishers to vhost '%s' get no confirms until more is available"
_NO_PAGING = (
    "transient messages of vhost '%s' cannot be paged out, and publishers wait, until more is available"
)


@dataclass(kw_only=True)
class VhostStore:
    """The open store of one virtual host."""

    recovered: RecoveredStore
    persistent: "_StoreHandle[MessageStore]"
    transient: "_StoreHandle[MessageStore]"
    streams: "_StoreHandle[StreamStore]"
    # How far it has come, as far as others know.
    reach: StoreReach
    reach_disk: DirectoryDisk
    # Messages of queues that the metadata do not name and no command has deleted, by number.
    orphaned: dict[int, dict[int, RecoveredQueue]]
    # Parts that could not be read.
    damage: list[StoreFileError]
    # The number of messages in it, and the time it took to open it.
    count: int
    seconds: float

    @cached_property
    def stores(self) -> Stores:
        """The stores that its queues use."""
        return Stores(self.persistent.store, self.transient.store)

    def note_reach(self) -> None:
        """Record how far the store and the metadata have come."""
        self.reach.note(self.persistent.store.written)

    @property
    def failure(self) -> Exception | None:
        """The exception that ended one of its stores, if any."""
        return next((handle.port.failure for handle in self.handles if handle.port.failure is not None), None)

    @property
    def handles(
        self,
    ) -> "tuple[_StoreHandle[MessageStore], _StoreHandle[MessageStore], _StoreHandle[StreamStore]]":
        """The handles of all its stores."""
        return self.persistent, self.transient, self.streams


S = TypeVar("S", MessageStore, StreamStore)


class _StoreHandle(Struct, Generic[S]):
    """A store with its disk and its port."""

    store: S
    disk: DirectoryDisk
    port: LoopStorePort


class Storage:
    """The stores of one node, by the name of their virtual host."""

    def __init__(
        self,
        folder: Path,
        metadata: Metadata,
        quarantine: Quarantine,
        on_attached: Callable[[], None],
        *,
        node: int = NODE_ALONE,
        metadata_index: Callable[[], int] = lambda: 0,
        is_older_accepted: bool = False,
    ) -> None:
        """Open nothing yet; the stores of `node` are in `folder`. Belongs to the running loop.

        `metadata_index` returns the last change of the metadata that is synced; with `is_older_accepted` a
        store that is an older copy is opened.

        `on_attached` is called after a store is attached; `quarantine` registers messages without a queue.
        """
        self.path = folder / VHOSTS
        self._metadata = metadata
        self._node = node
        self._quarantine = quarantine
        self._on_attached = on_attached
        # Losses found in the stores.
        self.losses = LossFile(folder, self._queue_name)
        self._known = KnownStores(folder / METADATA, metadata.vhosts.by_name)
        self._reached_path = folder / METADATA / REACHED
        self._metadata_index = metadata_index
        self._is_older_accepted = is_older_accepted
        self._loop = asyncio.get_running_loop()
        # One thread writes the batches of all virtual hosts, as they share the device: while one batch syncs,
        # the others gather. If the writer does that, the worker performs the other syncs, as when a segment
        # begins. Data that are written without a sync delay no confirm but may be many; another thread writes
        # those.
        self._worker = WorkerThread("warren-disk")
        self._writer = FileWriter("warren-sync", self._loop) if IS_AVAILABLE else None
        self._spiller = WorkerThread("warren-spill")
        self._open: dict[str, VhostStore] = {}
        self._maintenance = PeriodicTimer(self._loop, _MAINTENANCE_S, self._maintain)
        # Bytes of messages that a queue may have in memory.
        self.queue_memory = QUEUE_MEMORY_MAX

    def path_of(self, name: str) -> Path:
        """Return the directory of the virtual host `name`."""
        return self.path / directory_name(name)

    def staged_path_of(self, name: str) -> Path:
        """Return the directory of staged rows of the virtual host `name`."""
        return self.path_of(name) / _STAGED

    async def recover(
        self, name: str, failed: Callable[[Exception], None], *, has_failed_before: bool
    ) -> VhostStore:
        """Open the store of `name` in a thread; raises StoreFileError or OSError if it is not usable.

        `failed` is called when the store fails later; `has_failed_before` is True when it is opened after a
        failure.
        """
        return await asyncio.to_thread(self._recover, name, failed, has_failed_before=has_failed_before)

    async def abandon(self, vhost_store: VhostStore) -> None:
        """Close `vhost_store` without writing what is pending."""
        for handle in vhost_store.handles:
            handle.port.is_over = True
            await handle.disk.close_after_jobs()
        vhost_store.reach_disk.close()

    def _recover(
        self, name: str, failed: Callable[[Exception], None], *, has_failed_before: bool
    ) -> VhostStore:
        """Open the store of `name`; runs in a thread."""
        path = self.path_of(name)
        numbers, streams = (self._numbers(name, is_stream=is_stream) for is_stream in (False, True))
        missing = self._known.missing(name, path, numbers | streams)
        for folder in (self.path, path, path / _STAGED, path / STREAMS, self._reached_path):
            make_directory(folder)
        port = LoopStorePort(self._loop, name, failed, _NO_CONFIRMS)
        disk = self._disk(path, port)
        reach_disk = self._disk(self._reached_path, port)
        started = time.monotonic()
        was_deleted = self._metadata.was_deleted
        try:
            if has_failed_before:
                disk.drop_page_cache()
            reach = self._reach(name, disk, reach_disk)
            dependencies = RecoveryDependencies(
                random_bytes=random_bytes,
                has_queue=lambda number: number in numbers or not was_deleted(number),
                progress=RecoveryProgress(name).tell,
                replicas=self._replicas(name),
                missing=missing,
                reach=reach,
                payload_versions=PAYLOAD_VERSIONS,
            )
            recovered = open_store(disk, port, dependencies)
            (path / NAME).write_text(name + "\n", "utf-8", "surrogateescape")
            transient = self._transient_store(
                path / _TRANSIENT, LoopStorePort(self._loop, name, failed, _NO_PAGING)
            )
            opened = self._streams(name, streams, LoopStorePort(self._loop, name, failed, _NO_CONFIRMS))
            reach.opened(recovered.store.written)
            self._known.add(name)
        except BaseException:
            disk.close()
            reach_disk.close()
            raise
        port.store = recovered.store
        persistent = _StoreHandle(recovered.store, disk, port)
        orphaned = {number: recovered.queues.pop(number) for number in {*recovered.queues} - numbers}
        seconds = time.monotonic() - started
        count = sum(found.count for levels in recovered.queues.values() for found in levels.values())
        return VhostStore(
            recovered=recovered,
            persistent=persistent,
            transient=transient,
            streams=opened[1],
            reach=reach,
            reach_disk=reach_disk,
            orphaned=orphaned,
            damage=[*missing, *recovered.damage, *opened[0]],
            count=count,
            seconds=seconds,
        )

    def _reach(self, name: str, disk: DirectoryDisk, reach_disk: DirectoryDisk) -> StoreReach:
        """Read how far the store of `name` has come."""
        return StoreReach(
            ReachFile(disk, REACH),
            ReachFile(reach_disk, directory_name(name)),
            self._metadata_index,
            is_known=self._known.has(name),
            is_older_accepted=self._is_older_accepted,
        )

    def _disk(self, path: Path, port: LoopStorePort) -> DirectoryDisk:
        """Return the directory `path` as a disk whose writes are all synced."""
        return DirectoryDisk(path, self._loop, self._worker, writer=self._writer, job_ended=port.job_ended)

    def _streams(
        self, name: str, numbers: set[int], port: LoopStorePort
    ) -> "tuple[list[StoreFileError], _StoreHandle[StreamStore]]":
        """Open the streams of `name` with these `numbers`; also returns their damage."""
        path = self.path_of(name) / STREAMS
        self._quarantine.reconcile_streams(name, path, numbers)
        disk = self._disk(path, port)
        try:
            opened = _opened_streams(name, disk, port, numbers, losses=self.losses)
        except BaseException:
            disk.close()
            raise
        return opened.damage, _StoreHandle(opened.store, disk, port)

    def _transient_store(self, path: Path, port: LoopStorePort) -> "_StoreHandle[MessageStore]":
        """Create a store for transient messages in `path`, erasing what an earlier start left."""
        path.mkdir(exist_ok=True)
        port.is_transient = True
        disk = DirectoryDisk(path, self._loop, self._spiller, job_ended=port.job_ended, is_synced=False)
        try:
            store = port.store = open_erased(disk, port, random_bytes)
        except BaseException:
            disk.close()
            raise
        return _StoreHandle(store, disk, port)

    def attach(self, services: VhostServices, vhost_store: VhostStore) -> None:
        """Connect `services`, still empty, to their store; log what was recovered and what was lost."""
        name = services.vhost.name
        self._open[name] = vhost_store
        for handle in vhost_store.handles:
            handle.port.credit = services.credit
            handle.port.note_failure = services.vhost.note_failure
        vhost_store.stores.queue_memory_max = self.queue_memory
        services.vhost.attach_store(vhost_store.stores)
        services.vhost.attach_stream_store(vhost_store.streams.store)
        self._quarantine.pin(name, vhost_store.orphaned)
        self._on_attached()
        for loss in self.losses.add(name, vhost_store.damage):
            logger.error(
                "vhost '%s' is running without damaged data: %s, byte %d: %s (in %s): %s%s",
                name, loss.file, loss.offset, loss.reason, self.path_of(name), _extent(loss),
                " (acknowledged)" if loss.acknowledged else "",
            )  # fmt: skip
        for number, log in vhost_store.recovered.groups.items():
            if log.untrusted:
                logger.error(
                    "queue '%s' in vhost '%s' is down, as its data may be incomplete: %s (in %s); 'warren"
                    " queues recover' continues with what is readable", self._queue_name(name, number), name,
                    log.untrusted, self.path_of(name),
                )  # fmt: skip
        if vhost_store.count:
            logger.info(
                "vhost '%s': %d messages recovered in %.1f s", name, vhost_store.count, vhost_store.seconds
            )

    async def release(self, name: str) -> None:
        """Close the failed store of `name`: it writes and confirms nothing more."""
        vhost_store = self._open.pop(name, None)
        self._quarantine.unpin(name)
        if vhost_store is not None:
            await self.abandon(vhost_store)

    def remove(self, name: str) -> Coroutine[object, object, None]:
        """Detach the store of the deleted virtual host `name`; the coroutine returned deletes its files.

        A new virtual host may use the name at once.
        """
        self.losses.forget(name)
        self._known.forget(name)
        with suppress(OSError):
            (self._reached_path / directory_name(name)).unlink()
        vhost_store = self._open.pop(name, None)
        self._quarantine.unpin(name)
        return self._destroy(vhost_store, self._set_aside(name))

    async def _destroy(self, vhost_store: VhostStore | None, path: Path | None) -> None:
        if vhost_store is not None:
            await self.abandon(vhost_store)
        if path is not None:
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    def is_full(self, name: str) -> bool:
        """True if messages of `name` wait for room on the disk."""
        vhost_store = self._open.get(name)
        return vhost_store is not None and any(handle.port.is_full for handle in vhost_store.handles)

    def damage_of(self, name: str) -> list[StoreFileError]:
        """Return what could not be read when the store of `name` was opened."""
        return self._open[name].damage if name in self._open else []

    async def close(self) -> None:
        """Write what is pending, and close all stores."""
        self._maintenance.stop()
        await asyncio.gather(*map(self._close, list(self._open)))
        self._worker.close()
        if self._writer is not None:
            self._writer.close()
        self._spiller.close()

    async def _close(self, name: str) -> None:
        vhost_store = self._open.pop(name)
        for handle in (vhost_store.persistent, vhost_store.streams):
            # A failed store ignores calls, and has nothing left to write.
            if not handle.port.is_over:
                await self._write_rest(name, handle.store)
        vhost_store.note_reach()
        await self.abandon(vhost_store)

    async def _write_rest(self, name: str, store: MessageStore | StreamStore) -> None:
        closed = self._loop.create_future()
        store.close(lambda: closed.set_result(None))
        await closed
        if store.failure is not None:
            logger.error(
                "the last messages of vhost '%s' were not written at the shutdown: %s", name, store.failure
            )

    def limit_queue_memory(self, byte_count: int) -> None:
        """Limit the memory of each queue to `byte_count` bytes, for messages published from now on."""
        self.queue_memory = byte_count
        for vhost_store in self._open.values():
            vhost_store.stores.queue_memory_max = byte_count

    def _maintain(self) -> None:
        for vhost_store in self._open.values():
            vhost_store.stores.maintain()
            vhost_store.note_reach()
            vhost_store.streams.store.maintain(wall_ms())

    def _numbers(self, name: str, *, is_stream: bool) -> set[int]:
        """Return the numbers of the queues of `name` on this node that are streams, or that are not."""
        return {queue.stored_number for queue in self._queues(name) if (queue.kind == "stream") == is_stream}

    def _replicas(self, name: str) -> dict[int, int]:
        """Return the number of the replica that this node has of each quorum queue of `name`, by number."""
        found = {
            queue.stored_number: queue.replica_on(self._node)
            for queue in self._queues(name)
            if queue.kind == QUORUM
        }
        return {number: replica for number, replica in found.items() if replica}

    def _queues(self, name: str) -> list[QueueRecord]:
        """Return the queues of `name` whose home is this node, and all quorum queues.

        Of a quorum queue a replica may be here, or may have been here while this node was down.
        """
        vhost = self._metadata.vhost(name)
        # Iterates over a copy: queues may be declared and deleted in another thread meanwhile.
        queues = [] if vhost is None else list(vhost.topology.queues.values())
        return [queue for queue in queues if queue.home == self._node or queue.kind == QUORUM]

    def _queue_name(self, vhost: str, number: int) -> str:
        """Return the name of the queue with `number`; `#number` if it does not exist any more."""
        found = self._metadata.vhost(vhost)
        queues = () if found is None else found.topology.queues.values()
        return next((queue.name for queue in queues if queue.number == number), f"#{number}")

    def _set_aside(self, name: str) -> Path | None:
        """Rename the directory of `name` to a unique name; None if that is impossible."""
        path = self.path_of(name)
        aside = set_aside(path)
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.error(
                "cannot delete the messages of the deleted vhost '%s', will retry at the next start: %s",
                name,
                error,
            )
            return None
        return aside


class InMemoryStreams:
    """The streams of one virtual host without a data directory. Belongs to the running loop."""

    def __init__(self, name: str) -> None:
        loop = asyncio.get_running_loop()
        port = LoopStorePort(loop, name, _raise, _NO_CONFIRMS)
        self.store = _opened_streams(name, MemoryDisk(loop), port, set()).store
        self._maintenance = PeriodicTimer(loop, _MAINTENANCE_S, lambda: self.store.maintain(wall_ms()))

    def close(self) -> None:
        """Close the streams of a virtual host that is stopped or deleted."""
        self._maintenance.stop()


def _raise(error: Exception) -> None:
    """Raise `error`: without a data directory there is no supervised unit to restart."""
    raise error


def _opened_streams(
    name: str, disk: Disk, port: LoopStorePort, numbers: set[int], *, losses: LossFile | None = None
) -> RecoveredStreams:
    """Return the streams with these `numbers` that have files on `disk`."""
    report = StreamDamageLog(name, losses).report
    files = StreamLogDependencies(disk=disk, random_bytes=random_bytes, report=report)
    opened = open_streams(files, port, numbers.__contains__)
    port.store = opened.store
    return opened


def _extent(loss: Loss) -> str:
    """Describe the extent of a loss."""
    count = "an unknown number" if loss.messages is None else f"at most {loss.messages}"
    names = ", ".join(f"'{name}'" for name in loss.queues) or "unknown queues"
    return "no messages lost" if loss.messages == 0 else f"{count} messages lost, of {names}"


def is_full(error: Exception) -> bool:
    """True if `error` is a temporary lack of disk space or file descriptors."""
    return isinstance(error, OSError) and error.errno in TRANSIENT_ERRNOS
