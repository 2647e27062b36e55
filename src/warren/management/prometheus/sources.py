"""The metrics that exist: families in groups, and the sources of their values.

RabbitMQ's detailed endpoint selects metrics by these groups.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from warren.management.managed_node import ManagedNode
from warren.management.prometheus import objects, relay_rows, rows
from warren.management.prometheus.exposition import COUNTER, GAUGE, UNTYPED, MetricFamily
from warren.management.prometheus.objects import MakeReaders, VhostFilter
from warren.management.prometheus.rows import MetricRow, Scrape

ReadRows: TypeAlias = Callable[[Scrape, VhostFilter], Iterator[MetricRow]]


class MetricSource(Struct, frozen=True):
    """Families whose values are read together."""

    group: str
    families: tuple[MetricFamily, ...]
    rows: ReadRows


class ObjectMetricSource(Struct, frozen=True):
    """Families with a value for each object of a kind."""

    group: str
    families: tuple[MetricFamily, ...]
    objects: Callable[[ManagedNode, VhostFilter], Iterator[Any]]
    readers: MakeReaders
    labels: Callable[[Any], str]
    # If given, all endpoints expose a sum under these labels, with `extra_rows` of other values beside it.
    sum_labels: str | None = None
    extra_rows: ReadRows | None = None
    # False for values without a meaningful sum, for which only TYPE and HELP lines are written.
    is_summed: bool = True


def _gauges(**texts: str) -> tuple[MetricFamily, ...]:
    return tuple(MetricFamily(name, GAUGE, text) for name, text in texts.items())


def _counters(**texts: str) -> tuple[MetricFamily, ...]:
    return tuple(MetricFamily(f"{name}_total", COUNTER, text) for name, text in texts.items())


# The identity of the node, which is part of every response.
IDENTITY = (
    MetricSource(
        "", (MetricFamily("build_info", UNTYPED, "RabbitMQ & Erlang/OTP version info"),), rows.build
    ),
    MetricSource(
        "", (MetricFamily("identity_info", UNTYPED, "RabbitMQ node & cluster identity info"),), rows.identity
    ),
)
SOURCES = (
    MetricSource(
        "alarm_metrics",
        tuple(
            MetricFamily(f"alarms_{name}", UNTYPED, f"is 1 if {text} alarm is in effect")
            for name, text in (
                ("file_descriptor_limit", "file descriptor limit"),
                ("free_disk_space_watermark", "free disk space watermark"),
                ("memory_used_watermark", "VM memory watermark"),
            )
        ),
        rows.alarms,
    ),
    MetricSource(
        "connection_churn_metrics",
        _counters(
            connections_opened="Total number of connections opened",
            connections_closed="Total number of connections closed or terminated",
            channels_opened="Total number of channels opened",
            channels_closed="Total number of channels closed",
            queues_declared="Total number of queues declared",
            queues_created="Total number of queues created",
            queues_deleted="Total number of queues deleted",
        ),
        rows.churn,
    ),
    MetricSource(
        "node_coarse_metrics",
        _gauges(
            process_open_fds="Open file descriptors",
            process_open_tcp_sockets="Open TCP sockets",
            process_resident_memory_bytes="Memory used in bytes",
            disk_space_available_bytes="Disk space available in bytes",
            process_max_fds="Open file descriptors limit",
            process_max_tcp_sockets="Open TCP sockets limit",
            resident_memory_limit_bytes="Memory high watermark in bytes",
            disk_space_available_limit_bytes="Free disk space low watermark in bytes",
        ),
        rows.usage,
    ),
    MetricSource(
        "node_metrics",
        (
            *_gauges(
                erlang_processes_used="Threads used",
                erlang_processes_limit="Threads limit",
            ),
            *_counters(
                erlang_gc_runs="Total number of runs of Python's collector of cycles",
                erlang_gc_reclaimed_bytes="Not measured: 0",
                erlang_scheduler_context_switches="Total number of context switches of the process",
            ),
            *_gauges(
                erlang_scheduler_run_queue="Always 0: does not exist in Warren",
                erlang_net_ticktime_seconds="Always RabbitMQ's default: does not exist in Warren",
                erlang_uptime_seconds="Node uptime",
            ),
        ),
        rows.process,
    ),
    MetricSource(
        "node_persister_metrics",
        _counters(
            io_read_ops="Total number of I/O read operations",
            io_read_bytes="Total number of I/O bytes read",
            io_write_ops="Total number of I/O write operations",
            io_write_bytes="Total number of I/O bytes written",
            **dict.fromkeys(rows.UNMEASURED, "Not measured: 0"),
            msg_store_read="Total number of Message Store read operations",
            msg_store_write="Total number of Message Store write operations",
        ),
        rows.disk,
    ),
    MetricSource(
        "auth_attempt_metrics",
        _counters(
            auth_attempts="Total number of authorization attempts",
            auth_attempts_succeeded="Total number of successful authentication attempts",
            auth_attempts_failed="Total number of failed authentication attempts",
        ),
        rows.attempts,
    ),
    ObjectMetricSource(
        "queue_coarse_metrics",
        _gauges(
            queue_messages_ready="Messages ready to be delivered to consumers",
            queue_messages_unacked="Messages delivered to consumers but not yet acknowledged",
            queue_messages="Sum of ready and unacknowledged messages - total queue depth",
        ),
        objects.queues,
        objects.lengths,
        objects.queue_labels,
    ),
    ObjectMetricSource(
        "queue_consumer_count",
        _gauges(queue_consumers="Consumers on a queue"),
        objects.queues,
        objects.consumed,
        objects.queue_labels,
    ),
    ObjectMetricSource(
        "ra_metrics",
        _counters(raft_term="Current Raft term number"),
        objects.replicated_queues,
        objects.replicated_terms,
        objects.replica_labels,
    ),
    ObjectMetricSource(
        "ra_metrics",
        _gauges(
            raft_log_snapshot_index="Raft log snapshot index",
            raft_log_last_applied_index="Raft log last applied index",
            raft_log_commit_index="Raft log commit index",
            raft_log_last_written_index="Raft log last written index",
        ),
        objects.replicated_queues,
        objects.replicated_logs,
        objects.replica_labels,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _gauges(
            queue_process_memory_bytes="Memory in bytes used by the queue",
            queue_messages_ram="Ready and unacknowledged messages stored in memory",
            queue_messages_ram_bytes="Size of ready and unacknowledged messages stored in memory",
            queue_messages_ready_ram="Ready messages stored in memory",
            queue_messages_unacked_ram="Unacknowledged messages stored in memory",
            queue_messages_persistent="Persistent messages",
            queue_messages_persistent_bytes="Size in bytes of persistent messages",
            queue_messages_bytes="Size in bytes of ready and unacknowledged messages",
            queue_messages_ready_bytes="Size in bytes of ready messages",
            queue_messages_unacked_bytes="Size in bytes of all unacknowledged messages",
            queue_messages_paged_out="Messages paged out to disk",
            queue_messages_paged_out_bytes="Size in bytes of messages paged out to disk",
            queue_consumer_capacity="Consumer capacity",
            queue_consumer_utilisation="Same as consumer capacity",
        ),
        objects.queues,
        objects.memory,
        objects.queue_labels,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _counters(queue_process_reductions="Always 0: does not exist in Warren"),
        objects.queues,
        objects.no_reductions,
        objects.queue_labels,
    ),
    ObjectMetricSource(
        "channel_process_metrics",
        _counters(channel_process_reductions="Always 0: does not exist in Warren"),
        objects.channels,
        objects.no_reductions,
        objects.channel_labels,
    ),
    ObjectMetricSource(
        "connection_coarse_metrics",
        _counters(connection_process_reductions="Always 0: does not exist in Warren"),
        objects.connections,
        objects.no_reductions,
        objects.connection_labels,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _gauges(queue_head_message_timestamp="Timestamp of the first message in the queue, if any"),
        objects.queues,
        objects.heads,
        objects.queue_labels,
        is_summed=False,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _gauges(queue_oldest_ready_message_age_seconds="Age of the oldest ready message, 0 without one"),
        objects.queues,
        objects.oldest,
        objects.queue_labels,
        is_summed=False,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _gauges(
            queue_oldest_unacknowledged_message_age_seconds=(
                "Time since the oldest unacknowledged delivery, 0 without one"
            ),
        ),
        objects.held_queues,
        objects.oldest_held,
        objects.held_labels,
        is_summed=False,
    ),
    ObjectMetricSource(
        "queue_metrics",
        _gauges(queue_messages_ready_by_priority="Ready messages of a queue with priorities, by priority"),
        objects.priorities,
        objects.prioritised,
        objects.priority_labels,
        is_summed=False,
    ),
    ObjectMetricSource(
        "channel_metrics",
        _gauges(
            channel_consumers="Consumers on a channel",
            channel_messages_unacked="Delivered but not yet acknowledged messages",
            channel_messages_unconfirmed="Published but not yet confirmed messages",
            channel_messages_uncommitted="Messages received in a transaction but not yet committed",
            channel_acks_uncommitted="Message acknowledgements in a transaction not yet committed",
            consumer_prefetch="Limit of unacknowledged messages for each consumer",
            channel_prefetch="Total limit of unacknowledged messages for all consumers on a channel",
        ),
        objects.channels,
        objects.opened,
        objects.channel_labels,
    ),
    ObjectMetricSource(
        "channel_exchange_metrics",
        _counters(
            channel_messages_published="Total number of messages published into an exchange on a channel",
            channel_messages_confirmed="Total number of messages published and confirmed on the channel",
            channel_messages_unroutable_returned="Total number of mandatory messages returned",
            channel_messages_unroutable_dropped="Total number of messages dropped as unroutable",
        ),
        objects.channels,
        objects.publishing,
        objects.publisher_labels,
    ),
    ObjectMetricSource(
        "channel_queue_metrics",
        _counters(
            channel_get_ack="Total number of messages fetched with basic.get in manual acknowledgement mode",
            channel_get="Total number of messages fetched with basic.get in automatic acknowledgement mode",
            channel_messages_delivered_ack="Total number of messages delivered in manual acknowledgement",
            channel_messages_delivered="Total number of messages delivered in automatic acknowledgement mode",
            channel_messages_redelivered="Total number of messages redelivered to consumers",
            channel_messages_acked="Total number of messages acknowledged by consumers",
            channel_get_empty="Total number of times basic.get operations fetched no message",
        ),
        objects.queues,
        objects.delivered,
        objects.delivery_labels,
    ),
    ObjectMetricSource(
        "channel_queue_exchange_metrics",
        _counters(queue_messages_published="Total number of messages published to queues"),
        objects.queues,
        objects.published,
        objects.publish_labels,
    ),
    ObjectMetricSource(
        "connection_metrics",
        (
            *_counters(
                connection_incoming_bytes="Total number of bytes received on a connection",
                connection_outgoing_bytes="Total number of bytes sent on a connection",
                connection_incoming_packets="Total number of packets received on a connection",
                connection_outgoing_packets="Total number of packets sent on a connection",
            ),
            *_gauges(
                connection_pending_packets="Bytes waiting to be sent on a connection",
                connection_channels="Channels on a connection",
            ),
        ),
        objects.connections,
        objects.traffic,
        objects.connection_labels,
    ),
    MetricSource(
        "",
        _gauges(
            connections="Connections currently open",
            channels="Channels currently open",
            consumers="Consumers currently connected",
            queues="Queues available",
        ),
        rows.objects,
    ),
    MetricSource(
        "",
        _counters(
            global_messages_received="Total number of messages received from publishers",
            global_messages_received_confirm="Total number of messages received for a confirm, and confirmed",
            global_messages_confirmed="Total number of messages confirmed to publishers",
            global_messages_routed="Total number of messages routed to queues or streams",
            global_messages_unroutable_returned="Total number of mandatory messages returned as unroutable",
            global_messages_unroutable_dropped="Total number of messages dropped as unroutable",
        ),
        rows.received,
    ),
    MetricSource(
        "",
        _counters(
            global_messages_delivered="Total number of messages delivered to consumers",
            global_messages_delivered_consume_auto_ack="Total number of messages delivered, automatic acks",
            global_messages_delivered_consume_manual_ack="Total number of messages delivered, manual acks",
            global_messages_delivered_get_auto_ack="Total number of messages got, automatic acks",
            global_messages_delivered_get_manual_ack="Total number of messages got, manual acks",
            global_messages_get_empty="Total number of times basic.get found no message",
            global_messages_redelivered="Total number of messages redelivered to consumers",
            global_messages_acknowledged="Total number of messages acknowledged by consumers",
        ),
        rows.delivered,
    ),
    ObjectMetricSource(
        "",
        _gauges(global_publishers="Publishers currently connected"),
        objects.channels,
        objects.is_publisher,
        objects.publisher_labels,
        sum_labels=rows.AMQP,
        extra_rows=rows.stream_publishers,
    ),
    MetricSource(
        "",
        _counters(**{f"global_stream_error_{name}": text for name, text in rows.STREAM_ERRORS.items()}),
        rows.stream_errors,
    ),
    ObjectMetricSource(
        "stream_consumer_metrics",
        _gauges(stream_consumer_max_offset_lag="Current maximum of offset lag of consumers"),
        objects.streams,
        objects.lags,
        objects.queue_labels,
        is_summed=False,
    ),
    MetricSource("", _gauges(global_consumers="Consumers currently connected"), rows.consumers),
    MetricSource(
        "",
        _counters(
            **{f"global_messages_dead_lettered_{reason}": text for reason, text in rows.DEATHS.items()}
        ),
        rows.dead_lettered,
    ),
    MetricSource(
        "",
        _counters(global_messages_dead_lettered_confirmed="dead-lettered and confirmed by target queues"),
        rows.confirmed_dead_letters,
    ),
)
# Metrics that are counted for all queues together only.
SUMS = (
    MetricSource(
        "",
        _counters(
            queue_disk_reads="Total number of times queues read messages from disk",
            queue_disk_writes="Total number of times queues wrote messages to disk",
        ),
        rows.queue_disk,
    ),
)
# Attempts by source are not counted; in RabbitMQ they are off by default.
DETAILED_ATTEMPTS = MetricSource(
    "",
    _counters(
        auth_attempts_detailed="Total number of authorization attempts with source info",
        auth_attempts_detailed_succeeded="Total number of successful authorization attempts with source info",
        auth_attempts_detailed_failed="Total number of failed authorization attempts with source info",
    ),
    rows.nothing,
)
# Metrics that are equal on every node, which only the detailed endpoint exposes.
CLUSTER = (
    MetricSource("vhost_status", _gauges(vhost_status="Whether a given vhost is running"), rows.vhost_status),
    ObjectMetricSource(
        "exchange_bindings",
        _gauges(exchange_bindings="Number of bindings for an exchange. This value is cluster-wide."),
        objects.exchanges,
        objects.bound,
        objects.exchange_labels,
    ),
    ObjectMetricSource(
        "exchange_names",
        _gauges(exchange_name="Enumerates exchanges without any additional info"),
        objects.exchanges,
        objects.named,
        objects.exchange_labels,
    ),
)
# The names of these metrics have no prefix.
UNPREFIXED = (
    MetricSource(
        "",
        (MetricFamily("process_start_time_seconds", GAUGE, "Start time of the process since unix epoch, s"),),
        rows.started,
    ),
    MetricSource(
        "", (MetricFamily("warren_build_info", UNTYPED, "Versions of Warren and Python"),), rows.warren
    ),
    MetricSource(
        "vhost_status",
        (
            MetricFamily("warren_vhost_running", GAUGE, "1 if the virtual host is running, else 0"),
            MetricFamily(
                "warren_vhost_disk_full",
                GAUGE,
                "1 if confirms wait for free disk space, else 0",
            ),
            MetricFamily(
                "warren_vhost_damaged_records",
                GAUGE,
                "Damaged records found at the last start",
            ),
            MetricFamily(
                "warren_vhost_unacknowledged_losses",
                GAUGE,
                "Losses of messages that have not been acknowledged by an operator",
                "warren_vhost_losses",
            ),
            MetricFamily(
                "warren_vhost_lost_messages", GAUGE, "Upper bound of the messages in unacknowledged losses"
            ),
        ),
        rows.vhosts,
    ),
    MetricSource(
        "",
        (
            MetricFamily("warren_streams", GAUGE, "Number of streams"),
            MetricFamily("warren_stream_bytes", GAUGE, "Bytes of streams on disk", "warren_stream_octets"),
            MetricFamily("warren_leases", GAUGE, "Active leases"),
            MetricFamily("warren_leased_messages", GAUGE, "Messages in active leases"),
            MetricFamily("warren_leases_granted_total", COUNTER, "Leases granted since the node started"),
        ),
        rows.streams_and_leases,
    ),
    MetricSource(
        "",
        (
            MetricFamily(
                "warren_failures_total",
                COUNTER,
                "Queues, leases, jobs, links and waiting publishers that an error of the broker has ended",
            ),
        ),
        rows.failures,
    ),
    MetricSource(
        "",
        (
            MetricFamily(
                "warren_leases_ended_total", COUNTER, "Leases ended since the node started, by outcome"
            ),
        ),
        rows.ended_leases,
    ),
    MetricSource(
        "",
        (
            MetricFamily("warren_staged_stages", GAUGE, "Uploaded stages that are not committed"),
            MetricFamily(
                "warren_staged_bytes",
                GAUGE,
                "Size of all stages in bytes, including those being uploaded",
                "warren_staged_octets",
            ),
        ),
        rows.staged,
    ),
    MetricSource(
        "",
        (
            MetricFamily(
                "warren_quarantined_items",
                GAUGE,
                "Items of data on disk that are unknown to the metadata",
            ),
            MetricFamily("warren_quarantined_messages", GAUGE, "Messages in quarantined items"),
            MetricFamily(
                "warren_quarantined_bytes",
                GAUGE,
                "Size of quarantined items in bytes",
                "warren_quarantined_octets",
            ),
            MetricFamily(
                "warren_quarantined_unacknowledged",
                GAUGE,
                "Quarantined items that have not been acknowledged by an operator",
            ),
        ),
        rows.quarantined,
    ),
    # RabbitMQ has these three since 4.1.
    MetricSource(
        "", _gauges(rabbitmq_shovel_dynamic="Number of dynamic shovels"), relay_rows.dynamic_shovels
    ),
    MetricSource("", _gauges(rabbitmq_shovel_static="Number of static shovels"), relay_rows.static_shovels),
    MetricSource("", _gauges(rabbitmq_federation_links="Number of federation links"), relay_rows.links),
    MetricSource(
        "",
        (
            *_counters(
                warren_link_forwarded="Messages published at the destination of a link",
                warren_link_confirmed="Messages confirmed by the destination of a link",
                warren_link_rejected="Messages refused by the destination of a link",
                warren_link_dropped="Messages not forwarded because of a filter or a rule of a link",
                warren_link_redelivered="Messages delivered again by the source of a link",
                warren_link_restarts="How often a link has connected again",
            ),
            *_gauges(
                warren_link_pending="Messages in memory that wait for the destination of a link",
                warren_link_unconfirmed="Messages published that the destination has not confirmed",
                warren_link_running="is 1 if a link is running",
                warren_link_held="is 1 if a link publishes nothing because of an alarm, a limit or a refusal",
            ),
        ),
        relay_rows.link_counters,
    ),
    MetricSource(
        "",
        _gauges(warren_link_lag_messages="Messages ready at the source of a link"),
        relay_rows.lag_in_messages,
    ),
    MetricSource(
        "",
        _gauges(warren_link_lag_seconds="Age of the last message of a link when it was forwarded"),
        relay_rows.lag_in_seconds,
    ),
)
