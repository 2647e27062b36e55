"""Makes the Raft groups that this node leads have the members that the metadata say, a few at a time.

    what has changed ─▶ due ─▶ ongoing, at most GROUP_CHANGES_MAX ─┬─▶ settled, or grown to its target size
                         ▲                                         └─▶ waits for a node that is down
                         └── that node is up, or nothing has happened for GROUP_CHANGE_IDLE_MS

Each leader does it for its own groups, so nothing has to be agreed on beside the members. If the leader
changes, the next one goes on with what it finds. Nothing is done in order: whatever is due is compared anew.

Invariants:

- A group has at most one change that has not taken effect.
- Whoever tells that something has changed is not called back: it is obeyed in a later turn.
- A turn looks at GROUPS_EXAMINED_PER_TURN groups that are due, and at those that are ongoing.
"""

from collections.abc import Mapping

from warren.cluster.membership.group_changes import GroupChanges
from warren.cluster.membership.member_choice import next_member
from warren.cluster.membership.member_step import LedGroup, MemberStep, MemberStepKind, next_step
from warren.cluster.membership.target_size import target_size
from warren.errors import AmqpError
from warren.limits_cluster import GROUP_CHANGE_IDLE_MS, GROUP_CHANGES_MAX, GROUPS_EXAMINED_PER_TURN
from warren.metadata.commands import ChangeQueueMembers, Outcome
from warren.metadata.events import (
    Event,
    MemberChanged,
    MemberRemoved,
    PoliciesChanged,
    QueueMembersChanged,
)
from warren.metadata.machine import Metadata
from warren.metadata.proposals import Proposals
from warren.metadata.records import QueueRecord
from warren.model.coroutine_driver import Later, drive
from warren.replication.raft.change import Configuration


class _Ongoing:
    """A group whose members are being changed."""

    __slots__ = ("before", "idle_ms", "is_proposing")

    def __init__(self) -> None:
        # The configuration in which the last change was accepted, until another one is in effect.
        self.before: Configuration | None = None
        # Since when nothing has happened.
        self.idle_ms = 0
        # True while a change of the members in the metadata is on its way.
        self.is_proposing = False


