"""The replica of a quorum queue on this node, if it has one: made, moved and ended as the metadata say.

    the record has a replica here ─▶ its log is there, the group begins, or the queue is new here ─▶ it runs
                                   └▶ else its data are lost ─▶ another one is asked for when somebody leads
    the record has another one here, or none ─▶ it votes until its group has removed it ─▶ it ends
                                                and begins again, with nothing, under the other number

The members that a group has may be needed to agree on its next ones. So one that is to leave goes on, known
to the others by the address that it had, and hands over if it leads. It has been removed when it has applied
that, or when it has not heard the one that leads at two looks, GROUP_LEAVING_MS apart.

A replica whose data are lost or damaged is never one of its group again, since it may have forgotten what it
has promised: it has another number from then on, and gets everything from the leader.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from warren.cluster.groups.group_traffic import GroupTraffic, election_chance
from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.limits_raft import GROUP_LEAVING_MS
from warren.metadata.commands import ChangeQueueMembers
from warren.metadata.incarnation import Incarnation
from warren.metadata.records import FIRST_REPLICA, QueueRecord
from warren.queues.quorum.group import GroupMembership, QuorumGroup
from warren.queues.quorum.quorum_queue import QuorumQueue, ReplicaMaker
from warren.queues.quorum.raft_storage import NO_MEMBERS
from warren.queues.quorum.replica_messages import begin_again
from warren.replication.raft.raft_messages import NOBODY
from warren.store.group_log import GroupLog
from warren.store.recovered_queue import RecoveredQueue
from warren.store.stores import Stores


class ReplicaDependencies(Struct, frozen=True, kw_only=True):
    """What a replica needs of its node."""

    # This run of the node and of the virtual host.
    incarnation: Incarnation
    stores: Stores
    traffic: GroupTraffic
    random_bytes: Callable[[int], bytes]
    # Calls an action after a time in milliseconds.
    after: Callable[[int, Callable[[], None]], None]
    proposals: BackgroundProposals
    reconciler: GroupReconciler


class LocalReplica:
    """One replica; `queue` is the one that leads, or that may lead next."""

    def __init__(
        self, record: QueueRecord, vhost: str, make: ReplicaMaker, dependencies: ReplicaDependencies
    ) -> None:
        self.record = record
        self._vhost = vhost
        self._make = make
        self._dependencies = dependencies
        # Its number; 0 if this node has none, or has lost it.
        self._number = 0
        self._is_lost = False
        # True while it ends, so that its queue has no next leadership.
        self._is_ending = False
        # True while others hear of it.
        self._is_placed = False
        # The node of each replica that the group may have, or that has just left it and is told so.
        self._nodes: dict[int, int] = {}
        self._members: frozenset[int] = frozenset()
        # True while it is looked at from time to time whether the group has removed it.
        self._is_leaving = False
        # True if it did not hear the leader at the last look.
        self._was_left_behind = False
        # Called when `queue` is another one by a change of the record.
        self.replaced: Callable[[], None] = lambda: None
        self.queue: QuorumQueue | None = None

    @property
    def _node(self) -> int:
        return self._dependencies.incarnation.node

    def begin(self, *, is_new: bool) -> None:
        """Make the replica that the record has here, unless its data are lost.

        `is_new` is True if this node hears of the queue for the first time. Then it has lost nothing, and its
        vote may be needed for a leader, also if the group has begun without it.
        """
        record = self.record
        number = record.replica_on(self._node)
        has_begun = record.members and not record.initial_replicas
        if number and has_begun and not is_new and self._log() is None:
            self._is_lost = True
        elif number:
            self._run(number)

    def changed(self, record: QueueRecord) -> None:
        """Follow the record, which has other members."""
        self.record = record
        number = record.replica_on(self._node)
        if number == self._number:
            if number:
                self._place()
        elif self._votes():
            self._place()
            self._leave()
        else:
            self._begin_again(number)

    def stopped_leading(self, queue: QuorumQueue) -> None:
        """Another replica leads, or will: `queue` is the one of the next leadership of this one."""
        if not self._is_ending:
            self.queue = queue

    def ask_for_another(self) -> None:
        """Have this node get another replica if it has lost the one that it had.

        Called while another replica leads: it has everything that this one has ever promised to keep.
        """
        record = self.record
        is_down = self.queue is not None and self.queue.is_down
        if (self._is_lost or is_down) and len(record.members) > 1:
            lost = record.replica_on(self._node)
            self._dependencies.proposals.propose(
                f"replace the replica of queue '{record.name}' in vhost '{self._vhost}', whose data are lost",
                ChangeQueueMembers(
                    vhost=self._vhost,
                    queue=record.name,
                    number=record.number,
                    added=(self._node,),
                    removed=(self._node,),
                ),
                lambda: self.record.replica_on(self._node) == lost,
            )

    def leave(self, found: Mapping[int, RecoveredQueue]) -> None:
        """Release what the store has `found`, by priority level, of a replica that is not here any more."""
        log = self._log()
        if log is not None and (log.replica or log.untrusted):
            begin_again(log, found, 0, NO_MEMBERS)

    def end(self) -> None:
        """The queue was deleted, or its virtual host ends here: nothing is sent or received any more."""
        self._unplace()
        if self.queue is None:
            log = self._log()
            if log is not None:
                log.drop()

    # --- private --------------------------------------------------------------------------------------

    def _log(self) -> GroupLog | None:
        return GroupLog.find(self._dependencies.stores.persistent, self.record.number)

    def _run(self, number: int) -> None:
        """Run replica `number`."""
        record, dependencies = self.record, self._dependencies
        traffic = dependencies.traffic
        initial = record.initial_replicas if record.members else FIRST_REPLICA
        self._number = number
        self._is_lost = False
        self.queue = self._make(
            dependencies.incarnation,
            GroupMembership(
                replica=number,
                voters=tuple(range(FIRST_REPLICA, FIRST_REPLICA + initial)),
                leads_first=record.initial_replicas > 0 and record.home == self._node,
                chance=election_chance(dependencies.random_bytes),
                send=traffic.send,
                changed=self._changed_members,
            ),
        )
        self._place()

    def _place(self) -> None:
        """Let the replica hear of those on other nodes, and they of it."""
        record, traffic = self.record, self._dependencies.traffic
        group = None if self.queue is None else self.queue.group
        if group is None or not record.members:
            return
        former, self._members = self._members, frozenset(group.driver.replica.configuration.members)
        members = former | self._members
        earlier = {replica: node for replica, node in self._nodes.items() if replica in members}
        self._nodes = nodes = earlier | {member.replica: member.node for member in record.members}
        if self._is_placed:
            traffic.move(record.number, nodes)
        else:
            self._is_placed = True
            traffic.add(QuorumReplica(group, self._dependencies.stores.persistent), nodes)

    def _unplace(self) -> None:
        if self._is_placed:
            self._is_placed = False
            self._dependencies.traffic.remove(self.record.number)

    def _votes(self) -> bool:
        """True if the replica votes in its group, as far as it knows."""
        group = None if self.queue is None else self.queue.group
        return group is not None and self._number in group.driver.replica.configuration.voters

    def _leave(self) -> None:
        """Have another replica lead if this one does, and end it when the group has removed it."""
        if self.queue is not None and self.queue.group is not None:
            self.queue.group.hand_over()
        if not self._is_leaving:
            self._is_leaving = True
            self._was_left_behind = False
            self._dependencies.after(GROUP_LEAVING_MS, self._look)

    def _look(self) -> None:
        """End the replica if its group has removed it, and look again later if not."""
        number = self.record.replica_on(self._node)
        was_left_behind, self._was_left_behind = self._was_left_behind, self._is_left_behind()
        if number == self._number or not self._is_placed:
            self._is_leaving = False
        elif not self._votes() or (was_left_behind and self._was_left_behind):
            self._is_leaving = False
            self._begin_again(number)
        else:
            self._dependencies.after(GROUP_LEAVING_MS, self._look)

    def _is_left_behind(self) -> bool:
        """True if a replica on another node leads, and this one hears none."""
        leader = self._dependencies.traffic.leaders.leader(self.record.number)
        group = None if self.queue is None else self.queue.group
        is_led = leader.node not in (0, self._node) and not leader.is_away
        return is_led and group is not None and group.leader == NOBODY

    def _changed_members(self, group: QuorumGroup) -> None:
        """The group has other members: forget where those were that have left."""
        if self._is_placed:
            self._place()
        if self._is_leaving and not self._votes():
            # In a turn of its own: the group is applying that.
            self._dependencies.after(0, self._look)
        self._dependencies.reconciler.change_applied(group.number)

    def _begin_again(self, number: int) -> None:
        """End the replica, and run another one with this number, which has nothing; 0 for none."""
        ended, self.queue = self.queue, None
        self._unplace()
        self._nodes = {}
        self._members = frozenset()
        self._number = 0
        if ended is not None:
            self._is_ending = True
            ended.begin_again(number)
            self._is_ending = False
        if number:
            self._run(number)
        self.replaced()
