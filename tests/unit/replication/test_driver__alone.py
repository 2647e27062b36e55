"""The only member decides without messages to itself; what it writes, commits and applies is the same."""

import random
from collections import deque
from collections.abc import Sequence

import pytest
from tests.seeds import SEEDS
from tests.unit.replication.raft.memory_storage import MemoryStorage, ready_of

from warren.replication.driver import RaftDriver
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.replication.raft.raft_messages import Entry, MessageKind, RaftMessage, Snapshot
from warren.replication.raft.raft_settings import RaftSettings
from warren.replication.raft.ready import Ready
from warren.replication.raft.replica import Replica
from warren.replication.raft.state import RaftDependencies

STEPS = 150
ALONE = Configuration(voters=(1,))


class GeneralReplica(Replica):
    """A replica that never decides alone: it has messages to itself, and Readys for what they lead to."""

    __slots__ = ()

    def is_alone(self) -> bool:
        return False


class Member:
    """A driver, whose log is synced when a test says so, and what it has done."""

    def __init__(self, kind: type[Replica]) -> None:
        self.storage = MemoryStorage(ALONE)
        # So little may be uncommitted that proposals are refused.
        settings = RaftSettings(election_ticks=3, pre_vote=False, uncommitted_bytes_max=40)
        self.replica = kind(1, RaftDependencies(self.storage, chance=lambda _: 0), settings)
        self.ticket = 0
        self.unsynced: deque[tuple[int, Ready]] = deque()
        self.written: list[tuple[tuple[Entry, ...], int]] = []
        self.sent: list[RaftMessage] = []
        self.applied: list[Entry] = []
        self.answered: list[int] = []
        self.proposed: list[int] = []
        # How many entries were begun by a replica that decides alone.
        self.alone_count = 0
        self.driver = RaftDriver(self.replica, self, self, self.send)

    def write(self, ready: Ready) -> int:
        self.ticket += 1
        self.unsynced.append((self.ticket, ready))
        if ready.entries:
            self.written.append((ready.entries, ready.commit))
        return self.ticket

    def append(self, entries: Sequence[Entry], commit: int) -> int:
        self.alone_count += len(entries)
        return self.write(ready_of(entries, commit))

    def apply(self, entries: Sequence[Entry]) -> None:
        on_disk = self.storage.log
        assert all(on_disk[entry.index - 1] == entry for entry in entries), "applied before it is synced"
        self.applied += entries

    def role_changed(self) -> None:
        """Nobody waits for that."""

    def install(self, snapshot: Snapshot) -> None:
        raise AssertionError(snapshot)

    def send(self, messages: Sequence[RaftMessage]) -> None:
        self.sent += messages

    def propose(self, size: int) -> None:
        self.proposed.append(self.driver.propose(bytes(size), size))

    def sync(self, count: int) -> None:
        """Sync the first `count` writes."""
        ticket = 0
        for _ in range(min(count, len(self.unsynced))):
            ticket, ready = self.unsynced.popleft()
            self.storage.write(ready.hard_state, ready.entries, ready.snapshot)
        if ticket:
            self.driver.written(ticket)

    def act(self, what: str, number: int) -> None:
        """Take one step of the test."""
        driver, replica = self.driver, self.replica
        term, last = replica.hard_state.term, replica.log.last_index()
        if what == "propose":
            self.propose(number)
        elif what == "sync":
            self.sync(number)
        elif what == "tick":
            driver.tick()
        elif what == "read":
            driver.read(lambda: self.answered.append(number))
        elif what == "change":
            kind = MemberChangeKind.REMOVED if 2 in replica.progress else MemberChangeKind.LEARNER
            driver.propose_change(ConfigurationChange((MemberChange(kind, 2),)))
        elif what == "answer":
            driver.step(RaftMessage(MessageKind.APPEND_RESPONSE, 1, 2, term, last))
        elif what == "depose":
            driver.step(RaftMessage(MessageKind.HEARTBEAT, 1, 2, term + 1))
        if what != "propose" or number % 2:
            driver.flush()

    def seen(self) -> tuple[object, ...]:
        """What can be seen of the member."""
        replica = self.replica
        log = replica.log
        return (
            self.written, self.sent, self.applied, self.answered, self.proposed, self.storage.log,
            log.commit, log.applied, log.last_index(), log.offset, replica.hard_state, replica.soft_state,
            replica.configuration, {peer: progress.match for peer, progress in replica.progress.items()},
        )  # fmt: skip


@pytest.mark.seeds(SEEDS)
def test_the_only_member_does_the_same_with_and_without_messages_to_itself(seed: int) -> None:
    chance = random.Random(seed)
    members = Member(Replica), Member(GeneralReplica)
    for member in members:
        member.driver.campaign()
        member.driver.flush()
    often = ["propose"] * 12 + ["sync"] * 8 + ["read", "tick"]
    rarely = ["change", "answer", "answer", "depose"]
    for _ in range(STEPS):
        what, number = chance.choice(often if chance.random() < 0.9 else rarely), chance.randrange(1, 10)
        for member in members:
            member.act(what, number)
        assert members[0].seen() == members[1].seen(), what
    for member in members:
        while member.unsynced:
            member.sync(9)
    assert members[0].seen() == members[1].seen()
    assert members[1].alone_count == 0


def test_the_only_member_needs_no_message_to_itself() -> None:
    member = Member(Replica)
    member.driver.campaign()
    member.driver.flush()
    while member.unsynced:
        member.sync(9)
    assert member.replica.is_alone()
    member.act("propose", 1)
    [(_, ready)] = member.unsynced
    assert member.alone_count == 1
    assert (len(ready.entries), member.driver.commit) == (1, 1)
    member.sync(1)
    assert (member.driver.commit, member.driver.applied) == (2, 2)
    assert member.replica.ready() is None


@pytest.mark.parametrize("kind", [MemberChangeKind.LEARNER, MemberChangeKind.VOTER])
def test_a_change_of_the_members_ends_deciding_alone_as_it_is_proposed(kind: MemberChangeKind) -> None:
    member = Member(Replica)
    member.driver.campaign()
    member.driver.flush()
    while member.unsynced:
        member.sync(9)
    member.driver.propose_change(ConfigurationChange((MemberChange(kind, 2),)))
    assert not member.replica.is_alone()
    member.driver.flush()
    while member.unsynced:
        member.sync(9)
    assert member.applied[-1].index == 2
    assert not member.replica.is_alone()
