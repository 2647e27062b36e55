"""Queues as JSON, in RabbitMQ's form."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NotRequired, Required, TypedDict

from warren.management.listing import JsonObject
from warren.management.managed_node import ManagedNode
from warren.management.operation import JsonTable, shape
from warren.management.queue_index import IndexedQueue
from warren.management.views.consumers import ConsumerShape
from warren.management.views.stats import (
    GARBAGE_COLLECTION,
    MessageStatsShape,
    SampleRanges,
    format_time,
    message_stats,
    no_reductions,
    with_details,
    with_rates,
)
from warren.metadata.definitions import json_value
from warren.metadata.policies import Policy
from warren.metadata.records import QueueRecord
from warren.metrics.sampler import LENGTHS, QUEUE_COLUMNS, queue_row, series_of
from warren.metrics.time_series import TimeSeries
from warren.model.arguments import CLASSIC, QUORUM, STREAM, effective_definition
from warren.queues.replication_status import ReplicationStatus
from warren.queues.vhost_queue import VhostQueue
from warren.vhost.oldest_deliveries import oldest_deliveries, oldest_delivery

# The approximate sizes of an empty queue and of a message without its body, in bytes.
_QUEUE_SIZE = 2_048
_MESSAGE_SIZE = 128
# The number of sampling intervals in which consumer utilisation is measured: one minute.
_UTILISATION_INTERVALS = 12
_INTERVAL_MS = 5_000
_LENGTHS_COUNT = len(LENGTHS)
# Fields that only classic queues and streams have in RabbitMQ 3.10.
NOT_OF_QUORUM = (
    "backing_queue_status", "exclusive_consumer_tag", "head_message_timestamp", "message_bytes_paged_out",
    "messages_paged_out", "messages_ready_ram", "messages_unacknowledged_ram", "recoverable_slaves",
)  # fmt: skip
_ACK, _DELIVER, _DELIVER_GET, _PUBLISH = map(
    QUEUE_COLUMNS.index, ("ack", "deliver", "deliver_get", "publish")
)


class ReplicaShape(TypedDict):
    """A replica of a quorum queue.

    Its log is that of the leader up to `match`, and synced up to `durable`. If it is not trusted, `reason`
    says why its data may not be complete.
    """

    node: str
    role: str
    match: int
    durable: int
    state: Literal["whole", "untrusted"]
    reason: NotRequired[str]


class _Fields(TypedDict, total=False):
    arguments: Required[JsonTable]
    auto_delete: Required[bool]
    durable: Required[bool]
    exclusive: Required[bool]
    name: Required[str]
    node: Required[str]
    type: Required[str]
    vhost: Required[str]
    state: Required[str]
    policy: str | None
    operator_policy: str | None
    effective_policy_definition: JsonTable
    consumers: int
    consumer_capacity: float
    consumer_utilisation: float
    exclusive_consumer_tag: str | None
    single_active_consumer_tag: str | None
    head_message_timestamp: int | None
    idle_since: str
    message_stats: MessageStatsShape
    backing_queue_status: JsonTable
    garbage_collection: JsonTable
    recoverable_slaves: None
    consumer_details: list[ConsumerShape]
    deliveries: list[Any]
    incoming: list[Any]
    owner_pid_details: JsonTable
    paused: bool
    leader: str | None
    members: list[str]
    online: list[str]
    open_files: dict[str, int]
    delivery_limit: int | None
    messages_dlx: int
    message_bytes_dlx: int
    messages_delayed: int
    messages_by_priority: dict[str, int]
    oldest_ready_at: int
    oldest_unacknowledged_at: int
    messages_quarantined: int
    single_active_consumer_ctag: str | None
    term: int
    commit_index: int
    replicas: list[ReplicaShape]
    readers: dict[str, int]


def live_queue(node: ManagedNode, named: IndexedQueue) -> VhostQueue | None:
    """The live queue; None while its virtual host is down."""
    services = node.server.vhost_services.get(named.vhost)
    return None if services is None else named.live(services.vhost.queues)


def queue_view(node: ManagedNode, named: IndexedQueue, ranges: SampleRanges) -> JsonObject:
    """A queue in a list as JSON."""
    live = live_queue(node, named)
    if live is None:
        return declared_queue_view(node, named) | {"state": "down"}
    vhost, record = named.vhost, named.record
    described = node.metadata.vhost(vhost)
    generation = node.queue_index.policy_generation
    policies = (None, None) if described is None else named.policies(described, generation)
    series = series_of(live)
    row = queue_row(live)
    facts: dict[str, Any] = {
        **_declared(node, named),
        **memory_of(live),
        **_consumers(live, series, ranges.time),
        "backing_queue_status": _backing(live, record, series, ranges.time),
        "effective_policy_definition": _definition(*policies),
        "garbage_collection": GARBAGE_COLLECTION,
        "head_message_timestamp": live.head_timestamp,
        "operator_policy": policies[1].name if policies[1] else None,
        "policy": policies[0].name if policies[0] else None,
        "recoverable_slaves": None,
        **no_reductions(ranges.data_rates),
        "state": _state(node, record, live),
        **with_rates(LENGTHS, row[:_LENGTHS_COUNT], (series, ranges.time), ranges.lengths),
    }
    if by_priority := live.ready_by_priority:
        facts["messages_by_priority"] = {str(priority): n for priority, n in by_priority.items()}
    if (oldest_at := live.oldest_ready_at) is not None:
        facts["oldest_ready_at"] = oldest_at
    stats = message_stats(
        QUEUE_COLUMNS,
        (0,) * _LENGTHS_COUNT + tuple(row[_LENGTHS_COUNT:]),
        (series, ranges.time),
        ranges.msg_rates,
    )
    if stats:
        facts["message_stats"] = stats
    status = live.replication_status()
    if status is not None:
        facts |= _replicated(node, record, live, status)
        facts["message_bytes"] += status.dead_letter_bytes + status.delayed_bytes + status.quarantined_bytes
    if record.kind == STREAM:
        # The number of consumers of a stream, by node.
        facts["readers"] = {node.node_name: live.consumer_count}
    if record.kind == QUORUM:
        for name in NOT_OF_QUORUM:
            del facts[name]
        return facts
    idle_at = idle_since(live, ranges.time)
    if idle_at:
        facts["idle_since"] = format_time(idle_at)
    return facts


def whole_queue_view(
    node: ManagedNode, named: IndexedQueue, ranges: SampleRanges, consumers: list[JsonObject]
) -> JsonObject:
    """A single queue as JSON, with its consumers and its owner."""
    facts = queue_view(node, named, ranges)
    facts["consumer_details"] = consumers
    live = live_queue(node, named)
    if live is not None and live.unacked_count:
        found = oldest_deliveries(node.server.vhost_services[named.vhost].vhost)
        if (oldest_at := oldest_delivery(found, live)) is not None:
            facts["oldest_unacknowledged_at"] = oldest_at
    # RabbitMQ fills these details by exchange and channel only in its detailed rates mode.
    facts |= {"deliveries": [], "incoming": []}
    owner = named.record.owner
    if owner is not None:
        for connection in node.server.connections:
            if connection.owner.name == owner:
                peer = connection.peer
                facts["owner_pid_details"] = {
                    "name": peer.name,
                    "peer_host": peer.host,
                    "peer_port": peer.port,
                }
    return facts


def declared_queue_view(node: ManagedNode, named: IndexedQueue, *, has_totals: bool = False) -> JsonObject:
    """A queue without statistics as JSON; `has_totals` adds its numbers of messages.

    RabbitMQ 3.10.8 calls the state of one that is there `live`, and with the numbers `running`.
    """
    if is_home_down(node, named.record):
        return down_queue_view(node, named)
    facts = _declared(node, named) | {"state": "running" if has_totals else "live"}
    described = node.metadata.vhost(named.vhost)
    policy = None if described is None else described.policies_of(named.record.name, named.record.kind)[0]
    if policy is not None:
        facts["policy"] = policy.name
    live = live_queue(node, named)
    if has_totals and live is not None:
        facts |= dict(zip(LENGTHS, queue_row(live), strict=False))
    return facts


def is_home_down(node: ManagedNode, record: QueueRecord) -> bool:
    """True if the home of a queue is down, as the members agree, or was removed; or if nobody leads it."""
    if record.members:
        return node.groups.leader_of(record) is None
    return not node.is_up(record.home)


def down_queue_view(node: ManagedNode, named: IndexedQueue) -> JsonObject:
    """A queue whose home is not there as JSON, as RabbitMQ 3.10.8 lists it."""
    return _declared(node, named) | {"state": state_without_leader(node, named.record)}


def _state(node: ManagedNode, record: QueueRecord, live: VhostQueue) -> str:
    if live.is_down:
        return "down"
    is_led = not record.members or node.groups.leader_of(record) is not None
    return "running" if is_led else state_without_leader(node, record)


def state_without_leader(node: ManagedNode, record: QueueRecord) -> str:
    """The state of a queue that nobody leads: `minority`, as in RabbitMQ 4, if half of its nodes are down.

    It is the same of a queue with one replica left, which needs others that were removed.
    """
    count, up_count = len(record.members), sum(node.is_up(member.node) for member in record.members)
    return "minority" if up_count and (count == 1 or 2 * up_count <= count) else "down"


def _declared(node: ManagedNode, named: IndexedQueue) -> JsonObject:
    vhost, record = named.vhost, named.record
    described = node.metadata.vhost(vhost)
    is_paused = described is not None and record.name in described.topology.paused
    return {
        # A field of Warren's own, so it is absent from queues that are not paused.
        **({"paused": True} if is_paused else {}),
        **(_replicas(node, record) if record.kind != CLASSIC else {}),
        "arguments": json_value(record.arguments) if record.arguments else {},
        "auto_delete": record.auto_delete,
        "durable": record.durable,
        "exclusive": record.owner is not None,
        "name": record.name,
        "node": _home(node, record),
        "type": record.kind,
        "vhost": vhost,
    }


def _home(node: ManagedNode, record: QueueRecord) -> str:
    return node.node_name if node.cluster is None else node.name_of(node.home_of(record))


def _replicas(node: ManagedNode, record: QueueRecord) -> JsonObject:
    """The replicas of a stream, which has one, or of a quorum queue."""
    members = [member.node for member in record.replicas]
    leader = record.home if record.kind == STREAM else node.groups.leader_of(record)
    return {
        "leader": None if leader is None else node.name_of(leader),
        "members": [node.name_of(member) for member in members],
        "online": [node.name_of(member) for member in members if node.is_up(member)],
    }


def _replicated(
    node: ManagedNode, record: QueueRecord, live: VhostQueue, status: ReplicationStatus
) -> JsonObject:
    """The fields that only a quorum queue has: those of RabbitMQ first."""
    active = live.active_consumer
    return {
        # RabbitMQ 4 has renamed it to what it is called of other queues, `single_active_consumer_tag`.
        "single_active_consumer_ctag": None if active is None else active.tag,
        # It has no files of its own: its log is in that of the virtual host.
        "open_files": {node.name_of(member.node): 0 for member in record.replicas if node.is_up(member.node)},
        "messages_dlx": status.dead_letter_count,
        "message_bytes_dlx": status.dead_letter_bytes,
        "delivery_limit": live.settings.delivery_limit,
        "messages_delayed": status.delayed_count,
        "messages_quarantined": status.quarantined_count,
        "term": status.term,
        "commit_index": status.commit_index,
        "replicas": [
            {
                "node": node.node_name,
                "role": status.role,
                "match": status.last_index,
                "durable": status.written_index,
                "state": "untrusted" if status.untrusted else "whole",
                **({"reason": status.untrusted} if status.untrusted else {}),
            }
        ],
    }


def _definition(policy: Policy | None, operator_policy: Policy | None) -> Mapping[str, object]:
    return effective_definition(
        None if policy is None else policy.definition,
        None if operator_policy is None else operator_policy.definition,
    )


def _paged_bytes(live: VhostQueue) -> int:
    """The size of paged-out messages in bytes, estimated from the average size of ready messages."""
    paged = live.paged_count
    return live.ready_bytes * paged // live.message_count if paged and live.message_count else 0


def _bytes_in_memory(live: VhostQueue) -> int:
    return live.ready_bytes + live.unacked_bytes - _paged_bytes(live)


def _messages_in_memory(live: VhostQueue) -> int:
    return live.message_count + live.unacked_count - live.paged_count


def _memory(live: VhostQueue) -> int:
    messages = _messages_in_memory(live)
    return _QUEUE_SIZE + _bytes_in_memory(live) + messages * _MESSAGE_SIZE if messages else _QUEUE_SIZE


# Numbers and bytes of messages by place and kind, for views and for sorting.
MEMORY: Mapping[str, Callable[[VhostQueue], int]] = {
    "memory": _memory,
    "message_bytes": lambda live: live.ready_bytes + live.unacked_bytes,
    "message_bytes_paged_out": _paged_bytes,
    "message_bytes_persistent": lambda live: live.persistent_bytes,
    "message_bytes_ram": _bytes_in_memory,
    "message_bytes_ready": lambda live: live.ready_bytes,
    "message_bytes_unacknowledged": lambda live: live.unacked_bytes,
    "messages_paged_out": lambda live: live.paged_count,
    "messages_persistent": lambda live: live.persistent_count,
    "messages_ram": _messages_in_memory,
    "messages_ready_ram": lambda live: live.message_count - live.paged_count,
    "messages_unacknowledged_ram": lambda live: live.unacked_count,
}


# The values of an empty queue, as most queues are.
_NO_MESSAGES = {name: _QUEUE_SIZE if name == "memory" else 0 for name in MEMORY}

QueueShape = shape(
    "QueueShape",
    "A queue.",
    _Fields.__annotations__,
    dict.fromkeys(MEMORY, int),
    with_details((*LENGTHS, "reductions")),
)


def memory_of(live: VhostQueue) -> dict[str, int]:
    """The numbers and bytes of messages by place and kind."""
    if not live.message_count and not live.unacked_count:
        return _NO_MESSAGES
    return {name: read(live) for name, read in MEMORY.items()}


def idle_since(live: VhostQueue, time: int) -> int:
    """Since when the queue is idle (Unix time, ms), as of the samples at `time` (ms); 0 if it is not idle."""
    if live.has_changed:
        return 0
    series = series_of(live)
    if series is None:
        return live.used_at
    return 0 if series.last_time >= time else max(live.used_at, series.last_time)


def utilisation(live: VhostQueue, time: int) -> float:
    """The consumer utilisation in the minute before `time` (ms): the share without a ready message."""
    return _utilisation(live, series_of(live), time) if live.consumer_count else 0


_NO_CONSUMERS: JsonObject = {
    "consumer_capacity": 0,
    "consumer_utilisation": 0,
    "consumers": 0,
    "exclusive_consumer_tag": None,
    "single_active_consumer_tag": None,
}


def _consumers(live: VhostQueue, series: TimeSeries | None, time: int) -> JsonObject:
    if not live.consumer_count:
        return _NO_CONSUMERS
    consumers = list(live.consumers())
    utilisation: float = _utilisation(live, series, time) if consumers else 0
    exclusive = next((consumer.tag for consumer in consumers if consumer.is_exclusive), None)
    active = live.active_consumer
    return {
        "consumer_capacity": utilisation,
        "consumer_utilisation": utilisation,
        "consumers": live.consumer_count,
        "exclusive_consumer_tag": exclusive,
        "single_active_consumer_tag": active.tag if active is not None else None,
    }


def _utilisation(live: VhostQueue, series: TimeSeries | None, time: int) -> float:
    """The share of samples of the last minute in which no ready message was waiting for a consumer."""
    column = QUEUE_COLUMNS.index("messages_ready")
    waiting = [live.message_count]
    if series is not None:
        waiting += [series.at(time - ago * _INTERVAL_MS, column) for ago in range(_UTILISATION_INTERVALS)]
    return waiting.count(0) / len(waiting)


def _backing(
    live: VhostQueue, record: QueueRecord, series: TimeSeries | None, time: int
) -> Mapping[str, object]:
    """RabbitMQ's internal queue statistics, where they have a counterpart: q4 is memory, delta is disk."""

    def rate(column: int) -> float:
        return 0.0 if series is None else series.rate(time, column)

    ready, paged = live.message_count, live.paged_count
    arguments = record.arguments
    version = json_value(arguments["x-queue-version"]) if "x-queue-version" in arguments else 1
    return {
        "avg_ack_egress_rate": rate(_ACK),
        "avg_ack_ingress_rate": rate(_DELIVER),
        "avg_egress_rate": rate(_DELIVER_GET),
        "avg_ingress_rate": rate(_PUBLISH),
        "delta": ["delta", 0 if paged else "undefined", paged, 0, paged or "undefined"],
        "len": ready,
        "mode": str(arguments.get("x-queue-mode", "default")),
        "next_deliver_seq_id": max(0, live.published_count - ready),
        "next_seq_id": live.published_count,
        "q1": 0,
        "q2": 0,
        "q3": 0,
        "q4": ready - paged,
        "target_ram_count": "infinity",
        "version": version if isinstance(version, int) else 1,
    }
