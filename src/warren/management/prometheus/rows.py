"""The values of metrics that are not those of single objects.

A row is (labels, values), with the values in the order of the families of its source.
"""

import platform
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from warren import __version__
from warren.flow.alarms import Resource
from warren.management.managed_node import ManagedNode
from warren.management.prometheus.exposition import labels
from warren.management.prometheus.objects import VhostFilter
from warren.management.quarantine_view import totals_of, unacknowledged
from warren.management.views.connections import stream_connections
from warren.management.views.consumers import stream_consumers_on
from warren.management.views.nodes import THREADS_MAX
from warren.management.views.overview import own_queue_count, totals
from warren.management.views.streams import stream_publishers_on, streams_in
from warren.metadata.leases import LeaseState
from warren.metrics.node_usage import NODE_COLUMNS, descriptors_max
from warren.metrics.sampler import VHOST_COLUMNS
from warren.model.arguments import CLASSIC, QUORUM
from warren.session.server_properties import COMPATIBLE_VERSION
from warren.wire.streams.codes import ResponseCode

MetricRow: TypeAlias = tuple[str, tuple[float, ...]]

AMQP = labels(protocol="amqp091")
_STREAM = labels(protocol="stream")
_OF_STREAMS = labels(protocol="stream", queue_type="rabbit_stream_queue")
_CLASSIC = labels(protocol="amqp091", queue_type="rabbit_classic_queue")
# Metrics of RabbitMQ's disk access and tables that have no counterpart here; they are 0.
UNMEASURED = (
    "io_read_time_seconds", "io_write_time_seconds", "io_sync_ops", "io_sync_time_seconds", "io_seek_ops",
    "io_seek_time_seconds", "io_reopen_ops", "schema_db_ram_tx", "schema_db_disk_tx", "queue_index_read_ops",
    "queue_index_write_ops",
)  # fmt: skip
DEATHS = {
    "expired": "dead-lettered due to message TTL exceeded",
    "rejected": "dead-lettered due to basic.reject or basic.nack",
    "maxlen": "dead-lettered due to overflow drop-head or reject-publish-dlx",
    "delivery_limit": "dead-lettered due to delivery-limit exceeded",
}


# The error codes of the stream protocol, with RabbitMQ's names.
STREAM_ERRORS = {
    code.name.lower(): f"Total number of commands failed with {code.name.lower().replace('_', ' ')}"
    for code in ResponseCode
    if ResponseCode.OK < code < ResponseCode.NO_OFFSET
}


class Scrape:
    """One scrape, which caches what several rows are made of."""

    def __init__(self, node: ManagedNode) -> None:
        self.node = node

    @cached_property
    def node_usage(self) -> dict[str, int]:
        """The resource use of the process, by NODE_COLUMNS."""
        return dict(zip(NODE_COLUMNS, self.node.sampler.node_usage(), strict=True))

    @cached_property
    def totals(self) -> dict[str, int]:
        """The message counters of all virtual hosts together, by VHOST_COLUMNS."""
        return dict(zip(VHOST_COLUMNS, self.node.sampler.total_row(), strict=True))

    @cached_property
    def objects(self) -> dict[str, int]:
        """The numbers of connections, channels, exchanges, queues and consumers."""
        return totals(self.node) | {"queues": own_queue_count(self.node)}