class GroupReconciler:
    """The groups of quorum queues that this node leads, by the numbers of the queues."""

    def __init__(
        self,
        own: int,
        metadata: Metadata,
        *,
        changes: GroupChanges,
        proposals: Proposals,
        later: Later,
    ) -> None:
        """`own` is this node."""
        self._own = own
        self._metadata = metadata
        self._changes = changes
        self._proposals = proposals
        self._later = later
        self._is_scheduled = False
        # The virtual host and the name of the queue of each group that this node leads.
        self._led: dict[int, tuple[str, str]] = {}
        self._due: dict[int, None] = {}
        self._ongoing: dict[int, _Ongoing] = {}
        # Groups that wait until a node is up, or until there is another one.
        self._waiting: dict[int, None] = {}
        metadata.listen(self._changed, (QueueMembersChanged, PoliciesChanged, MemberChanged, MemberRemoved))

    @property
    def ongoing_count(self) -> int:
        """The number of groups whose members are being changed."""
        return len(self._ongoing)

    @property
    def is_idle(self) -> bool:
        """True if nothing is due and nothing is ongoing; groups may wait for nodes that are down."""
        return not self._due and not self._ongoing

    def leadership_began(self, number: int, vhost: str, queue: str) -> None:
        """Note that this node leads the group of a queue."""
        self._led[number] = (vhost, queue)
        self._make_due(number)

    def leadership_ended(self, number: int) -> None:
        """Note that this node no longer leads the group of a queue, or that the queue was deleted."""
        for groups in (self._led, self._due, self._ongoing, self._waiting):
            groups.pop(number, None)

    def change_applied(self, number: int) -> None:
        """Note that a change of the configuration of a group has taken effect."""
        if number in self._ongoing:
            self._schedule()

    def tick(self, elapsed_ms: int) -> None:
        """Go on with what is ongoing, and begin with what is due."""
        for number, ongoing in list(self._ongoing.items()):
            ongoing.idle_ms += elapsed_ms
            if self._due and ongoing.idle_ms >= GROUP_CHANGE_IDLE_MS and not ongoing.is_proposing:
                self._put_back(number, self._due)
        self._run()

    def _changed(self, event: Event) -> None:
        match event:
            case QueueMembersChanged(queue=queue):
                self._make_due(queue.number)
            case PoliciesChanged(vhost=vhost):
                # The target sizes may be others.
                for number, (of, _) in self._led.items():
                    if of == vhost:
                        self._make_due(number)
            case _:
                # A node has come up, is drained no more, or has left.
                for number in list(self._waiting):
                    self._make_due(number)

    def _make_due(self, number: int) -> None:
        if number in self._led:
            self._waiting.pop(number, None)
            if number not in self._ongoing:
                self._due[number] = None
            self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._later(self._run_later)

    def _run_later(self, now: int) -> None:
        self._is_scheduled = False
        self._run()

    def _run(self) -> None:
        """Go on with what is ongoing, and begin with what is due, as far as there is room in this turn."""
        for number in list(self._ongoing):
            if number in self._ongoing:
                self._advance(number)
        for _ in range(GROUPS_EXAMINED_PER_TURN):
            if not self._due or len(self._ongoing) >= GROUP_CHANGES_MAX:
                return
            number = next(iter(self._due))
            del self._due[number]
            self._ongoing[number] = _Ongoing()
            self._advance(number)

    def _put_back(self, number: int, groups: dict[int, None]) -> None:
        if self._ongoing.pop(number, None) is not None:
            groups[number] = None

    def _advance(self, number: int) -> None:
        """Make the next step of a group, if there is one now; it stops to be ongoing if there is none."""
        ongoing = self._ongoing[number]
        if ongoing.is_proposing:
            return
        record = self._record(number)
        configuration = self._changes.configuration(number)
        if record is None or configuration is None:
            # It was deleted, or this node does not lead any more, of which it will be told.
            del self._ongoing[number]
            return
        if configuration == ongoing.before:
            return
        if ongoing.before is not None:
            ongoing.before = None
            ongoing.idle_ms = 0
        group = LedGroup(
            configuration=configuration,
            leader=self._changes.own_replica(number),
            wanted=self._wanted(record),
            is_caught_up=lambda replica: self._changes.is_caught_up(number, replica),
            is_active=lambda replica: self._changes.is_active(number, replica),
        )
        step = next_step(group)
        if step is not None:
            if self._perform(number, step) and step.kind is not MemberStepKind.TRANSFER:
                ongoing.before = configuration
        elif group.is_settled:
            self._grow(number, record)
        elif group.is_waiting_for_node:
            self._put_back(number, self._waiting)

    def _perform(self, number: int, step: MemberStep) -> bool:
        kind, replica = step
        match kind:
            case MemberStepKind.ADD_LEARNER:
                return self._changes.add_learner(number, replica)
            case MemberStepKind.PROMOTE:
                return self._changes.promote(number, replica)
            case MemberStepKind.REMOVE:
                return self._changes.remove(number, replica)
            case MemberStepKind.TRANSFER:
                return self._changes.transfer(number, replica)

    def _grow(self, number: int, record: QueueRecord) -> None:
        """Propose one more replica if the queue has fewer than its target, and there is a node for it."""
        vhost, _ = self._led[number]
        target = target_size(self._metadata.vhosts.by_name[vhost], record)
        if target is None or len(record.replicas) >= target:
            del self._ongoing[number]
            return
        node = next_member(self._metadata, record)
        if node is None:
            self._put_back(number, self._waiting)
            return
        self._ongoing[number].is_proposing = True
        command = ChangeQueueMembers(
            vhost=vhost, queue=record.name, number=record.number, added=(node,), removed=()
        )
        drive(self._propose(number, self._ongoing[number], command))

    async def _propose(self, number: int, ongoing: _Ongoing, command: ChangeQueueMembers) -> None:
        after = self._due
        try:
            reply = await self._proposals.propose(command)
            if reply.outcome is not Outcome.DONE:
                # Something else has changed meanwhile; it is looked at again when more does.
                after = self._waiting
        except AmqpError:
            # No majority has agreed in time: the group is looked at again.
            pass
        finally:
            ongoing.is_proposing = False
            if self._ongoing.get(number) is ongoing:
                self._put_back(number, after)

    def _wanted(self, record: QueueRecord) -> Mapping[int, bool]:
        """The replicas that the metadata say, and whether the node of each is up."""
        run_of = self._metadata.members.run_of
        return {replica: node == self._own or run_of(node) is not None for node, replica in record.replicas}

    def _record(self, number: int) -> QueueRecord | None:
        """The record of the queue of a group; None if it was deleted."""
        vhost, name = self._led[number]
        found = self._metadata.vhost(vhost)
        record = None if found is None else found.topology.queues.get(name)
        return record if record is not None and record.number == number else None
