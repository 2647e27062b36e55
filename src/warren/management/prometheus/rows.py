"""The values of metrics, and what each is about.

A row is (labels, values), the values in the order of the families of a source. What RabbitMQ counts by
channel and exchange is counted by channel here, and what it counts by channel and queue by queue: the other
label is empty, and the sums are the same.
"""

import platform
from collections.abc import Iterator
from typing import TypeAlias

from warren import __version__
from warren.flow.alarms import Resource
from warren.management.figures import FIGURES, descriptors_max
from warren.management.managed import Managed
from warren.management.prometheus.exposition import labels
from warren.management.samples import VHOST_COLUMNS
from warren.management.views.consumers import channel_name
from warren.management.views.overview import totals
from warren.management.views.queues import memory_of
from warren.queues.classic import ClassicQueue
from warren.session.channel import Channel
from warren.session.connection import Connection
from warren.session.greeting import COMPATIBLE_VERSION

# The virtual hosts that somebody asks about; None for all.
Wanted: TypeAlias = frozenset[str] | None
Row: TypeAlias = tuple[str, tuple[float, ...]]

_AMQP = labels(protocol="amqp091")
_CLASSIC = labels(protocol="amqp091", queue_type="rabbit_classic_queue")
DEATHS = {
    "expired": "dead-lettered due to message TTL exceeded",
    "rejected": "dead-lettered due to basic.reject or basic.nack",
    "maxlen": "dead-lettered due to overflow drop-head or reject-publish-dlx",
    "delivery_limit": "dead-lettered due to delivery-limit exceeded",
}


