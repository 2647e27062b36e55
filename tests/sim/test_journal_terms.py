"""The metadata log as the log of a group of one: terms, votes, what is committed, and what needs no sync."""

import errno
import random

import pytest
from tests.sim.test_journal import Proposed, Simulation

from warren.journal.codec import LoggedCommand, VoteState, decode_entry, encode_hard_state
from warren.journal.file_format import ENTRY, HARD, HEAD_SIZE, NAME, seed_of
from warren.journal.high_water_mark import HighWaterMarkFile
from warren.journal.journal import Journal
from warren.journal.journal_dependencies import JournalDependencies
from warren.journal.log_reader import RecoveredLog, replay
from warren.journal.raft_entry import EmptyEntry, MembersChange
from warren.journal.recovery import recover
from warren.metadata.commands import DeclareQueue, MetadataCommand, PutVhost
from warren.metadata.machine import Metadata
from warren.replication.raft.change import (
    Configuration,
    ConfigurationChange,
    MemberChange,
    MemberChangeKind,
)
from warren.store.disk import CreateFile, SyncFile
from warren.store.record import HEAD_SIZE as RECORD_HEAD_SIZE
from warren.store.record import encode, is_intact

WITH_LEARNER = Configuration((1,), learners=(2,))


def read(simulation: Simulation) -> RecoveredLog:
    """What the file says, without the end of the runs before."""
    found = RecoveredLog(mark=HighWaterMarkFile(None))
    replay(bytes(simulation.disk.files[NAME].current), Metadata(), found)
    return found


def entries(simulation: Simulation) -> list[LoggedCommand]:
    """The entries in the file."""
    data = bytes(simulation.disk.files[NAME].current)
    seed, at, found = seed_of(data), HEAD_SIZE, []
    while size := is_intact(data, at, seed):
        if data[at + RECORD_HEAD_SIZE - 1] == ENTRY:
            found.append(decode_entry(data[at + RECORD_HEAD_SIZE : at + size]))
        at += size
    return found


def written(simulation: Simulation, *commands: MetadataCommand) -> None:
    for command in commands:
        Proposed(simulation, command)
        simulation.settle()


def queue(name: str, *, durable: bool = True) -> DeclareQueue:
    return DeclareQueue(vhost="v", name=name, durable=durable)


def queues(simulation: Simulation) -> list[str]:
    vhost = simulation.metadata.vhost("v")
    return [] if vhost is None else list(vhost.topology.queues)


def reopened(simulation: Simulation, configuration: Configuration | None = None) -> None:
    """Start again, perhaps with members that the file does not name."""
    if configuration is None:
        simulation.open()
    else:
        simulation.metadata = type(simulation.metadata)([])
        found = recover(simulation.disk, simulation.metadata)
        found.configuration = configuration
        dependencies = JournalDependencies(
            now=lambda: simulation.now, random_bytes=random.Random(1).randbytes,
            make_future=simulation.make_future, report=simulation.failures.append,
        )  # fmt: skip
        simulation.journal = Journal(simulation.metadata, simulation.disk, dependencies, found)
    simulation.journal.begin()


def test_each_start_votes_for_this_node_in_a_new_term_and_writes_with_one_sync_of_the_log() -> None:
    simulation = Simulation(0)
    votes = []
    for number in range(4):
        votes.append(read(simulation).hard)
        written(simulation, PutVhost(name="v"), queue(f"q{number}"))
        # Nothing was elected in between.
        assert read(simulation).hard == votes[-1]
        assert read(simulation).term == votes[-1].term
        before = simulation.disk.syncs
        reopened(simulation)
        # That of the file, and those of the mark and of the directory: as without a group.
        assert simulation.disk.syncs - before == 3
    assert [vote.vote for vote in votes] == [1] * 4
    terms = [vote.term for vote in votes]
    assert terms == list(range(terms[0], terms[0] + 4))


