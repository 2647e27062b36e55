"""A snapshot restores every object, of which a restart deletes those that do not survive it."""

from collections.abc import Mapping

import pytest
from tests.exported import export_definitions

from warren.journal.codec import VoteState
from warren.journal.file_format import NAME
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.log_reader import RecoveredLog, replay
from warren.journal.recovery import recover
from warren.journal.snapshot import JournalSnapshot, SnapshotOrigin, SnapshotPlace
from warren.limits import JOURNAL_ROWS_MAX
from warren.metadata.commands import (
    Bind,
    CommandContext,
    DeclareExchange,
    DeclareQueue,
    EndLease,
    GrantLease,
    MetadataCommand,
    PauseQueue,
    PutVhost,
    RenewLease,
    SetParameter,
    SetPolicy,
)
from warren.metadata.incarnation import Incarnation
from warren.metadata.leases import LeaseRecord, LeaseState
from warren.metadata.machine import Metadata
from warren.metadata.member_commands import (
    AdmitMember,
    FormCluster,
    MemberUp,
    RemoveMember,
    RestoreAppliedProposals,
)
from warren.replication.raft.change import Configuration
from warren.store.disk import DiskStep, OnDone

COUNT = JOURNAL_ROWS_MAX * 2 + 1
VOTED = VoteState(3, 1)
ALONE = Configuration((1,))


class OneFile:
    """A disk with one file, the journal."""

    def __init__(self, data: bytes) -> None:
        self._bytes = data

    def names(self) -> Mapping[str, int]:
        return {NAME: len(self._bytes)}

    def read(self, name: str, at: int, size: int) -> bytes:
        return self._bytes[at : at + size]

    def perform(self, steps: list[DiskStep]) -> None:
        raise NotImplementedError

    def submit(self, steps: list[DiskStep], done: OnDone) -> None:
        raise NotImplementedError


def made(commands: list[MetadataCommand]) -> Metadata:
    metadata = Metadata()
    for index, command in enumerate(commands, 1):
        metadata.apply(command, CommandContext(index=index, now=0))
    return metadata


def snapshot_of(metadata: Metadata, hard: VoteState = VOTED, configuration: Configuration = ALONE) -> bytes:
    place = SnapshotPlace(index=metadata.index, term=2, hard=hard, configuration=configuration)
    return b"".join(JournalSnapshot(metadata, place, SnapshotOrigin(bytes(8), 1, bytes(8))))


def again(metadata: Metadata) -> Metadata:
    """The metadata after a restart."""
    found = Metadata()
    assert recover(OneFile(snapshot_of(metadata)), found).damage == []
    return found


def replayed(metadata: Metadata) -> Metadata:
    """The metadata that the snapshot contains."""
    found = Metadata()
    log = RecoveredLog(mark=HighWaterMarkFile(None))
    replay(snapshot_of(metadata), found, log)
    assert log.damage == []
    return found


def test_objects_of_several_entries_are_restored() -> None:
    metadata = made(
        [
            PutVhost(name="v"),
            SetPolicy(vhost="v", name="p", pattern="^q", definition={"max-length": 5}),
            *(DeclareExchange(vhost="v", name=f"x{n}", type="topic", durable=True) for n in range(COUNT)),
            *(
                DeclareQueue(vhost="v", name=f"q{n}", durable=True, arguments={"x-max-priority": n % 3 + 1})
                for n in range(COUNT)
            ),
            *(Bind(vhost="v", source=f"x{n}", destination=f"q{n}", routing_key="k") for n in range(COUNT)),
            *(
                Bind(vhost="v", source="x0", destination=f"x{n}", is_to_queue=False, arguments={"n": n})
                for n in range(1, COUNT)
            ),
        ]
    )
    found = replayed(metadata)
    assert export_definitions(found, version="0") == export_definitions(metadata, version="0")
    assert found.index == metadata.index
    topologies = [both.vhosts.by_name["v"].topology for both in (found, metadata)]
    assert topologies[0].queues == topologies[1].queues
    assert list(topologies[0].bindings()) == list(topologies[1].bindings())


