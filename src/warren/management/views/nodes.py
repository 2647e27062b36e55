"""The node as JSON, in RabbitMQ's form: its resource use and limits, memory by category, and tables."""

import os
import sys
from collections.abc import Iterable
from typing import Any, Required, TypedDict

from msgspec.structs import asdict

from warren.flow.alarms import Resource
from warren.management.cluster_nodes import PeerTraffic
from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, shape
from warren.management.quarantine_view import totals_of, unacknowledged
from warren.management.views.overview import contexts, exchange_types
from warren.management.views.stats import SampleRanges, with_details, with_rates
from warren.metrics.node_usage import NODE_COLUMNS, descriptors_max
from warren.metrics.sampler import CHURN
from warren.session.server_properties import COMPATIBLE_VERSION

# RabbitMQ's names of the limit and the alarm of a resource.
_LIMITS = {Resource.MEMORY: ("mem_limit", "mem_alarm"), Resource.DISK: ("disk_free_limit", "disk_free_alarm")}
# Counters of Erlang and Mnesia without a counterpart here; they are always 0.
_NEVER = (
    "io_read_avg_time", "io_write_avg_time", "io_sync_count", "io_sync_avg_time", "io_seek_count",
    "io_seek_avg_time", "io_reopen_count", "mnesia_ram_tx_count", "mnesia_disk_tx_count",
    "msg_store_read_count", "msg_store_write_count", "queue_index_write_count", "queue_index_read_count",
)  # fmt: skip
_AVERAGES = frozenset(name for name in _NEVER if name.endswith("_avg_time"))
_MECHANISMS = {
    "PLAIN": "SASL PLAIN authentication mechanism",
    "AMQPLAIN": "QPid AMQPLAIN mechanism",
    "EXTERNAL": "SASL EXTERNAL authentication mechanism",
}
_PLUGINS = {
    "rabbitmq_management": "RabbitMQ Management",
    "rabbitmq_prometheus": "RabbitMQ Prometheus",
    "rabbitmq_stream": "RabbitMQ Stream",
    "rabbitmq_stream_management": "RabbitMQ Stream Management",
}
# The protocols of which a listener makes a plugin appear as enabled.
_SPOKEN = {
    "rabbitmq_management": {"http", "https"},
    "rabbitmq_prometheus": {"http/prometheus", "https/prometheus"},
    "rabbitmq_stream": {"stream"},
    "rabbitmq_stream_management": {"stream"},
}
_GARBAGE_QUEUES = (
    "connection_closed", "channel_closed", "consumer_deleted", "exchange_deleted", "queue_deleted",
    "vhost_deleted", "node_node_deleted", "channel_consumer_deleted",
)  # fmt: skip
# RabbitMQ's categories of memory; only a few have a counterpart here, and the others are 0.
_MEMORY = (
    "connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs",
    "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs",
    "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs", "plugins", "other_proc",
    "metrics", "mgmt_db", "mnesia", "quorum_ets", "other_ets", "binary", "msg_index", "code", "atom",
    "other_system", "allocated_unused", "reserved_unallocated",
)  # fmt: skip


class _Fields(TypedDict, total=False):
    applications: list[JsonTable]
    auth_mechanisms: list[JsonTable]
    binary: dict[str, int]
    cluster_links: list[Any]
    config_files: list[str]
    contexts: list[JsonTable]
    db_dir: str
    disk_free_alarm: bool
    disk_free_limit: int
    enabled_plugins: list[str]
    exchange_types: list[JsonTable]
    fd_total: int
    log_files: list[str]
    losses: list[JsonTable]
    mem_alarm: bool
    mem_calculation_strategy: str
    mem_limit: int
    memory: JsonTable
    metrics_gc_queue_length: dict[str, int]
    name: Required[str]
    net_ticktime: int
    os_pid: str
    partitions: list[str]
    proc_total: int
    processors: int
    quarantined_items: int
    quarantined_messages: int
    quarantined_bytes: int
    quarantined_unacknowledged: int
    ra_open_file_metrics: dict[str, int]
    rates_mode: str
    run_queue: int
    running: Required[bool]
    sockets_total: int
    type: Required[str]
    uptime: int


