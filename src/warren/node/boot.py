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
from collections.abc import Callable
from pathlib import Path

import uvloop

from warren import __version__
from warren.flow.alarms import Alarms
from warren.framing.output_listener import OutputListener
from warren.jobs.jobs import Jobs
from warren.management.managed_node import ListenerView, ManagedNode
from warren.management.queue_index import QueueIndex
from warren.management.web_sessions import WebSessions
from warren.metrics.node_usage import NodeUsage
from warren.metrics.sampler import Sampler
from warren.node import client_listeners, settings
from warren.node.broker import Broker
from warren.node.config import Config
from warren.node.config_file import ConfigError
from warren.node.controls import NodeControls
from warren.node.data_directory import chosen_directory
from warren.node.errors import BootRefused, NodeFailed
from warren.node.file_descriptors import connection_limits, raise_descriptor_limit
from warren.node.http_ports import HttpPorts
from warren.node.metadata_journal import MetadataJournal
from warren.node.monitors import DiskMonitor, MemoryMonitor, Monitor, Monitors
from warren.node.node_identity import NodeIdentity, begin_incarnation
from warren.node.node_log import NodeLog
from warren.node.node_relays import NodeRelays
from warren.node.sample_timer import SampleTimer
from warren.node.session_file import restore_sessions
from warren.node.slow_patterns import report_suspended
from warren.runtime.clock import Clock
from warren.runtime.garbage_collector import GarbageCollector
from warren.runtime.locked_directory import DirectoryUnusable, LockedDirectory
from warren.runtime.machine import Machine
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
from warren.transport.tls import Tls, TlsError

logger = logging.getLogger("warren.node")

# Interval at which certificate files are checked for changes, and the wall clock is read again.
_CERTIFICATES_S = 10
_CLOCK_S = 10
_PATTERNS_S = 1
# Interval at which the garbage collection of reference cycles is considered.
_COLLECTOR_S = 1
# Interval at which a stopping node checks whether its clients have disconnected.
_LEAVING_S = 0.02

_SHUTDOWN = "broker forced connection closure with reason 'shutdown'"


def run(config: Config, on_ready: Callable[["Node"], None], log: NodeLog) -> None:
    """Run a node until it is asked to stop; raises BootRefused if it cannot start."""
    uvloop.run(_serve(config, on_ready, log))


async def _serve(config: Config, on_ready: Callable[["Node"], None], log: NodeLog) -> None:
    for warning in config.warnings:
        logger.warning("%s", warning)
    stopping = asyncio.Event()
    node = Node(config, stopping.set, log)
    loop = asyncio.get_running_loop()
    manager = ServiceManager(os.environ)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, node, manager)
    try:
        await node.start()
        manager.ready(_addresses(node))
        logger.info("ready: %s; %s", _addresses(node), _data_location(node))
        on_ready(node)
        await stopping.wait()
        logger.info("stopping")
        manager.stopping()
    finally:
        await node.stop()
    logger.info("stopped")
    if node.failure:
        raise NodeFailed(node.failure)


def _reload(node: "Node", manager: ServiceManager) -> None:
    manager.reloading()
    node.reload()
    manager.ready(_addresses(node))


def _addresses(node: "Node") -> str:
    return ", ".join(map(str, node.listeners))


def _data_location(node: "Node") -> str:
    return f"data in {node.data_directory}" if node.data_directory else "in memory only"


