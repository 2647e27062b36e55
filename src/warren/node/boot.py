"""Starts the layers of a node from the bottom up, and stops them from the top down.

data directory ─▶ metadata, virtual hosts (broker.py) ─▶ listeners ─▶ HTTP ─▶ ready
SIGTERM, SIGINT: no new clients ─▶ connection.close 320 ─▶ grace period ─▶ HTTP ─▶ virtual hosts ─▶ end
SIGHUP: certificates, and the limits of memory and disk, are read again; the log file is reopened
"""

import asyncio
import logging
import os
import platform
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path

import uvloop
from msgspec.structs import replace

from warren import __version__
from warren.flow.alarms import Alarms
from warren.framing.output_listener import OutputListener
from warren.jobs.jobs import Jobs
from warren.management.carried_request_server import CarriedRequestServer
from warren.management.managed_node import ListenerView, ManagedNode
from warren.management.oauth_logins import OAuthLogins
from warren.management.queried_nodes import QueriedNodes
from warren.management.queue_index import QueueIndex
from warren.management.replicated_groups import ReplicatedGroups
from warren.management.web_sessions import WebSessions
from warren.metrics.node_usage import NodeUsage
from warren.metrics.sampler import Sampler
from warren.node import access_settings, client_listeners, limit_settings, log_settings, settings
from warren.node.broker import Broker
from warren.node.client_access import ClientAccess
from warren.node.cluster_config import membership_settings
from warren.node.cluster_controls import (
    WITHOUT_CLUSTER,
    ClusterActions,
    ClusterControlsDependencies,
    NodeClusterControls,
)
from warren.node.cluster_membership import Membership, MembershipDependencies
from warren.node.cluster_settings import SIZE_HINT
from warren.node.cluster_status import ClusterView
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.controls import NodeControls
from warren.node.data_directory import chosen_directory
from warren.node.data_erasure import erase
from warren.node.errors import BootRefused, NodeFailed
from warren.node.file_descriptors import connection_limits, raise_descriptor_limit
from warren.node.http_ports import HttpPorts
from warren.node.last_deliveries import end_deliveries
from warren.node.listener_tls import ListenerTls
from warren.node.metadata_journal import MetadataJournal
from warren.node.monitors import DiskMonitor, MemoryMonitor, Monitor, Monitors
from warren.node.node_content import NodeContent, content_of
from warren.node.node_identity import (
    MembershipPhase,
    NodeIdentity,
    begin_incarnation,
    keep_membership,
)
from warren.node.node_log import NodeLog
from warren.node.node_relays import NodeRelays
from warren.node.oauth_login_config import oauth_settings
from warren.node.oauth_login_settings import IS_BASIC_AUTH_REFUSED
from warren.node.pid_file import PidFile
from warren.node.queue_settings import DEFAULT_TYPE
from warren.node.sample_timer import SampleTimer
from warren.node.session_file import restore_sessions
from warren.node.slow_patterns import report_suspended
from warren.node.stream_homes import StreamHomes, StreamQuestionServer
from warren.runtime.clock import Clock
from warren.runtime.garbage_collector import GarbageCollector
from warren.runtime.locked_directory import DirectoryUnusable, LockedDirectory
from warren.runtime.machine import Machine, return_large_blocks
from warren.runtime.randomness import random_bytes
from warren.runtime.service_manager import ServiceManager
from warren.runtime.timers import PeriodicTimer
from warren.session.connection import Connection
from warren.session.peer import Peer
from warren.session.streams.connection import StreamConnection
from warren.session.streams.handshake import StreamSettings
from warren.session.streams.stream_server import StreamServer
from warren.transport.listener import Listener
from warren.transport.protocol import LoopContext

logger = logging.getLogger("warren.node")

