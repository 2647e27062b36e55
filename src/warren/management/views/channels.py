"""Channels as JSON, in RabbitMQ's form."""

from typing import Any, Required, TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, shape
from warren.management.views.consumers import (
    ConsumerShape,
    OpenChannel,
    channel_name,
    consumer_view,
    consumers_of,
)
from warren.management.views.stats import (
    GARBAGE_COLLECTION,
    MessageStatsShape,
    SampleRanges,
    format_time,
    message_stats,
    no_reductions,
    with_details,
)
from warren.metrics.sampler import CHANNEL_COLUMNS, channel_row, series_of


class ChannelConnectionShape(TypedDict):
    """The connection of a channel."""

    name: str
    peer_host: str
    peer_port: int


class _Fields(TypedDict, total=False):
    acks_uncommitted: Required[int]
    confirm: Required[bool]
    connection_details: Required[ChannelConnectionShape]
    consumer_count: Required[int]
    consumer_details: list[ConsumerShape]
    deliveries: list[Any]
    garbage_collection: JsonTable
    global_prefetch_count: Required[int]
    idle_since: str
    message_stats: MessageStatsShape
    messages_unacknowledged: Required[int]
    messages_uncommitted: Required[int]
    messages_unconfirmed: Required[int]
    name: Required[str]
    node: Required[str]
    number: Required[int]
    pending_raft_commands: int
    prefetch_count: Required[int]
    publishes: list[Any]
    state: Required[str]
    transactional: Required[bool]
    user: Required[str]
    user_who_performed_action: str
    vhost: Required[str]


ChannelShape = shape("ChannelShape", "A channel.", _Fields.__annotations__, with_details(("reductions",)))


def channel_view(
    node: ManagedNode, opened: OpenChannel, ranges: SampleRanges, *, is_alone: bool
) -> JsonObject:
    """A channel as JSON; `is_alone` adds the details of its consumers."""
    connection, channel = opened
    subscriber, confirms = channel.subscriber, channel.confirms
    assert connection.services is not None
    published, acknowledged = channel.uncommitted
    user = connection.user
    facts: JsonObject = {
        "acks_uncommitted": acknowledged,
        "confirm": confirms is not None,
        "connection_details": {
            "name": connection.peer.name,
            "peer_host": connection.peer.host,
            "peer_port": connection.peer.port,
        },
        "consumer_count": sum(1 for _ in subscriber.consumers),
        "garbage_collection": GARBAGE_COLLECTION,
        "global_prefetch_count": subscriber.prefetch_max,
        "messages_unacknowledged": subscriber.unacked.count,
        "messages_uncommitted": published,
        "messages_unconfirmed": 0 if confirms is None else confirms.unconfirmed_count,
        "name": channel_name(connection, channel),
        "node": node.node_name,
        "number": channel.number,
        "pending_raft_commands": 0,
        "prefetch_count": subscriber.prefetch,
        **no_reductions(ranges.data_rates),
        "state": "closing" if channel.is_closing else connection.state_name(ranges.now),
        "transactional": channel.is_transactional,
        "user": user,
        "user_who_performed_action": user,
        "vhost": connection.services.vhost.name,
    }
    series, row = series_of(channel), channel_row(channel)
    stats = message_stats(CHANNEL_COLUMNS, row, (series, ranges.time), ranges.msg_rates)
    if stats:
        facts["message_stats"] = stats
    if series is None or series.last_time < ranges.time:
        moved_at = connection.connected_at if series is None else series.last_time
        facts["idle_since"] = format_time(moved_at)
    if is_alone:
        facts["consumer_details"] = [consumer_view(node, consuming) for consuming in consumers_of(opened)]
        # RabbitMQ fills these details of channel and queue only in its detailed rates mode.
        facts |= {"publishes": [], "deliveries": []}
    return facts