NodeShape = shape(
    "NodeShape", "A node.", _Fields.__annotations__, with_details((*NODE_COLUMNS, *CHURN, *_NEVER))
)
deprecate(NodeShape, quarantined_octets="quarantined_bytes")


class NodeMemoryShape(TypedDict, total=False):
    """The memory of a node by category."""

    memory: JsonTable


class NodeTablesShape(TypedDict, total=False):
    """The sizes of a node's tables; a word if there are none."""

    ets_tables_memory: dict[str, int] | str


# The approximate sizes of a sample, of an open connection and of a channel, in bytes.
_SAMPLE_SIZE = 100
_CONNECTION_SIZE = 4_000
_CHANNEL_SIZE = 6_000
# Only the operating system limits the number of Python's threads.
THREADS_MAX = 1_048_576


def node_view(node: ManagedNode, ranges: SampleRanges) -> JsonObject:
    """The node as JSON."""
    sampler = node.sampler
    past = sampler.node, ranges.time
    facts: JsonObject = {
        "partitions": partitions_of(node),
        "os_pid": str(os.getpid()),
        "fd_total": descriptors_max(),
        "sockets_total": descriptors_max(),
        "proc_total": THREADS_MAX,
        "rates_mode": "basic",
        "uptime": ranges.now - node.started_at,
        "run_queue": 0,
        "processors": os.cpu_count() or 1,
        "exchange_types": exchange_types(),
        "auth_mechanisms": [
            {"name": name, "description": description, "enabled": name in node.mechanisms}
            for name, description in _MECHANISMS.items()
        ],
        "applications": [
            {"name": "rabbit", "description": "RabbitMQ", "version": COMPATIBLE_VERSION},
            *(
                {"name": name, "description": description, "version": COMPATIBLE_VERSION}
                for name, description in _plugins(node).items()
            ),
        ],
        "contexts": [_without_node(context) for context in contexts(node)],
        "log_files": _log_files(node),
        "db_dir": node.data_directory,
        "config_files": list(node.config_files),
        # Nodes do not send each other heartbeats.
        "net_ticktime": 0,
        "enabled_plugins": sorted(_plugins(node)),
        "mem_calculation_strategy": "rss",
        "ra_open_file_metrics": {"ra_log_wal": 0, "ra_log_segment_writer": 0},
        "name": node.node_name,
        "type": "disc" if node.data_directory else "ram",
        "running": True,
        "cluster_links": [_link_view(peer) for peer in peers_of(node)],
        "losses": [asdict(loss) for loss in node.losses() if not loss.acknowledged],
        "metrics_gc_queue_length": dict.fromkeys(_GARBAGE_QUEUES, 0),
    }
    kept = node.quarantine.items()
    items, messages, byte_count = totals_of(kept)
    facts |= {
        "quarantined_items": items, "quarantined_messages": messages, "quarantined_bytes": byte_count,
        "quarantined_unacknowledged": len(unacknowledged(kept)),
    }  # fmt: skip
    for resource, (limit, alarm) in _LIMITS.items():
        level = node.alarms.level(resource)
        facts[limit] = 0 if level is None else level.limit
        facts[alarm] = node.alarms.is_low(resource)
    for name in _NEVER:
        facts |= {name: 0.0 if name in _AVERAGES else 0, f"{name}_details": {"rate": 0.0}}
    facts = with_deprecated(NodeShape, facts)
    facts |= with_rates(NODE_COLUMNS, sampler.node_usage(), past, ranges.node_stats)
    return facts | with_rates(CHURN, sampler.churn_row(), (sampler.churn, ranges.time), ranges.node_stats)


def absent_node_view(name: str) -> JsonObject:
    """A member that does not answer as JSON, as RabbitMQ 3.10.8 shows it."""
    return {"cluster_links": [], "name": name, "running": False, "type": "disc"}


def peers_of(node: ManagedNode) -> list[PeerTraffic]:
    """The links to the other members."""
    return [] if node.cluster is None else node.cluster.traffic()