def test_transient_objects_are_in_a_snapshot_and_deleted_at_a_restart() -> None:
    metadata = made(
        [
            PutVhost(name="v"),
            DeclareExchange(vhost="v", name="kept", type="fanout", durable=True, auto_delete=True),
            DeclareExchange(vhost="v", name="transient", type="fanout"),
            DeclareQueue(vhost="v", name="kept", durable=True, user="u"),
            DeclareQueue(vhost="v", name="transient"),
            DeclareQueue(vhost="v", name="exclusive", durable=True, owner="somebody"),
            *(
                Bind(vhost="v", source=source, destination=destination)
                for source in ("kept", "transient")
                for destination in ("kept", "transient", "exclusive")
            ),
        ]
    )
    whole, before = (of.vhosts.by_name["v"].topology for of in (replayed(metadata), metadata))
    assert (whole.exchanges, whole.queues) == (before.exchanges, before.queues)
    assert sorted(whole.bindings()) == sorted(before.bindings())
    topology = again(metadata).vhosts.by_name["v"].topology
    assert [name for name in topology.exchanges if name and not name.startswith("amq.")] == ["kept"]
    assert list(topology.queues) == ["kept"]
    assert topology.queues["kept"].number == 1
    assert [(binding.source, binding.destination) for binding in topology.bindings()] == [("kept", "kept")]


def test_a_pause_is_restored_with_a_durable_queue() -> None:
    metadata = made(
        [
            PutVhost(name="v"),
            *(
                DeclareQueue(vhost="v", name=name, durable=name != "transient")
                for name in ("a", "b", "transient")
            ),
            *(PauseQueue(vhost="v", name=name) for name in ("b", "transient")),
        ]
    )
    assert list(again(metadata).vhosts.by_name["v"].topology.paused) == ["b"]


def test_leases_are_restored_with_a_durable_queue() -> None:
    def granted(id: str, queue: str, state: LeaseState = LeaseState.ACTIVE) -> GrantLease:
        lease = LeaseRecord(
            id=id, queue=queue, user="u", key=id, places=(3, 7, 9, 10), messages=5, byte_count=50,
            granted_at=1, expires_at=2, state=state,
        )  # fmt: skip
        return GrantLease(vhost="v", lease=lease)

    metadata = made(
        [
            PutVhost(name="v"),
            *(DeclareQueue(vhost="v", name=name, durable=name != "transient") for name in ("a", "transient")),
            granted("1", "a"),
            granted("2", "transient"),
            granted("3", "a"),
            EndLease(vhost="v", id="3", state=LeaseState.SETTLED),
            RenewLease(vhost="v", id="1", expires_at=9),
        ]
    )
    known, before = (of.vhosts.by_name["v"].topology.leases for of in (again(metadata), metadata))
    assert known.of_queue("a") == before.of_queue("a")
    assert [lease.state for lease in known.of_queue("a")] == [LeaseState.ACTIVE, LeaseState.SETTLED]
    assert list(known.by_id) == ["1", "3"]


def test_a_parameter_keeps_its_user() -> None:
    component = "federation-upstream-set"
    parameters = [
        SetParameter(vhost="v", component=component, name=name, value=[], user=user)
        for name, user in (("a", "alice"), ("b", "rmq-internal"))
    ]
    vhost = again(made([PutVhost(name="v"), *parameters])).vhost("v")
    assert vhost is not None
    assert vhost.parameters.user_of(component, "a") == "alice"
    assert vhost.parameters.user_of(component, "b") == "rmq-internal"


def test_a_snapshot_says_where_it_is_in_the_log_and_what_the_group_had_agreed_on() -> None:
    configuration = Configuration((1, 2), (1, 4), (3,), (4,), auto_leave=True)
    log = RecoveredLog(mark=HighWaterMarkFile(None))
    replay(snapshot_of(made([PutVhost(name="v")]), VoteState(9, 2), configuration), Metadata(), log)
    assert (log.index, log.term, log.hard) == (1, 2, VoteState(9, 2))
    assert log.configuration == configuration