# Interval at which certificate files are checked for changes, and the wall clock is read again.
_CERTIFICATES_S = 10
_CLOCK_S = 10
_PATTERNS_S = 1
# Interval at which the garbage collection of reference cycles is considered.
_COLLECTOR_S = 1
# Interval at which a stopping node checks whether its clients have disconnected.
_LEAVING_S = 0.02
# How long quorum queues may take to agree on what was never delivered, before the node hands over and stops.
_LAST_DELIVERIES_S = 2

_SHUTDOWN = "broker forced connection closure with reason 'shutdown'"


def run(config: Config, on_ready: Callable[["Node"], None], log: NodeLog) -> None:
    """Run a node until it is asked to stop; raises BootRefused if it cannot start."""
    uvloop.run(_serve(config, on_ready, log))


async def _serve(config: Config, on_ready: Callable[["Node"], None], log: NodeLog) -> None:
    for warning in config.warnings:
        logger.warning("%s", warning)
    running = _RunningNode()
    loop = asyncio.get_running_loop()
    manager = ServiceManager(os.environ)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.stopping.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, running, manager)
    while not running.stopping.is_set():
        node = running.node = Node(config, running.stopping.set, log, restart=running.restarting.set)
        running.restarting.clear()
        try:
            await _until(node.start(), running.stopping)
            if not (running.stopping.is_set() or running.restarting.is_set()):
                manager.ready(_addresses(node))
                logger.info("ready: %s; %s", _addresses(node), _data_location(node))
                on_ready(node)
            await running.ended()
            is_restarting = not running.stopping.is_set()
            logger.info("restarting" if is_restarting else "stopping")
            if not is_restarting:
                manager.stopping()
        finally:
            running.node = None
            await node.stop()
        if node.failure:
            raise NodeFailed(node.failure)
    logger.info("stopped")


class _RunningNode:
    """The node of this process, and what it was asked to do."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.stopping = asyncio.Event()
        # Set when the node has joined a cluster, or has left it.
        self.restarting = asyncio.Event()

    async def ended(self) -> None:
        """Wait until the node has to stop."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.stopping, self.restarting)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


