"""Metrics of single objects: queues, channels, connections, streams and exchanges.

A source has a reader for each of its families; a reader returns one number of one object, so that a sum reads
only numbers. RabbitMQ counts some metrics by channel and exchange, or by channel and queue; here they are
counted by channel or by queue alone, with the other label empty, and the sums are equal.
"""

from collections.abc import Callable, Iterator, Mapping
from math import nan
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from warren.limits import NAMES_PER_TURN
from warren.management.managed_node import ManagedNode
from warren.management.prometheus.exposition import labels
from warren.management.queue_index import existing_queues
from warren.management.views.consumers import OpenChannel, channel_name
from warren.management.views.queues import MEMORY, utilisation
from warren.management.views.streams import StreamClientIndex, lag_max, streams_in
from warren.metadata.records import ExchangeRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import QUORUM
from warren.queues.queue import Queue
from warren.queues.replication_status import ReplicationStatus
from warren.queues.stream import StreamQueue
from warren.queues.vhost_queue import VhostQueue
from warren.session.any_connection import AnyConnection
from warren.vhost.oldest_deliveries import oldest_deliveries, oldest_delivery

# A queue, a priority, and the number of its ready messages with that priority.
PriorityCount: TypeAlias = tuple[VhostQueue, int, int]
HeldQueue: TypeAlias = tuple[VhostQueue, int]
ReplicatedQueue: TypeAlias = tuple[VhostQueue, ReplicationStatus]
# The virtual hosts whose metrics are requested; None for all.
VhostFilter: TypeAlias = frozenset[str] | None
ValueReader: TypeAlias = Callable[[Any], float]
# Makes the readers of a source, one for each of its families.
MakeReaders: TypeAlias = Callable[[ManagedNode], tuple[ValueReader, ...]]


def fixed_readers(*readers: ValueReader) -> MakeReaders:
    """Readers that do not depend on the node."""
    return lambda node: readers


def queues(node: ManagedNode, wanted: VhostFilter) -> Iterator[VhostQueue]:
    """Every queue, in slices: sorting or copying a list of all would access memory all over the heap."""
    for name, services in list(node.server.vhost_services.items()):
        vhost = node.metadata.vhost(name)
        if vhost is not None and (wanted is None or name in wanted):
            named = node.queue_index.of(vhost)
            for at in range(0, len(named), NAMES_PER_TURN):
                piece = named[at : at + NAMES_PER_TURN]
                if len(node.metadata.members.by_id) > 1:
                    # Each node exposes its own queues.
                    piece = [one for one in piece if node.is_own(node.home_of(one.record))]
                yield from existing_queues(piece, services.vhost.queues)


def priorities(node: ManagedNode, wanted: VhostFilter) -> Iterator[PriorityCount]:
    """The number of ready messages of each priority of every queue with priorities."""
    for queue in queues(node, wanted):
        for priority, count in (queue.ready_by_priority or {}).items():
            yield queue, priority, count


def held_queues(node: ManagedNode, wanted: VhostFilter) -> Iterator[HeldQueue]:
    """Every queue, with the time since its oldest unacknowledged delivery (ms)."""
    by_vhost: dict[str, dict[Queue, int]] = {}
    for queue in queues(node, wanted):
        at = None
        if queue.unacked_count:
            found = by_vhost.get(queue.vhost_name)
            if found is None:
                vhost = node.server.vhost_services[queue.vhost_name].vhost
                found = by_vhost[queue.vhost_name] = oldest_deliveries(vhost)
            at = oldest_delivery(found, queue)
        yield queue, 0 if at is None else max(0, node.now() - at)


def connections(node: ManagedNode, wanted: VhostFilter) -> Iterator[AnyConnection]:
    """Every connection, of any protocol."""
    return (found for found in node.server.all_connections() if wanted is None or found.vhost_name in wanted)


