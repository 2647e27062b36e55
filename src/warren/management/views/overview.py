"""The overview of the node as JSON, in RabbitMQ's form."""

import platform
from typing import NotRequired, Required, TypedDict

from warren.flow.alarms import Resource
from warren.management.auth import is_monitor, login_vhosts
from warren.management.listing import JsonObject
from warren.management.managed_node import CLUSTERING, ListenerView, ManagedNode
from warren.management.operation import JsonTable
from warren.management.views.stats import (
    ChurnRatesShape,
    MessageStatsShape,
    QueueTotalsShape,
    SampleRanges,
    message_stats,
    with_rates,
)
from warren.metadata.users import User
from warren.metrics.sampler import CHURN, LENGTHS, VHOST_COLUMNS, series_of
from warren.metrics.time_series import SampleRow, TimeSeries
from warren.routing.types import EXCHANGE_TYPES
from warren.session.server_properties import COMPATIBLE_VERSION, PRODUCT
from warren.vhost.vhost import VirtualHost

_DESCRIPTIONS = {"http": "RabbitMQ Management", "http/prometheus": "RabbitMQ Prometheus"}
_LENGTHS_COUNT = len(LENGTHS)
# RabbitMQ's names of the resources.
RESOURCES = {Resource.DISK: "disk space", Resource.MEMORY: "memory"}


class AlarmShape(TypedDict):
    """A resource in alarm, which blocks publishers."""

    node: str
    resource: str


class ExchangeTypeShape(TypedDict):
    """A type of exchanges."""

    name: str
    description: str
    # Only of a type that other brokers declare.
    internal_purpose: NotRequired[str]
    enabled: bool


class ListenerShape(TypedDict):
    """A listener."""

    node: str
    protocol: str
    ip_address: str
    port: int
    # RabbitMQ has an empty list for the listener of other nodes.
    socket_opts: JsonTable | list[str]


class OverviewShape(TypedDict, total=False):
    """The overview of the broker; users without the tag monitoring get fewer fields."""

    alarms: Required[list[AlarmShape]]
    churn_rates: ChurnRatesShape
    cluster_name: Required[str]
    contexts: list[JsonTable]
    disable_stats: bool
    enable_queue_totals: bool
    erlang_full_version: str
    erlang_version: str
    exchange_types: Required[list[ExchangeTypeShape]]
    in_memory: Required[bool]
    listeners: list[ListenerShape]
    management_version: Required[str]
    message_stats: Required[MessageStatsShape]
    node: str
    object_totals: Required[dict[str, int]]
    product_name: Required[str]
    product_version: Required[str]
    queue_totals: Required[QueueTotalsShape]
    rabbitmq_version: Required[str]
    rates_mode: Required[str]
    release_series_support_status: str
    sample_retention_policies: dict[str, list[int]]
    statistics_db_event_queue: int


def overview_view(node: ManagedNode, user: User, ranges: SampleRanges) -> JsonObject:
    """The overview as JSON, with the counts that `user` may see."""
    facts: JsonObject = {
        "management_version": COMPATIBLE_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": {"global": [600, 28800], "basic": [600], "detailed": [600]},
        "exchange_types": exchange_types(),
        "product_version": COMPATIBLE_VERSION,
        "product_name": PRODUCT,
        "rabbitmq_version": COMPATIBLE_VERSION,
        "cluster_name": node.cluster_name,
        "erlang_version": platform.python_version(),
        "erlang_full_version": f"Python {platform.python_version()}",
        "release_series_support_status": "supported",
        "disable_stats": False,
        "enable_queue_totals": False,
        # A field of Warren's own: without a data directory no durable object survives a restart.
        "in_memory": not node.data_directory,
        # A field of Warren's own: every user may know why publishers are blocked.
        "alarms": cluster_alarms_of(node),
    }
    if not is_monitor(user):
        return facts | _part(node, user, ranges)
    sampler = node.sampler
    row, total = sampler.total_row(), (sampler.total, ranges.time)
    churn = sampler.churn, ranges.time
    return facts | {
        "message_stats": message_stats(VHOST_COLUMNS, _without_bytes(row), total, ranges.msg_rates),
        "churn_rates": with_rates(CHURN, sampler.churn_row(), churn, ranges.msg_rates),
        "queue_totals": with_rates(LENGTHS, row[:_LENGTHS_COUNT], total, ranges.lengths),
        "object_totals": totals(node),
        "statistics_db_event_queue": 0,
        "node": node.node_name,
        "listeners": [_listener(node, view) for view in node.all_listeners],
        "contexts": contexts(node),
    }


def alarms_of(node: ManagedNode) -> list[dict[str, str]]:
    """The resources of this node that are in alarm, each with its name."""
    return [{"node": node.node_name, "resource": RESOURCES[resource]} for resource in node.alarms.low]


def cluster_alarms_of(node: ManagedNode) -> list[dict[str, str]]:
    """The resources in alarm, which block publishers, each with the name of the node: first of this one."""
    return alarms_of(node) + [
        {"node": name, "resource": RESOURCES[resource]}
        for name, low in sorted(node.alarms.others.items())
        for resource in low
    ]


def totals(node: ManagedNode) -> dict[str, int]:
    """The numbers of connections, channels, exchanges, queues and consumers."""
    server = node.server
    vhosts = [services.vhost for services in server.vhost_services.values()]
    return {
        "channels": server.channel_count,
        "connections": server.connection_count,
        "consumers": sum(vhost.consumer_count for vhost in vhosts),
        "exchanges": sum(len(vhost.router.exchanges) for vhost in vhosts),
        "queues": _queue_count(node, vhosts),
    }


