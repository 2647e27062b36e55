"""All replicated queues of this node, by virtual host."""

from collections.abc import Callable

from msgspec import Struct

from warren.cluster.groups.group_traffic import GroupTraffic
from warren.cluster.home_node import HomeNode
from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.membership.led_groups import LedGroups
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.cluster.replicated.local_replica import LocalReplica, ReplicaDependencies
from warren.cluster.replicated.queue_leaders import KnownLeaders
from warren.cluster.replicated.replicated_dependencies import ReplicatedDependencies
from warren.cluster.replicated.replicated_queue import ReplicatedQueue
from warren.limits_cluster import DISCONNECTED_MS
from warren.metadata.events import Event, MemberChanged, MemberRemoved
from warren.metadata.incarnation import Incarnation
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.model.arguments import QueueSettings
from warren.model.coroutine_driver import Later
from warren.queues.quorum.batch_codec import Enqueuer
from warren.queues.quorum.group import QuorumGroup
from warren.queues.quorum.quorum_queue import ReplicaMaker
from warren.replication.raft.raft_messages import NOBODY
from warren.vhost.vhost import VirtualHost

# The run of a virtual host within that of its node, in the number of both.
_RUN_BITS = 24


class ReplicatedNode(Struct, frozen=True, kw_only=True):
    """The node that has replicated queues."""

    # The run of the node.
    incarnation: Incarnation
    metadata: Metadata
    later: Later
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    # Another node, as the one that has queues of a virtual host.
    home_of: Callable[[int, VirtualHost], HomeNode]
    traffic: GroupTraffic
    random_bytes: Callable[[int], bytes]
    metadata_proposals: Proposals
    proposals: BackgroundProposals
    # How long (ms) a node that was lost keeps what it holds of a queue that does not say otherwise.
    disconnected_ms: int = DISCONNECTED_MS


class ReplicatedQueues:
    """Makes replicated queues, and tells them which nodes have ended."""

    def __init__(self, node: ReplicatedNode) -> None:
        self._node = node
        self._run = 0
        # By name: the virtual host, its run, and its queues.
        self._vhosts: dict[str, _VhostRun] = {}
        self._leaders = KnownLeaders(node.traffic.leaders, node.metadata)
        self._led: dict[int, QuorumGroup] = {}
        self.reconciler = GroupReconciler(
            node.incarnation.node,
            node.metadata,
            changes=LedGroups(self._led),
            proposals=node.metadata_proposals,
            later=node.later,
        )
        node.metadata.listen(self._on_event, (MemberChanged, MemberRemoved))

    def queue(
        self, vhost: VirtualHost, record: QueueRecord, settings: QueueSettings, make: ReplicaMaker
    ) -> ReplicatedQueue:
        """The queue of `record`; `make` makes the queue of a replica, if this node has one."""
        node, run = self._node, self._run_of(vhost)
        assert vhost.stores is not None
        assert vhost.leadership_listener is not None
        local = LocalReplica(
            record,
            vhost.name,
            make,
            ReplicaDependencies(
                incarnation=run.incarnation,
                stores=vhost.stores,
                traffic=node.traffic,
                random_bytes=node.random_bytes,
                after=node.after,
                proposals=node.proposals,
                reconciler=self.reconciler,
            ),
        )
        queue = ReplicatedQueue(
            record,
            vhost,
            settings,
            ReplicatedDependencies(
                local=local,
                incarnation=run.incarnation,
                leaders=self._leaders,
                later=node.later,
                after=node.after,
                home_of=lambda other: node.home_of(other, vhost),
                others=self._others,
                is_member=self._is_member,
                has_ended=self._has_ended,
                disconnected_ms=node.disconnected_ms,
                proposals=node.proposals,
                leadership_listener=vhost.leadership_listener,
                led=self._led,
                reconciler=self.reconciler,
                ended=lambda: self._ended(run, record.number),
            ),
        )
        run.queues[record.number] = queue
        queue.begin(is_new=vhost.is_recovered)
        return queue

    def hand_over(self) -> None:
        """Have other members lead what this node leads, at once: it is about to stop."""
        for group in list(self._led.values()):
            group.hand_over()

    @property
    def is_handing_over(self) -> bool:
        """True while another member is about to lead, which takes an election's time at most."""
        return any(group.driver.replica.transfer_to != NOBODY for group in self._led.values())

    @property
    def leaders(self) -> KnownLeaders:
        """Who leads each queue."""
        return self._leaders

    def tick(self, elapsed_ms: int) -> None:
        """Note that some time has passed."""
        self.reconciler.tick(elapsed_ms)

    def vhost_ended(self, name: str) -> None:
        """The virtual host `name` has ended on this node."""
        run = self._vhosts.pop(name, None)
        if run is not None:
            for queue in list(run.queues.values()):
                queue.end()

    # --- private --------------------------------------------------------------------------------------

    def _run_of(self, vhost: VirtualHost) -> "_VhostRun":
        run = self._vhosts.get(vhost.name)
        if run is None or run.vhost is not vhost:
            self._run += 1
            own = self._node.incarnation
            incarnation = Incarnation(own.node, own.number << _RUN_BITS | self._run)
            run = self._vhosts[vhost.name] = _VhostRun(vhost, incarnation)
        return run

    def _ended(self, run: "_VhostRun", number: int) -> None:
        self._led.pop(number, None)
        run.queues.pop(number, None)

    def _is_member(self, node: int) -> bool:
        # A node that has never met another one is in no list of members.
        return node == self._node.incarnation.node or node in self._node.metadata.members.by_id

    def _has_ended(self, enqueuer: Enqueuer) -> bool:
        member = self._node.metadata.members.by_id.get(enqueuer.node)
        run = enqueuer.incarnation >> _RUN_BITS
        # This node may not have heard yet that a later run is up.
        return member is None or run < member.incarnation or (run == member.incarnation and not member.is_up)

    def _others(self) -> list[int]:
        """The other members that are up."""
        members = self._node.metadata.members.by_id.values()
        return [each.id for each in members if each.is_up and each.id != self._node.incarnation.node]

    def _on_event(self, event: Event) -> None:
        match event:
            case MemberChanged(member=member) if not member.is_up:
                self._node_ended(member.id)
            case MemberChanged(member=member) if member.is_draining and self._is_own(member.id):
                self._node.later(lambda _: self._retire())
            case MemberRemoved(member=member):
                self._node_ended(member.id)
                self._node.later(lambda _: self._look())
            case _:
                pass

    def _retire(self) -> None:
        """Have other members lead, without marks on what no client has got."""
        for group in list(self._led.values()):
            group.retire()

    def _is_own(self, node: int) -> bool:
        return node == self._node.incarnation.node

    def _node_ended(self, node: int) -> None:
        for run in list(self._vhosts.values()):
            for queue in list(run.queues.values()):
                if not queue.is_deleted:
                    queue.node_ended(node)

    def _look(self) -> None:
        """Have all queues look for their leaders."""
        for run in list(self._vhosts.values()):
            for queue in list(run.queues.values()):
                queue.leader_came()


class _VhostRun:
    """The queues of one run of a virtual host."""

    def __init__(self, vhost: VirtualHost, incarnation: Incarnation) -> None:
        self.vhost = vhost
        self.incarnation = incarnation
        # By number, those that have not ended.
        self.queues: dict[int, ReplicatedQueue] = {}
