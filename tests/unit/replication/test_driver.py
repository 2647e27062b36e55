"""The driver with a log that is synced when a test says so."""

from collections import deque
from collections.abc import Sequence

import pytest
from tests.unit.replication.raft.memory_storage import MemoryStorage, ready_of

from warren.replication.driver import RaftDriver
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.raft_messages import (
    Entry,
    EntryKind,
    HardState,
    MessageKind,
    RaftMessage,
    Snapshot,
)
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready, Role
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

ALONE = Configuration(voters=(1,))
THREE = Configuration(voters=(1, 2, 3))
EMPTY = Entry(1, 1)


class Member:
    """A driver, and the ports that it calls."""

    def __init__(self, configuration: Configuration = ALONE, *, is_volatile: bool = False) -> None:
        self.storage = MemoryStorage(configuration)
        dependencies = RaftDependencies(self.storage, chance=lambda _: 0)
        self.replica = Replica(1, dependencies, RaftSettings(election_ticks=3, pre_vote=False))
        self.is_volatile = is_volatile
        self.ticket = 0
        self.unsynced: deque[tuple[int, Ready]] = deque()
        self.sent: list[RaftMessage] = []
        self.applied: list[Entry] = []
        # What was called, in order.
        self.calls: list[str] = []
        # What the machine proposes when it applies an entry with a payload.
        self.answers: dict[object, object] = {}
        self.error: Exception | None = None
        self.driver = RaftDriver(self.replica, self, self, self.send, incarnation=7)

    def write(self, ready: Ready) -> int:
        self.calls.append("write")
        self.ticket += 1
        self.unsynced.append((self.ticket, ready))
        if self.is_volatile:
            self.sync()
        return self.ticket

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        return self.write(ready_of(entries, commit))

    def apply(self, entries: Sequence[Entry]) -> None:
        if self.error is not None:
            raise self.error
        self.calls.append("apply")
        self.applied += entries
        for entry in entries:
            if entry.payload in self.answers:
                self.driver.propose(self.answers.pop(entry.payload), 1)

    def role_changed(self) -> None:
        """Nobody waits for that."""

    def install(self, snapshot: Snapshot) -> None:
        assert self.storage.base == snapshot, "it is synced"
        self.calls.append("install")

    def send(self, messages: Sequence[RaftMessage]) -> None:
        self.calls.append("send")
        self.sent += messages

    def sync(self) -> None:
        """Sync everything that was handed over, and tell of the last ticket."""
        ticket = 0
        while self.unsynced:
            ticket, ready = self.unsynced.popleft()
            self.storage.write(ready.hard_state, ready.entries, ready.snapshot)
        if ticket:
            self.driver.written(ticket)

    def follow(self, *entries: Entry, commit: int = 0) -> None:
        """Take entries, behind what there is, of a leader with number 2."""
        last = self.replica.log.last_id()
        message = RaftMessage(MessageKind.APPEND, 1, 2, 1, last.index, last.term, entries, commit)
        self.driver.step(message)
        self.driver.flush()


def test_a_group_of_one_leads_and_commits_when_its_writes_are_synced() -> None:
    member = Member()
    driver = member.driver
    driver.campaign()
    driver.flush()
    assert not driver.is_leader
    [(_, hard)] = member.unsynced
    assert hard.hard_state == HardState(1, 1, 0)
    member.sync()
    assert driver.is_leader
    [(_, first)] = member.unsynced
    assert first.entries == (EMPTY,)
    assert (driver.commit, driver.applied) == (0, 0)
    member.sync()
    assert (driver.commit, driver.applied) == (1, 1)
    assert member.applied == [EMPTY]
    assert member.sent == []


def test_what_is_proposed_in_one_turn_is_written_together() -> None:
    member = leader()
    assert member.driver.propose("a", 1) == 2
    assert member.driver.propose("b", 1) == 3
    assert not member.unsynced
    member.driver.flush()
    [(_, ready)] = member.unsynced
    assert [entry.payload for entry in ready.entries] == ["a", "b"]
    assert member.driver.commit == 1
    member.sync()
    assert [entry.payload for entry in member.applied] == [b"", "a", "b"]


