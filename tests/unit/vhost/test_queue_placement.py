"""The members that get replicas of a new quorum queue: as many as are wanted, those with the fewest first."""

from collections.abc import Mapping

import pytest
from tests.unit.vhost.test_queue_home import Cluster

from warren.limits_metadata import QUEUE_MEMBERS_MAX
from warren.metadata.commands import (
    ChangeQueueMembers,
    DeclareExchange,
    DeclareQueue,
    LeadQueue,
    MetadataCommand,
)
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import MemberDown, RemoveMember, SetMemberDraining
from warren.vhost.queue_placement import queue_members, with_members
from warren.wire.table import Int16, Value

QUORUM: Mapping[str, Value] = {"x-queue-type": "quorum"}
SIZE = "x-quorum-initial-group-size"


def chosen(
    metadata: Metadata, leader: int = 1, arguments: Mapping[str, Value] = QUORUM, *, group_size: int = 3
) -> tuple[int, ...]:
    command = DeclareQueue(vhost="v", name="new", durable=True, arguments=arguments)
    return queue_members(metadata, command, leader, group_size=group_size)


def declare(cluster: Cluster, *members: int) -> None:
    name = f"q{cluster.metadata.next_number}"
    cluster.apply(DeclareQueue(vhost="v", name=name, durable=True, arguments=QUORUM, members=members))


def test_the_leader_is_first_and_the_others_are_those_with_the_fewest_replicas() -> None:
    cluster = Cluster(count=5)
    assert chosen(cluster.metadata, 4) == (4, 1, 2)
    declare(cluster, 1, 2)
    assert chosen(cluster.metadata, 4) == (4, 3, 5)
    declare(cluster, 5, 3)
    declare(cluster, 5, 4)
    assert chosen(cluster.metadata, 5) == (5, 1, 2)
    # A queue that is on its home alone has a replica there; a classic queue has none.
    declare(cluster, 1)
    cluster.declare(2, 2, 2)
    assert chosen(cluster.metadata, 5, group_size=4) == (5, 2, 3, 4)


def test_a_replica_that_has_moved_is_counted_where_it_is() -> None:
    cluster = Cluster(count=4)
    declare(cluster, 1, 2, 3)
    assert chosen(cluster.metadata, group_size=2) == (1, 4)
    cluster.apply(LeadQueue(vhost="v", queue="q1", number=1, node=1))
    cluster.apply(LeadQueue(vhost="v", queue="q1", number=1, node=1))
    cluster.apply(ChangeQueueMembers(vhost="v", queue="q1", number=1, added=(4,), removed=(2,)))
    assert chosen(cluster.metadata, group_size=2) == (1, 2)


@pytest.mark.parametrize(
    ("wanted", "expected"), [(1, ()), (2, (2, 1)), (4, (2, 1, 3, 4)), (Int16(5), (2, 1, 3, 4, 5)), (99, 5)]
)
def test_a_queue_has_as_many_members_as_are_wanted_and_there(
    wanted: int, expected: tuple[int, ...] | int
) -> None:
    metadata = Cluster(count=5).metadata
    for found in (
        chosen(metadata, 2, {**QUORUM, SIZE: wanted}, group_size=3),
        chosen(metadata, 2, group_size=int(wanted)),
    ):
        assert (len(found) if isinstance(expected, int) else found) == expected


def test_a_queue_has_a_bounded_number_of_members() -> None:
    metadata = Cluster(count=QUEUE_MEMBERS_MAX + 3).metadata
    assert len(chosen(metadata, arguments={**QUORUM, SIZE: 2**40})) == QUEUE_MEMBERS_MAX


DOWN, DRAINED = MemberDown(id=2, incarnation=1), SetMemberDraining(id=2, is_draining=True)


@pytest.mark.parametrize("gone", [DOWN, DRAINED])
def test_a_member_that_is_down_or_drained_gets_a_replica_if_the_others_are_too_few(
    gone: MetadataCommand,
) -> None:
    cluster = Cluster(count=4)
    cluster.apply(gone)
    for _ in range(3):
        declare(cluster, 3, 4)
    assert chosen(cluster.metadata, 3) == (3, 1, 4)
    assert chosen(cluster.metadata, 3, group_size=4) == (3, 1, 4, 2)


def test_a_member_that_is_drained_is_chosen_before_one_that_is_down() -> None:
    cluster = Cluster()
    cluster.apply(DOWN)
    cluster.apply(SetMemberDraining(id=3, is_draining=True))
    assert chosen(cluster.metadata, group_size=2) == (1, 3)
    assert chosen(cluster.metadata) == (1, 3, 2)


def test_fewer_members_are_down_than_up() -> None:
    cluster = Cluster(count=5)
    for id in (2, 3, 4):
        cluster.apply(MemberDown(id=id, incarnation=1))
    assert chosen(cluster.metadata, group_size=5) == (1, 5, 2)
    cluster.apply(MemberDown(id=5, incarnation=1))
    assert chosen(cluster.metadata, group_size=5) == ()


def test_a_former_member_gets_no_replica() -> None:
    cluster = Cluster()
    cluster.apply(RemoveMember(id=2))
    assert chosen(cluster.metadata, 3) == (3, 1)


def test_the_node_of_the_client_leads_also_while_it_is_drained() -> None:
    cluster = Cluster()
    cluster.apply(SetMemberDraining(id=1, is_draining=True))
    assert chosen(cluster.metadata, 1) == (1, 2, 3)


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "classic"}, {"x-queue-type": "stream"}])
def test_only_a_quorum_queue_has_members(arguments: Mapping[str, Value]) -> None:
    assert chosen(Cluster().metadata, arguments=arguments) == ()


def test_in_a_cluster_of_one_node_nothing_is_chosen() -> None:
    assert chosen(Cluster(count=1).metadata) == chosen(Metadata()) == ()


def test_a_quorum_queue_in_definitions_gets_members_and_everything_else_stays_as_it_is() -> None:
    metadata = Cluster(count=4).metadata
    queue = DeclareQueue(vhost="v", name="q", durable=True, arguments=QUORUM)
    others: list[MetadataCommand] = [
        DeclareQueue(vhost="v", name="q", durable=True),
        DeclareExchange(vhost="v", name="x", type="fanout"),
    ]
    placed = with_members(queue, metadata, 3, group_size=3)
    assert isinstance(placed, DeclareQueue)
    assert placed.members == (3, 1, 2)
    for command in others:
        assert with_members(command, metadata, 3, group_size=3) is command
    assert with_members(queue, Cluster(count=1).metadata, 1, group_size=3) is queue