def proposed(commands: list[tuple[Incarnation, MetadataCommand]]) -> Metadata:
    """The metadata after `commands`, with those who proposed them."""
    metadata = Metadata()
    for index, (run, command) in enumerate(commands, 1):
        metadata.apply(command, CommandContext(index=index, now=0, incarnation=run, serial=index))
    return metadata


def test_members_homes_and_what_was_proposed_are_restored() -> None:
    first, second = Incarnation(1, 4), Incarnation(2, 8)
    metadata = proposed(
        [
            (first, PutVhost(name="v")),
            (
                first,
                FormCluster(
                    cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=4, feature_level=2
                ),
            ),
            *(
                (
                    first,
                    AdmitMember(name=name, host="h", cluster_port=2, incarnation=8, feature_level=2),
                )
                for name in "bc"
            ),
            (first, MemberUp(id=2, incarnation=8, host="i", cluster_port=3, feature_level=2)),
            (second, DeclareQueue(vhost="v", name="there", durable=True)),
            (second, DeclareQueue(vhost="v", name="transient")),
            (second, DeclareQueue(vhost="v", name="here", durable=True, home=1)),
            (
                first,
                DeclareQueue(
                    vhost="v",
                    name="shared",
                    durable=True,
                    arguments={"x-queue-type": "quorum"},
                    members=(2, 3, 1),
                ),
            ),
            (first, RemoveMember(id=3, is_forgotten=True)),
        ]
    )
    found = replayed(metadata)
    members, before = found.members, metadata.members
    assert (members.by_id, members.removed) == (before.by_id, before.removed)
    assert (members.cluster_id, members.feature_level, members.next_id) == (b"c" * 16, 2, 4)
    queues = found.vhosts.by_name["v"].topology.queues
    assert queues == metadata.vhosts.by_name["v"].topology.queues
    assert {name: queue.home for name, queue in queues.items()} == {
        "there": 2, "transient": 2, "here": 1, "shared": 2,
    }  # fmt: skip
    assert (queues["shared"].members, queues["shared"].next_replica) == (((2, 1), (1, 3)), 4)
    assert found.homes == metadata.homes == {1: 1, 2: 3}
    assert found.replicas == {1: 1, 2: 1}
    rows = [
        RestoreAppliedProposals(node=1, incarnation=4, serial=10),
        RestoreAppliedProposals(node=2, incarnation=8, serial=8),
    ]
    assert list(found.applied_proposals.rows()) == list(metadata.applied_proposals.rows()) == rows
    assert not found.applied_proposals.admit(Incarnation(3, 99), 1)
    assert snapshot_of(found) == snapshot_of(metadata)


RUN = Incarnation(1, 9)
FORM = FormCluster(cluster_id=b"c" * 16, name="a", host="h", cluster_port=1, incarnation=9, feature_level=2)
ADMIT = AdmitMember(name="b", host="h", cluster_port=1, incarnation=1, feature_level=2)


@pytest.mark.parametrize("more", [[], [FORM], [FORM, ADMIT, RemoveMember(id=2)]])
def test_a_node_alone_knows_no_runs_after_a_restart(more: list[MetadataCommand]) -> None:
    """Whatever number its next run has, that one is served."""
    metadata = proposed([(RUN, PutVhost(name="v")), *((RUN, command) for command in more)])
    assert list(replayed(metadata).applied_proposals.rows()) == [
        RestoreAppliedProposals(node=1, incarnation=9, serial=len(more) + 1)
    ]
    found = again(metadata)
    assert list(found.applied_proposals.rows()) == []
    context = CommandContext(index=9, now=0, incarnation=Incarnation(1, 9), serial=1)
    found.apply(DeclareQueue(vhost="v", name="q"), context)
    assert list(found.vhosts.by_name["v"].topology.queues) == ["q"]


def test_a_member_of_a_cluster_knows_the_runs_after_a_restart() -> None:
    metadata = proposed([(RUN, command) for command in (PutVhost(name="v"), FORM, ADMIT)])
    assert list(again(metadata).applied_proposals.rows()) == [
        RestoreAppliedProposals(node=1, incarnation=9, serial=3),
        RestoreAppliedProposals(node=2, incarnation=1, serial=0),
    ]
