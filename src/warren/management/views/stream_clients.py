"""Publishers and consumers of the stream protocol as JSON, in the form of RabbitMQ's stream management."""

from typing import TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable
from warren.management.views.consumers import StreamConsumer
from warren.management.views.streams import StreamPublisher, lag_of
from warren.queues.stream import StreamQueue
from warren.session.streams.connection import StreamConnection


class ConnectionDetailsShape(TypedDict):
    """The connection of a publisher or consumer."""

    name: str
    node: str
    peer_host: str
    peer_port: int
    user: str


class StreamNameShape(TypedDict):
    """The name of a stream and its virtual host."""

    name: str
    vhost: str


class StreamPublisherShape(TypedDict):
    """A publisher of a stream; with a reference, its messages are deduplicated."""

    connection_details: ConnectionDetailsShape
    queue: StreamNameShape
    publisher_id: int
    reference: str
    published: int
    confirmed: int
    errored: int


class StreamConsumerShape(TypedDict):
    """A consumer of a stream: `offset` is the last one sent, 0 before the first."""

    connection_details: ConnectionDetailsShape
    queue: StreamNameShape
    subscription_id: int
    credits: int
    consumed: int
    offset: int
    offset_lag: int
    properties: JsonTable


def stream_publisher_view(node: ManagedNode, publishing: StreamPublisher) -> JsonObject:
    """A publisher of the stream protocol as JSON."""
    connection, publisher = publishing
    confirms = publisher.confirms
    return {
        "connection_details": _details(node, connection),
        "queue": _name(publisher.stream),
        "publisher_id": publisher.number,
        "reference": publisher.reference,
        "published": confirms.published_count,
        "confirmed": confirms.confirmed_count,
        "errored": confirms.failed_count,
    }


def stream_consumer_view(node: ManagedNode, subscribing: StreamConsumer) -> JsonObject:
    """A subscription of the stream protocol as JSON."""
    connection, subscription = subscribing
    return {
        "connection_details": _details(node, connection),
        "queue": _name(subscription.stream),
        "subscription_id": subscription.number,
        "credits": subscription.credit,
        "consumed": subscription.delivered_count,
        "offset": max(subscription.next - 1, 0) if subscription.delivered_count else 0,
        "offset_lag": lag_of(subscription.stream, subscription.next) if subscription.is_active else 0,
        "properties": dict(subscription.properties),
    }


def _name(queue: StreamQueue) -> JsonObject:
    return {"name": queue.name, "vhost": queue.vhost_name}


def _details(node: ManagedNode, connection: StreamConnection) -> JsonObject:
    return {
        "name": connection.peer.name,
        "node": node.node_name,
        "peer_host": connection.peer.host,
        "peer_port": connection.peer.port,
        "user": connection.user,
    }
