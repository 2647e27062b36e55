"""The log of a group in a store, as the Raft core and the driver of its only replica use it."""

import random
from collections.abc import Sequence

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_group_log import opened, write
from tests.unit.store.test_recovery import published

from warren.queues.quorum.raft_storage import (
    ALONE,
    GroupStorage,
    QuorumPayload,
    QuorumSnapshot,
    decode_configuration,
    encode_configuration,
)
from warren.replication.driver import RaftDriver
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
    encode_change,
)
from warren.replication.raft.raft_messages import Entry, EntryKind, HardState, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies
from warren.store.group_listener import GroupListener
from warren.store.group_log import GroupLog
from warren.store.group_record import GroupEntry, GroupSnapshot, PositionRun
from warren.store.message_store import MessageStore

GROUP = 1
FIRST = QuorumPayload((PositionRun(0, 0, 2),), b"first")
SECOND = QuorumPayload((), b"second")


class Alone(GroupListener):
    """The only replica of a group, run by a driver."""

    def __init__(self, log: GroupLog) -> None:
        self.log = log
        log.listener = self
        self.storage = GroupStorage(log)
        self.applied: list[Entry] = []
        dependencies = RaftDependencies(storage=self.storage, chance=lambda _: 0)
        replica = Replica(1, dependencies, RaftSettings(), applied=log.snapshot.index)
        self.driver = RaftDriver(replica, self.storage, self, self.send)
        self.driver.campaign()
        self.driver.flush()

    def prepare(self) -> None:
        """What is proposed is written by `propose`."""

    def shorten(self) -> None:
        """All entries are kept."""

    def written(self, ticket: int) -> None:
        self.driver.written(ticket)

    def apply(self, entries: Sequence[Entry]) -> None:
        self.applied += entries

    def role_changed(self) -> None:
        """Nobody waits for that."""

    def install(self, snapshot: Snapshot) -> None:
        raise AssertionError(snapshot)

    def send(self, messages: Sequence[RaftMessage]) -> None:
        raise AssertionError(messages)

    def propose(self, payload: QuorumPayload, size: int | None = None) -> None:
        self.driver.propose(payload, payload.size if size is None else size)
        self.driver.flush()


def begun() -> tuple[SimulatedDisk, MessageStore, GroupLog]:
    there = SimulatedDisk(random.Random(0))
    store = opened(there).store
    return there, store, GroupLog.create(store, GROUP, 1, encode_configuration(ALONE))


def test_a_replica_alone_leads_and_applies_what_is_synced() -> None:
    there, store, log = begun()
    alone = Alone(log)
    assert not alone.driver.is_leader
    write(store, there)
    assert alone.driver.is_leader
    for body in (b"a", b"b"):
        log.place(published(body), 0)
    alone.propose(FIRST)
    alone.propose(SECOND)
    assert [entry.payload for entry in alone.applied] == [b""]
    write(store, there)
    assert [entry.payload for entry in alone.applied] == [b"", FIRST, SECOND]
    assert alone.driver.commit == alone.driver.applied == 3


def test_a_replica_restarts_with_what_was_written_and_applies_it_again() -> None:
    there, store, log = begun()
    alone = Alone(log)
    write(store, there)
    for body in (b"a", b"b"):
        log.place(published(body), 0)
    alone.propose(FIRST)
    alone.propose(SECOND)
    write(store, there)
    recovered = opened(there)
    found = GroupLog.find(recovered.store, GROUP)
    assert found is recovered.groups[GROUP]
    again = Alone(found)
    write(recovered.store, there)
    assert [entry.payload for entry in again.applied] == [b"", FIRST, SECOND, b""]
    assert [entry.term for entry in again.applied] == [1, 1, 1, 2]
    assert found.levels() == [0]
    assert [message.body for message in found.messages(2) if message] == [b"a", b"b"]


