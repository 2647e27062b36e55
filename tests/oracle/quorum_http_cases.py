"""What the HTTP API of RabbitMQ 3.10.8 answers about quorum queues; 4.3.6, but for `quorum_differences`."""

from __future__ import annotations

from typing import Any, Final

QUORUM: Final = {"durable": True, "arguments": {"x-queue-type": "quorum"}}

# The queue `q` with the bodies aa, bbb and c, of which the first is unacknowledged after a basic.get. NODE
# stands for the name of the node, a type for a value of this type.
NODE: Final = "<node>"
QUEUE: Final[dict[str, Any]] = {
    "arguments": {"x-delivery-limit": 3, "x-queue-type": "quorum"},
    "auto_delete": False,
    "consumer_capacity": float,
    "consumer_utilisation": float,
    "consumers": 1,
    "durable": True,
    "effective_policy_definition": {},
    "exclusive": False,
    "garbage_collection": dict,
    "leader": NODE,
    "members": [NODE],
    "memory": int,
    "message_bytes": 6,
    "message_bytes_dlx": 0,
    "message_bytes_persistent": 6,
    "message_bytes_ram": 0,
    "message_bytes_ready": 4,
    "message_bytes_unacknowledged": 2,
    "message_stats": dict,
    "messages": 3,
    "messages_details": dict,
    "messages_dlx": 0,
    "messages_persistent": 3,
    "messages_ram": 0,
    "messages_ready": 2,
    "messages_ready_details": dict,
    "messages_unacknowledged": 1,
    "messages_unacknowledged_details": dict,
    "name": "q",
    "node": NODE,
    "online": [NODE],
    "open_files": {NODE: 0},
    "operator_policy": None,
    "policy": None,
    "reductions": int,
    "reductions_details": dict,
    "single_active_consumer_ctag": None,
    "state": "running",
    "type": "quorum",
}
# What the queue alone has, but not its entry in the list.
DETAILS: Final[dict[str, Any]] = {"consumer_details": list, "deliveries": list, "incoming": list}

# method, path below the vhost's queues, body, status, reason
REFUSALS: Final[list[tuple[str, str, Any, int, str]]] = [
    (
        "DELETE",
        "q?if-unused=true",
        None,
        400,
        "cannot delete {q}. queue.delete operations with if-unused flag",
    ),
    ("DELETE", "q?if-empty=true", None, 400, "cannot delete {q}. queue.delete operations with if-empty flag"),
    (
        "PUT",
        "q",
        QUORUM,
        400,
        "inequivalent arg 'x-delivery-limit' for {q}: received none but current is the value '3' of type "
        "'long'",
    ),
    ("PUT", "n", {**QUORUM, "durable": False}, 400, "invalid property 'non-durable' for {n}"),
    ("PUT", "n", {"arguments": QUORUM["arguments"]}, 400, "invalid property 'non-durable' for {n}"),
    ("PUT", "n", {**QUORUM, "auto_delete": True}, 400, "invalid property 'auto-delete' for {n}"),
    (
        "PUT",
        "n",
        {"durable": True, "arguments": {"x-queue-type": "quorum", "x-max-priority": 3}},
        400,
        "invalid arg 'x-max-priority' for {n} of queue type rabbit_quorum_queue",
    ),
]

# Policies, and whether they apply to a quorum queue: not at all with one key that they do not know.
APPLICABLE: Final[list[tuple[dict[str, Any], bool]]] = [
    ({"max-length": 3}, True),
    ({"max-length-bytes": 3}, True),
    ({"overflow": "drop-head"}, True),
    ({"overflow": "reject-publish"}, True),
    ({"overflow": "reject-publish-dlx"}, True),
    ({"delivery-limit": 2}, True),
    ({"dead-letter-exchange": "x", "dead-letter-routing-key": "k"}, True),
    ({"dead-letter-strategy": "at-least-once"}, True),
    ({"message-ttl": 5}, True),
    ({"expires": 100000}, True),
    ({"max-in-memory-length": 1, "max-in-memory-bytes": 1}, True),
    ({"queue-version": 2}, True),
    ({"queue-leader-locator": "balanced"}, True),
    ({"queue-mode": "lazy"}, False),
    ({"queue-master-locator": "min-masters"}, False),
    ({"ha-mode": "all"}, False),
    ({"max-age": "1D"}, False),
    ({"initial-cluster-size": 3}, False),
    ({"stream-max-segment-size-bytes": 5000}, False),
    ({"ha-mode": "all", "max-length": 3}, False),
    ({"queue-mode": "lazy", "delivery-limit": 2}, False),
]
OPERATOR: Final[list[dict[str, Any]]] = [
    {"delivery-limit": 2},
    {"max-length": 3},
    {"max-length-bytes": 3},
    {"message-ttl": 5},
    {"expires": 100000},
    {"max-in-memory-length": 5},
    {"max-in-memory-bytes": 5},
]

# Kind of policy, definition, and the errors.
INVALID: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("policies", {"delivery-limit": -1}, "-1 is not a valid delivery limit"),
    ("policies", {"delivery-limit": "3"}, '<<"3">> is not a valid delivery limit'),
    ("policies", {"delivery-limit": 1.5}, "1.5 is not a valid delivery limit"),
    ("policies", {"dead-letter-strategy": "always"}, '<<"always">> is not a valid dead letter strategy'),
    ("policies", {"dead-letter-strategy": 1}, "1 is not a valid dead letter strategy"),
    (
        "policies",
        {"single-active-consumer": True},
        '[{<<"single-active-consumer">>,true}] are not recognised policy settings',
    ),
    (
        "policies",
        {"target-group-size": 3},
        '[{<<"target-group-size">>,3}] are not recognised policy settings',
    ),
    (
        "operator-policies",
        {"overflow": "reject-publish"},
        '[{<<"overflow">>,<<"reject-publish">>}] are not recognised policy settings',
    ),
    (
        "operator-policies",
        {"dead-letter-strategy": "at-least-once"},
        '[{<<"dead-letter-strategy">>,<<"at-least-once">>}] are not recognised policy settings',
    ),
]
