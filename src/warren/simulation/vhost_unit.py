"""One virtual host of a simulated node: its queues, its stores and its connections, which fail together."""

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from warren.cluster.remote_queues import RemoteQueues
from warren.journal.journal import Journal
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord
from warren.model.arguments import QUORUM, STREAM
from warren.queues.quorum.raft_storage import PAYLOAD_VERSIONS
from warren.session.server import Server
from warren.session.vhost_services import VhostDependencies, VhostServices
from warren.simulation.ports import MountedDisk, SimulatedStorePort
from warren.simulation.simulated_clock import SimulatedClock
from warren.store.reach import FOLDER, NAME, ReachFile, StoreReach
from warren.store.recovery import RecoveredStore, RecoveryDependencies, open_erased, open_store
from warren.store.stores import Stores
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import StreamLogDependencies
from warren.store.streams.stream_store import StreamStore

# The pause before a failed virtual host starts again.
_RESTART_MS = 1_000


class UnitNode(Protocol):
    """Port: the node of a virtual host."""

    metadata: Metadata
    journal: Journal
    server: Server
    incarnation: Incarnation
    remote_queues: RemoteQueues | None
    clock: SimulatedClock
    log: list[str]
    reports: list[str]

    def random_bytes(self, size: int, /) -> bytes:
        """Bytes that the seed decides."""

    def later(self, action: Callable[[int], None]) -> None:
        """Call `action` in a later turn."""

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` after a time."""

    def mount(self, directory: str) -> MountedDisk:
        """The disk that is the directory with this name, until the node ends."""

    def drop_page_cache(self, directory: str) -> None:
        """Read from now on what the device holds."""

    def restarted(self, vhost: str) -> None:
        """A virtual host has failed, and starts with what is on its disk."""


class VhostUnit:
    """One virtual host; `start` recovers what is on its disks."""

    def __init__(self, name: str, node: UnitNode) -> None:
        self.name = name
        self._node = node
        self._services: VhostServices | None = None
        self._stores: Stores | None = None
        self._reach: StoreReach | None = None
        self._streams: StreamStore | None = None
        self._ports: list[SimulatedStorePort] = []
        self._mounted: list[MountedDisk] = []
        # Numbers of queues with messages that the metadata do not name.
        self.orphaned: list[int] = []
        # How often it was started again after a failure of its store.
        self.restart_count = 0
        # The time for which the expiry timer is set.
        self._expiry_at: int | None = None

    @property
    def services(self) -> VhostServices | None:
        """The services of the virtual host; None while it is down."""
        return self._services

    @property
    def is_due(self) -> bool:
        """True if something waits to be committed."""
        return any(port.is_due or port.is_full for port in self._ports if not port.is_over)

    # --- start and end --------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover what is on the disks, and accept clients. Raises StoreFileError or OSError."""
        node = self._node
        recovered = self._open_stores()
        services = self._services = VhostServices.open(
            self.name, node.metadata, node.journal, self._dependencies()
        )
        for port in self._ports:
            port.credit = services.credit
        assert self._stores is not None
        assert self._streams is not None
        services.vhost.attach_store(self._stores)
        services.vhost.attach_stream_store(self._streams)
        for _ in services.recover(recovered.queues):
            pass
        services.vhost.expiry.notify = self._set_expiry
        earliest = services.vhost.expiry.earliest()
        if earliest is not None:
            self._set_expiry(earliest)
        node.server.vhost_services[self.name] = services
        if node.remote_queues is not None:
            node.remote_queues.vhost_began(self.name)

    def _dependencies(self) -> VhostDependencies:
        node = self._node
        dependencies = VhostDependencies(
            random_bytes=node.random_bytes,
            later=node.later,
            after=node.after,
            turn=node.clock.turn,
            node_name=node.server.event_publisher.node_name,
            incarnation=node.incarnation,
        )
        others = node.remote_queues
        if others is None:
            return dependencies
        return replace(
            dependencies,
            remote_queue=others.queue,
            remote_replies=others.replies,
        )

    def _open_stores(self) -> RecoveredStore:
        node = self._node
        queues, streams = self._queue_numbers(is_stream=False), self._queue_numbers(is_stream=True)
        was_deleted = node.metadata.was_deleted
        self._ports, self._mounted = [], []
        port = self._new_port()
        disk = self._mount(self.name)
        self._reach = StoreReach(
            ReachFile(disk, NAME),
            ReachFile(self._mount(f"metadata/{FOLDER}"), self.name),
            lambda: node.journal.synced_index,
        )
        recovered = open_store(
            disk,
            port,
            RecoveryDependencies(
                random_bytes=node.random_bytes,
                has_queue=lambda number: number in queues or not was_deleted(number),
                progress=lambda *_: None,
                replicas=self._replicas(),
                reach=self._reach,
                payload_versions=PAYLOAD_VERSIONS,
            ),
        )
        port.store = recovered.store
        self.orphaned = [number for number in recovered.queues if number not in queues]
        port = self._new_port(is_transient=True)
        transient = open_erased(self._mount(f"{self.name}/transient"), port, node.random_bytes)
        port.store = transient
        self._stores = Stores(recovered.store, transient)
        port = self._new_port()
        files = StreamLogDependencies(
            disk=self._mount(f"{self.name}/streams"),
            random_bytes=node.random_bytes,
            report=lambda error: node.reports.append(f"stream: {error}"),
        )
        opened = open_streams(files, port, streams.__contains__)
        port.store = self._streams = opened.store
        self._reach.opened(recovered.store.written)
        for damage in [*recovered.damage, *opened.damage]:
            node.reports.append(f"vhost '{self.name}' is damaged: {damage}")
        return recovered

    def _new_port(self, *, is_transient: bool = False) -> SimulatedStorePort:
        node = self._node
        port = SimulatedStorePort(node.later, node.after, self._failed, is_transient=is_transient)
        self._ports.append(port)
        return port

    def _mount(self, directory: str) -> MountedDisk:
        mounted = self._node.mount(directory)
        self._mounted.append(mounted)
        return mounted

    def _queues(self) -> list[QueueRecord]:
        """The queues whose home is this node, and all quorum queues: of each one a replica may be here."""
        vhost = self._node.metadata.vhost(self.name)
        queues = () if vhost is None else vhost.topology.queues.values()
        node = self._node.incarnation.node
        return [queue for queue in queues if queue.home == node or queue.kind == QUORUM]

    def _queue_numbers(self, *, is_stream: bool) -> set[int]:
        return {queue.number for queue in self._queues() if (queue.kind == STREAM) == is_stream}

    def _replicas(self) -> dict[int, int]:
        node = self._node.incarnation.node
        found = {queue.number: queue.replica_on(node) for queue in self._queues() if queue.kind == QUORUM}
        return {number: replica for number, replica in found.items() if replica}

    def write_rest(self, on_written: Callable[[], None]) -> None:
        """Write what is pending, for a stop, then call `on_written`."""
        stores = [port.store for port in (self._ports[0], self._ports[2]) if not port.is_over]
        waiting = len(stores)

        def written() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                self._note_reach()
                on_written()

        for store in stores:
            assert store is not None
            store.close(written)
        if not stores:
            on_written()

    def close(self) -> None:
        """Refuse clients, and close the queues."""
        self._node.server.vhost_services.pop(self.name, None)
        services, self._services = self._services, None
        if services is not None:
            services.close()
            if self._node.remote_queues is not None:
                self._node.remote_queues.vhost_ended(self.name)

    # --- failures ---------------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        """A store has failed: everything ends together, and starts again with what is on the disk."""
        if isinstance(error, OSError):
            self._node.log.append(f"vhost '{self.name}' failed: {error}")
        else:
            self._node.reports.append(f"vhost '{self.name}' failed: {error!r}")
        for port in self._ports:
            port.is_over = True
        self._node.later(lambda _: self._stop())

    def _stop(self) -> None:
        services = self._services
        if services is None:
            return
        self._node.server.vhost_services.pop(self.name, None)
        services.keep_durable_queues()
        for connection in self._node.server.all_connections():
            if connection.vhost_name == self.name:
                connection.disconnect(f"vhost '{self.name}' is down")
        self._node.later(lambda _: self._close_failed())

    def _close_failed(self) -> None:
        self.close()
        for mounted in self._mounted:
            mounted.unmount()
        self._node.after(_RESTART_MS, self._start_again)

    def _start_again(self) -> None:
        for directory in (self.name, f"{self.name}/transient", f"{self.name}/streams"):
            self._node.drop_page_cache(directory)
        self.restart_count += 1
        self._node.restarted(self.name)
        try:
            self.start()
        except OSError as error:
            # Opening writes as well; on a full disk it is tried again.
            self._node.log.append(f"vhost '{self.name}' cannot start: {error}")
            self._close_failed()

    # --- timers -----------------------------------------------------------------------------------------

    def maintain(self) -> None:
        """Do what a node does once a second."""
        if self._services is not None and not self._ports[0].is_over:
            assert self._stores is not None
            assert self._streams is not None
            self._stores.maintain()
            self._note_reach()
            self._streams.maintain(self._node.clock.now)

    def _note_reach(self) -> None:
        """Record how far the store and the metadata have come."""
        assert self._stores is not None
        assert self._reach is not None
        self._reach.note(self._stores.persistent.written)

    def _set_expiry(self, when: int) -> None:
        if self._expiry_at is None or when < self._expiry_at:
            self._expiry_at = when
            self._node.after(max(0, when - self._node.clock.now), lambda: self._expire(when))

    def _expire(self, when: int) -> None:
        services = self._services
        if self._expiry_at != when or services is None:
            return
        self._expiry_at = None
        services.vhost.expire()
        earliest = services.vhost.expiry.earliest()
        if earliest is not None:
            self._set_expiry(earliest)
