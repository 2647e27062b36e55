"""How many replicas a quorum queue is to have in the end, however many it was declared with."""

from warren.metadata.records import QueueRecord
from warren.metadata.vhosts import VhostMetadata
from warren.model.arguments import effective_definition

ARGUMENT = "x-quorum-target-group-size"
POLICY_KEY = "target-group-size"


def target_size(vhost: VhostMetadata, record: QueueRecord) -> int | None:
    """The larger one of the argument and of what the policies say, as in RabbitMQ; None without both."""
    policy, operator_policy = vhost.policies_of(record.name, record.kind)
    definition = effective_definition(
        None if policy is None else policy.definition,
        None if operator_policy is None else operator_policy.definition,
    )
    sizes = [
        size for size in (record.arguments.get(ARGUMENT), definition.get(POLICY_KEY)) if isinstance(size, int)
    ]
    return max(sizes, default=None)
