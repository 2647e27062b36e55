"""The settings of queues in a cluster, each declared once, as in `settings`."""

from warren.limits_cluster import DISCONNECTED_MS
from warren.limits_metadata import QUEUE_MEMBERS_MAX
from warren.model.arguments import QUEUE_KINDS
from warren.node.setting_types import Setting
from warren.node.values import boolean, choice, integer
from warren.vhost.queue_home import QueueLocators

# RabbitMQ's modules are names of the types, too.
_TYPES = {name: kind for kind in QUEUE_KINDS for name in (kind, f"rabbit_{kind}_queue")}
_MASTERS = {name: name for name in ("client-local", "min-masters", "random")}
# Those of leaders, of which RabbitMQ has renamed two.
_LEADERS = {name: name for name in ("client-local", "balanced", "least-leaders", "random")}

DEFAULT_TYPE = Setting(
    "default_queue_type", QueueLocators().default_type, choice(_TYPES),
    "type of a durable queue, neither exclusive nor auto-delete, that is declared without `x-queue-type` in "
    "a virtual host without a default of its own: `classic`, `quorum` or `stream`; unset: `classic`",
)  # fmt: skip
LEADER_LOCATOR = Setting(
    "queue_leader_locator", QueueLocators().leader, choice(_LEADERS),
    "node of a cluster that gets a new queue without a locator of its own: `client-local`, that of the "
    "client; `balanced` or `least-leaders`, the one with the fewest queues; `random`, any; unset: for "
    "classic queues `queue_master_locator`, else `client-local`",
)  # fmt: skip
GROUP_SIZE = Setting(
    "quorum_queue.initial_cluster_size", QueueLocators().group_size, integer(1, QUEUE_MEMBERS_MAX),
    "number of nodes of a cluster that get a replica of a new quorum queue without the argument "
    "`x-quorum-initial-group-size`, as far as there are so many",
)  # fmt: skip
DELIVERY_LIMIT_COUNTS = Setting(
    "quorum_queue.delivery_limit_counts", "all", choice({name: name for name in ("all", "failed")}),
    "deliveries of a quorum queue that count towards its delivery limit: `all` that came back, as in "
    "RabbitMQ 3.x; `failed`, only those of a reject or of a channel that ended, as in 4.3, not those of a "
    "nack, a recover or the consumer timeout",
)  # fmt: skip
DISCONNECTED = Setting(
    "consumer_disconnected_timeout", DISCONNECTED_MS, integer(1, 2**32 - 1),
    "milliseconds after which the leader of a quorum queue returns what the consumers of a node hold that "
    "it cannot reach, without the policy key `consumer-disconnected-timeout` and the argument "
    "`x-consumer-disconnected-timeout`",
)  # fmt: skip
RELAXED_CHECKS = Setting(
    "quorum_queue.property_equivalence.relaxed_checks_on_redeclaration",
    QueueLocators().has_relaxed_checks, boolean,
    "whether an existing quorum queue may be declared again with the `x-queue-type` `classic`, durable or "
    "not: only limits, times to live, dead-lettering and single active consumer must be alike then",
)  # fmt: skip
MASTER_LOCATOR = Setting(
    "queue_master_locator", QueueLocators().master, choice(_MASTERS),
    "node of a cluster that gets a new classic queue without a locator of its own, if `queue_leader_locator` "
    "is unset: `client-local`, that of the client; `min-masters`, the one with the fewest queues; `random`, "
    "any; unset: `client-local`",
)  # fmt: skip
