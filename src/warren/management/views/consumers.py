"""Consumers and subscriptions as JSON, in RabbitMQ's form."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable
from warren.metadata.definitions import json_value
from warren.session.any_connection import AnyConnection
from warren.session.channel import Channel
from warren.session.streams.connection import StreamConnection
from warren.session.streams.subscriptions import StreamSubscription
from warren.session.subscriber import ChannelSubscription

# A channel with its connection; a consumer with both; a subscription with its connection.
OpenChannel: TypeAlias = tuple[AnyConnection, Channel]
ChannelConsumer: TypeAlias = tuple[AnyConnection, Channel, ChannelSubscription]
StreamConsumer: TypeAlias = tuple[StreamConnection, StreamSubscription]


class QueueNameShape(TypedDict):
    """The queue of a consumer."""

    name: str
    vhost: str


class ChannelDetailsShape(TypedDict):
    """The channel of a consumer; for a subscription of the stream protocol, only its connection."""

    connection_name: str
    name: str
    node: str
    number: int
    peer_host: str
    peer_port: int
    user: str


class ConsumerShape(TypedDict):
    """A consumer."""

    ack_required: bool
    active: bool
    activity_status: str
    arguments: JsonTable
    channel_details: ChannelDetailsShape
    consumer_tag: str
    exclusive: bool
    prefetch_count: int
    queue: QueueNameShape


def channel_name(connection: AnyConnection, channel: Channel) -> str:
    """The name of a channel in RabbitMQ's form."""
    return f"{connection.peer.name} ({channel.number})"


def consumers_of(opened: OpenChannel) -> Iterator[ChannelConsumer]:
    """The consumers on a channel, without those of direct reply-to, which have no queue."""
    connection, channel = opened
    for consumer in channel.subscriber.consumers:
        if consumer.queue is not None:
            yield connection, channel, consumer


def stream_consumers_on(connections: Iterable[StreamConnection]) -> Iterator[StreamConsumer]:
    """The subscriptions on stream connections."""
    for connection in connections:
        if connection.command_handler is not None:
            for subscription in connection.command_handler.subscriptions:
                yield connection, subscription


def consumer_view(node: ManagedNode, consuming: ChannelConsumer) -> JsonObject:
    """An AMQP consumer as JSON."""
    connection, channel, consumer = consuming
    queue = consumer.queue
    is_single = queue.settings.single_active_consumer
    is_active = not is_single or queue.active_consumer is consumer
    return {
        "arguments": json_value(dict(consumer.arguments)),
        "ack_required": not consumer.no_ack,
        "active": is_active,
        "activity_status": _activity(is_single=is_single, is_active=is_active),
        "channel_details": {
            "connection_name": connection.peer.name,
            "name": channel_name(connection, channel),
            "node": node.node_name,
            "number": channel.number,
            "peer_host": connection.peer.host,
            "peer_port": connection.peer.port,
            "user": connection.user,
        },
        "consumer_tag": consumer.tag,
        "exclusive": consumer.is_exclusive,
        "prefetch_count": consumer.prefetch,
        "queue": {"name": queue.name, "vhost": queue.vhost_name},
    }


def stream_subscriber_view(node: ManagedNode, subscribing: StreamConsumer) -> JsonObject:
    """A subscription of the stream protocol as JSON, in the form in which RabbitMQ lists consumers."""
    connection, subscription = subscribing
    is_active = subscription.is_active
    return {
        "arguments": dict(subscription.properties),
        "ack_required": False,
        "active": is_active,
        "activity_status": _activity(is_single=subscription.key is not None, is_active=is_active),
        "channel_details": {
            "connection_name": connection.peer.name,
            "name": "",
            "node": node.node_name,
            "number": 0,
            "peer_host": connection.peer.host,
            "peer_port": connection.peer.port,
            "user": connection.user,
        },
        "consumer_tag": f"stream.subid-{subscription.number}",
        "exclusive": False,
        "prefetch_count": 0,
        "queue": {"name": subscription.stream.name, "vhost": subscription.stream.vhost_name},
    }


def _activity(*, is_single: bool, is_active: bool) -> str:
    if not is_single:
        return "up"
    return "single_active" if is_active else "waiting"
