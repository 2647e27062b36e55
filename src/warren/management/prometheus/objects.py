"""What each object shows of itself: queues, channels and connections; of all of them, what that adds up to.

A reader gives one number of one object, and every family has one, so that a sum touches nothing but numbers.
What RabbitMQ counts by channel and exchange is counted by channel here, and what it counts by channel and
queue by queue: the other label is empty, and the sums are the same.
"""

from collections.abc import Callable, Iterator
from math import nan
from operator import attrgetter
from typing import Any, TypeAlias

from warren.limits import NAMES_PER_TURN
from warren.management.managed_node import ManagedNode
from warren.management.prometheus.exposition import labels
from warren.management.queue_index import existing_queues
from warren.management.views.connections import AnyConnection, connections_of, vhost_of
from warren.management.views.consumers import OpenChannel, channel_name
from warren.management.views.queues import MEMORY, utilisation
from warren.management.views.streams import StreamClientIndex, lag_max, streams_in
from warren.metadata.records import ExchangeRecord
from warren.metadata.vhosts import VhostMetadata
from warren.queues.local import LocalQueue
from warren.queues.stream import StreamQueue
from warren.session.streams.connection import StreamConnection

# The virtual hosts that somebody asks about; None for all.
VhostFilter: TypeAlias = frozenset[str] | None
ValueReader: TypeAlias = Callable[[Any], float]
# The readers of a source, one for each of its families.
MakeReaders: TypeAlias = Callable[[ManagedNode], tuple[ValueReader, ...]]


def fixed_readers(*readers: ValueReader) -> MakeReaders:
    """Readers that need not know the node."""
    return lambda node: readers


def queues(node: ManagedNode, wanted: VhostFilter) -> Iterator[LocalQueue]:
    """Every queue, found a piece at a time: a list of all would be made of places all over the memory."""
    for name, services in list(node.server.vhost_services.items()):
        vhost = node.metadata.vhost(name)
        if vhost is not None and (wanted is None or name in wanted):
            named = node.queue_index.of(vhost)
            for at in range(0, len(named), NAMES_PER_TURN):
                yield from existing_queues(named[at : at + NAMES_PER_TURN], services.vhost.queues)


def connections(node: ManagedNode, wanted: VhostFilter) -> Iterator[AnyConnection]:
    """Every connection, of any protocol."""
    return (found for found in connections_of(node) if wanted is None or vhost_of(found) in wanted)


def streams(node: ManagedNode, wanted: VhostFilter) -> Iterator[StreamQueue]:
    """Every stream that somebody reads."""
    for name, services in list(node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            yield from (queue for queue in streams_in(node, services.vhost) if queue.consumer_count)


def channels(node: ManagedNode, wanted: VhostFilter) -> Iterator[OpenChannel]:
    """Every channel."""
    for connection in connections(node, wanted):
        if not isinstance(connection, StreamConnection):
            for channel in list(connection.channels.values()):
                yield connection, channel


def exchanges(node: ManagedNode, wanted: VhostFilter) -> Iterator[tuple[VhostMetadata, ExchangeRecord]]:
    """Every exchange that has a name."""
    for vhost in list(node.metadata.vhosts.by_name.values()):
        if wanted is None or vhost.name in wanted:
            for exchange in list(vhost.topology.exchanges.values()):
                if exchange.name:
                    yield vhost, exchange


def exchange_labels(found: tuple[VhostMetadata, ExchangeRecord]) -> str:
    """Its labels."""
    return labels(vhost=found[0].name, exchange=found[1].name, type=found[1].type)


def queue_labels(queue: LocalQueue) -> str:
    """Its labels."""
    return labels(vhost=queue.vhost_name, queue=queue.name)


def delivery_labels(queue: LocalQueue) -> str:
    """Of what was taken out of it."""
    return labels(channel="", vhost=queue.vhost_name, queue=queue.name)


def publish_labels(queue: LocalQueue) -> str:
    """Of what was published to it."""
    vhost = queue.vhost_name
    return labels(channel="", queue_vhost=vhost, queue=queue.name, exchange_vhost=vhost, exchange="")


def connection_labels(connection: AnyConnection) -> str:
    """Its labels: RabbitMQ, too, calls it a channel."""
    return labels(channel=connection.peer.name)


def channel_labels(opened: OpenChannel) -> str:
    """Its labels."""
    return labels(channel=channel_name(*opened))


def publisher_labels(opened: OpenChannel) -> str:
    """Of what was published on it."""
    services = opened[0].services
    vhost = "" if services is None else services.vhost.name
    return labels(channel=channel_name(*opened), vhost=vhost, exchange="")


def _head(queue: LocalQueue) -> float:
    """When its first message was published, as far as that says so."""
    found = queue.head_timestamp if queue.message_count else None
    return nan if found is None else found


lengths = fixed_readers(
    attrgetter("message_count"),
    attrgetter("unacked_count"),
    lambda queue: queue.message_count + queue.unacked_count,
)
heads = fixed_readers(_head)
consumed = fixed_readers(attrgetter("consumer_count"))
delivered = fixed_readers(
    *map(
        attrgetter,
        (
            "got_count", "got_no_ack_count", "delivered_count", "delivered_no_ack_count", "redelivered_count",
            "acknowledged_count", "got_empty_count",
        ),
    )
)  # fmt: skip
published = fixed_readers(attrgetter("published_count"))
bound = fixed_readers(lambda found: found[0].topology.binding_count_from(found[1].name))
named = fixed_readers(lambda found: 1)
# Erlang counts steps of work, and nothing here does.
no_reductions = fixed_readers(lambda one: 0)
traffic = fixed_readers(
    attrgetter("octets_received"),
    attrgetter("outbox.total"),
    attrgetter("read_count"),
    attrgetter("write_count"),
    attrgetter("outbox.size"),
    lambda connection: 0 if isinstance(connection, StreamConnection) else len(connection.channels),
)
publishing = fixed_readers(
    *(
        lambda opened, name=name: getattr(opened[1].publisher_counters, name)
        for name in ("published", "confirmed", "returned", "dropped")
    )
)
is_publisher = fixed_readers(lambda opened: int(opened[1].publisher_counters.published > 0))
opened = fixed_readers(
    lambda opened: sum(1 for _ in opened[1].subscriber.consumers),
    lambda opened: opened[1].subscriber.unacked.count,
    lambda opened: 0 if opened[1].confirms is None else opened[1].confirms.unconfirmed_count,
    lambda opened: opened[1].uncommitted[0],
    lambda opened: opened[1].uncommitted[1],
    lambda opened: opened[1].subscriber.prefetch,
    lambda opened: opened[1].subscriber.prefetch_max,
)


def memory(node: ManagedNode) -> tuple[ValueReader, ...]:
    """Where the messages of a queue are, and how much of the time its consumers could take more."""
    time = node.sampler.time
    names = (
        "memory", "messages_ram", "message_bytes_ram", "messages_ready_ram", "messages_unacknowledged_ram",
        "messages_persistent", "message_bytes_persistent", "message_bytes", "message_bytes_ready",
        "message_bytes_unacknowledged", "messages_paged_out", "message_bytes_paged_out",
    )  # fmt: skip

    def used(queue: LocalQueue) -> float:
        return utilisation(queue, time)

    return *(MEMORY[name] for name in names), used, used


def lags(node: ManagedNode) -> tuple[ValueReader, ...]:
    """How far the slowest reader of a stream is behind."""
    clients = StreamClientIndex(node)
    return (lambda queue: lag_max(queue, clients) or 0,)
