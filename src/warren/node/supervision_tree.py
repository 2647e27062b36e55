"""What stands and falls together on a node, and what becomes of it.

    node ▸ metadata: it alone is never started again; while it cannot be written nothing changes (journal)
         ▸ virtual hosts: one for all. Its store, its queues and its connections end together when the store
           fails; what is on the disk comes back, the connections do not. So often, then it stays down, and
           the others serve on, or the node ends, as it was told (vhost_restart_strategy)
           ▸ connections: one for one, never started again: clients know how to come back

A store fails when the disk does (EIO, a failed sync): nobody knows then what its files hold, so nothing more
is confirmed by it. A disk that is only full is no failure: what waits is written when there is room.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial

from warren.errors import ConnectionForced
from warren.limits import (
    CLOSED_PER_TURN,
    QUEUES_SHRUNK_PER_TURN,
    VHOST_PAUSES_MS,
    VHOST_RESTARTS_MAX,
    VHOST_WINDOW_MS,
)
from warren.management.managed_node import Loss, VhostStatus
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, PutVhost, Reply
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.node.errors import BootRefused
from warren.node.expiry import VhostExpiry
from warren.node.storage import InMemoryStreams, Storage, VhostStore, is_full, missing_resource
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_octets
from warren.runtime.supervisor import (
    PermanentFailure,
    RestartIntensity,
    Supervisor,
    TemporaryFailure,
    contain,
)
from warren.runtime.turns import in_pieces, piece_by_piece
from warren.session.server import Server
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.staging.staging import Staging
from warren.store.recovered_queue import RecoveredQueue
from warren.store.segment import StoreFileError
from warren.vhost.coroutine_driver import Later

logger = logging.getLogger("warren.tree")

# How often a store is tried that cannot be opened because the disk is full.
_FULL_RETRY_MS = 5_000
_MS = 1000
# What an operator can do.
_NEWER = "start the version of Warren that wrote it, or move the directory away to begin without messages"
_BROKEN = "see to the disk, then start it again (POST /api/vhosts/…/start/…), or the node"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDependencies:
    """What the tree needs of its node."""

    metadata: Metadata
    proposals: Proposals
    server: Server
    clock: Clock
    later: Later
    node_name: str
    # Told why, when the node is to end because a virtual host is down; None: the others serve on.
    on_down: Callable[[str], None] | None
    # Whether messages are kept: no virtual host lives before there is a storage then.
    has_store: bool
    staging: Staging


class SupervisionTree:
    """The virtual hosts of one node."""

    def __init__(self, tree_dependencies: TreeDependencies) -> None:
        self._dependencies = tree_dependencies
        self._vhosts: dict[str, _VhostUnit] = {}
        # Those that do not exist any more and are not gone yet; the last of each name.
        self._leaving: dict[str, _VhostUnit] = {}
        self.storage: Storage | None = None
        # What is done beside: removals that are under way.
        self._tasks: set[asyncio.Task[None]] = set()
        # Over when every queue has let go of what it may not hold any more.
        self._shrinking: asyncio.Future[None] | None = None

    def add(self, name: str) -> None:
        """The virtual host `name` exists: have it live, soon or, if nothing is kept, at once."""
        before = self._leaving.get(name)
        vhost = self._vhosts[name] = _VhostUnit(name, self, self._dependencies)
        vhost.before = None if before is None else before.supervisor
        vhost.begin()

    async def wait_until_started(self, name: str) -> None:
        """Wait until the virtual host `name` lives, or cannot, or does not exist any more."""
        vhost = self._vhosts.get(name)
        if vhost is not None:
            await vhost.has_begun.wait()

    def remove(self, name: str) -> None:
        """The virtual host `name` does not exist any more."""
        vhost = self._vhosts.pop(name)
        self._leaving[name] = vhost
        messages = self.storage.remove(name) if self.storage is not None else None
        self._run_in_background(self._end(vhost, messages))
        self.disconnect(lambda _, where: where == name, f"vhost '{name}' is deleted")

    def losses(self) -> list[Loss]:
        """What was lost of messages with files."""
        return [] if self.storage is None else self.storage.losses.all()

    def acknowledge_losses(self, vhost: str | None) -> int:
        """An operator knows of all of it, or of that of `vhost`; answers how many losses are new."""
        return 0 if self.storage is None else self.storage.losses.acknowledge(vhost)

    async def open_storage(self, storage: Storage) -> None:
        """Have every virtual host keep its messages in `storage`; one that cannot does not live.

        BootRefused if none may be missing.
        """
        self.storage = storage
        for vhost in self._vhosts.values():
            await vhost.start_with_node()

    def disconnect(self, is_meant: Callable[[str, str], bool], reason: str) -> "asyncio.Future[None]":
        """Close connections by their user and virtual host, turn by turn; done when the last of them is.

        That begins when the change that caused it is complete.
        """
        closes: list[Callable[[], None]] = [
            partial(connection.close, ConnectionForced(reason))
            for connection in self._dependencies.server.connections
            if connection.login is not None
            and connection.services is not None
            and is_meant(connection.login.user, connection.services.vhost.name)
        ]
        closes += [
            partial(stream_client.disconnect, reason)
            for stream_client in self._dependencies.server.stream_clients
            if is_meant(stream_client.user, stream_client.vhost)
        ]
        return in_pieces(closes, CLOSED_PER_TURN, self._dependencies.later)

    async def start(self, name: str) -> str:
        """Start the virtual host `name` if it is down; answers what is in the way, if anything."""
        error = await self._vhosts[name].supervisor.start_again()
        return "" if error is None else str(error)

    def discard(self, name: str, number: int, found: dict[int, RecoveredQueue]) -> None:
        """Nobody needs what the store of `name` has of the queue `number`, as was `found`."""
        vhost = self._vhosts.get(name)
        if vhost is not None:
            vhost.discard(number, found)

    def limit_queue_memory(self, octets: int) -> None:
        """Have no queue hold more than `octets` of messages in memory, where it can do without."""
        if self.storage is None:
            return
        is_less = octets < self.storage.queue_memory
        self.storage.limit_queue_memory(octets)
        if is_less and (self._shrinking is None or self._shrinking.done()):
            shrinks = [shrink for vhost in self._vhosts.values() for shrink in vhost.shrinks()]
            self._shrinking = in_pieces(shrinks, QUEUES_SHRUNK_PER_TURN, self._dependencies.later)

    def views(self) -> list[VhostStatus]:
        """How every virtual host is."""
        return [vhost.view() for vhost in self._vhosts.values()]

    async def close(self) -> None:
        """Write what is pending; then every virtual host ends."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        for vhost in self._vhosts.values():
            await vhost.supervisor.end()
        if self.storage is not None:
            await self.storage.close()
        for vhost in self._vhosts.values():
            vhost.close()

    async def _end(self, vhost: "_VhostUnit", messages: Coroutine[object, object, None] | None) -> None:
        await vhost.end()
        if self._leaving.get(vhost.name) is vhost:
            del self._leaving[vhost.name]
        if messages is not None:
            await messages

    def _run_in_background(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class VhostCreation:
    """Proposals of which whoever makes a virtual host is answered when it can be used."""

    def __init__(self, proposals: Proposals, tree: SupervisionTree) -> None:
        self._proposals = proposals
        self._tree = tree

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Have `command` applied, and what it makes live."""
        reply = await self._proposals.propose(command, user)
        if isinstance(command, PutVhost):
            await self._tree.wait_until_started(command.name)
        return reply


class _VhostUnit:
    """One virtual host as a unit: its queues, its store and its connections."""

    def __init__(self, name: str, tree: SupervisionTree, tree_dependencies: TreeDependencies) -> None:
        self.name = name
        self._tree = tree
        self._dependencies = tree_dependencies
        self._services: VhostServices | None = None
        self._expiry: VhostExpiry | None = None
        # Of a broker without a data directory.
        self._streams: InMemoryStreams | None = None
        self._is_gone = False
        self._has_failed = False
        # Of one that had its name, and may still be in its directory.
        self.before: Supervisor | None = None
        # When it was tried to live for the first time.
        self.has_begun = asyncio.Event()
        intensity = RestartIntensity(VHOST_RESTARTS_MAX, VHOST_WINDOW_MS, VHOST_PAUSES_MS)
        self.supervisor = Supervisor(self, intensity, tree_dependencies.clock.now)

    def begin(self) -> None:
        """Live for the first time: at once if nothing is kept, else as soon as there is a storage."""
        if not self._dependencies.has_store:
            self._start_now(None)
        elif self._tree.storage is not None:
            self.supervisor.begin()

    async def start_with_node(self) -> None:
        """Live as the node starts, in one go as nobody else does yet; not without what was kept."""
        storage = self._tree.storage
        assert storage is not None
        try:
            vhost_store = await storage.recover(self.name, self.supervisor.failed, has_failed_before=False)
        except (OSError, StoreFileError) as error:
            if self._dependencies.on_down is not None:
                raise BootRefused(
                    f"cannot open the messages of vhost '{self.name}': {self._described(error)}"
                ) from error
            if is_full(error):
                self.supervisor.failed(self._judged(error))
            else:
                self.supervisor.down(self._judged(error))
        else:
            self._start_now(vhost_store)

    def shrinks(self) -> list[Callable[[], None]]:
        """What has each of its queues let go of messages; an exception in that is a failure of all."""
        queues = () if self._services is None else self._services.vhost.queues.values()
        return [partial(contain, queue.shrink, self.supervisor.failed) for queue in queues]

    def discard(self, number: int, found: dict[int, RecoveredQueue]) -> None:
        """Have its store know that nobody needs what was `found` of the queue `number`."""
        if self._services is not None:
            self._services.discard(number, found)

    def view(self) -> VhostStatus:
        """How it is."""
        storage = self._tree.storage
        return VhostStatus(
            name=self.name,
            is_running=self.name in self._dependencies.server.vhost_services,
            is_full=storage is not None and storage.is_full(self.name),
            damage=tuple(map(str, storage.damage_of(self.name))) if storage is not None else (),
        )

    def close(self) -> None:
        """Let nobody in, and let go of the queues."""
        services, self._services = self._services, None
        if services is not None:
            self._dependencies.server.vhost_services.pop(self.name, None)
            self._dependencies.staging.remove_vhost(self.name)
            services.close()
        if self._streams is not None:
            self._streams.close()
        if self._expiry is not None:
            self._expiry.stop()
            self._expiry = None

    async def end(self) -> None:
        """It does not exist any more."""
        self._is_gone = True
        self.has_begun.set()
        self.close()
        await self.supervisor.end()

    # --- as a unit ----------------------------------------------------------------------------

    async def stop(self, error: Exception) -> None:
        """End the connections, the queues and the store, so that nothing is confirmed any more."""
        if self._is_gone:
            return
        self._has_failed = True
        is_expected = isinstance(error, (OSError, StoreFileError, PermanentFailure, TemporaryFailure))
        logger.error(
            "vhost '%s' has failed: %s", self.name, self._described(error),
            exc_info=None if is_expected else error,
        )  # fmt: skip
        services = self._services
        if services is None:
            return
        # Nobody comes in, and no durable queue goes because its last consumer does.
        self._dependencies.server.vhost_services.pop(self.name, None)
        services.keep_durable_queues()
        await self._tree.disconnect(lambda _, where: where == self.name, f"vhost '{self.name}' is down")
        self.close()
        while services.vhost.queues:
            await self._turn()
        if self._tree.storage is not None:
            await self._tree.storage.release(self.name)

    async def start(self) -> None:
        """Live, with what is on the disk; while it is made ready, others go on."""
        try:
            before, self.before = self.before, None
            if before is not None:
                await before.end()
            if self._services is not None:
                raise PermanentFailure("it could not be stopped")
            if not self._is_gone:
                await self._start()
        finally:
            self.has_begun.set()

    def restarted(self) -> None:
        """Say so."""
        if not self._is_gone:
            logger.warning("vhost '%s' is restarted", self.name)

    def given_up(self, error: Exception) -> None:
        """It is down until an operator has looked."""
        if self._is_gone:
            return
        logger.critical(
            "vhost '%s' is down, and others serve on: %s; %s",
            self.name, self._described(error), _NEWER if isinstance(error, PermanentFailure) else _BROKEN,
        )  # fmt: skip
        if self._dependencies.on_down is not None:
            self._dependencies.on_down(f"vhost '{self.name}' is down: {self._described(error)}")

    # --- private ------------------------------------------------------------------------------

    async def _start(self) -> None:
        storage = self._tree.storage
        assert storage is not None
        try:
            vhost_store = await storage.recover(
                self.name, self.supervisor.failed, has_failed_before=self._has_failed
            )
        except (OSError, StoreFileError) as error:
            if self._is_gone:
                await storage.remove(self.name)
                return
            raise self._judged(error) from error
        if self._is_gone:
            await storage.abandon(vhost_store)
            await storage.remove(self.name)
            return
        services = self._opened(vhost_store)
        await piece_by_piece(services.recover(vhost_store.recovered.queues), self._dependencies.later)
        # While it is not running, a failure is no news to the supervisor.
        if vhost_store.failure is not None:
            raise vhost_store.failure
        if not self._is_gone:
            self._open_to_clients(services)

    def _start_now(self, vhost_store: VhostStore | None) -> None:
        services = self._opened(vhost_store)
        for _ in services.recover({} if vhost_store is None else vhost_store.recovered.queues):
            pass
        self._open_to_clients(services)
        self.has_begun.set()

    def _opened(self, vhost_store: VhostStore | None) -> VhostServices:
        """A domain in which there is nothing yet, and which `vhost_store` is for."""
        tree_dependencies = self._dependencies
        dependencies = VhostDependencies(
            random_octets=random_octets,
            later=tree_dependencies.later,
            after=self._after,
            now=tree_dependencies.clock.now(),
            node_name=tree_dependencies.node_name,
        )
        services = self._services = VhostServices.open(
            self.name, tree_dependencies.metadata, tree_dependencies.proposals, dependencies
        )
        services.vhost.set_discard_logger(logger.warning)
        if vhost_store is not None:
            assert self._tree.storage is not None
            self._tree.storage.attach(services, vhost_store)
        else:
            self._streams = InMemoryStreams(self.name)
            services.vhost.attach_stream_store(self._streams.store)
        return services

    def _open_to_clients(self, services: VhostServices) -> None:
        """All is there: let things expire, and clients come."""
        self._expiry = VhostExpiry(services.vhost, self._dependencies.clock)
        self._dependencies.server.vhost_services[self.name] = services
        if self._tree.storage is not None:
            self._dependencies.staging.add_vhost(services, self._tree.storage.staged_path_of(self.name))

    def _after(self, pause_ms: int, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(pause_ms / _MS, action)

    async def _turn(self) -> None:
        """Let everybody else have a turn."""
        turn = asyncio.get_running_loop().create_future()
        self._dependencies.later(lambda _: turn.set_result(None))
        await turn

    def _judged(self, error: OSError | StoreFileError) -> Exception:
        """What `error` in opening a store means for starting again."""
        if isinstance(error, OSError) and is_full(error):
            return TemporaryFailure(f"{missing_resource(error)}: {error}", _FULL_RETRY_MS)
        return PermanentFailure(str(error)) if isinstance(error, StoreFileError) else error

    def _described(self, error: Exception) -> str:
        storage = self._tree.storage
        where = "" if storage is None else f" (in {storage.path_of(self.name)})"
        return f"{str(error) or type(error).__name__}{where}"