def build(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The versions of RabbitMQ (compatible), Warren and Python, under RabbitMQ's labels."""
    yield (
        labels(
            rabbitmq_version=COMPATIBLE_VERSION,
            prometheus_plugin_version=COMPATIBLE_VERSION,
            prometheus_client_version=__version__,
            erlang_version=platform.python_version(),
        ),
        (1,),
    )


def warren(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The versions of Warren and Python, under labels of Warren's own."""
    yield labels(warren_version=__version__, python_version=platform.python_version()), (1,)


def identity(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The names of the node and the cluster, and the id of the cluster."""
    named = labels(
        rabbitmq_node=scrape.node.node_name,
        rabbitmq_cluster=scrape.node.cluster_name,
        rabbitmq_cluster_permanent_id=scrape.node.cluster_id,
    )
    yield named, (1,)


def started(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The start time of the process, in Unix seconds."""
    yield "", (scrape.node.started_at // 1000,)


def alarms(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The states of the alarms; the alarm of file descriptors is never on."""
    yield "", (0, scrape.node.alarms.is_low(Resource.DISK), scrape.node.alarms.is_low(Resource.MEMORY))


def churn(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Counts of connections and channels opened and closed, and of queues declared, created and deleted."""
    yield "", tuple(scrape.node.sampler.churn_row())


def usage(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The resource use of the process, and its limits."""
    used = scrape.node_usage
    limits = []
    for resource in (Resource.MEMORY, Resource.DISK):
        level = scrape.node.alarms.level(resource)
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


def disk(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Reads and writes of the process and of the message stores."""
    used = scrape.node_usage
    row = scrape.totals
    io = tuple(used[name] for name in ("io_read_count", "io_read_bytes", "io_write_count", "io_write_bytes"))
    yield "", (*io, *(0 for _ in UNMEASURED), row["disk_reads"], row["disk_writes"])


def queue_disk(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Reads and writes of the message stores."""
    yield "", (scrape.totals["disk_reads"], scrape.totals["disk_writes"])


def nothing(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """No rows."""
    return iter(())


def vhost_status(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Whether each virtual host is running."""
    for vhost in scrape.node.vhosts():
        if wanted is None or vhost.name in wanted:
            yield labels(vhost=vhost.name), (vhost.is_running,)


def objects(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers of connections, channels, consumers and queues."""
    found = scrape.objects
    yield "", tuple(found[name] for name in ("connections", "channels", "consumers", "queues"))


def attempts(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers of authentication attempts, by protocol."""
    for protocol, found in scrape.node.server.admission_control.attempts.items():
        values = (found.succeeded + found.failed, found.succeeded, found.failed)
        yield labels(protocol=protocol), values


def vhosts(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The state of each virtual host: running, out of disk space, damaged, and its unacknowledged losses."""
    losses = [loss for loss in scrape.node.losses() if not loss.acknowledged]
    for vhost in scrape.node.vhosts():
        if wanted is None or vhost.name in wanted:
            messages = [loss.messages or 0 for loss in losses if loss.vhost == vhost.name]
            values = (vhost.is_running, vhost.is_full, len(vhost.damage), len(messages), sum(messages))
            yield labels(vhost=vhost.name), values


def received(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Published messages of all virtual hosts, by protocol."""
    row = scrape.totals
    lost = row["return_unroutable"] + row["drop_unroutable"]
    routed = row["publish"] - lost
    confirmed = row["confirm"]
    yield (
        AMQP,
        (row["publish"], confirmed, confirmed, routed, row["return_unroutable"], row["drop_unroutable"]),
    )
    counts = scrape.node.stream_counts
    # As in RabbitMQ, publishes of the stream protocol count none as routed.
    yield _STREAM, (counts.published, counts.confirmed, counts.confirmed, 0, 0, 0)


def delivered(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Deliveries from all queues, by protocol and queue type."""
    row = scrape.totals
    names = ("deliver_get", "deliver_no_ack", "deliver", "get_no_ack", "get", "get_empty", "redeliver", "ack")
    yield _CLASSIC, tuple(row[name] for name in names)
    yield _OF_STREAMS, (scrape.node.stream_counts.delivered, *(0 for _ in names[1:]))


def consumers(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers of consumers, by protocol."""
    subscriptions = sum(1 for _ in stream_consumers_on(stream_connections(scrape.node)))
    yield AMQP, (scrape.objects["consumers"] - subscriptions,)
    yield _STREAM, (subscriptions,)


def stream_publishers(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of publishers of the stream protocol."""
    yield _STREAM, (sum(1 for _ in stream_publishers_on(stream_connections(scrape.node))),)


def stream_errors(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers of failed commands of the stream protocol, by error code."""
    failures = scrape.node.stream_counts.failures
    yield _STREAM, tuple(failures[ResponseCode[name.upper()]] for name in STREAM_ERRORS)


def streams_and_leases(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers and sizes of the streams and leases of each virtual host."""
    for name, services in list(scrape.node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            streams = streams_in(scrape.node, services.vhost)
            leases = list(services.lease_service.leases.active())
            yield (
                labels(vhost=name),
                (
                    len(streams),
                    sum(queue.log.byte_count for queue in streams),
                    len(leases),
                    sum(lease.messages for lease in leases),
                    services.lease_service.granted_count,
                ),
            )


def ended_leases(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The numbers of ended leases of each virtual host, by outcome."""
    for name, services in list(scrape.node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            for state in LeaseState:
                if state is not LeaseState.ACTIVE:
                    yield (
                        labels(vhost=name, outcome=state.value),
                        (services.lease_service.ended_counts[state],),
                    )


def failures(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of queues and others that an error has ended, by virtual host."""
    for name, services in list(scrape.node.server.vhost_services.items()):
        if wanted is None or name in wanted:
            yield labels(vhost=name), (services.vhost.failure_count,)


def quarantined(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number and size of quarantined items, and how many of them are not acknowledged."""
    items = scrape.node.quarantine.items()
    yield "", (*totals_of(items), len(unacknowledged(items)))


def staged(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number and size of staged rows."""
    yield "", (scrape.node.staging.context.count, scrape.node.staging.context.byte_count)


def dead_lettered(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Dead-lettered messages by reason; strategy "disabled" counts those without a dead-letter exchange."""
    vhosts = [services.vhost for services in scrape.node.server.vhost_services.values()]
    for kind, strategy, counts in (
        (CLASSIC, "at_most_once", [vhost.dead_letter_counts[CLASSIC] for vhost in vhosts]),
        (CLASSIC, "disabled", [vhost.discarded_counts[CLASSIC] for vhost in vhosts]),
        (QUORUM, "at_most_once", [vhost.dead_letter_counts[QUORUM] for vhost in vhosts]),
        (QUORUM, "disabled", [vhost.discarded_counts[QUORUM] for vhost in vhosts]),
        (QUORUM, "at_least_once", [vhost.kept_counts for vhost in vhosts]),
    ):
        about = labels(queue_type=f"rabbit_{kind}_queue", dead_letter_strategy=strategy)
        yield about, tuple(sum(count.get(reason, 0) for count in counts) for reason in DEATHS)


def confirmed_dead_letters(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """The number of dead letters that all their targets have confirmed."""
    vhosts = [services.vhost for services in scrape.node.server.vhost_services.values()]
    about = labels(queue_type="rabbit_quorum_queue", dead_letter_strategy="at_least_once")
    yield about, (sum(vhost.confirmed_dead_letters for vhost in vhosts),)


def process(scrape: Scrape, wanted: VhostFilter) -> Iterator[MetricRow]:
    """Counterparts of RabbitMQ's metrics of Erlang: threads, garbage collection, context switches."""
    used, node = scrape.node_usage, scrape.node
    yield (
        "",
        (
            used["proc_used"],
            THREADS_MAX,
            used["gc_num"],
            used["gc_bytes_reclaimed"],
            used["context_switches"],
            0,
            60,
            (node.now() - node.started_at) / 1000,
        ),
    )
