"""The members of the cluster: who they are, which of them are there, and what all of them know.

A node that has met no other has no members in its metadata: it is NODE_ALONE, which becomes the id of the
first member. Whether a member is up is decided by commands, not observed: every node draws the same
consequences, in the same order.

Invariants:

- An id and a cluster id are given once. Ids of removed members are remembered, with their names.
- No member knows less than the feature level, and the feature level never falls.
- Of each member one run is known: the latest that was ever up.
"""

from msgspec.structs import replace

from warren.limits_metadata import MEMBER_ID_MAX
from warren.metadata.applied_proposals import AppliedProposals
from warren.metadata.commands import DONE, EXISTING, MISSING, Outcome, Reply
from warren.metadata.events import Listener, MemberChanged, MemberRemoved
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberDown,
    MemberUp,
    RaiseFeatureLevel,
    RemoveMember,
    RestoreMembers,
    SetMemberDraining,
)
from warren.metadata.records import MemberRecord, RemovedMember


class ClusterMembers:
    """All members of the cluster by id, in the order of their ids; none if the node has met no other."""

    __slots__ = ("_applied", "_notify", "by_id", "cluster_id", "feature_level", "next_id", "removed")

    def __init__(self, notify: Listener, applied: AppliedProposals) -> None:
        self._notify = notify
        self._applied = applied
        self.by_id: dict[int, MemberRecord] = {}
        # Empty before there is a cluster.
        self.cluster_id = b""
        # What every member knows.
        self.feature_level = 0
        self.next_id = NODE_ALONE
        self.removed: dict[int, RemovedMember] = {}

    def named(self, name: str) -> MemberRecord | None:
        """The member `name`; None if there is none."""
        return next((member for member in self.by_id.values() if member.name == name), None)

    def run_of(self, id: int) -> Incarnation | None:
        """The present run of the member `id`; None if it is no member, or not up."""
        member = self.by_id.get(id)
        return None if member is None or not member.is_up else Incarnation(id, member.incarnation)

    def form(self, command: FormCluster) -> Reply:
        """Make the node that was alone the first member; EXISTING if it is one of this cluster already."""
        if self.cluster_id:
            if self.cluster_id == command.cluster_id:
                return EXISTING
            return Reply(Outcome.REFUSED, "this node is a member of a cluster already")
        self.cluster_id = command.cluster_id
        self.feature_level = command.feature_level
        self._add(
            MemberRecord(
                id=self.next_id,
                name=command.name,
                host=command.host,
                cluster_port=command.cluster_port,
                incarnation=command.incarnation,
                is_up=True,
                is_draining=False,
                feature_level=command.feature_level,
                amqp_host=command.amqp_host,
                amqp_port=command.amqp_port,
            )
        )
        return DONE

    def admit(self, command: AdmitMember) -> Reply:
        """Add a member with the next id, which is not up yet; REFUSED if it cannot be one."""
        refusal = self._refusal(command)
        if refusal is not None:
            return Reply(Outcome.REFUSED, refusal)
        self._add(
            MemberRecord(
                id=self.next_id,
                name=command.name,
                host=command.host,
                cluster_port=command.cluster_port,
                incarnation=command.incarnation,
                is_up=False,
                is_draining=False,
                feature_level=command.feature_level,
            )
        )
        return DONE

    def remove(self, command: RemoveMember) -> Reply:
        """Remove a member, whose proposals are not applied any more; REFUSED if it is the last one."""
        member = self.by_id.get(command.id)
        if member is None:
            return MISSING
        if len(self.by_id) == 1:
            return Reply(Outcome.REFUSED, f"'{member.name}' is the last member of the cluster")
        del self.by_id[member.id]
        self.removed[member.id] = RemovedMember(
            id=member.id, name=member.name, is_forgotten=command.is_forgotten
        )
        self._applied.remove(member.id)
        self._notify(MemberRemoved(member, command.is_forgotten))
        return DONE

    def up(self, command: MemberUp) -> Reply:
        """Record that a run of a member is there; MISSING if a later run is known.

        A new run is not draining.
        """
        member = self.by_id.get(command.id)
        if member is None or command.incarnation < member.incarnation:
            return MISSING
        if command.feature_level < self.feature_level:
            return self._too_low(member.name, command.feature_level)
        self._applied.begin_run(command.id, command.incarnation)
        return self._put(
            replace(
                member,
                host=command.host,
                cluster_port=command.cluster_port,
                incarnation=command.incarnation,
                is_up=True,
                is_draining=member.is_draining and command.incarnation == member.incarnation,
                feature_level=command.feature_level,
                amqp_host=command.amqp_host,
                amqp_port=command.amqp_port,
            )
        )

    def down(self, command: MemberDown) -> Reply:
        """Record that a run of a member is not there; MISSING if that is not the run which is known."""
        member = self.by_id.get(command.id)
        if member is None or command.incarnation != member.incarnation:
            return MISSING
        return self._put(replace(member, is_up=False))

    def set_draining(self, command: SetMemberDraining) -> Reply:
        """Begin or end the draining of a member."""
        member = self.by_id.get(command.id)
        return MISSING if member is None else self._put(replace(member, is_draining=command.is_draining))

    def raise_level(self, command: RaiseFeatureLevel) -> Reply:
        """Raise the feature level; REFUSED if a member does not know as much."""
        if not self.by_id:
            return MISSING
        if command.level <= self.feature_level:
            return EXISTING
        for member in self.by_id.values():
            if member.feature_level < command.level:
                return Reply(
                    Outcome.REFUSED,
                    f"'{member.name}' has the feature level {member.feature_level}, not {command.level}",
                )
        self.feature_level = command.level
        return DONE

    def restore(self, command: RestoreMembers) -> Reply:
        """Replace the members by those of a snapshot."""
        self.cluster_id = command.cluster_id
        self.feature_level = command.feature_level
        self.next_id = command.next_id
        self.removed = {removed.id: removed for removed in command.removed}
        for id in self.removed:
            self._applied.remove(id)
        before, self.by_id = self.by_id, {member.id: member for member in command.members}
        for id, member in before.items():
            if id not in self.by_id:
                removed = self.removed.get(id)
                self._notify(MemberRemoved(member, removed is not None and removed.is_forgotten))
        for id, member in self.by_id.items():
            if before.get(id) != member:
                self._notify(MemberChanged(member, before.get(id)))
        return DONE

    def _refusal(self, command: AdmitMember) -> str | None:
        if not self.by_id:
            return "this node is not a member of a cluster"
        if self.named(command.name) is not None:
            return f"'{command.name}' is a member of the cluster already"
        if self.next_id > MEMBER_ID_MAX:
            return "all ids of members are used up"
        if command.feature_level < self.feature_level:
            return self._too_low(command.name, command.feature_level).text
        return None

    def _too_low(self, name: str, level: int) -> Reply:
        text = f"'{name}' has the feature level {level}, and the cluster has {self.feature_level}"
        return Reply(Outcome.REFUSED, text)

    def _add(self, member: MemberRecord) -> None:
        self.next_id = member.id + 1
        self._applied.begin_run(member.id, member.incarnation)
        self.by_id[member.id] = member
        self._notify(MemberChanged(member, None))

    def _put(self, member: MemberRecord) -> Reply:
        before = self.by_id[member.id]
        if member == before:
            return EXISTING
        self.by_id[member.id] = member
        self._notify(MemberChanged(member, before))
        return DONE