def test_a_term_begins_with_its_empty_entry_and_is_that_of_what_follows() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"), queue("a"), queue("b"))
    found = entries(simulation)
    assert [type(entry.command) for entry in found] == [EmptyEntry, PutVhost, DeclareQueue, DeclareQueue]
    assert {entry.position.term for entry in found} == {read(simulation).hard.term}
    first = found[0].context.index
    assert [entry.context.index for entry in found] == [first, first + 1, first + 2, first + 3]
    # Each tells what was committed as it was appended.
    assert [entry.position.commit for entry in found] == [first - 1, first, first + 1, first + 2]
    assert simulation.metadata.index == first + 3


def test_a_node_does_not_lead_before_its_vote_is_synced() -> None:
    simulation = Simulation(0)
    simulation.open()
    assert not simulation.journal._group.is_leader
    simulation.journal.begin()
    assert simulation.journal._group.is_leader
    assert read(simulation).hard == simulation.journal._log.hard


def test_a_crash_between_the_vote_and_the_first_entry_makes_the_next_start_vote_anew() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"), queue("q"))
    reopened(simulation)
    voted = read(simulation)
    assert entries(simulation) == []
    simulation.disk.lose_power()
    reopened(simulation)
    again = read(simulation)
    assert again.hard == VoteState(voted.hard.term + 1, 1)
    assert queues(simulation) == ["q"]


@pytest.mark.parametrize("count", range(12))
def test_a_power_cut_while_a_vote_is_written_leaves_the_old_vote_or_the_new_one(count: int) -> None:
    simulation = Simulation(count)
    written(simulation, PutVhost(name="v"), queue("q"))
    before = read(simulation).hard
    simulation.open()
    _, snapshot = simulation.journal._take_snapshot()
    simulation.disk.submit(simulation.journal._file._replacement(snapshot), lambda error: None)
    simulation.disk.advance(count)
    simulation.disk.lose_power()
    assert read(simulation).hard in (before, VoteState(before.term + 1, 1))
    reopened(simulation)
    assert read(simulation).hard.term > before.term
    assert queues(simulation) == ["q"]


def test_a_tail_of_an_older_term_is_kept_and_committed_by_the_empty_entry_of_the_new_one() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    waiting = [Proposed(simulation, queue(name)) for name in "ab"]
    # Written and not synced, so that nobody knows it as committed.
    simulation.disk.advance(1)
    assert all(one.reply is None for one in waiting)
    simulation.disk.die()
    tail = entries(simulation)[-1]
    assert tail.position.commit < tail.context.index - 1 or tail.command == queue("a")
    old = read(simulation)
    reopened(simulation)
    assert queues(simulation)[0] == "a"
    written(simulation, queue("c"))
    empty, after = entries(simulation)
    assert (type(empty.command), after.command) == (EmptyEntry, queue("c"))
    assert empty.position.term == after.position.term == old.hard.term + 1
    assert after.position.commit == empty.context.index > old.index


def test_a_command_that_nothing_synced_is_lost_with_nothing_durable_behind_it() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    Proposed(simulation, queue("lost", durable=False))
    index = simulation.metadata.index
    simulation.disk.lose_power()
    assert read(simulation).index == index - 1
    reopened(simulation)
    written(simulation, queue("q"))
    Proposed(simulation, queue("in front", durable=False))
    written(simulation, queue("r"))
    simulation.disk.lose_power()
    # What survives has everything before it in the file.
    assert [entry.command for entry in entries(simulation)][1:] == [
        queue("q"), queue("in front", durable=False), queue("r"),
    ]  # fmt: skip
    reopened(simulation)
    assert queues(simulation) == ["q", "r"]


def test_with_a_learner_a_command_that_survives_no_restart_waits_for_its_sync_too() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    before = simulation.disk.syncs
    reopened(simulation, WITH_LEARNER)
    # The empty entry of the new term was synced as well.
    assert simulation.disk.syncs - before == 4
    assert [type(entry.command) for entry in entries(simulation)] == [EmptyEntry]
    assert simulation.metadata.index == read(simulation).index
    waiting = Proposed(simulation, queue("transient", durable=False))
    assert waiting.reply is None
    simulation.settle()
    assert waiting.reply is not None
    assert read(simulation).configuration == WITH_LEARNER


