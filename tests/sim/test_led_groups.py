"""The members of a quorum queue with real groups follow the metadata, whatever crashes, by seeds."""

from collections.abc import Callable

import pytest
from tests.seeds import SEEDS
from tests.sim.quorum_members import Member, QuorumMembers
from tests.sim.segments import make_small
from tests.sim.test_quorum_members import SEGMENT_SIZES, WEIGHTS

from warren.cluster.membership.group_reconciler import GroupReconciler
from warren.cluster.membership.led_groups import LedGroups
from warren.limits_raft import GROUP_COMPACTED_ENTRIES
from warren.metadata.commands import ChangeQueueMembers, DeclareQueue, MetadataCommand, PutVhost, Reply
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberDown, MemberUp
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueRecord
from warren.queues.quorum import group
from warren.queues.quorum.group import QuorumGroup
from warren.replication.raft.change import Configuration

STEPS = 600
VHOST, QUEUE = "/", "q"
TICK_MS = 400
# Rounds in which all that was wanted has come to be.
ROUNDS = 60


class FollowedMembers(QuorumMembers):
    """A group whose members follow the metadata; node n can have replica n, which is on no other one."""

    def __init__(self, seed: int, voters: int, others: int) -> None:
        super().__init__(seed, voters, others)
        self.metadata = Metadata()
        self.proposals = LocalProposals(self.metadata, lambda: 0)
        self.apply(
            FormCluster(
                cluster_id=b"c" * 16, name="n1", host="h", cluster_port=1, incarnation=1, feature_level=1
            )
        )
        for id in range(2, voters + others + 1):
            self.apply(AdmitMember(name=f"n{id}", host="h", cluster_port=id, incarnation=1, feature_level=1))
            self._up(id, 1)
        self.apply(PutVhost(name=VHOST))
        arguments = {"x-queue-type": "quorum"}
        nodes = tuple(range(1, voters + 1))
        self.apply(
            DeclareQueue(vhost=VHOST, name=QUEUE, durable=True, arguments=arguments, home=1, members=nodes)
        )
        self.actions: list[Callable[[int], None]] = []
        # The groups that run on each node, by the number of the queue.
        self.groups: dict[int, dict[int, QuorumGroup]] = {id: {} for id in self.members}
        self.reconcilers = {
            id: GroupReconciler(
                id,
                self.metadata,
                changes=LedGroups(self.groups[id]),
                proposals=self.proposals,
                later=self.actions.append,
            )
            for id in self.members
        }
        # The groups whose leadership was told, by node.
        self._leading: dict[int, QuorumGroup] = {}

    @property
    def record(self) -> QueueRecord:
        """What the metadata say of the queue."""
        return self.metadata.vhosts.by_name[VHOST].topology.queues[QUEUE]

    def apply(self, command: MetadataCommand) -> Reply:
        """Have a command applied."""
        return self.proposals.apply(command)

    def add(self) -> None:
        """Have the next node be a member."""
        node = max(self.record.next_replica, 2)
        if node in self.members:
            self._change((node,), ())

    def remove(self) -> None:
        """Have some node be no member any more."""
        nodes = [member.node for member in self.record.replicas]
        if len(nodes) > 1:
            self._change((), (self.chance.choice(nodes),))

    def reconcile(self) -> None:
        """Tell the reconcilers who leads and who is up, and let time pass for them."""
        for id, member in self.members.items():
            known = self.metadata.members.by_id[id]
            if member.is_up and not known.is_up:
                self._up(id, known.incarnation + 1)
            elif known.is_up and not member.is_up:
                self.apply(MemberDown(id=id, incarnation=known.incarnation))
            self._tell_leader(member)
        while self.actions:
            self.actions.pop()(0)
        for member in self.running():
            self.reconcilers[member.number].tick(TICK_MS)

    def settle_members(self) -> Configuration:
        """Let the members come to be what the metadata say; return them."""
        wanted = Configuration(voters=tuple(sorted(replica for _, replica in self.record.replicas)))
        for _ in range(ROUNDS):
            leader = self.settle_all()
            if leader.group.driver.replica.configuration == wanted:
                return wanted
            self.reconcile()
        raise AssertionError(f"not {wanted}: {leader.group.driver.replica.configuration}")

    def _tell_leader(self, member: Member) -> None:
        id, number = member.number, self.record.number
        self.groups[id].clear()
        if member.is_up:
            self.groups[id][number] = member.group
        led = member.group if member.is_up and member.group.is_open else None
        told = self._leading.get(id)
        if told is not None and told is not led:
            # A process that has crashed knows nothing of it when it starts again.
            del self._leading[id]
            self.reconcilers[id].leadership_ended(number)
        if led is not None and told is not led:
            self._leading[id] = led
            self.reconcilers[id].leadership_began(number, VHOST, QUEUE)

    def _change(self, added: tuple[int, ...], removed: tuple[int, ...]) -> None:
        number = self.record.number
        self.apply(ChangeQueueMembers(vhost=VHOST, queue=QUEUE, number=number, added=added, removed=removed))

    def _up(self, id: int, incarnation: int) -> None:
        self.apply(MemberUp(id=id, incarnation=incarnation, host="h", cluster_port=id, feature_level=1))


@pytest.mark.seeds(SEEDS)
def test_in_the_end_the_group_has_the_members_of_the_metadata_and_nothing_is_lost(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small(monkeypatch, SEGMENT_SIZES[seed % 2])
    monkeypatch.setattr(group, "GROUP_COMPACTED_ENTRIES", GROUP_COMPACTED_ENTRIES if seed % 3 else 4)
    if seed % 4:
        monkeypatch.setattr(group, "GROUP_COMPACTED_SIZE_ALONE", 0)
    simulation = FollowedMembers(seed, 1 if seed % 5 == 0 else 3, 4)
    simulation.settle_all()
    weights = {**WEIGHTS, FollowedMembers.reconcile: 20, FollowedMembers.add: 1, FollowedMembers.remove: 1}
    for action in simulation.chance.choices(list(weights), list(weights.values()), k=STEPS):
        action(simulation)
        simulation.check_terms()
    simulation.settle_members()
    simulation.check_end()


def test_the_queue_moves_to_another_node_with_its_messages() -> None:
    simulation = FollowedMembers(1, 1, 1)
    simulation.settle_all()
    for _ in range(5):
        simulation.publish()
    simulation.add()
    simulation.apply(
        ChangeQueueMembers(vhost=VHOST, queue=QUEUE, number=simulation.record.number, removed=(1,))
    )
    assert simulation.settle_members() == Configuration(voters=(2,))
    leader = simulation.settle_all()
    assert leader.number == 2
    assert sorted(map(int, simulation.bodies(leader).values())) == [1, 2, 3, 4, 5]