def build(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What runs here."""
    yield (
        labels(
            rabbitmq_version=COMPATIBLE_VERSION,
            prometheus_plugin_version=COMPATIBLE_VERSION,
            prometheus_client_version=__version__,
            erlang_version=platform.python_version(),
            warren_version=__version__,
            python_version=platform.python_version(),
        ),
        (1,),
    )


def identity(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Which node of which cluster it is."""
    named = labels(
        rabbitmq_node=node.node_name,
        rabbitmq_cluster=node.cluster_name,
        rabbitmq_cluster_permanent_id=node.cluster_name,
    )
    yield named, (1,)


def started(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """When it was started."""
    yield "", (node.started_at // 1000,)


def alarms(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Which alarms are on; that for file descriptors never is."""
    yield "", (0, node.alarms.is_low(Resource.DISK), node.alarms.is_low(Resource.MEMORY))


def churn(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What came and went."""
    yield "", tuple(node.sampler.churn_row())


def usage(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What the process uses, and may use."""
    used = dict(zip(FIGURES, node.sampler.figures(), strict=True))
    limits = []
    for resource in (Resource.MEMORY, Resource.DISK):
        level = node.alarms.level(resource)
        limits.append(0 if level is None else level.limit)
    yield (
        "",
        (
            used["fd_used"],
            used["sockets_used"],
            used["mem_used"],
            used["disk_free"],
            descriptors_max(),
            descriptors_max(),
            *limits,
        ),
    )


def disk(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Reads and writes, of the process and of messages."""
    used = dict(zip(FIGURES, node.sampler.figures(), strict=True))
    row = dict(zip(VHOST_COLUMNS, node.sampler.total_row(), strict=True))
    io = tuple(used[name] for name in ("io_read_count", "io_read_bytes", "io_write_count", "io_write_bytes"))
    yield "", (*io, row["disk_reads"], row["disk_writes"])


def objects(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """How many of everything there are."""
    found = totals(node)
    yield "", tuple(found[name] for name in ("connections", "channels", "consumers", "queues"))


def attempts(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Attempts to log in, by protocol."""
    for protocol, found in node.server.gate.attempts.items():
        values = (found.succeeded + found.failed, found.succeeded, found.failed)
        yield labels(protocol=protocol), values


def vhosts(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """How virtual hosts are."""
    for vhost in node.vhosts():
        if wanted is None or vhost.name in wanted:
            yield labels(vhost=vhost.name), (vhost.is_running, vhost.is_full, len(vhost.damage))


def _all(node: Managed, wanted: Wanted) -> Iterator[tuple[str, ClassicQueue]]:
    for name, domain in list(node.server.domains.items()):
        if wanted is None or name in wanted:
            for queue in list(domain.vhost.queues.values()):
                yield name, queue


def lengths(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Messages of each queue."""
    for vhost, queue in _all(node, wanted):
        ready, unacked = queue.message_count, queue.unacked_count
        yield labels(vhost=vhost, queue=queue.name), (ready, unacked, ready + unacked)


def consumed(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Consumers of each queue."""
    for vhost, queue in _all(node, wanted):
        yield labels(vhost=vhost, queue=queue.name), (queue.consumer_count,)


def queues(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Where the messages of each queue are."""
    for vhost, queue in _all(node, wanted):
        memory = memory_of(queue)
        yield (
            labels(vhost=vhost, queue=queue.name),
            (
                memory["memory"],
                memory["messages_ram"],
                memory["message_bytes_ram"],
                memory["messages_ready_ram"],
                memory["messages_unacknowledged_ram"],
                memory["messages_persistent"],
                memory["message_bytes_persistent"],
                memory["message_bytes"],
                memory["message_bytes_ready"],
                memory["message_bytes_unacknowledged"],
                memory["messages_paged_out"],
                memory["message_bytes_paged_out"],
            ),
        )


def delivered(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What was taken out of each queue."""
    for vhost, queue in _all(node, wanted):
        yield (
            labels(channel="", vhost=vhost, queue=queue.name),
            (
                queue.got_count,
                queue.got_no_ack_count,
                queue.delivered_count,
                queue.delivered_no_ack_count,
                queue.redelivered_count,
                queue.acknowledged_count,
                queue.got_empty_count,
            ),
        )


def published(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What was published to each queue."""
    for vhost, queue in _all(node, wanted):
        about = labels(channel="", queue_vhost=vhost, queue=queue.name, exchange_vhost=vhost, exchange="")
        yield about, (queue.published_count,)


def _opened(node: Managed, wanted: Wanted) -> Iterator[tuple[str, Connection]]:
    for connection in list(node.server.connections):
        if connection.domain is not None:
            vhost = connection.domain.vhost.name
            if wanted is None or vhost in wanted:
                yield vhost, connection


def connections(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Octets and reads of each connection."""
    for _, connection in _opened(node, wanted):
        yield (
            labels(channel=connection.peer.name),
            (
                connection.octets_received,
                connection.outbox.total,
                connection.read_count,
                connection.write_count,
                len(connection.channels),
            ),
        )


def _channels_of(node: Managed, wanted: Wanted) -> Iterator[tuple[str, str, Channel]]:
    for vhost, connection in _opened(node, wanted):
        for channel in list(connection.channels.values()):
            yield vhost, channel_name(connection, channel), channel


def channels(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What each channel has open."""
    for _, name, channel in _channels_of(node, wanted):
        subscriber, confirms = channel.subscriber, channel.confirms
        published, acknowledged = channel.uncommitted
        yield (
            labels(channel=name),
            (
                sum(1 for _ in subscriber.consumers),
                subscriber.unacked.count,
                0 if confirms is None else confirms.unconfirmed_count,
                published,
                acknowledged,
                subscriber.prefetch,
                subscriber.prefetch_max,
            ),
        )


def publishers(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What was published on each channel."""
    for vhost, name, channel in _channels_of(node, wanted):
        counters = channel.publisher_counters
        about = labels(channel=name, vhost=vhost, exchange="")
        yield about, (counters.published, counters.confirmed, counters.returned, counters.dropped)


def _totals(node: Managed) -> dict[str, int]:
    return dict(zip(VHOST_COLUMNS, node.sampler.total_row(), strict=True))


def received(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What was published on all of them."""
    row = _totals(node)
    lost = row["return_unroutable"] + row["drop_unroutable"]
    routed = row["publish"] - lost
    yield _AMQP, (row["publish"], row["confirm"], routed, row["return_unroutable"], row["drop_unroutable"])


def handed_out(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What was taken out of all queues."""
    row = _totals(node)
    names = ("deliver_get", "deliver_no_ack", "deliver", "get_no_ack", "get", "get_empty", "redeliver", "ack")
    yield _CLASSIC, tuple(row[name] for name in names)


def clients(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """Who publishes, and who consumes."""
    publishers = sum(channel.publisher_counters.published > 0 for _, _, channel in _channels_of(node, None))
    yield _AMQP, (publishers, totals(node)["consumers"])


def dead(node: Managed, wanted: Wanted) -> Iterator[Row]:
    """What died, by reason."""
    counts = [domain.vhost.dead_counts for domain in node.server.domains.values()]
    about = labels(queue_type="rabbit_classic_queue", dead_letter_strategy="at_most_once")
    yield about, tuple(sum(count.get(reason, 0) for count in counts) for reason in DEATHS)
