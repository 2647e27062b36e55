"""The supervision tree of a node: which units fail together, and how they are restarted.

    node ▸ metadata: never restarted; while the journal cannot be written, metadata do not change
         ▸ virtual hosts: one for all. The store, the queues and the connections of one end together when
           the store fails; what is on the disk is recovered. After too many restarts it stays down, and
           the others continue, or the node ends (vhost_restart_strategy)
           ▸ connections: one for one, never restarted: clients reconnect

A store fails when the disk fails (EIO, a failed sync): the content of its files is unknown then, so it
confirms nothing more. A full disk is not a failure: pending records are written when there is room.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from warren.cluster.remote_queues import RemoteQueues
from warren.limits import (
    CLOSED_PER_TURN,
    QUEUES_SHRUNK_PER_TURN,
    VHOST_PAUSES_MS,
    VHOST_RESTARTS_MAX,
    VHOST_WINDOW_MS,
)
from warren.management.managed_node import Loss, VhostStatus
from warren.metadata.commands import INTERNAL_USER, MetadataCommand, Outcome, PutVhost, Reply
from warren.metadata.incarnation import FIRST_INCARNATION, Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.model.coroutine_driver import Later
from warren.model.turn import Turn
from warren.node.errors import BootRefused
from warren.node.expiry import VhostExpiry
from warren.node.loop_store_port import missing_resource
from warren.node.storage import InMemoryStreams, Storage, VhostStore, is_full
from warren.runtime.clock import Clock
from warren.runtime.randomness import random_bytes
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
from warren.store.reach import OlderCopyError
from warren.store.recovered_queue import RecoveredQueue
from warren.store.segment import StoreFileError
from warren.vhost.queue_home import QueueLocators

logger = logging.getLogger("warren.tree")

# Interval at which opening a store is retried when the disk is full.
_FULL_RETRY_MS = 5_000
_MS = 1000
# Advice to the operator in log messages.
_NEWER = "start the version of Warren that wrote it, or move the directory away to start without messages"
_BROKEN = "check the disk, then run `warren vhosts restart` or restart the node"
_OLDER = "nothing was changed"


class _OlderCopy(PermanentFailure):
    """The store of a virtual host is an older copy, and says itself what to do."""


class TreeDependencies(Struct, frozen=True, kw_only=True):
    """The objects of the node that the tree uses."""

    metadata: Metadata
    proposals: Proposals
    server: Server
    clock: Clock
    turn: Turn
    later: Later
    node_name: str
    # Called with the reason when the node has to end because a virtual host is down; None: the others
    # continue.
    on_down: Callable[[str], None] | None
    # True if messages are stored: a virtual host starts only after the storage is open then.
    has_store: bool
    staging: Staging
    # The settings of the node for the homes of queues.
    locators: QueueLocators
    # Whether each return of a message to a quorum queue counts towards the delivery limit.
    counts_all_returns: bool = True
    # The queues of other nodes; None if there can be no others.
    remote_queues: RemoteQueues | None = None
    # The run of this node.
    incarnation: Incarnation = FIRST_INCARNATION


class SupervisionTree:
    """The virtual hosts of one node."""

    def __init__(self, tree_dependencies: TreeDependencies) -> None:
        self._dependencies = tree_dependencies
        tree_dependencies.server.wait_for_vhost = self.wait_until_started
        self._vhosts: dict[str, _VhostUnit] = {}
        # Deleted virtual hosts whose files are not deleted yet; the last of each name.
        self._leaving: dict[str, _VhostUnit] = {}
        self.storage: Storage | None = None
        # Deletions in progress.
        self._tasks: set[asyncio.Task[None]] = set()
        # Done when every queue has reduced its messages in memory to the limit.
        self._shrinking: asyncio.Future[None] | None = None

    def add(self, name: str) -> None:
        """Start the new virtual host `name`: soon, or at once if nothing is stored."""
        before = self._leaving.get(name)
        vhost = self._vhosts[name] = _VhostUnit(name, self, self._dependencies)
        vhost.before = None if before is None else before.supervisor
        vhost.begin()

    async def wait_until_started(self, name: str) -> None:
        """Wait until the virtual host `name` has started, has failed to start, or is deleted."""
        vhost = self._vhosts.get(name)
        if vhost is not None:
            await vhost.has_begun.wait()

    async def wait_until_all_started(self) -> bool:
        """Wait until each virtual host has started, has failed to start, or is deleted; True if it had to."""
        starting = [vhost for vhost in self._vhosts.values() if not vhost.has_begun.is_set()]
        for vhost in starting:
            await vhost.has_begun.wait()
        return bool(starting)

    def remove(self, name: str) -> None:
        """Remove the virtual host `name`, which was deleted."""
        vhost = self._vhosts.pop(name)
        self._leaving[name] = vhost
        messages = self.storage.remove(name) if self.storage is not None else None
        self._run_in_background(self._end(vhost, messages))
        self.disconnect(lambda _, where: where == name, f"vhost '{name}' is deleted")

    def losses(self) -> list[Loss]:
        """The losses of messages with damaged or missing files."""
        return [] if self.storage is None else self.storage.losses.all()

    def acknowledge_losses(self, vhost: str | None) -> int:
        """Acknowledge all losses, or those of `vhost`; returns how many were not acknowledged before."""
        return 0 if self.storage is None else self.storage.losses.acknowledge(vhost)

    async def open_storage(self, storage: Storage) -> None:
        """Start every virtual host with its store in `storage`; one whose store does not open stays down.

        Raises BootRefused if one stays down and the node has to end for that.
        """
        # Those that other nodes create meanwhile begin by themselves.
        vhosts = list(self._vhosts.items())
        self.storage = storage
        for name, vhost in vhosts:
            if self._vhosts.get(name) is vhost:
                await vhost.start_with_node()

    def disconnect(self, is_meant: Callable[[str, str], bool], reason: str) -> "asyncio.Future[None]":
        """Close the connections that match identity and virtual host, some in each turn; done when all are
        closed, though the channels of those with many are released later.

        Closing begins after the change that caused it is complete.
        """
        closes: list[Callable[[], None]] = [
            partial(connection.disconnect, reason)
            for connection in self._dependencies.server.all_connections()
            if is_meant(connection.identity, connection.vhost_name)
        ]
        return in_pieces(closes, CLOSED_PER_TURN, self._dependencies.later)

    async def start(self, name: str) -> str:
        """Start the virtual host `name` if it is down; returns the error; empty if it runs."""
        error = await self._vhosts[name].supervisor.start_again()
        return "" if error is None else str(error)

    def discard(self, name: str, number: int, found: dict[int, RecoveredQueue]) -> None:
        """Release the messages `found` of the queue `number` in the store of `name`."""
        vhost = self._vhosts.get(name)
        if vhost is not None:
            vhost.discard(number, found)

    def limit_queue_memory(self, byte_count: int) -> None:
        """Limit the messages of each queue in memory to `byte_count` bytes, where the queue can page out."""
        if self.storage is None:
            return
        is_less = byte_count < self.storage.queue_memory
        self.storage.limit_queue_memory(byte_count)
        if is_less and (self._shrinking is None or self._shrinking.done()):
            shrinks = [shrink for vhost in self._vhosts.values() for shrink in vhost.shrinks()]
            self._shrinking = in_pieces(shrinks, QUEUES_SHRUNK_PER_TURN, self._dependencies.later)

    def views(self) -> list[VhostStatus]:
        """Return the status of every virtual host."""
        return [vhost.view() for vhost in self._vhosts.values()]

    async def close(self) -> None:
        """Write what is pending, then stop every virtual host."""
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


def _nothing(_: str) -> Iterable[MetadataCommand]:
    return ()


class VhostCreation:
    """Proposals that are answered only when a virtual host that they create can be used."""

    def __init__(
        self,
        proposals: Proposals,
        tree: SupervisionTree,
        of_new: Callable[[str], Iterable[MetadataCommand]] = _nothing,
    ) -> None:
        """`of_new` are the commands for a virtual host that was created."""
        self._proposals = proposals
        self._tree = tree
        self._of_new = of_new

    @property
    def is_in_doubt(self) -> bool:
        """True while commands that were refused may be applied by a crash."""
        return self._proposals.is_in_doubt

    async def resolve(self) -> None:
        """Wait until nothing is in doubt."""
        await self._proposals.resolve()

    async def propose(self, command: MetadataCommand, user: str = INTERNAL_USER) -> Reply:
        """Propose `command`; if it creates a virtual host, give that its defaults, and wait until it has
        started.
        """
        reply = await self._proposals.propose(command, user)
        if isinstance(command, PutVhost):
            for default in self._of_new(command.name) if reply.outcome is Outcome.DONE else ():
                answer = await self._proposals.propose(default, user)
                if answer.outcome is Outcome.REFUSED:
                    logger.error("vhost '%s' lacks a default: %s", command.name, answer.text)
            await self._tree.wait_until_started(command.name)
        return reply

    async def is_outdated(self, index: int) -> bool:
        """Wait until all is applied that was agreed on before, and virtual hosts have started by that.

        True if it was not at `index`.
        """
        is_outdated = await self._proposals.is_outdated(index)
        return await self._tree.wait_until_all_started() or is_outdated


class _VhostUnit:
    """One virtual host as a supervised unit: its queues, its store and its connections."""

    def __init__(self, name: str, tree: SupervisionTree, tree_dependencies: TreeDependencies) -> None:
        self.name = name
        self._tree = tree
        self._dependencies = tree_dependencies
        self._services: VhostServices | None = None
        self._expiry: VhostExpiry | None = None
        # Only of a broker without a data directory.
        self._streams: InMemoryStreams | None = None
        self._is_gone = False
        self._has_failed = False
        # The supervisor of a deleted virtual host of the same name, whose store may still be in the
        # directory.
        self.before: Supervisor | None = None
        # Set after the first attempt to start.
        self.has_begun = asyncio.Event()
        intensity = RestartIntensity(VHOST_RESTARTS_MAX, VHOST_WINDOW_MS, VHOST_PAUSES_MS)
        self.supervisor = Supervisor(self, intensity, tree_dependencies.clock.now)

    def begin(self) -> None:
        """Start for the first time: at once if nothing is stored, else as soon as there is a storage."""
        if not self._dependencies.has_store:
            self._start_now(None)
        elif self._tree.storage is not None:
            self.supervisor.begin()

    async def start_with_node(self) -> None:
        """Start during the boot, without yielding; raises BootRefused if a failure has to end the node."""
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
        finally:
            self.has_begun.set()

    def shrinks(self) -> list[Callable[[], None]]:
        """Return functions that reduce the memory of each queue; if one raises, the queue ends."""
        if self._services is None:
            return []
        vhost = self._services.vhost
        return [
            partial(contain, queue.shrink, partial(vhost.end_failed, queue))
            for queue in vhost.queues.values()
        ]

    def discard(self, number: int, found: dict[int, RecoveredQueue]) -> None:
        """Release the messages `found` of the queue `number` in the store."""
        if self._services is not None:
            self._services.discard(number, found)

    def view(self) -> VhostStatus:
        """Return the status of the virtual host."""
        storage = self._tree.storage
        return VhostStatus(
            name=self.name,
            is_running=self.name in self._dependencies.server.vhost_services,
            is_full=storage is not None and storage.is_full(self.name),
            damage=tuple(map(str, storage.damage_of(self.name))) if storage is not None else (),
        )

    def close(self) -> None:
        """Refuse new connections, and close the queues."""
        services, self._services = self._services, None
        if services is not None:
            self._dependencies.server.vhost_services.pop(self.name, None)
            self._dependencies.staging.remove_vhost(self.name)
            services.close()
            if self._dependencies.remote_queues is not None:
                self._dependencies.remote_queues.vhost_ended(self.name)
        if self._streams is not None:
            self._streams.close()
        if self._expiry is not None:
            self._expiry.stop()
            self._expiry = None

    async def end(self) -> None:
        """Stop for good: the virtual host was deleted."""
        self._is_gone = True
        self.has_begun.set()
        self.close()
        await self.supervisor.end()

    # --- supervised unit -------------------------------------------------------------------------

    async def stop(self, error: Exception) -> None:
        """End the connections, the queues and the store, so that nothing is confirmed any more."""
        if self._is_gone:
            return
        self._has_failed = True
        is_expected = isinstance(error, (OSError, StoreFileError, PermanentFailure, TemporaryFailure))
        logger.error(
            "vhost '%s' failed: %s", self.name, self._described(error),
            exc_info=None if is_expected else error,
        )  # fmt: skip
        services = self._services
        if services is None:
            return
        # New connections are refused, and no durable queue is deleted when its last consumer is cancelled.
        self._dependencies.server.vhost_services.pop(self.name, None)
        services.keep_durable_queues()
        await self._tree.disconnect(lambda _, where: where == self.name, f"vhost '{self.name}' is down")
        server = self._dependencies.server
        while any(connection.vhost_name == self.name for connection in server.connections):
            # Its channels are being released.
            await self._turn()
        self.close()
        while services.vhost.queues:
            await self._turn()
        if self._tree.storage is not None:
            await self._tree.storage.release(self.name)

    async def start(self) -> None:
        """Recover the messages and start; others run while the store is opened."""
        try:
            before, self.before = self.before, None
            if before is not None:
                await before.end()
            if self._services is not None:
                raise PermanentFailure("the failed virtual host could not be stopped")
            if not self._is_gone:
                await self._start()
        finally:
            self.has_begun.set()

    def restarted(self) -> None:
        """Log the restart."""
        if not self._is_gone:
            logger.warning("vhost '%s' was restarted", self.name)

    def given_up(self, error: Exception) -> None:
        """Log that the virtual host stays down until an operator starts it, and notify the node."""
        if self._is_gone:
            return
        logger.critical(
            "vhost '%s' is down, the other vhosts are running: %s; %s",
            self.name, self._described(error), _advice(error),
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
        # While it is not running, the supervisor need not be notified of a failure.
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
        """Create the services of the virtual host, which are empty, with `vhost_store` or in memory."""
        tree_dependencies = self._dependencies
        dependencies = VhostDependencies(
            random_bytes=random_bytes,
            later=tree_dependencies.later,
            after=self._after,
            turn=tree_dependencies.turn,
            node_name=tree_dependencies.node_name,
            locators=tree_dependencies.locators,
            counts_all_returns=tree_dependencies.counts_all_returns,
            incarnation=tree_dependencies.incarnation,
        )
        remote_queues = tree_dependencies.remote_queues
        if remote_queues is not None:
            dependencies = replace(
                dependencies,
                remote_queue=remote_queues.queue,
                remote_replies=remote_queues.replies,
            )
        services = self._services = VhostServices.open(
            self.name, tree_dependencies.metadata, tree_dependencies.proposals, dependencies
        )
        services.vhost.set_discard_logger(logger.warning)
        services.contain_failures(_log_failure, self.supervisor.failed)
        if vhost_store is not None:
            assert self._tree.storage is not None
            self._tree.storage.attach(services, vhost_store)
        else:
            self._streams = InMemoryStreams(self.name)
            services.vhost.attach_stream_store(self._streams.store)
        return services

    def _open_to_clients(self, services: VhostServices) -> None:
        """Start the expiry timer, and accept clients."""
        self._expiry = VhostExpiry(services.vhost)
        self._dependencies.server.vhost_services[self.name] = services
        if self._tree.storage is not None:
            self._dependencies.staging.add_vhost(services, self._tree.storage.staged_path_of(self.name))
        if self._dependencies.remote_queues is not None:
            self._dependencies.remote_queues.vhost_began(self.name)

    def _after(self, pause_ms: int, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(pause_ms / _MS, action)

    async def _turn(self) -> None:
        """Wait for one turn of the loop."""
        turn = asyncio.get_running_loop().create_future()
        self._dependencies.later(lambda _: turn.set_result(None))
        await turn

    def _judged(self, error: OSError | StoreFileError) -> Exception:
        """Convert `error` in opening a store into the failure that decides about a retry."""
        if isinstance(error, OSError) and is_full(error):
            return TemporaryFailure(f"{missing_resource(error)}: {error}", _FULL_RETRY_MS)
        if isinstance(error, OlderCopyError):
            return _OlderCopy(str(error))
        return PermanentFailure(str(error)) if isinstance(error, StoreFileError) else error

    def _described(self, error: Exception) -> str:
        storage = self._tree.storage
        where = "" if storage is None else f" (in {storage.path_of(self.name)})"
        return f"{str(error) or type(error).__name__}{where}"


def _advice(error: Exception) -> str:
    """What an operator does about a virtual host that is down because of `error`."""
    if isinstance(error, _OlderCopy):
        return _OLDER
    return _NEWER if isinstance(error, PermanentFailure) else _BROKEN


def _log_failure(text: str, error: Exception) -> None:
    logger.error("%s: %s", text, str(error) or type(error).__name__, exc_info=error)