def own_queue_count(node: ManagedNode) -> int:
    """The number of queues that run on this node."""
    vhosts = [services.vhost for services in node.server.vhost_services.values()]
    if node.cluster is None:
        return sum(len(vhost.queues) for vhost in vhosts)
    return sum(node.queue_index.count_at(vhost.name, node.cluster.own_id) for vhost in vhosts)


def _queue_count(node: ManagedNode, vhosts: list[VirtualHost]) -> int:
    """The number of queues, without those whose home is not there."""
    count = sum(len(vhost.queues) for vhost in vhosts)
    if node.cluster is None:
        return count
    members, own = node.metadata.members.by_id, node.cluster.own_id
    away = {id for id, member in members.items() if not member.is_up and id != own}
    return count - sum(node.queue_index.count_at(vhost.name, home) for vhost in vhosts for home in away)


def exchange_types() -> list[JsonObject]:
    """The types of exchanges."""
    return [
        {
            "name": name,
            "description": (kind.__doc__ or "").partition("\n")[0],
            **({"internal_purpose": kind.internal_purpose} if kind.internal_purpose else {}),
            "enabled": True,
        }
        for name, kind in sorted(EXCHANGE_TYPES.items())
    ]


def contexts(node: ManagedNode) -> list[JsonObject]:
    """The HTTP listeners, which RabbitMQ calls contexts."""
    found: list[JsonObject] = []
    for view in node.listeners:
        if view.protocol in _DESCRIPTIONS:
            context: JsonObject = {
                "node": node.node_name,
                "description": _DESCRIPTIONS[view.protocol],
                "path": "/",
                "cowboy_opts": "[{sendfile,false}]",
                "ip": view.host,
                "port": str(view.port),
                "ssl_opts": [],
            }
            if view.protocol != "http":
                context["protocol"] = f"'{view.protocol}'"
            found.append(context)
    return found


def vhost_stats(node: ManagedNode, name: str, ranges: SampleRanges) -> JsonObject:
    """The statistics of a virtual host; empty until something has been counted."""
    services = node.server.vhost_services.get(name)
    if services is None:
        return {}
    row, series = node.sampler.vhost_row(services.vhost), series_of(services.vhost)
    if not any(row):
        return {}
    past = series, ranges.time
    lengths = with_rates(LENGTHS, row[:_LENGTHS_COUNT], past, ranges.lengths)
    shown = with_rates(VHOST_COLUMNS, row, past, ranges.data_rates)
    traffic = {key: value for key, value in shown.items() if key.startswith(("recv_oct", "send_oct"))}
    stats = message_stats(VHOST_COLUMNS, (*_without_bytes(row)[:-2], 0, 0), past, ranges.msg_rates)
    return lengths | traffic | ({"message_stats": stats} if stats else {})


def _part(node: ManagedNode, user: User, ranges: SampleRanges) -> JsonObject:
    """The statistics that a user without the tag monitoring may see: those of the user's virtual hosts."""
    names = login_vhosts(node, user)
    vhosts = [
        services.vhost for name in names if (services := node.server.vhost_services.get(name)) is not None
    ]
    rows = [node.sampler.vhost_row(vhost) for vhost in vhosts]
    row = tuple(map(sum, zip(*rows, strict=True))) if rows else (0,) * len(VHOST_COLUMNS)
    past = _Sum(vhosts), ranges.time
    own = [
        one
        for one in node.server.connections
        if one.login is not None and one.login.identity == user.identity
    ]
    return {
        "message_stats": message_stats(VHOST_COLUMNS, _without_bytes(row), past, ranges.msg_rates),
        "queue_totals": with_rates(LENGTHS, row[:_LENGTHS_COUNT], past, ranges.lengths),
        "object_totals": {
            "channels": sum(len(connection.channels) for connection in own),
            "connections": len(own),
            "consumers": sum(vhost.consumer_count for vhost in vhosts),
            "exchanges": sum(len(vhost.router.exchanges) for vhost in vhosts),
            "queues": _queue_count(node, vhosts),
        },
    }


class _Sum(TimeSeries):
    """The sum of the series of several virtual hosts."""

    __slots__ = ("_parts",)

    def __init__(self, vhosts: list[VirtualHost]) -> None:
        super().__init__((0,) * len(VHOST_COLUMNS))
        self._parts = [series for vhost in vhosts if (series := series_of(vhost)) is not None]

    def at(self, time: int, column: int) -> int:
        return sum(series.at(time, column) for series in self._parts)

    def rate(self, time: int, column: int) -> float:
        return sum(series.rate(time, column) for series in self._parts)


def _without_bytes(row: SampleRow) -> SampleRow:
    """`row` of VHOST_COLUMNS without traffic and queue lengths, which other fields show."""
    return tuple(
        0 if name in ("recv_oct", "send_oct") or name in LENGTHS else number
        for name, number in zip(VHOST_COLUMNS, row, strict=True)
    )


def _listener(node: ManagedNode, view: ListenerView) -> JsonObject:
    return {
        "node": node.node_name,
        "protocol": view.protocol,
        "ip_address": view.host,
        "port": view.port,
        "socket_opts": _socket_options(node, view),
    }


def _socket_options(node: ManagedNode, view: ListenerView) -> JsonObject | list[str]:
    if view.protocol == CLUSTERING:
        return []
    if not view.protocol.startswith("http"):
        return dict(node.socket_options)
    options = {"cowboy_opts": {"sendfile": False}, "ip": view.host, "port": view.port}
    return options if view.protocol == "http" else options | {"protocol": view.protocol}
