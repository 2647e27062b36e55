"""What RabbitMQ 3.10.8, RabbitMQ 4.3.6 and Warren answer differently about shovels and federation links.

The keys are `Site.answers`. Where RabbitMQ's versions differ, the reason says which of them Warren follows.
"""

from collections.abc import Mapping
from typing import Final

# Deleting a shovel that does not exist: 404 of 3.10.8 tells who has mistyped a name.
MISSING_SHOVEL_DELETED: Final = {"rabbitmq": 404, "rabbitmq 4": 204, "warren": 404}
# What one shovel is: 3.10.8 returns the list of all in the vhost, and 4.3.6 the parameter. Here it is the
# status with the parameter, so that what is written for either finds its fields.
HAS_STATUS: Final = frozenset(("rabbitmq", "warren"))
HAS_PARAMETER: Final = frozenset(("rabbitmq 4", "warren"))
# Fields of a running shovel. Warren has all of them, and some of its own.
RUNNING: Final = frozenset(
    ("node", "timestamp", "name", "vhost", "type", "state", "src_uri", "src_protocol", "dest_protocol",
     "dest_uri", "src_queue", "dest_queue")
)  # fmt: skip
RUNNING_OF_RABBITMQ_4: Final = RUNNING | {
    "blocked_status", "pending", "forwarded", "remaining", "remaining_unacked",
}  # fmt: skip
FIELDS_OF_A_SHOVEL: Final[Mapping[str, frozenset[str]]] = {
    "rabbitmq": RUNNING, "rabbitmq 4": RUNNING_OF_RABBITMQ_4, "warren": RUNNING_OF_RABBITMQ_4,
}  # fmt: skip
# 3.10.8 has no shovels that belong to a queue or an exchange, and refuses the key `internal`.
PROTECTED_SHOVEL_SET: Final = {"rabbitmq": 400, "rabbitmq 4": 201, "warren": 201}
# The queue of a federated exchange at its upstream: 4.3.6 always names its type. Warren does if the upstream
# does, and finds the queue of a downstream of either version.
QUEUE_OF_AN_EXCHANGE: Final[Mapping[str, dict[str, str]]] = {
    "rabbitmq": {"x-internal-purpose": "federation"},
    "rabbitmq 4": {"x-internal-purpose": "federation", "x-queue-type": "classic"},
    "warren": {"x-internal-purpose": "federation"},
}