class Node:
    """One broker process."""

    def __init__(self, config: Config, stop: Callable[[], None], log: NodeLog) -> None:
        """`stop` is called when the node cannot continue; `failure` then contains the reason."""
        self._config = config
        self._log = log
        self._stop = stop
        self.failure = ""
        self._collector = GarbageCollector()
        self._clock = Clock()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_report)
        self._folder = _folder(config)
        directory = None if self._folder is None else self._folder.path
        identity = begin_incarnation(config, directory, self._clock.now())
        journal = self._metadata_journal = _metadata_journal(config, directory, self._clock, identity)
        self.broker = Broker(config, self._clock, identity, metadata_journal=journal, fail=self._fail)
        self._loop_context = LoopContext(loop, self.broker.turn)
        self.relays = NodeRelays(self.broker, self._loop_context, config)
        self._tls: Tls | None = None
        self._listeners: list[Listener] = []
        server = self.broker.server
        self._stream_server = StreamServer(server, _stream_settings(config, self.broker.cluster_name))
        alarms = Alarms(server.block, server.event_publisher.alarm)
        self._monitors = _monitors(alarms, self._clock, self._folder, self.broker.tree.limit_queue_memory)
        usage = NodeUsage(server, alarms, self.relays.dialer.sockets_beyond_clients)
        sampler = Sampler(server, self.broker.metadata, usage.row, self.relays.links)
        self._sample_timer = SampleTimer(sampler, self._clock, server.later)
        self._managed = ManagedNode(
            node_name=self.broker.name,
            first_cluster_name=self.broker.cluster_name,
            metadata=self.broker.metadata,
            proposals=self.broker.proposals,
            hash_password=self.broker.hash_password,
            default_hash=self.broker.default_hash,
            connections_max=config.get(settings.CONNECTIONS_MAX),
            mechanisms=client_listeners.numbered_values(config.family(settings.MECHANISMS)),
            socket_options=client_listeners.socket_options(config),
            server=server,
            sampler=sampler,
            queue_index=QueueIndex(self.broker.metadata),
            jobs=Jobs(random_bytes, self._clock.now),
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
            controls=NodeControls(config, self._monitors, log),
            relays=self.relays.view(),
            now=self._clock.now,
            started_at=self._clock.now(),
        )
        self._http = HttpPorts(config)
        self._connection_limits = connection_limits(raise_descriptor_limit(), self._http.count)
        self._periodic = _periodic_timers(loop, self._clock)

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
        self.broker.populate()
        if self._config.get(settings.LOG_EXCHANGE):
            self._log.publish(self.broker.log_exchange(), self._config)
        if self._folder is not None:
            await self.broker.open_storage(self._folder.path)
            restore_sessions(self._managed.sessions, self._folder.path, self._config, self.broker.metadata)
        self._monitors.configure(self._config)
        try:
            self._tls = client_listeners.tls(self._config)
        except TlsError as error:
            raise BootRefused(f"TLS: {error}") from error
        self._periodic.append(
            PeriodicTimer(asyncio.get_running_loop(), _CERTIFICATES_S, self._reload_changed_certificates)
        )
        connection_slots = client_listeners.connection_slots(self._config, self._connection_limits.clients)
        shared = client_listeners.ListenerDependencies(self._loop_context, self._tls, connection_slots)
        for listener in client_listeners.amqp_listeners(self._config, shared, self._connect):
            where = listener.settings
            await client_listeners.listen(listener.start(), where.host, where.port)
            self._listeners.append(listener)
            protocol = "amqp/ssl" if listener.is_tls else "amqp"
            self._managed.listeners.extend(ListenerView(protocol, *address) for address in listener.addresses)
        await self._start_streams(shared)
        await self._http.start(self._managed, self._connection_limits.per_http_port)
        self.relays.dialer.limit_sockets(self._connection_limits.outgoing)
        self.relays.start()
        self._sample_timer.begin()
        self._collector.begin()
        self._periodic.append(
            PeriodicTimer(asyncio.get_running_loop(), _COLLECTOR_S, self._collector.collect_if_due)
        )

    def _certificates(self) -> dict[str, int]:
        ours = {} if self._tls is None else self._tls.expiries()
        return ours | self._http.expiries()

    def _reload_changed_certificates(self) -> None:
        if self._tls is not None:
            self._tls.reload_if_changed()
        self._http.reload_if_changed()

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._stop()

    def reload(self) -> None:
        """Handle SIGHUP: read again what can change without a restart."""
        self._log.reopen()
        if self._tls is not None:
            self._tls.reload()
        self._http.reload()
        try:
            self._monitors.configure(self._config.again())
        except ConfigError as error:
            logger.error("the memory and disk thresholds are unchanged: %s", error)

    async def stop(self) -> None:
        """Close client connections and stop, also after an incomplete start."""
        await self.relays.stop()
        for listener in self._listeners:
            await listener.stop()
        await self._managed.jobs.close()
        await self._close_clients()
        for listener in self._listeners:
            listener.abort()
        await self._http.stop()
        await self._managed.sessions.close()
        for periodic in self._periodic:
            periodic.stop()
        self._collector.end()
        self._monitors.stop()
        self._sample_timer.stop()
        self._loop_context.deadlines.stop()
        await self.broker.close()
        if self._metadata_journal is not None:
            await self._metadata_journal.close()
        if self._folder is not None:
            self._folder.close()

    async def _close_clients(self) -> None:
        """Send connection.close to all clients, and wait for their replies during the grace period."""
        for connection in self.broker.server.all_connections():
            connection.disconnect(_SHUTDOWN)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._config.get(settings.SHUTDOWN_GRACE) / 1000
        while loop.time() < end and any(listener.connection_count for listener in self._listeners):
            await asyncio.sleep(_LEAVING_S)

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


def _metadata_journal(
    config: Config, directory: Path | None, clock: Clock, identity: NodeIdentity
) -> MetadataJournal | None:
    if directory is None:
        return None
    is_damage_skipped = config.get(settings.SKIP_DAMAGE)
    return MetadataJournal(
        directory, clock, is_damage_skipped=is_damage_skipped, incarnation=identity.incarnation
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
