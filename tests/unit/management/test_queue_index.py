"""The index of queues by name, kept while queues are declared and deleted."""

import asyncio

import pytest
from tests.unit.session.client import Broker
from tests.unit.session.streams.client import Node

from warren.limits_metadata import POLICIES_MATCHED_PER_TURN
from warren.management.queue_index import QueueIndex, find_policies
from warren.metadata.commands import (
    ChangeQueueMembers,
    DeclareQueue,
    DeleteQueue,
    LeadQueue,
    PutVhost,
    RemoveVhost,
    SetPolicy,
)
from warren.metadata.incarnation import NODE_ALONE
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.metadata.proposals import LocalProposals
from warren.wire import methods


def test_queues_are_in_order_after_any_declarations_and_deletions() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    order = QueueIndex(metadata)
    vhost = metadata.vhosts.by_name["/"]

    def names() -> list[str]:
        found = order.of(vhost)
        for named in found:
            assert (named.vhost, named.record) == ("/", vhost.topology.queues[named.record.name])
        return [named.record.name for named in found]

    assert names() == []
    client.ask(*(methods.QueueDeclare(queue=name) for name in "dbe"))
    assert names() == ["b", "d", "e"]
    client.ask(methods.QueueDelete(queue="d"), *(methods.QueueDeclare(queue=name) for name in "ca"))
    assert names() == ["a", "b", "c", "e"]
    client.ask(methods.QueueDelete(queue="a"), methods.QueueDeclare(queue="a", durable=True))
    assert names() == ["a", "b", "c", "e"]
    assert order.of(vhost) is order.of(vhost)


def test_a_returned_list_does_not_change() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    order = QueueIndex(metadata)
    client.ask(methods.QueueDeclare(queue="a"))
    before = order.of(metadata.vhosts.by_name["/"])
    client.ask(methods.QueueDeclare(queue="b"), methods.QueueDelete(queue="a"))
    assert [named.record.name for named in before] == ["a"]


def test_queues_declared_before_the_index_are_in_order() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    client.ask(*(methods.QueueDeclare(queue=name) for name in "cab"))
    names = [named.record.name for named in QueueIndex(metadata).of(metadata.vhosts.by_name["/"])]
    assert names == ["a", "b", "c"]


def test_many_queues_across_blocks_are_in_order() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    order = QueueIndex(metadata)
    vhost = metadata.vhosts.by_name["/"]
    names = [f"q{at * 7919 % 2_500:04}" for at in range(2_500)]
    client.ask(*(methods.QueueDeclare(queue=name) for name in names))
    assert [named.record.name for named in order.of(vhost)] == sorted(names)
    gone = {*names[::3], *(f"q{at:04}" for at in range(700))}
    client.ask(*(methods.QueueDelete(queue=name) for name in gone))
    assert [named.record.name for named in order.of(vhost)] == sorted(set(names) - gone)


@pytest.mark.parametrize("kind", ["stream", "quorum"])
def test_streams_and_quorum_queues_are_indexed_separately_in_order(kind: str) -> None:
    node = Node()
    metadata = node.services.metadata
    vhost = metadata.vhosts.by_name["/"]
    order = QueueIndex(metadata)
    assert order.of_kind("/", kind) == []
    apply, arguments = node.proposals.apply, {"x-queue-type": kind}
    for name in "dbe":
        apply(DeclareQueue(vhost="/", name=name, durable=True, arguments=arguments))
    for name in "ac":
        apply(DeclareQueue(vhost="/", name=name, durable=True))
    before = order.of_kind("/", kind)
    assert [named.record.name for named in before] == ["b", "d", "e"]
    assert set(before) < set(order.of(vhost))
    for name in "dab":
        apply(DeleteQueue(vhost="/", name=name))
    # A new queue with the name of a deleted one.
    apply(DeclareQueue(vhost="/", name="b", durable=True))
    for known in (order, QueueIndex(metadata)):
        assert [named.record.name for named in known.of_kind("/", kind)] == ["e"]
    assert [named.record.name for named in before] == ["b", "d", "e"]
    apply(RemoveVhost(name="/"))
    assert order.of_kind("/", kind) == []


def test_the_live_queue_is_found_after_a_restart() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    client.ask(methods.QueueDeclare(queue="a"))
    (named,) = QueueIndex(metadata).of(metadata.vhosts.by_name["/"])
    queues = broker.services.vhost.queues
    assert named.live({}) is None
    assert named.live(queues) is queues["a"]
    assert named.live({}) is None
    assert named.live(dict(queues)) is queues["a"]


def test_the_policies_of_many_queues_are_found_in_turns() -> None:
    broker = Broker()
    client, metadata = broker.client(), broker.services.metadata
    order = QueueIndex(metadata)
    client.ask(*(methods.QueueDeclare(queue=name) for name in "abcd"))
    for number in range(POLICIES_MATCHED_PER_TURN):
        pattern = f"^{'abcd'[number % 4]}$"
        policy = SetPolicy(vhost="/", name=f"p{number:04}", pattern=pattern, definition={"max-length": 1})
        broker.proposals.apply(policy)
    vhost = metadata.vhosts.by_name["/"]
    named = order.of(vhost)

    async def found() -> list[int]:
        finding = asyncio.ensure_future(find_policies(named, metadata, order))
        known = []
        while not finding.done():
            await asyncio.sleep(0)
            known.append(sum(one.knows_policies(order.policy_generation) for one in named))
        return known

    assert asyncio.run(found())[:4] == [1, 2, 3, 4]
    policies = [one.policies(vhost, order.policy_generation)[0] for one in named]
    assert [one and one.name for one in policies] == ["p0000", "p0001", "p0002", "p0003"]
    assert len(asyncio.run(found())) == 1


def test_the_queues_of_each_home_are_counted() -> None:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    local.apply(PutVhost(name="/"))
    local.apply(DeclareQueue(vhost="/", name="before"))
    index = QueueIndex(metadata)
    local.apply(DeclareQueue(vhost="/", name="after"))
    assert index.count_at("/", NODE_ALONE) == 2
    assert index.count_at("/", 7) == index.count_at("other", NODE_ALONE) == 0
    local.apply(DeleteQueue(vhost="/", name="before"))
    assert index.count_at("/", NODE_ALONE) == 1
    local.apply(RemoveVhost(name="/"))
    assert index.count_at("/", NODE_ALONE) == 0


def test_a_queue_with_other_members_is_in_the_index_with_its_new_home() -> None:
    metadata = Metadata()
    local = LocalProposals(metadata, lambda: 0)
    quorum = {"x-queue-type": "quorum"}
    for command in (
        PutVhost(name="/"),
        FormCluster(
            cluster_id=b"c" * 16, name="one", host="h", cluster_port=1, incarnation=1, feature_level=1
        ),
        AdmitMember(name="two", host="h", cluster_port=1, incarnation=1, feature_level=1),
        MemberUp(id=2, incarnation=1, host="h", cluster_port=1, feature_level=1),
    ):
        local.apply(command)
    index = QueueIndex(metadata)
    local.apply(DeclareQueue(vhost="/", name="q", durable=True, arguments=quorum, members=(2, 1)))
    local.apply(LeadQueue(vhost="/", queue="q", number=1, node=2))
    local.apply(ChangeQueueMembers(vhost="/", queue="q", number=1, removed=(2,)))
    vhost = metadata.vhosts.by_name["/"]
    for found in (index.of(vhost), index.of_kind("/", "quorum")):
        assert [one.record for one in found] == [vhost.topology.queues["q"]]
    assert (index.count_at("/", NODE_ALONE), index.count_at("/", 2)) == (1, 0)