def test_a_node_with_a_learner_does_not_lead_while_its_vote_cannot_be_written() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    simulation.disk.fault = (CreateFile, errno.ENOSPC)
    reopened(simulation, WITH_LEARNER)
    assert not simulation.journal._group.is_leader
    assert Proposed(simulation, queue("transient", durable=False)).error is not None
    simulation.now += 2_000
    made = Proposed(simulation, queue("transient", durable=False))
    simulation.settle()
    assert made.reply is not None
    assert simulation.journal._group.is_leader


def test_a_new_learner_ends_what_needs_no_sync_and_is_known_after_a_restart() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    assert Proposed(simulation, queue("at once", durable=False)).reply is not None
    group = simulation.journal._group
    change = ConfigurationChange((MemberChange(MemberChangeKind.LEARNER, 2),))
    assert group._driver.replica.propose_change(change)
    group.hand_over()
    simulation.journal.maintain()
    simulation.settle()
    assert isinstance(entries(simulation)[-1].command, MembersChange)
    assert Proposed(simulation, queue("waits", durable=False)).reply is None
    simulation.settle()
    assert read(simulation).configuration == simulation.journal._log.configuration == WITH_LEARNER


def test_a_failed_write_ends_the_term_and_the_only_member_goes_on_in_the_next_one() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    before = read(simulation).hard
    simulation.disk.fault = (SyncFile, errno.EIO)
    refused = Proposed(simulation, queue("refused"))
    simulation.disk.advance()
    assert refused.error is not None
    index = simulation.metadata.index
    assert Proposed(simulation, queue("transient", durable=False)).reply is not None
    # The empty entry of the new term has the index that the refused command had.
    assert simulation.metadata.index == index + 1
    simulation.wait()
    simulation.settle()
    assert read(simulation).hard == VoteState(before.term + 1, 1)
    written(simulation, queue("q"))
    assert queues(simulation) == ["transient", "q"]
    assert [entry.position.term for entry in entries(simulation)] == [before.term + 1]
    assert read(simulation).damage == []


def test_a_start_whose_vote_cannot_be_written_serves_what_survives_no_restart() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    simulation.disk.fault = (CreateFile, errno.ENOSPC)
    reopened(simulation)
    assert Proposed(simulation, queue("transient", durable=False)).reply is not None
    assert Proposed(simulation, queue("q")).error is not None
    term = read(simulation).hard.term
    simulation.now += 2_000
    written(simulation, queue("q"))
    assert read(simulation).hard == VoteState(term + 1, 1)


def appended(simulation: Simulation, kind: int, body: bytes) -> RecoveredLog:
    """What is found behind a record that somebody else has written."""
    file = simulation.disk.files[NAME]
    end = read(simulation).end
    del file.current[end:]
    file.current += encode(kind, body, seed_of(bytes(file.current)))
    return read(simulation)


@pytest.mark.parametrize("hard", [VoteState(1, 2), VoteState(0, 1)])
def test_a_second_vote_in_a_term_and_a_lower_one_are_damage(hard: VoteState) -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    assert read(simulation).hard == VoteState(1, 1)
    found = appended(simulation, HARD, encode_hard_state(hard))
    assert f"a vote for {hard.vote} in term {hard.term} follows" in str(found.damage[0])
    assert found.hard == VoteState(1, 1)


def test_an_entry_of_a_term_without_a_vote_is_damage() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"))
    simulation.journal._log.hard = VoteState(7, 1)
    written(simulation, PutVhost(name="w"))
    damage = read(simulation).damage
    assert "change 3 of term 7 follows one of term 1, and the vote of term 1" in str(damage[0])


def test_a_lost_vote_costs_no_command() -> None:
    simulation = Simulation(0)
    written(simulation, PutVhost(name="v"), queue("a"), queue("b"))
    data = bytes(simulation.disk.files[NAME].current)
    hard = encode(HARD, encode_hard_state(VoteState(1, 1)), seed_of(data))
    simulation.disk.flip_bit(NAME, data.index(hard))
    simulation.metadata = type(simulation.metadata)([])
    found = recover(simulation.disk, simulation.metadata)
    assert found.damage
    assert queues(simulation) == ["a", "b"]
    # The next start votes in a term above all that are in the log.
    assert found.hard.term == 1
