"""The next step by which a Raft group gets the members that the metadata say, as a pure function.

    wanted, on a node that is up ─▶ learner ─ caught up ─▶ voter
    not wanted and silent, or a learner ─▶ removed at once: it holds nothing that the others lack
    not wanted ─ all that are wanted vote, and most of them have everything ─▶ removed
    not wanted, and the leader ─ no other is left that is not wanted ─▶ hands over to one that is wanted

So no replica that has everything leaves before those that replace it vote, and before the group can go on
without it.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from warren.replication.raft.change import Configuration


class MemberStepKind(Enum):
    """What is done with a replica."""

    ADD_LEARNER = "add learner"
    PROMOTE = "promote"
    REMOVE = "remove"
    TRANSFER = "transfer"


class MemberStep(NamedTuple):
    """What is done with one replica of a group."""

    kind: MemberStepKind
    replica: int


class LedGroup(Struct, frozen=True, kw_only=True):
    """A group as its leader sees it, and the members it is to have."""

    configuration: Configuration
    # The replica that leads.
    leader: int
    # The replicas that it is to have, and whether the node of each is up.
    wanted: Mapping[int, bool]
    is_caught_up: Callable[[int], bool]
    is_active: Callable[[int], bool]

    @property
    def is_settled(self) -> bool:
        """True if the group has exactly the members it is to have, and all of them vote."""
        return (
            not self.configuration.is_joint
            and self.configuration.voters == tuple(sorted(self.wanted))
            and (not self.configuration.learners)
        )

    @property
    def is_waiting_for_node(self) -> bool:
        """True if a replica that is not in the group, or not yet a voter, is on a node that is down."""
        voters = self.configuration.voters
        return any(not is_up and replica not in voters for replica, is_up in self.wanted.items())


def next_step(group: LedGroup) -> MemberStep | None:
    """Return the next step; None if there is none, or none before something else happens."""
    configuration = group.configuration
    if configuration.is_joint:
        return None
    wanted = sorted(group.wanted)
    unwanted = [replica for replica in configuration.members if replica not in group.wanted]
    others = [replica for replica in unwanted if replica != group.leader]
    for replica in others:
        if replica in configuration.learners or not group.is_active(replica):
            return MemberStep(MemberStepKind.REMOVE, replica)
    for replica in wanted:
        if replica not in configuration.members and group.wanted[replica]:
            return MemberStep(MemberStepKind.ADD_LEARNER, replica)
    for replica in configuration.learners:
        if group.is_caught_up(replica):
            return MemberStep(MemberStepKind.PROMOTE, replica)
    if not unwanted or any(replica not in configuration.voters for replica in wanted):
        return None
    having_all = [replica for replica in wanted if replica == group.leader or group.is_caught_up(replica)]
    if 2 * len(having_all) <= len(wanted):
        return None
    if others:
        return MemberStep(MemberStepKind.REMOVE, others[0])
    return MemberStep(MemberStepKind.TRANSFER, having_all[0])