def test_an_entry_is_committed_with_its_own_write_and_not_with_an_earlier_one() -> None:
    member = leader()
    tickets = []
    for payload in "ab":
        member.driver.propose(payload, 1)
        member.driver.flush()
        tickets.append(member.ticket)
    for _, ready in member.unsynced:
        member.storage.write(ready.hard_state, ready.entries)
    member.driver.written(tickets[0])
    assert member.driver.commit == 2
    member.driver.written(tickets[0])
    assert member.driver.commit == 2
    member.driver.written(tickets[1])
    assert member.driver.commit == 3


def test_a_log_may_be_synced_before_it_returns() -> None:
    member = Member(is_volatile=True)
    member.driver.campaign()
    member.driver.flush()
    assert member.driver.is_leader
    member.driver.propose("a", 1)
    assert member.driver.applied == 1
    member.driver.flush()
    assert member.driver.applied == 2


def test_what_the_machine_proposes_is_written_by_the_same_flush() -> None:
    member = leader(is_volatile=True)
    member.answers = {"a": "b", "b": "c"}
    member.driver.propose("a", 1)
    member.driver.flush()
    assert [entry.payload for entry in member.applied] == [b"", "a", "b", "c"]


def test_an_answer_waits_for_the_write_and_a_commit_index_alone_is_not_written() -> None:
    member = Member(THREE)
    member.follow(Entry(1, 1))
    assert member.sent == []
    member.sync()
    [answer] = member.sent
    assert (answer.kind, answer.index, answer.to) == (MessageKind.APPEND_RESPONSE, 1, 2)
    member.follow(commit=1)
    assert not member.unsynced
    assert member.driver.applied == 1
    assert len(member.sent) == 2, "nothing is being written, so that the answer is sent at once"


def test_an_answer_without_a_write_waits_for_the_writes_before_it() -> None:
    member = Member(THREE)
    member.follow(Entry(1, 1))
    member.follow()
    assert len(member.unsynced) == 1
    assert member.sent == []
    member.sync()
    assert [message.index for message in member.sent] == [1, 1]


def test_a_snapshot_is_installed_when_it_is_synced_and_then_acknowledged() -> None:
    member = Member(THREE)
    snapshot = Snapshot(5, 1, THREE, "state")
    member.driver.step(RaftMessage(MessageKind.SNAPSHOT, 1, 2, 1, snapshot=snapshot))
    member.driver.flush()
    assert member.calls == ["write"]
    member.sync()
    assert member.calls == ["write", "install", "send"]
    assert member.sent[-1].index == 5
    member.follow(Entry(1, 6), commit=6)
    member.sync()
    assert [entry.index for entry in member.applied] == [6]


def test_a_change_of_members_counts_when_it_is_applied() -> None:
    member = leader()
    change = ConfigurationChange((MemberChange(MemberChangeKind.LEARNER, 2),))
    member.replica.propose_change(change)
    member.driver.flush()
    assert member.replica.configuration == ALONE
    member.sync()
    assert member.replica.configuration == Configuration(voters=(1,), learners=(2,))
    assert member.applied[-1].kind is EntryKind.CHANGE


def test_a_follower_that_hears_of_no_leader_asks_for_votes_when_its_term_is_synced() -> None:
    member = Member(THREE)
    for _ in range(3):
        member.driver.tick()
    member.driver.flush()
    assert member.driver.replica.soft_state.role is Role.CANDIDATE
    assert member.sent == []
    member.sync()
    assert [(message.kind, message.to) for message in member.sent] == [
        (MessageKind.VOTE, 2), (MessageKind.VOTE, 3),
    ]  # fmt: skip


def test_a_driver_whose_machine_has_failed_does_nothing_more() -> None:
    member = leader()
    member.driver.propose("a", 1)
    member.driver.flush()
    member.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        member.sync()
    member.error = None
    member.driver.propose("b", 1)
    member.driver.flush()
    assert not member.unsynced
    assert [entry.payload for entry in member.applied] == [b""]


