"""Who leads a queue, by its record and by what the nodes tell."""

import pytest

from warren.cluster.groups.group_leaders import GroupLeaders
from warren.cluster.groups.group_payloads import LEADER_ROW, VERSION
from warren.cluster.replicated.queue_leaders import KnownLeaders
from warren.metadata.commands import (
    INTERNAL_USER,
    DeclareQueue,
    DeleteQueue,
    MetadataCommand,
    PutVhost,
    RemoveVhost,
)
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import AdmitMember, FormCluster, MemberUp
from warren.metadata.proposals import LocalProposals
from warren.metadata.records import QueueMember, QueueRecord

ADDRESS = {"host": "h", "cluster_port": 1, "incarnation": 1, "feature_level": 1}
RECORD = QueueRecord(
    "q", True, False, None, {}, "", number=7, home=1, members=(QueueMember(1, 1), QueueMember(2, 2))
)
DECLARE = DeclareQueue(
    vhost="v", name="q", durable=True, arguments={"x-queue-type": "quorum"}, members=(1, 2)
)
DELETE = DeleteQueue(vhost="v", name="q")


def record_in(metadata: Metadata) -> QueueRecord:
    vhost = metadata.vhost("v")
    assert vhost is not None
    return vhost.topology.queues["q"]


def told(record: QueueRecord) -> bytes:
    """What a node tells that leads a queue in term 3."""
    return bytes((VERSION,)) + LEADER_ROW.pack(record.number, 3, 1)


def known(metadata: Metadata | None = None, *commands: MetadataCommand) -> tuple[KnownLeaders, GroupLeaders]:
    metadata = metadata or Metadata()
    apply = LocalProposals(metadata, lambda: 0).apply
    apply(FormCluster(cluster_id=bytes(16), name="a", **ADDRESS), INTERNAL_USER)  # type: ignore[arg-type]
    apply(AdmitMember(name="b", **ADDRESS), INTERNAL_USER)  # type: ignore[arg-type]
    apply(MemberUp(id=2, **ADDRESS), INTERNAL_USER)  # type: ignore[arg-type]
    for command in commands:
        apply(command, INTERNAL_USER)
    leaders = GroupLeaders(1, lambda: None)
    return KnownLeaders(leaders, metadata), leaders


def test_the_home_leads_a_queue_without_other_members_whatever_is_told() -> None:
    found, leaders = known()
    leaders.opened(7, 3)
    alone = QueueRecord("q", True, False, None, {}, "", number=7, home=2)
    assert found.leader_of(alone) == 2


def test_who_leads_a_queue_with_several_members_is_what_the_nodes_tell() -> None:
    found, _ = known()
    assert found.leader_of(RECORD) == 0
    heard: list[int] = []
    found.listen(7, lambda: heard.append(found.leader_of(RECORD)))
    found.opened(7, 3)
    found.resigned(7, 3)
    assert heard == [1, 0]
    found.forget("v", RECORD)
    found.opened(7, 4)
    assert heard == [1, 0]


def test_the_leader_is_known_when_the_virtual_host_has_ended_on_this_node_and_starts_again() -> None:
    metadata = Metadata()
    found, leaders = known(metadata, PutVhost(name="v"), DECLARE)
    record = record_in(metadata)
    leaders.received(2, told(record))
    found.forget("v", record)
    assert found.leader_of(record) == 2


@pytest.mark.parametrize("commands", [(DELETE,), (DELETE, DECLARE), (RemoveVhost(name="v"),)])
def test_the_leader_of_a_deleted_queue_is_forgotten(commands: tuple[MetadataCommand, ...]) -> None:
    metadata = Metadata()
    found, leaders = known(metadata, PutVhost(name="v"), DECLARE)
    record = record_in(metadata)
    leaders.received(2, told(record))
    for command in commands:
        LocalProposals(metadata, lambda: 0).apply(command, INTERNAL_USER)
    found.forget("v", record)
    assert found.leader_of(record) == 0
