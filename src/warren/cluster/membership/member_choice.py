"""Which node gets one more replica of a quorum queue."""

from warren.metadata.machine import Metadata
from warren.metadata.records import QueueRecord


def next_member(metadata: Metadata, record: QueueRecord) -> int | None:
    """The node with the fewest replicas that takes queues and has none of this one; None if there is none."""
    possible = [
        member.id
        for member in metadata.members.by_id.values()
        if member.takes_queues and not record.replica_on(member.id)
    ]
    return min(possible, key=lambda node: (metadata.replicas.get(node, 0), node), default=None)