def partitions_of(node: ManagedNode) -> list[str]:
    """The names of members that are up, and that this node does not hear."""
    members = node.metadata.members
    silent = [peer.name for peer in peers_of(node) if not peer.is_up]
    return [name for name in silent if (member := members.named(name)) is not None and member.is_up]


def _link_view(peer: PeerTraffic) -> JsonObject:
    sizes: JsonObject = {"send_bytes": peer.bytes_sent, "recv_bytes": peer.bytes_received}
    return {"name": peer.name, **sizes, "stats": sizes}


def _log_files(node: ManagedNode) -> list[str]:
    """Where the log is written; as in RabbitMQ, a name in angle brackets is not a file."""
    log = node.controls.log()
    return [*([log.file] if log.file else []), *(["<stderr>"] if log.console else [])]


def _plugins(node: ManagedNode) -> dict[str, str]:
    """The names of RabbitMQ's plugins that correspond to the listeners, with their descriptions."""
    spoken = {listener.protocol.partition("/ssl")[0] for listener in node.listeners}
    return {name: _PLUGINS[name] for name, protocols in _SPOKEN.items() if not spoken.isdisjoint(protocols)}


def memory_view(node: ManagedNode, *, is_relative: bool) -> JsonObject:
    """The memory of the node by category, in bytes or in percent."""
    used = sum(_memory(node).values())
    if not is_relative:
        return {**_memory(node), "strategy": "rss", "total": {"erlang": used, "rss": used, "allocated": used}}
    shares = {name: -(-100 * part // (used or 1)) for name, part in _memory(node).items()}
    return {"total": 100, **shares}


def tables_view(node: ManagedNode, wanted: str | None, *, is_relative: bool) -> object:
    """Sizes of tables under RabbitMQ's names (those that contain `wanted`), in bytes or in percent."""
    tables = _tables(node) if wanted is None else {k: v for k, v in _tables(node).items() if wanted in k}
    if not tables:
        return "no_tables"
    total = sum(tables.values())
    if is_relative:
        return {"total": 100} | {name: -(-100 * size // total) for name, size in tables.items()}
    return {"total": total, **tables}


def _memory(node: ManagedNode) -> dict[str, int]:
    level = node.alarms.level(Resource.MEMORY)
    used = 0 if level is None else level.byte_count
    server = node.server
    found = dict.fromkeys(_MEMORY, 0)
    found["connection_other"] = server.connection_count * _CONNECTION_SIZE
    found["connection_channels"] = server.channel_count * _CHANNEL_SIZE
    found["mgmt_db"] = node.sampler.row_count * _SAMPLE_SIZE
    found["mnesia"] = sum(_tables(node).values())
    found["other_system"] = max(0, used - sum(found.values()))
    return found


def _tables(node: ManagedNode) -> dict[str, int]:
    """The sizes of the tables in bytes, without the objects in them."""
    metadata = node.metadata
    topologies = [vhost.topology for vhost in metadata.vhosts.by_name.values()]
    routers = [services.vhost.router for services in node.server.vhost_services.values()]
    return {
        "connection_created": sys.getsizeof(node.server.connections),
        "rabbit_user": sys.getsizeof(metadata.users.by_name),
        "rabbit_user_permission": sys.getsizeof(metadata.permissions.by_user_and_vhost),
        "rabbit_topic_permission": sys.getsizeof(metadata.permissions.topics_by_user_and_vhost),
        "rabbit_vhost": sys.getsizeof(metadata.vhosts.by_name),
        "rabbit_queue": _sizes(topology.queues for topology in topologies),
        "rabbit_exchange": _sizes(topology.exchanges for topology in topologies),
        "rabbit_route": _sizes(router.exchanges for router in routers),
        "rabbit_runtime_parameters": sys.getsizeof(metadata.global_parameters.by_name),
        "rabbit_mgmt_metrics": node.sampler.row_count * _SAMPLE_SIZE,
    }


def _sizes(tables: Iterable[object]) -> int:
    return sum(map(sys.getsizeof, tables))


def _without_node(context: JsonObject) -> JsonObject:
    return {key: value for key, value in context.items() if key not in ("node", "ssl_opts")}
