"""Nodes that lead groups of quorum queues and change their members, with a model in place of Raft.

A group is its configuration, its leader, one change under way and who is caught up. The nodes share one state
of the metadata. Every change that a node asks for is checked by the invariants of the reconciler.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.membership.target_size import target_size
from warren.limits_cluster import GROUP_CHANGES_MAX
from warren.metadata.commands import (
    ChangeQueueMembers,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    PutVhost,
    Reply,
)
from warren.metadata.events import Event, QueueMembersChanged
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp, RemoveMember
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import FIRST_REPLICA, QueueRecord
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
    changed,
)
from warren.wire.table import Value

VHOST = "/"
TICK_MS = 400


class Group(Struct):
    """The group of one queue."""

    number: int
    queue: str
    configuration: Configuration
    # The node of each replica that there ever was.
    nodes: dict[int, int]
    # The replica that leads; None if there is none.
    leader: int | None = None
    pending: ConfigurationChange | None = None
    caught_up: set[int] = field(default_factory=set)


class Node:
    """One node: port `GroupChanges` of its reconciler."""

    def __init__(self, id: int, groups: GroupMembers) -> None:
        self.id = id
        self._groups = groups
        self.is_refusing = False
        self.reconciler = GroupReconciler(
            id,
            groups.metadata,
            changes=self,
            proposals=groups.proposals,
            later=groups.actions.append,
        )

    def led(self, number: int) -> Group | None:
        """The group if this node leads it."""
        group = self._groups.by_number.get(number)
        if group is None or group.leader is None or group.nodes[group.leader] != self.id:
            return None
        return group

    def configuration(self, number: int) -> Configuration | None:
        group = self.led(number)
        return None if group is None else group.configuration

    def own_replica(self, number: int) -> int:
        group = self.led(number)
        assert group is not None
        assert group.leader is not None
        return group.leader

    def is_caught_up(self, number: int, replica: int) -> bool:
        return replica in self._groups.by_number[number].caught_up

    def is_active(self, number: int, replica: int) -> bool:
        group = self._groups.by_number[number]
        return self._groups.is_up(group.nodes[replica])

    def add_learner(self, number: int, replica: int) -> bool:
        group = self._groups.by_number[number]
        assert replica not in group.configuration.members
        return self._propose(number, MemberChange(MemberChangeKind.LEARNER, replica))

    def promote(self, number: int, replica: int) -> bool:
        group = self._groups.by_number[number]
        assert replica in group.configuration.learners
        assert replica in group.caught_up
        return self._propose(number, MemberChange(MemberChangeKind.VOTER, replica))

    def remove(self, number: int, replica: int) -> bool:
        group = self._groups.by_number[number]
        wanted = self._groups.wanted(group)
        assert replica not in wanted
        assert replica != group.leader
        if group.configuration.is_voter(replica) and self.is_active(number, replica):
            assert set(wanted) <= set(group.configuration.voters)
            assert 2 * len(group.caught_up & set(wanted)) > len(wanted)
        return self._propose(number, MemberChange(MemberChangeKind.REMOVED, replica))

    def transfer(self, number: int, replica: int) -> bool:
        group = self._groups.by_number[number]
        assert replica in group.configuration.voters
        assert replica in group.caught_up
        assert group.leader not in self._groups.wanted(group)
        if self.is_refusing or group.pending is not None:
            return False
        self._groups.lead(group, replica)
        return True

    def _propose(self, number: int, change: MemberChange) -> bool:
        group = self._groups.by_number[number]
        assert self.led(number) is group
        if self.is_refusing or group.pending is not None:
            return False
        group.pending = ConfigurationChange((change,))
        pending = sum(self.led(other.number) is other and other.pending is not None for other in self._groups)
        assert pending <= GROUP_CHANGES_MAX
        return True


class GroupMembers:
    """All nodes and groups, made by `chance`."""

    def __init__(self, chance: random.Random, node_count: int) -> None:
        self._chance = chance
        self.metadata = Metadata()
        self.proposals = LocalProposals(self.metadata, lambda: 0)
        self.by_number: dict[int, Group] = {}
        self.nodes: dict[int, Node] = {}
        # What is called in a later turn.
        self.actions: list[Callable[[int], None]] = []
        self._names = 0
        self.apply(PutVhost(name=VHOST))
        self.metadata.listen(self._changed, (QueueMembersChanged,))
        for number in range(1, node_count + 1):
            self._admit(number)

    def __iter__(self) -> Iterator[Group]:
        return iter(self.by_number.values())

    def apply(self, command: MetadataCommand) -> Reply:
        """Have a command applied."""
        return self.proposals.apply(command)

    def is_up(self, node: int) -> bool:
        """True if the cluster has agreed that the node is up."""
        return self.metadata.members.run_of(node) is not None

    def record(self, group: Group) -> QueueRecord:
        """What the metadata say of the queue of a group."""
        return self.metadata.vhosts.by_name[VHOST].topology.queues[group.queue]

    def wanted(self, group: Group) -> list[int]:
        """The replicas that the group is to have."""
        return [member.replica for member in self.record(group).replicas]

    def target(self, group: Group) -> int | None:
        """The target size of a queue."""
        return target_size(self.metadata.vhosts.by_name[VHOST], self.record(group))

    def declare(self, home: int, target: int | None = None) -> Group:
        """Declare a queue with one replica, on a node that is up."""
        self._names += 1
        name = f"q{self._names}"
        arguments: dict[str, Value] = {"x-queue-type": "quorum"}
        if target is not None:
            arguments["x-quorum-target-group-size"] = target
        self.apply(DeclareQueue(vhost=VHOST, name=name, durable=True, arguments=arguments, home=home))
        number = self.metadata.vhosts.by_name[VHOST].topology.queues[name].number
        group = Group(number, name, Configuration(voters=(FIRST_REPLICA,)), {FIRST_REPLICA: home})
        group.caught_up.add(FIRST_REPLICA)
        self.by_number[number] = group
        self.elect(group)
        return group

    def delete(self, group: Group) -> None:
        """Delete the queue of a group."""
        self.lead(group, None)
        del self.by_number[group.number]
        self.apply(DeleteQueue(vhost=VHOST, name=group.queue))

    def change(self, group: Group, added: tuple[int, ...], removed: tuple[int, ...]) -> Reply:
        """Have the members of a queue changed, as an operator does."""
        return self.apply(
            ChangeQueueMembers(
                vhost=VHOST, queue=group.queue, number=group.number, added=added, removed=removed
            )
        )

    def lead(self, group: Group, replica: int | None) -> None:
        """Have a replica lead a group, or none; a change that is not applied is lost."""
        if group.leader is not None:
            self.nodes[group.nodes[group.leader]].reconciler.leadership_ended(group.number)
        group.leader = replica
        group.pending = None
        if replica is not None:
            self.nodes[group.nodes[replica]].reconciler.leadership_began(group.number, VHOST, group.queue)

    def elect(self, group: Group, index: int = 0) -> None:
        """Elect one of those that have everything, if a majority is up."""
        up = [replica for replica in group.configuration.voters if self.is_up(group.nodes[replica])]
        able = [replica for replica in up if replica in group.caught_up]
        has_majority = 2 * len(up) > len(group.configuration.voters)
        self.lead(group, able[index % len(able)] if able and has_majority else None)

    def replicate(self, group: Group, replica: int) -> None:
        """Let a replica get all that there is."""
        if (
            group.leader is not None
            and replica in group.configuration.members
            and self.is_up(group.nodes[replica])
        ):
            group.caught_up.add(replica)

    def take_effect(self, group: Group) -> None:
        """Let the change of a group take effect if a majority can agree."""
        up = [replica for replica in group.configuration.voters if self.is_up(group.nodes[replica])]
        if group.pending is None or group.leader is None or 2 * len(up) <= len(group.configuration.voters):
            return
        group.configuration = changed(group.configuration, group.pending)
        group.caught_up &= set(group.configuration.members)
        group.pending = None
        assert group.leader in group.configuration.voters
        self.nodes[group.nodes[group.leader]].reconciler.change_applied(group.number)

    def take_down(self, node: int) -> None:
        """Let a node end: what it leads is led by others."""
        self.apply(MemberDown(id=node, incarnation=self.metadata.members.by_id[node].incarnation))
        for group in list(self):
            if group.leader is not None and group.nodes[group.leader] == node:
                self.elect(group)

    def fall_behind(self, group: Group, replica: int) -> None:
        """Let a replica lack something that is committed, as a majority has it without this one."""
        voters = group.configuration.voters
        having_all = [other for other in group.caught_up if other in voters and other != replica]
        if group.leader not in (None, replica) and 2 * len(having_all) > len(voters):
            group.caught_up.discard(replica)

    def bring_up(self, node: int) -> None:
        """Let a node start again."""
        member = self.metadata.members.by_id[node]
        self._up(node, member.incarnation + 1)
        for group in self:
            if group.leader is None:
                self.elect(group)

    def forget(self, node: int) -> None:
        """Remove a node that is down from the cluster."""
        self.apply(RemoveMember(id=node, is_forgotten=True))

    def tick(self) -> None:
        """Let some time pass at all nodes that are up."""
        self.turn()
        for id, node in self.nodes.items():
            if self.is_up(id):
                node.reconciler.tick(TICK_MS)
                assert node.reconciler.ongoing_count <= GROUP_CHANGES_MAX

    def turn(self) -> None:
        """Let the next turn be that one."""
        while self.actions:
            self.actions.pop(0)(0)

    def settle(self) -> None:
        """Let everything happen that can, without failures, until nothing changes any more."""
        for node in self.nodes.values():
            node.is_refusing = False
        for id in list(self.metadata.members.by_id):
            if not self.is_up(id):
                self.bring_up(id)
        for _ in range(400):
            for group in list(self):
                if group.leader is None:
                    self.elect(group)
                for replica in group.configuration.members:
                    self.replicate(group, replica)
                self.take_effect(group)
            self.tick()
            if not self.actions and all(node.reconciler.is_idle for node in self.nodes.values()):
                return
        raise AssertionError("it does not come to an end")

    def _admit(self, number: int) -> None:
        if number == 1:
            self.apply(
                FormCluster(
                    cluster_id=b"c" * 16, name="n1", host="h", cluster_port=1, incarnation=1, feature_level=0
                )
            )
        else:
            self.apply(
                AdmitMember(name=f"n{number}", host="h", cluster_port=number, incarnation=1, feature_level=0)
            )
            self._up(number, 1)
        self.nodes[number] = Node(number, self)

    def _up(self, node: int, incarnation: int) -> None:
        self.apply(MemberUp(id=node, incarnation=incarnation, host="h", cluster_port=node, feature_level=0))

    def _changed(self, event: Event) -> None:
        if isinstance(event, QueueMembersChanged):
            queue = event.queue
            self.by_number[queue.number].nodes |= {member.replica: member.node for member in queue.members}
