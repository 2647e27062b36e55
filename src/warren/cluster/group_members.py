"""Makes the metadata group have the members of the cluster: the leader proposes one change after the other.

    admitted ─▶ learner ─ has what is committed ─▶ voter, up to CLUSTER_VOTERS_MAX
    removed from the cluster ─▶ removed from the group

A change is proposed when the one before it is applied (the Raft core refuses it earlier). So a node that
joins gets the metadata before it counts, and one that was removed counts until the others have agreed.
"""

from collections.abc import Collection

from warren.journal.journal import Journal
from warren.limits_cluster import CLUSTER_VOTERS_MAX
from warren.metadata.machine import Metadata
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)


class GroupMembers:
    """The members of the group on one node, which does nothing while it does not lead."""

    def __init__(self, journal: Journal, metadata: Metadata) -> None:
        self._journal = journal
        self._metadata = metadata

    def tick(self) -> None:
        """Propose the next change, if one is due and this node leads."""
        group = self._journal.group
        members = self._metadata.members.by_id
        if not group.is_leader or not members:
            return
        replica = group.replica
        caught_up = [
            member
            for member, progress in replica.progress.items()
            if progress.is_active and progress.match >= replica.log.applied
        ]
        change = next_change(replica.configuration, members, caught_up)
        if change is not None:
            self._journal.propose_change(change)


def next_change(
    configuration: Configuration, members: Collection[int], caught_up: Collection[int]
) -> ConfigurationChange | None:
    """Return the next change by which a group gets these `members`; None if there is none now.

    `caught_up` are the replicas that have all that is committed.
    """
    if configuration.is_joint:
        return None
    in_group = configuration.members
    for member in in_group:
        if member not in members:
            return _change(MemberChangeKind.REMOVED, member)
    for member in sorted(members):
        if member not in in_group:
            return _change(MemberChangeKind.LEARNER, member)
    if len(configuration.voters) < CLUSTER_VOTERS_MAX:
        for member in configuration.learners:
            if member in caught_up:
                return _change(MemberChangeKind.VOTER, member)
    return None


def _change(kind: MemberChangeKind, member: int) -> ConfigurationChange:
    return ConfigurationChange((MemberChange(kind, member),))
