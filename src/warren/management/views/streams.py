"""Streams as JSON: offsets, sizes, retention, readers and publishers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NotRequired, TypedDict

from warren.management.deprecated_fields import deprecate, with_deprecated
from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.queue_index import existing_queues
from warren.management.views.connections import stream_connections
from warren.management.views.consumers import ChannelConsumer, StreamConsumer, stream_consumers_on
from warren.model.arguments import STREAM
from warren.queues.capabilities import stream_queue
from warren.queues.stream import StreamQueue
from warren.session.streams.connection import StreamConnection
from warren.session.streams.publishers import DeclaredPublisher
from warren.session.streams.subscriptions import StreamSubscription
from warren.store.streams.segment import StreamSegment
from warren.vhost.vhost import VirtualHost

# A publisher with its connection.
StreamPublisher = tuple[StreamConnection, DeclaredPublisher]

_AMQP, _STREAM = "AMQP 0-9-1", "stream"
_NAME = "name"


class RetentionShape(TypedDict):
    """The minimum retention in milliseconds and bytes, null without limit; and the segment size in bytes."""

    max_age_ms: int | None
    max_bytes: int | None
    segment_size: int


deprecate(RetentionShape, age_ms_max="max_age_ms", octets_max="max_bytes")


class StreamSegmentShape(TypedDict):
    """A segment of a stream; times (Unix time, ms) are those of its first and last chunk."""

    first_offset: int
    end_offset: int
    bytes: int
    first_time: int
    last_time: int
    is_sealed: bool


deprecate(StreamSegmentShape, first="first_offset", end="end_offset", octets="bytes")


class StreamShape(TypedDict):
    """The range of a stream that can be read, with its segments."""

    name: str
    vhost: str
    epoch: str
    first_offset: int
    committed_offset: int
    bytes: int
    retention: RetentionShape
    segments: list[StreamSegmentShape]
    offset: NotRequired[int]


deprecate(StreamShape, first="first_offset", committed="committed_offset", octets="bytes")


class ListedStreamShape(TypedDict):
    """A stream in a list; times are those of its first and last chunk, null if there is none."""

    name: str
    vhost: str
    first_offset: int
    committed_offset: int
    messages: int
    bytes: int
    segments: int
    first_time: int | None
    last_time: int | None
    retention: RetentionShape
    readers: int
    max_lag: int | None
    publishers: int
    is_paused: bool


deprecate(
    ListedStreamShape,
    first="first_offset",
    committed="committed_offset",
    octets="bytes",
    lag_max="max_lag",
)


class StreamReaderShape(TypedDict):
    """A reader of a stream; `offset` is the next, null for an inactive member of a group."""

    protocol: Literal["AMQP 0-9-1", "stream"]
    connection: str
    user: str
    # The channel of an AMQP consumer; null for a subscription.
    channel: int | None
    # The consumer tag, or the name of a subscription, which may be empty.
    name: str
    # The id of a subscription of the stream protocol; null for a consumer.
    subscription: int | None
    offset: int | None
    lag: int | None
    delivered: int | None
    is_active: bool


class StreamPublisherDetailsShape(TypedDict):
    """A publisher of the stream protocol; with a reference, its messages are deduplicated."""

    connection: str
    user: str
    publisher: int
    reference: str
    published: int
    confirmed: int
    refused: int


class StoredOffsetShape(TypedDict):
    """The stored offset of a consumer, and its lag in messages."""

    reference: str
    offset: int
    lag: int


class ProducerSequenceShape(TypedDict):
    """The last sequence of a producer."""

    reference: str
    sequence: int


class StreamClientsShape(TypedDict):
    """The readers and publishers of a stream, and its stored offsets and sequences."""

    readers: list[StreamReaderShape]
    publishers: list[StreamPublisherDetailsShape]
    offsets: list[StoredOffsetShape]
    sequences: list[ProducerSequenceShape]


def stream_publishers_on(connections: Iterable[StreamConnection]) -> Iterator[StreamPublisher]:
    """The publishers on stream connections."""
    for connection in connections:
        if connection.command_handler is not None:
            for publisher in connection.command_handler.publishers:
                yield connection, publisher


def streams_in(node: ManagedNode, vhost: VirtualHost) -> list[StreamQueue]:
    """The streams of `vhost`, sorted by name, found without examining its other queues."""
    found = existing_queues(node.queue_index.of_kind(vhost.name, STREAM), vhost.queues)
    return [*filter(None, map(stream_queue, found))]


class StreamClientIndex:
    """The publishers and subscriptions of the stream protocol by stream, collected once."""

    def __init__(self, node: ManagedNode) -> None:
        connections = stream_connections(node)
        self._publishing: dict[StreamQueue, list[StreamPublisher]] = {}
        self._subscribing: dict[StreamQueue, list[StreamConsumer]] = {}
        for publishing in stream_publishers_on(connections):
            self._publishing.setdefault(publishing[1].stream, []).append(publishing)
        for subscribing in stream_consumers_on(connections):
            self._subscribing.setdefault(subscribing[1].stream, []).append(subscribing)

    def publishing(self, queue: StreamQueue) -> Sequence[StreamPublisher]:
        """The publishers of `queue`."""
        return self._publishing.get(queue, ())

    def subscribing(self, queue: StreamQueue) -> Sequence[StreamConsumer]:
        """The subscriptions to `queue`."""
        return self._subscribing.get(queue, ())


def retention(queue: StreamQueue) -> JsonObject:
    """The retention limits of `queue` as JSON."""
    kept = queue.log.retention
    view = {
        "max_age_ms": kept.age_ms_max,
        "max_bytes": kept.bytes_max,
        "segment_size": kept.segment_size,
    }
    return with_deprecated(RetentionShape, view)


def stream_view(queue: StreamQueue) -> JsonObject:
    """A stream as JSON, with the segments that can be read."""
    log = queue.log
    view = {
        "name": queue.name,
        "vhost": queue.vhost_name,
        "epoch": queue.epoch,
        "first_offset": log.first,
        "committed_offset": log.committed,
        "bytes": log.byte_count,
        "retention": retention(queue),
        "segments": [
            _segment_view(segment, log.committed) for segment in log.segments if segment.first < log.committed
        ],
    }
    return with_deprecated(StreamShape, view)


def _segment_view(segment: StreamSegment, committed: int) -> JsonObject:
    view = {
        "first_offset": segment.first,
        "end_offset": min(segment.end, committed),
        "bytes": segment.size,
        "first_time": segment.first_time,
        "last_time": segment.last_time,
        "is_sealed": segment.is_sealed,
    }
    return with_deprecated(StreamSegmentShape, view)


def listed_stream_view(queue: StreamQueue, clients: StreamClientIndex) -> JsonObject:
    """A stream in a list as JSON."""
    log = queue.log
    written = [segment for segment in log.segments if segment.last_time]
    view = {
        "name": queue.name,
        "vhost": queue.vhost_name,
        "first_offset": log.first,
        "committed_offset": log.committed,
        "messages": queue.message_count,
        "bytes": log.byte_count,
        "segments": len(log.segments),
        "first_time": written[0].first_time if written else None,
        "last_time": written[-1].last_time if written else None,
        "retention": retention(queue),
        "readers": queue.consumer_count,
        "max_lag": lag_max(queue, clients),
        "publishers": len(clients.publishing(queue)),
        "is_paused": queue.is_paused,
    }
    return with_deprecated(ListedStreamShape, view)


def lag_max(queue: StreamQueue, clients: StreamClientIndex) -> int | None:
    """The lag of the slowest reader in messages; None without readers."""
    offsets = [queue.offset_of(consumer) for consumer in queue.consumers()]
    offsets += [one.next for _, one in clients.subscribing(queue) if one.is_active]
    return max((lag_of(queue, offset) for offset in offsets), default=None)


def lag_of(queue: StreamQueue, offset: int) -> int:
    """The number of messages from `offset`, the next to be delivered, to the end."""
    return max(queue.log.committed - max(offset, queue.log.first), 0)


def stream_clients_view(
    queue: StreamQueue, consuming: Iterable[ChannelConsumer], clients: StreamClientIndex
) -> JsonObject:
    """The readers and publishers of `queue`; `consuming` are its AMQP consumers."""
    readers = [_consumer_facts(queue, one) for one in consuming]
    readers += [_subscription_facts(queue, *one) for one in clients.subscribing(queue)]
    return {
        "readers": readers,
        "publishers": [_publisher_facts(*one) for one in clients.publishing(queue)],
        "offsets": [
            {"reference": reference, "offset": offset, "lag": lag_of(queue, offset + 1)}
            for reference, offset in queue.stored_offsets().items()
        ],
        "sequences": [
            {"reference": reference, "sequence": sequence}
            for reference, sequence in queue.producer_sequences().items()
        ],
    }


def _consumer_facts(queue: StreamQueue, consuming: ChannelConsumer) -> JsonObject:
    connection, channel, consumer = consuming
    offset = queue.offset_of(consumer)
    return {
        "protocol": _AMQP,
        "connection": connection.peer.name,
        "user": connection.user,
        "channel": channel.number,
        "name": consumer.tag,
        "subscription": None,
        "offset": offset,
        "lag": lag_of(queue, offset),
        "delivered": None,
        "is_active": True,
    }


def _subscription_facts(
    queue: StreamQueue, connection: StreamConnection, one: StreamSubscription
) -> JsonObject:
    return {
        "protocol": _STREAM,
        "connection": connection.peer.name,
        "user": connection.user,
        "channel": None,
        "name": one.properties.get(_NAME, ""),
        "subscription": one.number,
        "offset": one.next if one.is_active else None,
        "lag": lag_of(queue, one.next) if one.is_active else None,
        "delivered": one.delivered_count,
        "is_active": one.is_active,
    }


def _publisher_facts(connection: StreamConnection, publisher: DeclaredPublisher) -> JsonObject:
    confirms = publisher.confirms
    return {
        "connection": connection.peer.name,
        "user": connection.user,
        "publisher": publisher.number,
        "reference": publisher.reference,
        "published": confirms.published_count,
        "confirmed": confirms.confirmed_count,
        "refused": confirms.failed_count,
    }