def test_what_is_applied_before_a_snapshot_is_not_applied_again() -> None:
    there, store, log = begun()
    alone = Alone(log)
    write(store, there)
    alone.propose(SECOND)
    alone.propose(SECOND)
    write(store, there)
    log.compact(GroupSnapshot(index=2, term=1, configuration=encode_configuration(ALONE), machine=b"m"))
    assert alone.storage.snapshot() == Snapshot(2, 1, ALONE, QuorumSnapshot(b"m"))
    assert (alone.storage.first_index(), alone.storage.term(1), alone.storage.term(2)) == (3, None, 1)
    assert alone.storage.term(4) is None
    write(store, there)
    alone.propose(SECOND)
    write(store, there)
    recovered = opened(there)
    again = Alone(recovered.groups[GROUP])
    write(recovered.store, there)
    assert [entry.index for entry in again.applied] == [3, 4, 5]


def test_entries_have_the_size_with_which_they_were_proposed() -> None:
    there, store, log = begun()
    alone = Alone(log)
    write(store, there)
    alone.propose(SECOND, 1_000)
    write(store, there)
    assert [entry.size for entry in alone.applied] == [0, 1_000]
    [read] = GroupStorage(log).entries(2, 2, 0)
    assert (read.payload, read.size) == (SECOND, SECOND.size)


def test_entries_are_read_up_to_a_size_and_one_at_least() -> None:
    there, store, log = begun()
    alone = Alone(log)
    write(store, there)
    for _ in range(3):
        alone.propose(SECOND, 100)
    write(store, there)
    read = alone.storage.entries
    assert [len(read(2, 4, size)) for size in (1, 132, 263, 264, 500)] == [1, 1, 1, 2, 3]


def test_a_commit_index_behind_a_torn_end_is_bounded_by_the_last_entry() -> None:
    _, _, log = begun()
    log.promise(3, 1)
    log.append(GroupEntry(index=1, term=3, commit=5))
    assert GroupStorage(log).initial() == (HardState(3, 1, 1), ALONE)


def test_a_change_of_members_is_written_with_its_kind() -> None:
    there, store, log = begun()
    alone = Alone(log)
    write(store, there)
    change = ConfigurationChange((MemberChange(MemberChangeKind.UPDATED, 1),))
    alone.driver.replica.propose_change(change)
    alone.driver.flush()
    write(store, there)
    recovered = opened(there)
    [entry] = GroupStorage(recovered.groups[GROUP]).entries(2, 2, 0)
    assert (entry.kind, entry.payload) == (EntryKind.CHANGE, encode_change(change))


def test_entries_of_another_leader_replace_those_from_the_first_of_them_on() -> None:
    there, store, log = begun()
    storage = GroupStorage(log)
    storage.write(ready(HardState(1, 0, 0), *(Entry(1, index, payload=SECOND) for index in (1, 2, 3))))
    log.place(published(b"void"), 0)
    ticket = storage.write(ready(HardState(2, 0, 0), Entry(2, 2, payload=QuorumPayload((), b"other"))))
    assert ticket == log.ticket
    assert log.placed_count == 0
    assert [entry.term for entry in storage.entries(1, 2, 1_000)] == [1, 2]
    write(store, there)
    found = GroupStorage(opened(there).groups[GROUP])
    assert found.last_index() == 2
    assert found.entries(2, 2, 0)[0].payload == QuorumPayload((), b"other")


@pytest.mark.parametrize(
    "configuration",
    [Configuration(), ALONE, Configuration((1, 2, 3), (1, 4), (5,), (4,), auto_leave=True)],
)
def test_a_configuration_is_read_as_it_was_stored(configuration: Configuration) -> None:
    assert decode_configuration(encode_configuration(configuration)) == configuration


@pytest.mark.parametrize(
    "data", [b"", b"\x02" + encode_configuration(ALONE)[1:], encode_configuration(ALONE)[:-1]]
)
def test_a_configuration_that_is_not_complete_or_newer_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="configuration"):
        decode_configuration(data)


def ready(hard_state: HardState, *entries: Entry) -> Ready:
    """What a core wants to have written."""
    return Ready(
        hard_state=hard_state, entries=entries, snapshot=None, must_sync=True, commit=0, messages=(),
        messages_after=(), written=None, committed=(), soft_state=None, read_states=(),
    )  # fmt: skip
