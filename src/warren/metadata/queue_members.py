"""Which nodes have a replica of a quorum queue: the rules by which the record of the queue says so.

Invariants:

- The home of a quorum queue is the node of its first member.
- A node is a member of a queue once, and the number of a replica is used once.
- A queue keeps a replica that it had: those that are added are empty at first. A node that has lost its
  replica is removed and added by one command, and gets another number.
- A group begins with a majority of its first replicas, or never: none is added before it has begun.
"""

from collections.abc import Container, Iterator, Sequence

from msgspec.structs import replace

from warren.limits_metadata import QUEUE_MEMBERS_MAX, REPLICA_NUMBER_MAX
from warren.metadata.cluster_members import ClusterMembers
from warren.metadata.commands import ChangeQueueMembers, DeclareQueue
from warren.metadata.records import FIRST_REPLICA, QueueMember, QueueRecord
from warren.model.arguments import QUORUM, queue_kind


def first_members(command: DeclareQueue, cluster: ClusterMembers) -> tuple[int, ...]:
    """The nodes on which the new queue of `command` has replicas, the one that leads first in front.

    Of those that it names, nodes are left out that are no members of the cluster; the first that is up leads.
    Empty if none of them is up, and for every queue that is not a quorum queue.
    """
    survives_restart = command.durable and command.owner is None
    if not command.members or not survives_restart or queue_kind(command.arguments) != QUORUM:
        return ()
    known = [node for node in dict.fromkeys(command.members) if node in cluster.by_id]
    leader = next((node for node in known if cluster.by_id[node].is_up), None)
    if leader is None:
        return ()
    return (leader, *(node for node in known if node != leader))[:QUEUE_MEMBERS_MAX]


def with_first_members(queue: QueueRecord, nodes: Sequence[int]) -> QueueRecord:
    """`queue`, whose home is the first of `nodes`, with a replica on each of them."""
    assert queue.home == nodes[0], f"{queue.home} is not the first of {nodes}"
    members = tuple(QueueMember(node, number) for number, node in enumerate(nodes, FIRST_REPLICA))
    return replace(
        queue,
        members=members,
        next_replica=FIRST_REPLICA + len(members),
        initial_replicas=len(members),
    )


def refusal_of_change(queue: QueueRecord, command: ChangeQueueMembers, cluster: Container[int]) -> str | None:
    """The reason why the members of `queue` cannot be changed by `command`; None if they can be."""
    return next(_refusals(queue, command, cluster), None)


def _refusals(queue: QueueRecord, command: ChangeQueueMembers, cluster: Container[int]) -> Iterator[str]:
    if not queue.is_quorum:
        yield f"queue '{queue.name}' is not a quorum queue"
    nodes = [member.node for member in queue.replicas]
    for node in command.added:
        if node not in cluster:
            yield f"node {node} is not a member of the cluster"
        if node in nodes and node not in command.removed:
            yield f"node {node} is a member of queue '{queue.name}' already"
    for node in command.removed:
        if node not in nodes:
            yield f"node {node} is not a member of queue '{queue.name}'"
    if any(len({*named}) < len(named) for named in (command.added, command.removed)):
        yield "a node is named twice"
    if queue.never_begins:
        yield (
            f"half of the members of queue '{queue.name}' were removed before they had agreed on a leader: "
            "delete the queue, and declare it again"
        )
    if queue.initial_replicas:
        yield f"the members of queue '{queue.name}' have not agreed on a leader yet: try again soon"
    if not any(node in cluster for node in nodes):
        # Its replica is lost, and the others would wait for it.
        yield f"no member of queue '{queue.name}' is a member of the cluster"
    if set(nodes) <= set(command.removed):
        yield f"the last member of queue '{queue.name}' cannot be removed"
    if len(nodes) + len(command.added) - len(command.removed) > QUEUE_MEMBERS_MAX:
        yield f"a queue has at most {QUEUE_MEMBERS_MAX} members"
    if _next_replica(queue) + len(command.added) > REPLICA_NUMBER_MAX:
        yield f"all numbers of replicas of queue '{queue.name}' are used up"


def with_changed_members(
    queue: QueueRecord, *, added: Sequence[int] = (), removed: Sequence[int] = ()
) -> QueueRecord:
    """`queue` with the members `added`, which get the next numbers, and without those on the nodes `removed`.

    Its home is another node if that is removed.
    """
    number = _next_replica(queue)
    kept = [member for member in queue.replicas if member.node not in removed]
    assert kept, f"no member of {queue.name!r} would be left"
    members = (*kept, *(QueueMember(node, number + at) for at, node in enumerate(added)))
    return replace(queue, home=members[0].node, members=members, next_replica=number + len(added))


def led_by(queue: QueueRecord, node: int) -> QueueRecord:
    """`queue`, whose group has begun, with its member on `node` as the one that leads."""
    members = tuple(sorted(queue.members, key=lambda member: member.node != node))
    return replace(queue, home=node, members=members, initial_replicas=0)


def differs_in_members_only(one: QueueRecord, other: QueueRecord) -> bool:
    """True if both are the same queue, perhaps with replicas on other nodes."""
    return one == replace(
        other,
        home=one.home,
        members=one.members,
        next_replica=one.next_replica,
        initial_replicas=one.initial_replicas,
    )


def _next_replica(queue: QueueRecord) -> int:
    return queue.next_replica or FIRST_REPLICA + 1
