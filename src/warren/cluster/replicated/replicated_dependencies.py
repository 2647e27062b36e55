"""What a replicated queue needs of its node."""

from collections.abc import Callable

from msgspec import Struct

from warren.cluster.home_node import HomeNode
from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.cluster.replicated.local_replica import LocalReplica
from warren.cluster.replicated.queue_leaders import QueueLeaders
from warren.metadata.incarnation import Incarnation
from warren.model.coroutine_driver import Later
from warren.queues.leadership_listener import LeadershipListener
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.group import QuorumGroup


class ReplicatedDependencies(Struct, frozen=True, kw_only=True):
    """What a replicated queue needs of its node."""

    # The replica on the node, if it has one.
    local: LocalReplica
    # This run of the node and of the virtual host, which numbers what is published.
    incarnation: Incarnation
    leaders: QueueLeaders
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # Another node, as the one that has queues.
    home_of: Callable[[int], HomeNode]
    # The other nodes that are up.
    others: Callable[[], list[int]]
    # False for a node that has left the cluster, or was forgotten.
    is_member: Callable[[int], bool]
    # True if the run of a node that publishes as this enqueuer is over: it claims nothing.
    has_ended: Callable[[Enqueuer], bool]
    # How long (ms) a node that was lost keeps what it holds, unless the queue says otherwise.
    disconnected_ms: int
    proposals: BackgroundProposals
    leadership_listener: LeadershipListener
    # The groups that this node leads, and what gives them the members that the metadata say.
    led: dict[int, QuorumGroup]
    reconciler: GroupReconciler
    # Called when the queue has ended on this node.
    ended: Callable[[], object]