async def _until(work: Coroutine[object, object, None], stopping: asyncio.Event) -> None:
    """Do `work`, unless `stopping` is set before it is done."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(stopping.wait())
    await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()


def _reload(running: _RunningNode, manager: ServiceManager) -> None:
    node = running.node
    if node is not None:
        manager.reloading()
        node.reload()
        manager.ready(_addresses(node))


def _addresses(node: "Node") -> str:
    return ", ".join(map(str, node.listeners))


def _data_location(node: "Node") -> str:
    return f"data in {node.data_directory}" if node.data_directory else "in memory only"


class Node:
    """One broker process."""

    # Why the node cannot continue; empty while it can.
    failure = ""

    def __init__(
        self, config: Config, stop: Callable[[], None], log: NodeLog, *, restart: Callable[[], None]
    ) -> None:
        """`stop` is called when the node cannot continue; `failure` then contains the reason.

        `restart` is called when it has to be made again, since it has joined a cluster or left it.
        """
        self._config = config
        self._log = log
        self._stop = stop
        return_large_blocks()
        self._collector = GarbageCollector()
        self._clock = Clock()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_report)
        self._folder = _folder(config)
        self._pid_file = PidFile(config.get(settings.PID_FILE))
        directory = None if self._folder is None else self._folder.path
        identity = _begun_identity(config, directory, self._clock.now())
        journal = self._metadata_journal = _metadata_journal(config, directory, self._clock, identity)
        self.broker = Broker(config, self._clock, identity, metadata_journal=journal, fail=self._fail)
        self._loop_context = LoopContext(loop, self.broker.turn)
        self._identity = identity
        self.relays = NodeRelays(self.broker, self._loop_context, config)
        self._tls = ListenerTls(config, self._clock)
        self._listeners: list[Listener] = []
        server = self.broker.server
        self._stream_server = StreamServer(server, _stream_settings(config, self.broker.cluster_name))
        alarms = Alarms(server.block, server.event_publisher.alarm)
        self._monitors = _monitors(alarms, self._clock, self._folder, self.broker.tree.limit_queue_memory)
        usage = NodeUsage(server, alarms, self.relays.dialer.sockets_beyond_clients)
        sampler = Sampler(server, self.broker.metadata, usage.row, self.relays.links)
        self._sample_timer = SampleTimer(sampler, self._clock, server.later)
        self._access = ClientAccess(self._listeners, server, server.later)
        self._membership = self._new_membership(alarms, restart)
        if self._membership is not None:
            self._stream_server.address_of = self._membership.states.stream_address
            self._stream_server.ask_home = StreamHomes(self._membership.queries).ask
        self._managed = self._new_managed_node(alarms, sampler)
        self._carried_requests = CarriedRequestServer(self._managed)
        self._http = HttpPorts(config)
        self._connection_limits = connection_limits(raise_descriptor_limit(), self._http.count)
        self._periodic = _periodic_timers(loop, self._clock)

    def _new_managed_node(self, alarms: Alarms, sampler: Sampler) -> ManagedNode:
        """What the HTTP API reads and controls."""
        managed = self._managed_node(alarms, sampler)
        broker = self.broker
        if broker.remote_queues is not None:
            managed.groups = ReplicatedGroups(
                broker.metadata.members,
                broker.server.vhost_services,
                broker.remote_queues.leaders,
                managed.is_own,
            )
        return managed

    def _managed_node(self, alarms: Alarms, sampler: Sampler) -> ManagedNode:
        config = self._config
        return ManagedNode(
            node_name=self.broker.name,
            first_cluster_name=self.broker.cluster_name,
            metadata=self.broker.metadata,
            proposals=self.broker.proposals,
            hash_password=self.broker.hash_password,
            default_hash=self.broker.default_hash,
            connections_max=config.get(settings.CONNECTIONS_MAX),
            target_cluster_size=config.get(SIZE_HINT) or 1,
            mechanisms=client_listeners.numbered_values(config.family(settings.MECHANISMS)),
            has_fixed_operator_policies=config.get(access_settings.ARE_OPERATOR_POLICIES_FIXED),
            has_hidden_password_hashes=config.get(access_settings.ARE_PASSWORD_HASHES_HIDDEN),
            socket_options=client_listeners.socket_options(config),
            server=self.broker.server,
            sampler=sampler,
            queue_index=QueueIndex(self.broker.metadata),
            jobs=Jobs(random_bytes, self._clock.now, self.broker.count_failure),
            staging=self.broker.staging,
            stream_counts=self._stream_server.counts,
            data_directory=str(self._folder.path) if self._folder is not None else "",
            config_files=config.files,
            alarms=alarms,
            vhosts=self.broker.tree.views,
            losses=self.broker.tree.losses,
            acknowledge_losses=self.broker.tree.acknowledge_losses,
            start_vhost=self.broker.tree.start,
            quarantine=self.broker.quarantine_view(),
            certificates=self._certificates,
            sessions=WebSessions(random_bytes, self._clock.now),
            oauth_logins=OAuthLogins(oauth_settings(config, self._clock), random_bytes, self._clock.now),
            is_basic_auth_refused=config.get(IS_BASIC_AUTH_REFUSED),
            controls=NodeControls(config, self._monitors, self._log),
            cluster_controls=self._cluster_controls(),
            cluster=self._other_nodes(),
            cluster_addresses=self._cluster_addresses,
            placed=self.broker.placed,
            default_queue_type=config.get(DEFAULT_TYPE),
            relays=self.relays.view(),
            now=self._clock.now,
            started_at=self._clock.now(),
        )

    @property
    def listeners(self) -> list[ListenerView]:
        """The addresses that the node listens on, including ports that the system chose for port 0."""
        return self._managed.listeners

    @property
    def data_directory(self) -> str:
        """The data directory; empty if the node keeps everything in memory."""
        return self._managed.data_directory

    async def start(self) -> None:
        """Start all layers in order; raises BootRefused with the reason if one cannot start."""
        logger.info("Warren %s on Python %s", __version__, platform.python_version())
        if self._folder is None:
            logger.warning("in memory only: queues, messages and users are lost when this node stops")
        membership = self._membership
        if membership is None:
            await self.broker.populate()
        else:
            await membership.start()
            await self.broker.populate(membership.caught_up)
            if not await membership.formed():
                return
        if self._config.get(log_settings.EXCHANGE):
            self._log.publish(self.broker.log_exchange(), self._config)
        if self._folder is not None:
            await self.broker.open_storage(self._folder.path)
            restore_sessions(self._managed.sessions, self._folder.path, self._config, self.broker.metadata)
        self._monitors.configure(self._config)
        await self._tls.start()
        self._periodic.append(
            PeriodicTimer(asyncio.get_running_loop(), _CERTIFICATES_S, self._reload_changed_certificates)
        )
        connection_slots = client_listeners.connection_slots(self._config, self._connection_limits.clients)
        shared = client_listeners.ListenerDependencies(self._loop_context, self._tls.tls, connection_slots)
        for listener in client_listeners.amqp_listeners(self._config, shared, self._connect):
            where = listener.settings
            await client_listeners.listen(listener.start(), where.host, where.port)
            self._listeners.append(listener)
            protocol = "amqp/ssl" if listener.is_tls else "amqp"
            self._managed.listeners.extend(ListenerView(protocol, *address) for address in listener.addresses)
        await self._start_streams(shared)
        await self._carried_requests.start()
        await self._http.start(self._managed, self._connection_limits.per_http_port)
        self.relays.dialer.limit_sockets(self._connection_limits.outgoing)
        self.relays.start()
        self._sample_timer.begin()
        self._collector.begin()
        self._periodic.append(
            PeriodicTimer(asyncio.get_running_loop(), _COLLECTOR_S, self._collector.collect_if_due)
        )

    def _new_membership(self, alarms: Alarms, restart: Callable[[], None]) -> Membership | None:
        """What makes this node a member of a cluster; None in memory only."""
        journal, folder, broker = self._metadata_journal, self._folder, self.broker
        if journal is None or folder is None:
            return None
        assert broker.remote_queues is not None
        assert broker.group_traffic is not None
        has_objects = self._content().is_there
        return Membership(
            self._identity,
            journal,
            membership_settings(self._config, self._identity.name, folder.path, has_objects=has_objects),
            MembershipDependencies(
                loop_context=self._loop_context,
                server=broker.server,
                alarms=alarms,
                directory=folder.path,
                remote_queues=broker.remote_queues,
                group_traffic=broker.group_traffic,
                listeners=lambda: self._managed.listeners,
                client_access=self._access,
                answer_request=lambda writer, arguments: self._carried_requests.answer(writer, arguments),
                answer_stream_question=StreamQuestionServer(self.broker.server).answer,
                restart=restart,
            ),
        )

    def _content(self) -> NodeContent:
        """What this node would lose by joining a cluster."""
        config, broker = self._config, self.broker
        vhost, user = config.get(settings.DEFAULT_VHOST), config.get(settings.DEFAULT_USER)
        return content_of(broker.metadata, broker.server, default_vhost=vhost, default_user=user)

    def _other_nodes(self) -> QueriedNodes | None:
        """The other nodes of the cluster, as the HTTP API asks them."""
        membership = self._membership
        if membership is None:
            return None
        return QueriedNodes(membership.node_id, membership.links, membership.queries)

    def _cluster_addresses(self) -> list[tuple[str, int]]:
        """Where the node listens to other nodes."""
        return [] if self._membership is None else self._membership.addresses

    def _cluster_controls(self) -> NodeClusterControls:
        """The operations on the cluster."""
        journal, membership = self._metadata_journal, self._membership
        view = ClusterView(
            identity=self._identity,
            metadata=self.broker.metadata,
            journal=None if journal is None else journal.journal,
            links={} if membership is None else membership.links,
            cluster_name=lambda: self._managed.cluster_name,
            leader_of=lambda queue: self._managed.groups.leader_of(queue),
        )
        if membership is not None:
            view = replace(
                view,
                version_of=membership.version_of,
                minority_since=membership.minority_since,
                removed_by=lambda: membership.removed_by,
            )
        controlled = ClusterControlsDependencies(
            server=self.broker.server,
            proposals=self.broker.proposals,
            client_access=self._access,
            actions=WITHOUT_CLUSTER
            if membership is None
            else ClusterActions(join=membership.join, erase=membership.erase),
            default_vhost=self._config.get(settings.DEFAULT_VHOST),
            default_user=self._config.get(settings.DEFAULT_USER),
        )
        return NodeClusterControls(view, controlled)

    def _certificates(self) -> dict[str, int]:
        return self._tls.expiries() | self._http.expiries()

    def _reload_changed_certificates(self) -> None:
        self._tls.reload_if_changed()
        self._http.reload_if_changed()

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._stop()

    def reload(self) -> None:
        """Handle SIGHUP: read again what can change without a restart."""
        self._log.reopen()
        self._tls.reload()
        self._http.reload()
        if self._membership is not None:
            self._membership.reload()
        try:
            self._monitors.configure(self._config.again())
        except ConfigError as error:
            logger.error("the memory and disk thresholds are unchanged: %s", error)

    async def stop(self) -> None:
        """Close client connections and stop, also after an incomplete start."""
        self._stream_server.groups.end()
        await end_deliveries(self.broker.server, _LAST_DELIVERIES_S)
        if self._membership is not None:
            # Clients of other nodes need not wait for elections.
            self._membership.hand_over()
        await self.relays.stop()
        for listener in self._listeners:
            await listener.stop()
        await self._managed.jobs.close()
        await self._close_clients()
        for listener in self._listeners:
            listener.abort()
        await self._http.stop()
        await self._carried_requests.stop()
        await self._managed.sessions.close()
        for periodic in self._periodic:
            periodic.stop()
        await self._tls.stop()
        self._collector.end()
        self._monitors.stop()
        self._sample_timer.stop()
        self._loop_context.deadlines.stop()
        await self.broker.close()
        if self._membership is not None:
            await self._membership.stop()
        if self._metadata_journal is not None:
            await self._metadata_journal.close()
        self._pid_file.remove()
        if self._folder is not None:
            self._folder.close()

    async def _close_clients(self) -> None:
        """Send connection.close to all clients, and wait for their replies during the grace period.

        Also for other members to lead what this node leads.
        """
        for connection in self.broker.server.all_connections():
            connection.disconnect(_SHUTDOWN)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._config.get(settings.SHUTDOWN_GRACE) / 1000
        while loop.time() < end and self._is_leaving():
            await asyncio.sleep(_LEAVING_S)

    def _is_leaving(self) -> bool:
        """True while clients are there, or channels of theirs are being released, or another member is about
        to lead what this node leads.
        """
        if self._membership is not None and self._membership.is_handing_over:
            return True
        return any(listener.connection_count for listener in self._listeners) or any(
            not connection.is_open for connection in self.broker.server.connections
        )

    def _connect(self, peer: Peer, output_listener: OutputListener) -> Connection:
        return Connection(self.broker.server, peer, output_listener)

    def _connect_stream(self, peer: Peer, output_listener: OutputListener) -> StreamConnection:
        return StreamConnection(self._stream_server, peer, output_listener)

    async def _start_streams(self, shared: client_listeners.ListenerDependencies) -> None:
        """Listen for the stream protocol; if its default port is in use, continue without it."""
        for listener in client_listeners.stream_listeners(self._config, shared, self._connect_stream):
            where = listener.settings
            try:
                await client_listeners.listen(listener.start(), where.host, where.port)
            except BootRefused as error:
                # With an explicit port, the failure ends the start; --host alone keeps the default port.
                place = self._config.place(f"{settings.STREAM_TCP.key}.default")
                if listener.is_tls or place not in ("", "--host"):
                    raise
                logger.warning(
                    "the stream listener is disabled: %s; set another port with %s",
                    error,
                    settings.STREAM_TCP.key,
                )
                continue
            self._listeners.append(listener)
            protocol = "stream/ssl" if listener.is_tls else "stream"
            self._managed.listeners.extend(ListenerView(protocol, *address) for address in listener.addresses)


def _folder(config: Config) -> LockedDirectory | None:
    directory = chosen_directory(config, os.environ, os.getuid())
    try:
        return LockedDirectory(str(directory)) if directory is not None else None
    except DirectoryUnusable as error:
        raise BootRefused(str(error)) from error


def _begun_identity(config: Config, directory: Path | None, now: int) -> NodeIdentity:
    """Begin a run, in a directory without what was there before it joined or left a cluster."""
    identity = begin_incarnation(config, directory, now)
    cluster = identity.cluster
    if directory is None or cluster is None or cluster.phase is not MembershipPhase.ERASING:
        return identity
    try:
        erase(directory)
        is_joining = bool(cluster.cluster_id)
        begun = replace(cluster, phase=MembershipPhase.JOINING) if is_joining else None
        keep_membership(directory, begun)
    except OSError as error:
        raise BootRefused(f"cannot erase {str(directory)!r}: {error.strerror or error}") from error
    return NodeIdentity(identity.name, identity.incarnation, begun)


def _metadata_journal(
    config: Config, directory: Path | None, clock: Clock, identity: NodeIdentity
) -> MetadataJournal | None:
    if directory is None:
        return None
    is_damage_skipped = config.get(settings.SKIP_DAMAGE)
    return MetadataJournal(
        directory,
        clock,
        is_damage_skipped=is_damage_skipped,
        incarnation=identity.incarnation,
        membership=None if identity.cluster is None else identity.cluster.phase,
    )


def _monitors(
    alarms: Alarms, clock: Clock, folder: LockedDirectory | None, limit_queue_memory: Callable[[int], None]
) -> Monitors:
    machine = Machine()
    monitors: list[Monitor] = [MemoryMonitor(alarms, machine, clock.now, limit_queue_memory)]
    if folder is not None:
        monitors.append(DiskMonitor(alarms, machine, folder.path))
    return Monitors(monitors)


def _periodic_timers(loop: asyncio.AbstractEventLoop, clock: Clock) -> list[PeriodicTimer]:
    return [PeriodicTimer(loop, _CLOCK_S, clock.follow), PeriodicTimer(loop, _PATTERNS_S, report_suspended)]


def _stream_settings(config: Config, cluster_name: str) -> StreamSettings:
    return StreamSettings(
        cluster_name=cluster_name,
        frame_size_max=config.get(settings.STREAM_FRAME_SIZE),
        frame_size_handshake=config.get(limit_settings.STREAM_FRAME_SIZE_HANDSHAKE),
        super_stream_partitions_max=config.get(limit_settings.SUPER_STREAM_PARTITIONS),
        unconfirmed_max=config.get(settings.STREAM_CREDITS),
        unblocking_min=config.get(settings.STREAM_UNBLOCKING),
        heartbeat_s=config.get(settings.STREAM_HEARTBEAT),
        timeout_ms=config.get(settings.HANDSHAKE),
        advertised_host=config.get(settings.STREAM_HOST),
        advertised_port=config.get(settings.STREAM_PORT),
        advertised_tls_host=config.get(settings.STREAM_TLS_HOST),
        advertised_tls_port=config.get(settings.STREAM_TLS_PORT),
    )


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Log an exception that only the event loop caught, in one line."""
    error = context.get("exception")
    logger.error("%s", context.get("message"), exc_info=error if isinstance(error, BaseException) else None)
