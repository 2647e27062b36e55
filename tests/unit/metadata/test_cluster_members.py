"""The members of a cluster: ids that are given once, runs that are up or down, and what all of them know."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from warren.limits_metadata import MEMBER_ID_MAX
from warren.metadata.commands import (
    DONE,
    EXISTING,
    MISSING,
    PARTLY,
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteEphemeral,
    DeleteQueue,
    MetadataCommand,
    Outcome,
    PutVhost,
    RemoveVhost,
    Reply,
    RestoreTopology,
)
from warren.metadata.events import Event, MemberChanged, MemberRemoved
from warren.metadata.incarnation import NODE_ALONE, Incarnation
from warren.metadata.machine import Metadata
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
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import MemberRecord, QueueRecord, RemovedMember

Apply = Callable[[MetadataCommand], Reply]

FORM = FormCluster(
    cluster_id=b"c" * 16, name="a@h", host="h1", cluster_port=25_672, incarnation=5, feature_level=1,
    amqp_host="public", amqp_port=5_672,
)  # fmt: skip
FIRST = MemberRecord(
    id=NODE_ALONE, name="a@h", host="h1", cluster_port=25_672, incarnation=5, is_up=True,
    is_draining=False, feature_level=1, amqp_host="public", amqp_port=5_672,
)  # fmt: skip
UP = MemberUp(id=2, incarnation=7, host="h2", cluster_port=1, feature_level=2)


def admit(name: str = "b@h", level: int = 2) -> AdmitMember:
    return AdmitMember(name=name, host="h2", cluster_port=1, incarnation=7, feature_level=level)


def refused(reply: Reply) -> str:
    assert reply.outcome is Outcome.REFUSED
    return reply.text


@pytest.fixture
def pair(metadata: Metadata, apply: Apply) -> Metadata:
    """A cluster of two members, both of which are up."""
    for command in (FORM, admit(), UP):
        assert apply(command) is DONE
    return metadata


def homes(metadata: Metadata) -> dict[int, int]:
    return {node: count for node, count in metadata.homes.items() if count}


def queue(metadata: Metadata, name: str = "q") -> QueueRecord:
    return metadata.vhosts.by_name["v"].topology.queues[name]


def test_a_node_that_has_met_no_other_is_no_member(metadata: Metadata, apply: Apply) -> None:
    members = metadata.members
    assert (members.by_id, members.cluster_id, members.feature_level) == ({}, b"", 0)
    assert refused(apply(admit())) == "this node is not a member of a cluster"
    for command in (UP, MemberDown(id=1, incarnation=1), SetMemberDraining(id=1, is_draining=True)):
        assert apply(command) is MISSING
    assert apply(RemoveMember(id=1)) is MISSING
    assert apply(RaiseFeatureLevel(level=1)) is MISSING
    assert members.by_id == {}


def test_the_node_that_was_alone_is_the_first_member(
    metadata: Metadata, apply: Apply, received: list[Event]
) -> None:
    assert apply(FORM) is DONE
    assert received == [MemberChanged(FIRST, None)]
    assert (metadata.members.by_id, metadata.members.cluster_id) == ({1: FIRST}, b"c" * 16)
    assert metadata.members.feature_level == 1
    assert apply(FORM) is EXISTING
    assert refused(apply(replace(FORM, cluster_id=b"d" * 16))) == "this node is a member of a cluster already"
    assert len(received) == 1


def test_a_member_is_down_until_it_is_up_and_is_found_by_its_name(
    metadata: Metadata, apply: Apply, received: list[Event]
) -> None:
    apply(FORM)
    assert apply(admit()) is DONE
    admitted = metadata.members.named("b@h")
    assert admitted is not None
    assert (admitted.id, admitted.is_up, admitted.takes_queues) == (2, False, False)
    assert metadata.members.run_of(2) is None
    assert apply(UP) is DONE
    member = metadata.members.by_id[2]
    assert (member.is_up, member.takes_queues) == (True, True)
    assert metadata.members.run_of(2) == Incarnation(2, 7)
    assert received[1:] == [MemberChanged(admitted, None), MemberChanged(member, admitted)]
    assert apply(UP) is EXISTING
    assert len(received) == 3


def test_a_name_belongs_to_one_member(pair: Metadata, apply: Apply) -> None:
    assert refused(apply(admit())) == "'b@h' is a member of the cluster already"
    apply(RemoveMember(id=2))
    assert apply(admit()) is DONE
    assert [(member.id, member.name) for member in pair.members.by_id.values()] == [(1, "a@h"), (3, "b@h")]


def test_an_id_is_given_once(pair: Metadata, apply: Apply) -> None:
    pair.members.next_id = MEMBER_ID_MAX
    assert apply(admit("last")) is DONE
    assert refused(apply(admit("one more"))) == "all ids of members are used up"
    apply(RemoveMember(id=MEMBER_ID_MAX))
    assert refused(apply(admit("last"))) == "all ids of members are used up"


def test_a_removed_member_is_remembered_and_the_last_one_stays(
    pair: Metadata, apply: Apply, received: list[Event]
) -> None:
    first, second = pair.members.by_id.values()
    assert apply(RemoveMember(id=1, is_forgotten=True)) is DONE
    assert received == [MemberRemoved(first, True)]
    assert pair.members.removed == {1: RemovedMember(id=1, name="a@h", is_forgotten=True)}
    assert apply(RemoveMember(id=1)) is MISSING
    assert refused(apply(RemoveMember(id=2))) == "'b@h' is the last member of the cluster"
    assert pair.members.by_id == {2: second}


def test_the_queues_of_a_forgotten_member_stay_and_their_home_is_named(pair: Metadata, apply: Apply) -> None:
    apply(DeclareQueue(vhost="v", name="q", durable=True, home=2))
    apply(RemoveMember(id=2, is_forgotten=True))
    assert pair.members.removed[queue(pair).home].name == "b@h"
    assert homes(pair) == {2: 1}


def test_only_the_run_that_is_known_goes_down(pair: Metadata, apply: Apply, received: list[Event]) -> None:
    before = pair.members.by_id[2]
    for wrong in (6, 8):
        assert apply(MemberDown(id=2, incarnation=wrong)) is MISSING
    assert received == []
    assert apply(MemberDown(id=2, incarnation=7)) is DONE
    assert received == [MemberChanged(replace(before, is_up=False), before)]
    assert apply(MemberDown(id=2, incarnation=7)) is EXISTING
    assert pair.members.run_of(2) is None
    # It was cut off, and is there again.
    assert apply(UP) is DONE
    assert pair.members.by_id[2] == before


def test_a_later_run_replaces_an_earlier_one_and_not_the_other_way_round(
    pair: Metadata, apply: Apply
) -> None:
    again = MemberUp(
        id=2, incarnation=8, host="h3", cluster_port=4, feature_level=3, amqp_host="p", amqp_port=9
    )
    assert apply(again) is DONE
    member = pair.members.by_id[2]
    assert (member.incarnation, member.host, member.cluster_port, member.feature_level) == (8, "h3", 4, 3)
    assert (member.amqp_host, member.amqp_port, member.name) == ("p", 9, "b@h")
    assert apply(UP) is MISSING
    assert pair.members.by_id[2] == member
    # The end of the earlier run is reported late.
    assert apply(MemberDown(id=2, incarnation=7)) is MISSING
    assert pair.members.by_id[2].is_up


def test_draining_ends_by_a_command_or_with_the_run(pair: Metadata, apply: Apply) -> None:
    drain = SetMemberDraining(id=2, is_draining=True)
    assert apply(drain) is DONE
    assert apply(drain) is EXISTING
    member = pair.members.by_id[2]
    assert (member.is_draining, member.is_up, member.takes_queues) == (True, True, False)
    apply(MemberDown(id=2, incarnation=7))
    apply(UP)
    assert pair.members.by_id[2].is_draining
    apply(replace(UP, incarnation=8))
    assert not pair.members.by_id[2].is_draining
    apply(drain)
    assert apply(SetMemberDraining(id=2, is_draining=False)) is DONE
    assert pair.members.by_id[2].takes_queues


def test_the_feature_level_is_at_most_what_every_member_knows(pair: Metadata, apply: Apply) -> None:
    assert refused(apply(RaiseFeatureLevel(level=2))) == "'a@h' has the feature level 1, not 2"
    assert apply(RaiseFeatureLevel(level=1)) is EXISTING
    up = MemberUp(id=1, incarnation=6, host="h1", cluster_port=1, feature_level=2)
    apply(up)
    assert apply(RaiseFeatureLevel(level=2)) is DONE
    assert pair.members.feature_level == 2
    text = "has the feature level 1, and the cluster has 2"
    assert refused(apply(admit("c@h", level=1))) == f"'c@h' {text}"
    assert refused(apply(replace(up, incarnation=7, feature_level=1))) == f"'a@h' {text}"
    assert pair.members.by_id[1].incarnation == 6
    assert apply(RaiseFeatureLevel(level=1)) is EXISTING
    assert pair.members.feature_level == 2


def test_a_snapshot_restores_the_members(pair: Metadata, apply: Apply) -> None:
    apply(admit("c@h"))
    apply(RemoveMember(id=2))
    members = pair.members
    restore = RestoreMembers(
        cluster_id=members.cluster_id,
        feature_level=members.feature_level,
        next_id=members.next_id,
        members=tuple(members.by_id.values()),
        removed=tuple(members.removed.values()),
    )
    other = Metadata()
    LocalProposals(other, lambda: 0).apply(restore)
    found = other.members
    assert (found.by_id, found.removed, found.next_id) == (members.by_id, members.removed, 4)
    assert (found.cluster_id, found.feature_level) == (b"c" * 16, 1)
    assert not other.applied_proposals.admit(Incarnation(2, 99), 1)


def test_a_queue_is_on_the_node_that_declares_it_unless_a_member_is_named(
    pair: Metadata, apply: Apply
) -> None:
    from_second = LocalProposals(pair, lambda: 0, Incarnation(2, 7)).apply
    apply(DeclareQueue(vhost="v", name="a", durable=True))
    from_second(DeclareQueue(vhost="v", name="b", durable=True))
    from_second(DeclareQueue(vhost="v", name="c", durable=True, home=1))
    assert [queue(pair, name).home for name in "abc"] == [1, 2, 1]
    assert homes(pair) == {1: 2, 2: 1}


@pytest.mark.parametrize("gone", [MemberDown(id=2, incarnation=7), RemoveMember(id=2)])
def test_a_member_that_is_gone_gets_no_queue(pair: Metadata, apply: Apply, gone: MetadataCommand) -> None:
    apply(gone)
    assert apply(DeclareQueue(vhost="v", name="q", durable=True, home=2)) is DONE
    assert queue(pair).home == 1


def test_a_transient_queue_ends_with_the_run_of_its_home(pair: Metadata, apply: Apply) -> None:
    apply(DeclareQueue(vhost="v", name="there", home=2))
    apply(DeclareQueue(vhost="v", name="here"))
    assert queue(pair, "there").incarnation == Incarnation(2, 7)
    assert apply(replace(UP, incarnation=8)) is DONE
    assert apply(DeleteEphemeral(node=2, incarnation=8, count_max=9)) is DONE
    assert list(pair.vhosts.by_name["v"].topology.queues) == ["here"]
    assert homes(pair) == {1: 1}


def test_a_transient_exchange_ends_with_the_last_member(pair: Metadata, apply: Apply) -> None:
    there = LocalProposals(pair, lambda: 0, Incarnation(2, 7)).apply
    there(DeclareExchange(vhost="v", name="x", type="fanout", user="guest"))
    apply(DeclareQueue(vhost="v", name="q", durable=True))
    apply(Bind(vhost="v", source="x", destination="q", is_to_queue=True))
    topology = pair.vhosts.by_name["v"].topology
    apply(MemberDown(id=2, incarnation=7))
    assert apply(DeleteEphemeral(node=2, incarnation=8, count_max=9)) is DONE
    assert topology.exchanges["x"].incarnation == Incarnation(1, 5)
    assert topology.binding_count_from("x") == 1
    assert apply(DeleteEphemeral(node=1, incarnation=6, count_max=9)) is DONE
    assert "x" not in topology.exchanges
    assert topology.binding_count == 0


@pytest.mark.parametrize("count_max", [1, 2, 9])
def test_transient_exchanges_are_handed_over_in_pieces(pair: Metadata, apply: Apply, count_max: int) -> None:
    there = LocalProposals(pair, lambda: 0, Incarnation(2, 7)).apply
    for number in range(5):
        there(DeclareExchange(vhost="v", name=f"x{number}", type="fanout", user="guest"))
    topology = pair.vhosts.by_name["v"].topology
    apply(MemberDown(id=2, incarnation=7))
    while apply(DeleteEphemeral(node=2, incarnation=8, count_max=count_max)) is PARTLY:
        pass
    assert {topology.exchanges[f"x{number}"].incarnation for number in range(5)} == {Incarnation(1, 5)}


@pytest.mark.parametrize("count_max", [1, 2, 9])
def test_an_auto_delete_exchange_ends_with_its_last_binding_to_a_queue_whose_home_is_down(
    pair: Metadata, apply: Apply, count_max: int
) -> None:
    there = LocalProposals(pair, lambda: 0, Incarnation(2, 7)).apply
    there(DeclareQueue(vhost="v", name="q", user="guest"))
    apply(DeclareQueue(vhost="v", name="durable", durable=True))
    for name in ("gone", "bound", "unbound"):
        there(DeclareExchange(vhost="v", name=name, type="fanout", auto_delete=True, user="guest"))
    for name in ("gone", "bound"):
        apply(Bind(vhost="v", source=name, destination="q", is_to_queue=True))
    apply(Bind(vhost="v", source="bound", destination="durable", is_to_queue=True))
    topology = pair.vhosts.by_name["v"].topology
    apply(MemberDown(id=2, incarnation=7))
    while apply(DeleteEphemeral(node=2, incarnation=8, count_max=count_max)) is PARTLY:
        pass
    assert "q" not in topology.queues
    assert {"gone", "bound", "unbound"} & topology.exchanges.keys() == {"bound", "unbound"}


def test_queues_are_counted_as_they_come_and_go(pair: Metadata, apply: Apply) -> None:
    apply(PutVhost(name="w"))
    for vhost, name, home in (("v", "a", 1), ("v", "b", 2), ("w", "a", 2), ("w", "b", 2)):
        apply(DeclareQueue(vhost=vhost, name=name, durable=True, home=home))
        assert apply(DeclareQueue(vhost=vhost, name=name, durable=True, home=home)) is EXISTING
    assert homes(pair) == {1: 1, 2: 3}
    apply(DeleteQueue(vhost="w", name="b"))
    assert homes(pair) == {1: 1, 2: 2}
    restored = QueueRecord("r", True, False, None, {}, "", 50, None, 2)
    apply(RestoreTopology(vhost="v", queues=(restored,)))
    assert homes(pair) == {1: 1, 2: 3}
    apply(RemoveVhost(name="w"))
    assert homes(pair) == {1: 1, 2: 2}
