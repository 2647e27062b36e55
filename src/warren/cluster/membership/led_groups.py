"""The groups of quorum queues that run on this node, as the reconciler reads and changes them."""

from collections.abc import Mapping

from warren.limits_cluster import GROUP_CAUGHT_UP_ENTRIES_MAX
from warren.queues.quorum.group import QuorumGroup
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.replica import Replica


class LedGroups:
    """Implements port `GroupChanges`; groups that do not lead, or have not opened yet, refuse all changes."""

    def __init__(self, groups: Mapping[int, QuorumGroup]) -> None:
        """`groups` are those that run here, by the numbers of their queues."""
        self._groups = groups

    def configuration(self, number: int) -> Configuration | None:
        """The configuration in effect; None if this node does not lead the group."""
        group = self._leading(number)
        return None if group is None else group.driver.replica.configuration

    def own_replica(self, number: int) -> int:
        """The replica on this node, which leads."""
        return self._replica(number).id

    def is_caught_up(self, number: int, replica: int) -> bool:
        """True if the replica lacks few entries: under load none ever has all of them.

        One that has acknowledged nothing lacks everything, however short the log is.
        """
        leading = self._replica(number)
        progress = leading.progress.get(replica)
        if progress is None or not progress.is_active:
            return replica == leading.id
        return progress.match > 0 and progress.match + GROUP_CAUGHT_UP_ENTRIES_MAX >= leading.log.applied

    def is_active(self, number: int, replica: int) -> bool:
        """True if the replica has answered within the time of an election."""
        leading = self._replica(number)
        progress = leading.progress.get(replica)
        return replica == leading.id or (progress is not None and progress.is_active)

    def add_learner(self, number: int, replica: int) -> bool:
        """Send all entries to the replica, without giving it a vote."""
        return self._propose(number, MemberChangeKind.LEARNER, replica)

    def promote(self, number: int, replica: int) -> bool:
        """Give a learner a vote."""
        return self._propose(number, MemberChangeKind.VOTER, replica)

    def remove(self, number: int, replica: int) -> bool:
        """Remove a replica from the group."""
        return self._propose(number, MemberChangeKind.REMOVED, replica)

    def transfer(self, number: int, replica: int) -> bool:
        """Hand over the leadership to the replica, unless another hand-over has not ended yet."""
        group = self._leading(number)
        if group is None or group.driver.replica.transfer_to:
            return False
        group.retire(replica)
        return True

    def _propose(self, number: int, kind: MemberChangeKind, replica: int) -> bool:
        group = self._leading(number)
        change = ConfigurationChange((MemberChange(kind, replica),))
        # A change that must wait would be accepted as an entry without effect.
        if group is None or group.driver.replica.change_refusal(change) is not None:
            return False
        return group.propose_change(change)

    def _leading(self, number: int) -> QuorumGroup | None:
        group = self._groups.get(number)
        return group if group is not None and group.is_open else None

    def _replica(self, number: int) -> Replica:
        return self._groups[number].driver.replica
