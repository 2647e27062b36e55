"""Columns of queues, read from many queues at once for sorting and for lists of columns.

Most of the cost of a queue here is the memory access to it, so a column reads only the queue, and loops are
written out where a call per queue would double their time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from warren.management.listing import Column, sort_value
from warren.management.managed_node import ManagedNode
from warren.management.queue_index import IndexedQueue, live_queues
from warren.management.views.queues import (
    MEMORY,
    NOT_OF_QUORUM,
    idle_since,
    state_without_leader,
    utilisation,
)
from warren.metadata.definitions import json_value
from warren.metadata.policies import Policy
from warren.metrics.sampler import LENGTHS, QUEUE_COLUMNS, queue_row, series_of
from warren.model.arguments import QueueSettings, effective_definition
from warren.model.turn import Turn
from warren.queues.classic import ClassicQueue
from warren.queues.queue import QueueHost
from warren.queues.vhost_queue import VhostQueue

# Reads one value of each of many queues.
_Read = Callable[[Sequence[VhostQueue]], Sequence[Any]]
# Stands for the queues of a virtual host that is down; it is empty.
_NOTHING: VhostQueue = ClassicQueue("", "", QueueHost(Turn(lambda: 0, lambda _: None)), QueueSettings())
_NULL = sort_value(None, ())
_DELIVER_GET = QUEUE_COLUMNS.index("deliver_get")
_DEFINITION = "effective_policy_definition"

# Columns whose values are shown unchanged, unless a virtual host is down.
EXACT = frozenset((
    "vhost", "name", "durable", "auto_delete", "exclusive", "type", "node", "state", *LENGTHS, "consumers",
    *MEMORY,
)) - frozenset(NOT_OF_QUORUM)  # fmt: skip
# Fields that the metadata have, so that each node knows them of all queues.
DECLARED = frozenset((
    "arguments", "auto_delete", "durable", "effective_policy_definition", "exclusive", "name", "node",
    "operator_policy", "paused", "policy", "state", "type", "vhost",
))  # fmt: skip
# The fields of a queue in a list, except those with the same value for all queues.
FIELDS = EXACT | frozenset((
    *MEMORY,
    "arguments", "backing_queue_status", "consumer_capacity", "consumer_utilisation",
    "effective_policy_definition", "exclusive_consumer_tag", "head_message_timestamp", "idle_since",
    "message_stats", "messages_by_priority", "oldest_ready_at", "operator_policy", "paused", "policy",
    "single_active_consumer_tag",
    *(f"{name}_details" for name in LENGTHS),
))  # fmt: skip


def queue_columns(node: ManagedNode, sort: str) -> Mapping[str, Column[IndexedQueue]]:
    """The columns of a list of queues, with the field `sort` if it is inside arguments or a definition."""
    time = node.sampler.time
    homes = {name: services.vhost.queues for name, services in node.server.vhost_services.items()}
    reads = {**_COUNTS, **{name: _each(read) for name, read in MEMORY.items()}, **_TAGS, **_MEMORY}
    for column, name in enumerate(QUEUE_COLUMNS):
        shown = name if name in LENGTHS else f"message_stats.{name}"
        reads[f"{shown}_details"] = reads[f"{shown}_details.rate"] = _rates(time, column)
    for name, counted in _BACKING_RATES.items():
        reads[f"backing_queue_status.{name}"] = _rates(time, QUEUE_COLUMNS.index(counted))
    for name in ("consumer_utilisation", "consumer_capacity"):
        reads[name] = lambda lives: [live.consumer_count and utilisation(live, time) for live in lives]
    reads["idle_since"] = lambda lives: [
        0 if live.has_changed else live.used_at if live.history is None else idle_since(live, time)
        for live in lives
    ]
    columns: dict[str, Column[IndexedQueue]] = {
        **_DECLARED,
        "node": lambda named: _nodes(node, named),
        "state": lambda named: _states(node, homes, named),
        "paused": lambda named: _paused(node, named),
        "policy": lambda named: _policies(node, named, _name_of_policy),
        "operator_policy": lambda named: _policies(node, named, _name_of_operator_policy),
        "effective_policy_definition": lambda named: _policies(node, named, _definition(_DEFINITION)),
        **{name: _of_lives(homes, read) for name, read in reads.items()},
    }
    path = sort.split(".")
    if path[0] == "arguments":
        columns[sort] = lambda named: _arguments(named, path)
    elif path[0] == _DEFINITION:
        columns[sort] = lambda named: _policies(node, named, _definition(sort))
    return columns


def _nodes(node: ManagedNode, named: Sequence[IndexedQueue]) -> Sequence[str]:
    if node.cluster is None:
        return [node.node_name] * len(named)
    return [node.name_of(node.home_of(one.record)) for one in named]


def _states(
    node: ManagedNode, homes: Mapping[str, dict[str, VhostQueue]], named: Sequence[IndexedQueue]
) -> Sequence[str]:
    """As `homes` has the virtual hosts that run here; other nodes are taken to run all."""
    if node.cluster is None:
        return ["running" if one.vhost in homes else "down" for one in named]
    up = {member.id for member in node.metadata.members.by_id.values() if member.is_up}
    own = node.cluster.own_id

    def state(one: IndexedQueue) -> str:
        record = one.record
        if record.members and node.groups.leader_of(record) is None:
            return state_without_leader(node, record)
        home = node.home_of(record)
        return "running" if (one.vhost in homes if home == own else home in up) else "down"

    return [state(one) for one in named]


def _of_lives(homes: Mapping[str, dict[str, VhostQueue]], read: _Read) -> Column[IndexedQueue]:
    return lambda named: read(_lives(homes, named))


def _lives(homes: Mapping[str, dict[str, VhostQueue]], named: Sequence[IndexedQueue]) -> list[VhostQueue]:
    """The live queue of each; the list is sorted by virtual host, so a slice is mostly of one."""
    if not named:
        return []
    lives: list[VhostQueue] = []
    start = 0
    while start < len(named):
        vhost = named[start].vhost
        end = len(named)
        if named[-1].vhost != vhost:
            end = next(at for at in range(start, end) if named[at].vhost != vhost)
        lives += live_queues(named[start:end], homes.get(vhost, {}), _NOTHING)
        start = end
    return lives


def _each(read: Callable[[VhostQueue], int]) -> _Read:
    return lambda lives: list(map(read, lives))


def _rates(time: int, column: int) -> _Read:
    def rate(live: VhostQueue) -> float:
        series = series_of(live)
        return 0.0 if series is None else series.rate(time, column)

    return lambda lives: [0.0 if live.history is None else rate(live) for live in lives]


def _memory(lives: Sequence[VhostQueue]) -> Sequence[int]:
    of_one, of_none = MEMORY["memory"], MEMORY["memory"](_NOTHING)
    return [of_one(live) if live.message_count or live.unacked_count else of_none for live in lives]


def _tags(read: Callable[[VhostQueue], str | None]) -> _Read:
    """Consumer tags as sort keys; queues without one come first, as `null` does."""
    return lambda lives: [sort_value(read(live), ()) if live.consumer_count else _NULL for live in lives]


def _exclusive(live: VhostQueue) -> str | None:
    return next((consumer.tag for consumer in live.consumers() if consumer.is_exclusive), None)


def _active(live: VhostQueue) -> str | None:
    active = live.active_consumer
    return None if active is None else active.tag


def _oldest(live: VhostQueue) -> dict[str, int]:
    """The field `oldest_ready_at`, which queues without a ready message lack."""
    oldest_at = live.oldest_ready_at
    return {} if oldest_at is None else {"oldest_ready_at": oldest_at}


def _paused(node: ManagedNode, named: Sequence[IndexedQueue]) -> list[str]:
    """Sort keys of the field `paused`, which queues that are not paused lack; they come last."""
    vhosts = node.metadata.vhosts.by_name
    paused = {name: vhost.topology.paused for name, vhost in vhosts.items() if vhost.topology.paused}
    if not paused:
        return ["undefined"] * len(named)
    return ["true" if one.record.name in paused.get(one.vhost, ()) else "undefined" for one in named]


def _policies(
    node: ManagedNode,
    named: Sequence[IndexedQueue],
    key: Callable[[tuple[Policy | None, Policy | None]], Any],
) -> list[Any]:
    """The result of `key` for the policies of each queue, computed once for each pair of policies."""
    vhosts = node.metadata.vhosts.by_name
    generation = node.queue_index.policy_generation
    known: dict[tuple[int, int], Any] = {}
    keys = []
    for one in named:
        vhost = vhosts.get(one.vhost)
        policies = (None, None) if vhost is None else one.policies(vhost, generation)
        which = id(policies[0]), id(policies[1])
        if which not in known:
            known[which] = key(policies)
        keys.append(known[which])
    return keys


def _name_of_policy(policies: tuple[Policy | None, Policy | None]) -> str:
    return "" if policies[0] is None else policies[0].name


def _name_of_operator_policy(policies: tuple[Policy | None, Policy | None]) -> str:
    return "" if policies[1] is None else policies[1].name


def _definition(column: str) -> Callable[[tuple[Policy | None, Policy | None]], object]:
    path = column.split(".")

    def key(policies: tuple[Policy | None, Policy | None]) -> object:
        definitions = [None if policy is None else policy.definition for policy in policies]
        return sort_value({path[0]: dict(effective_definition(*definitions))}, path)

    return key


def _arguments(named: Sequence[IndexedQueue], path: Sequence[str]) -> list[object]:
    of_none = sort_value({path[0]: {}}, path)
    return [
        sort_value({path[0]: json_value(dict(one.record.arguments))}, path)
        if one.record.arguments
        else of_none
        for one in named
    ]


_DECLARED: Mapping[str, Column[IndexedQueue]] = {
    "vhost": lambda named: [one.vhost for one in named],
    "name": lambda named: [one.record.name for one in named],
    "durable": lambda named: [one.record.durable for one in named],
    "auto_delete": lambda named: [one.record.auto_delete for one in named],
    "exclusive": lambda named: [one.record.owner is not None for one in named],
    "type": lambda named: [one.record.kind if one.record.arguments else "classic" for one in named],
}
_COUNTS: Mapping[str, _Read] = {
    "messages": lambda lives: [live.total_count for live in lives],
    "messages_ready": lambda lives: [live.message_count for live in lives],
    "messages_unacknowledged": lambda lives: [live.unacked_count for live in lives],
    "consumers": lambda lives: [live.consumer_count for live in lives],
    "message_stats.publish": lambda lives: [
        live.published_count - live.broker_published_count for live in lives
    ],
    "message_stats.deliver": lambda lives: [live.delivered_count for live in lives],
    "message_stats.deliver_no_ack": lambda lives: [live.delivered_no_ack_count for live in lives],
    "message_stats.deliver_get": lambda lives: [
        queue_row(live)[_DELIVER_GET] if live.published_count else 0 for live in lives
    ],
    "message_stats.get": lambda lives: [live.got_count for live in lives],
    "message_stats.get_no_ack": lambda lives: [live.got_no_ack_count for live in lives],
    "message_stats.get_empty": lambda lives: [live.got_empty_count for live in lives],
    "message_stats.redeliver": lambda lives: [live.redelivered_count for live in lives],
    "message_stats.ack": lambda lives: [live.acknowledged_count for live in lives],
    "backing_queue_status.len": lambda lives: [live.message_count for live in lives],
    "backing_queue_status.delta": lambda lives: [live.paged_count for live in lives],
    "backing_queue_status.q4": lambda lives: [live.message_count - live.paged_count for live in lives],
    "backing_queue_status.next_seq_id": lambda lives: [live.published_count for live in lives],
}
# Columns that are read only from queues that are not empty.
_MEMORY: Mapping[str, _Read] = {
    "memory": _memory,
    "head_message_timestamp": lambda lives: [
        sort_value(live.head_timestamp, ()) if live.message_count else _NULL for live in lives
    ],
    "oldest_ready_at": lambda lives: [
        sort_value(_oldest(live) if live.message_count else {}, ("oldest_ready_at",)) for live in lives
    ],
}
_TAGS: Mapping[str, _Read] = {
    "exclusive_consumer_tag": _tags(_exclusive),
    "single_active_consumer_tag": _tags(_active),
}
# The names of RabbitMQ's queue process for rates that have other names elsewhere.
_BACKING_RATES = {
    "avg_ack_egress_rate": "ack",
    "avg_ack_ingress_rate": "deliver",
    "avg_egress_rate": "deliver_get",
    "avg_ingress_rate": "publish",
}
