"""The replica of a quorum queue on this node, if it has one: made, moved and ended as the metadata say.

    the record has a replica here ─▶ its log is there, the group begins, or the queue is new here ─▶ it runs
                                   └▶ else its data are lost ─▶ another one is asked for when somebody leads
    the record has another one here, or none ─▶ it votes until its group has removed it ─▶ it ends
                                                and begins again, with nothing, under the other number

The members that a group has may be needed to agree on its next ones. So one that is to leave goes on, known
to the others by the address that it had, and hands over if it leads. It has been removed when it has applied
that, or when it has not heard the one that leads at two looks, GROUP_LEAVING_MS apart.

A replica that is the only one which the record has left cannot have the others removed without their votes.
If it hears none of them, as when their nodes were removed from the cluster, it goes on alone: of two voters
it has all that was committed, and does that by itself; of more it may lack some, and an operator decides.

A replica whose data are lost or damaged is never one of its group again, since it may have forgotten what it
has promised: it has another number from then on, and gets everything from the leader.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from warren.cluster.groups.group_traffic import GroupTraffic, election_chance
from warren.cluster.groups.quorum_replica import QuorumReplica
from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.replicated.background_proposals import BackgroundProposals
from warren.cluster.replicated.lasting_condition import LastingCondition
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
        # While its group has not removed it, though the record has; and while it is the only one left.
        after = dependencies.after
        self._leaving = LastingCondition(after, self._is_left_behind, self._end_leaving)
        self._waiting = LastingCondition(after, lambda: self._is_without_leader, self._go_on)
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
            self._leaving.end()
            if number:
                self._place()
                self._check_others()
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

    @property
    def is_left_alone(self) -> bool:
        """True if it is the only one that the record has, and cannot be elected without some that it has not.

        False while one of those leads, or it does.
        """
        return self._is_without_leader and len(self._others) > 0

    def continue_alone(self) -> None:
        """Go on without the others if it is left alone: what it does not have is given up."""
        group = None if self.queue is None else self.queue.group
        if group is not None and self.is_left_alone:
            group.continue_alone(loses_messages=len(self._others) > 1)

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
        self._check_others()

    @property
    def _others(self) -> frozenset[int]:
        """The other voters, if the record has only this replica, which votes as well; else none.

        Of a group that never begins nobody is to lead.
        """
        group = None if self.queue is None else self.queue.group
        record = self.record
        is_sole = len(record.members) == 1 and record.replica_on(self._node) == self._number
        if group is None or not is_sole or record.never_begins or not self._votes():
            return frozenset()
        configuration = group.driver.replica.configuration
        return frozenset((*configuration.voters, *configuration.outgoing)) - {self._number}

    @property
    def _is_without_leader(self) -> bool:
        group = None if self.queue is None else self.queue.group
        return group is not None and group.leader == NOBODY

    def _check_others(self) -> None:
        """Go on alone, some time later, if the only other replica that votes is not to be heard any more."""
        if len(self._others) == 1:
            self._waiting.begin()
        else:
            self._waiting.end()

    def _go_on(self) -> None:
        self.continue_alone()
        self._check_others()

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
            self._leaving.end()
            self._waiting.end()
            self._dependencies.traffic.remove(self.record.number)

    def _votes(self) -> bool:
        """True if the replica votes in its group, as far as it knows."""
        group = None if self.queue is None else self.queue.group
        return group is not None and self._number in group.driver.replica.configuration.voters

    def _leave(self) -> None:
        """Have another replica lead if this one does, and end it when the group has removed it."""
        if self.queue is not None and self.queue.group is not None:
            self.queue.group.hand_over()
        self._leaving.begin()

    def _end_leaving(self) -> None:
        """End the replica, which its group has removed."""
        number = self.record.replica_on(self._node)
        if number != self._number and self._is_placed:
            self._leaving.end()
            self._begin_again(number)

    def _is_left_behind(self) -> bool:
        """True if it was removed: it has applied that, or does not hear who leads on another node."""
        if not self._votes():
            return True
        leader = self._dependencies.traffic.leaders.leader(self.record.number)
        group = None if self.queue is None else self.queue.group
        is_led = leader.node not in (0, self._node) and not leader.is_away
        return is_led and group is not None and group.leader == NOBODY

    def _changed_members(self, group: QuorumGroup) -> None:
        """The group has other members: forget where those were that have left."""
        if self._is_placed:
            self._place()
        if self._leaving.is_begun and not self._votes():
            # In a turn of its own: the group is applying that.
            self._dependencies.after(0, self._end_leaving)
        self._check_others()
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