def test_a_read_of_the_only_member_waits_for_an_entry_of_its_term_and_then_for_nothing() -> None:
    member = Member()
    read: list[str] = []
    member.driver.read(lambda: read.append("first"))
    member.driver.campaign()
    member.driver.flush()
    member.sync()
    assert member.driver.is_leader
    assert not read
    member.sync()
    assert read == ["first"]
    member.driver.read(lambda: read.append("second"))
    member.driver.flush()
    assert read == ["first", "second"]
    assert member.sent == []


def test_a_read_waits_until_the_machine_has_applied_its_index() -> None:
    member = Member(THREE)
    member.follow(Entry(1, 1))
    member.sync()
    read: list[int] = []
    name = member.driver.read(lambda: read.append(member.driver.applied))
    member.driver.flush()
    [request] = [message for message in member.sent if message.kind is MessageKind.READ_INDEX]
    assert (request.to, request.context) == (2, name)
    answer(member, name, 2)
    assert not read
    member.follow(Entry(1, 2), commit=2)
    member.sync()
    assert read == [2]


def test_a_read_is_asked_for_again_when_another_one_leads_and_when_no_answer_comes() -> None:
    member = Member(THREE)
    read: list[str] = []
    name = member.driver.read(lambda: read.append("done"))
    member.driver.flush()
    assert not member.sent, "nobody leads"
    member.follow(Entry(1, 1))
    member.sync()
    member.driver.step(RaftMessage(MessageKind.HEARTBEAT, 1, 3, 2, commit=1))
    member.driver.flush()
    member.sync()
    for _ in range(member.driver.replica.election_ticks):
        member.driver.tick()
        member.driver.step(RaftMessage(MessageKind.HEARTBEAT, 1, 3, 2, commit=1))
    member.driver.flush()
    asked = [message for message in member.sent if message.kind is MessageKind.READ_INDEX]
    assert [message.to for message in asked] == [2, 3, 3]
    assert {message.context for message in asked} == {name}
    answer(member, name, 1, leader=3, term=2)
    answer(member, name, 1, leader=3, term=2)
    assert read == ["done"]


def test_the_answer_to_a_read_of_a_former_start_is_none() -> None:
    member = Member(THREE)
    member.follow(Entry(1, 1), commit=1)
    member.sync()
    read: list[str] = []
    name = member.driver.read(lambda: read.append("done"))
    former = name[:8] + (6).to_bytes(8, "big") + name[16:]
    answer(member, former, 1)
    assert not read
    answer(member, name, 1)
    assert read == ["done"]


def test_a_read_that_is_forgotten_is_not_answered() -> None:
    member = Member(THREE)
    member.follow(Entry(1, 1))
    member.sync()
    read: list[str] = []
    names = [member.driver.read(lambda: read.append("done")) for _ in range(2)]
    member.driver.forget_read(names[0])
    for name in names:
        answer(member, name, 1)
    member.driver.forget_read(names[1])
    member.follow(commit=1)
    assert member.driver.applied == 1
    assert not read


def answer(member: Member, name: bytes, index: int, *, leader: int = 2, term: int = 1) -> None:
    """Have the leader tell the index that a read must see."""
    member.driver.step(RaftMessage(MessageKind.READ_INDEX_RESPONSE, 1, leader, term, index, context=name))
    member.driver.flush()


def test_a_leader_that_is_removed_hands_over_and_proposes_nothing() -> None:
    member = Member(THREE)
    driver = member.driver
    driver.campaign()
    driver.flush()
    member.sync()
    driver.step(RaftMessage(MessageKind.VOTE_RESPONSE, 1, 2, 1))
    driver.flush()
    member.sync()
    driver.step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 2, 1, 1))
    driver.flush()
    removal = ConfigurationChange((MemberChange(MemberChangeKind.REMOVED, 1),))
    assert driver.propose_change(removal) == 0
    driver.flush()
    assert [message.to for message in member.sent if message.kind is MessageKind.TIMEOUT_NOW] == [2]
    assert driver.hand_over() == 2


def leader(*, is_volatile: bool = False) -> Member:
    """A group of one that leads, and has committed its first entry."""
    member = Member(is_volatile=is_volatile)
    member.driver.campaign()
    member.driver.flush()
    member.sync()
    member.sync()
    assert member.driver.applied == 1
    return member