def streams(node: ManagedNode, wanted: VhostFilter) -> Iterator[StreamQueue]:
    """Every stream that has consumers."""
    for name, services in list(node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            yield from (queue for queue in streams_in(node, services.vhost) if queue.consumer_count)


def replicated_queues(node: ManagedNode, wanted: VhostFilter) -> Iterator[ReplicatedQueue]:
    """Every quorum queue, with its replica on this node."""
    for name, services in list(node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            for queue in existing_queues(node.queue_index.of_kind(name, QUORUM), services.vhost.queues):
                status = queue.replication_status()
                if status is not None:
                    yield queue, status


def channels(node: ManagedNode, wanted: VhostFilter) -> Iterator[OpenChannel]:
    """Every AMQP channel, with its connection."""
    for connection in connections(node, wanted):
        for channel in list(connection.channels.values()):
            yield connection, channel


def exchanges(node: ManagedNode, wanted: VhostFilter) -> Iterator[tuple[VhostMetadata, ExchangeRecord]]:
    """Every exchange except the default exchange, with its virtual host."""
    for vhost in list(node.metadata.vhosts.by_name.values()):
        if wanted is None or vhost.name in wanted:
            for exchange in list(vhost.topology.exchanges.values()):
                if exchange.name:
                    yield vhost, exchange


def exchange_labels(found: tuple[VhostMetadata, ExchangeRecord]) -> str:
    """The labels of an exchange."""
    return labels(vhost=found[0].name, exchange=found[1].name, type=found[1].type)


def queue_labels(queue: VhostQueue) -> str:
    """The labels of a queue."""
    return labels(vhost=queue.vhost_name, queue=queue.name)


def priority_labels(found: PriorityCount) -> str:
    """The labels of a priority of a queue."""
    return labels(vhost=found[0].vhost_name, queue=found[0].name, priority=str(found[1]))


def held_labels(found: HeldQueue) -> str:
    """The labels of a queue with a time."""
    return queue_labels(found[0])


def replica_labels(found: ReplicatedQueue) -> str:
    """The labels of the replica of a queue."""
    return queue_labels(found[0])


def delivery_labels(queue: VhostQueue) -> str:
    """The labels of deliveries from a queue."""
    return labels(channel="", vhost=queue.vhost_name, queue=queue.name)


def publish_labels(queue: VhostQueue) -> str:
    """The labels of publishes to a queue."""
    vhost = queue.vhost_name
    return labels(channel="", queue_vhost=vhost, queue=queue.name, exchange_vhost=vhost, exchange="")


def connection_labels(connection: AnyConnection) -> str:
    """The labels of a connection; RabbitMQ also names this label `channel`."""
    return labels(channel=connection.peer.name)


def channel_labels(opened: OpenChannel) -> str:
    """The labels of a channel."""
    return labels(channel=channel_name(*opened))


def publisher_labels(opened: OpenChannel) -> str:
    """The labels of publishes on a channel."""
    services = opened[0].services
    vhost = "" if services is None else services.vhost.name
    return labels(channel=channel_name(*opened), vhost=vhost, exchange="")


def _head(queue: VhostQueue) -> float:
    """The timestamp of the first ready message; NaN if there is none."""
    found = queue.head_timestamp if queue.message_count else None
    return nan if found is None else found


# How the name of the queue is found, by what lists the objects.
QUEUE_NAMES: Mapping[Callable[[ManagedNode, VhostFilter], Iterator[Any]], Callable[[Any], str]] = {
    queues: attrgetter("name"),
    streams: attrgetter("name"),
    priorities: lambda found: found[0].name,
    replicated_queues: lambda found: found[0].name,
    held_queues: lambda found: found[0].name,
}
lengths = fixed_readers(
    attrgetter("message_count"),
    attrgetter("unacked_count"),
    attrgetter("total_count"),
)
replicated_terms = fixed_readers(lambda found: found[1].term)
replicated_logs = fixed_readers(
    *(
        lambda found, name=name: getattr(found[1], name)
        for name in ("snapshot_index", "applied_index", "commit_index", "written_index")
    )
)
heads = fixed_readers(_head)
oldest = fixed_readers(lambda queue: (queue.oldest_ready_ms or 0) / 1_000)
oldest_held = fixed_readers(lambda found: found[1] / 1_000)
prioritised = fixed_readers(itemgetter(2))
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
# Reductions are Erlang's unit of work, which Warren does not count.
no_reductions = fixed_readers(lambda one: 0)
traffic = fixed_readers(
    attrgetter("bytes_received"),
    attrgetter("outbox.total"),
    attrgetter("read_count"),
    attrgetter("write_count"),
    attrgetter("outbox.size"),
    lambda connection: len(connection.channels),
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
    """Readers of the memory use of a queue, by kind of message, and of its consumer utilisation."""
    time = node.sampler.time
    names = (
        "memory", "messages_ram", "message_bytes_ram", "messages_ready_ram", "messages_unacknowledged_ram",
        "messages_persistent", "message_bytes_persistent", "message_bytes", "message_bytes_ready",
        "message_bytes_unacknowledged", "messages_paged_out", "message_bytes_paged_out",
    )  # fmt: skip

    def used(queue: VhostQueue) -> float:
        return utilisation(queue, time)

    return *(MEMORY[name] for name in names), used, used


def lags(node: ManagedNode) -> tuple[ValueReader, ...]:
    """A reader of the lag of the slowest consumer of a stream, in messages."""
    clients = StreamClientIndex(node)
    return (lambda queue: lag_max(queue, clients) or 0,)
