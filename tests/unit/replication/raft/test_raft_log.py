"""The log of a replica: a tail that is not written yet, behind what the storage has."""

import pytest
from tests.unit.replication.raft.memory_storage import MemoryStorage

from warren.replication.raft.change import Configuration
from warren.replication.raft.raft_log import NOT_NOW, RaftLog
from warren.replication.raft.raft_messages import Entry, EntryId, EntryKind, Snapshot
from warren.replication.raft.trace import Trace

ALONE = Configuration((1,))


def log_of(storage: MemoryStorage, *, applying_bytes_max: int = 1 << 20) -> RaftLog:
    log = RaftLog(storage, Trace(), applying_bytes_max)
    log.restart(storage.hard_state.commit, 0)
    return log


def entries(term: int, *indexes: int, size: int = 0) -> list[Entry]:
    return [Entry(term, index, size=size) for index in indexes]


def change(term: int, index: int) -> Entry:
    return Entry(term, index, EntryKind.CHANGE)


@pytest.fixture
def log() -> RaftLog:
    """Up to index 10 in a snapshot, 11 and 12 of term 1 written, 13 and 14 of term 2 not."""
    storage = MemoryStorage(ALONE, 10, 1)
    storage.write(None, entries(1, 11, 12))
    log = log_of(storage)
    log.append(entries(2, 13, 14))
    return log


def test_terms_are_found_in_the_snapshot_the_storage_and_the_tail(log: RaftLog) -> None:
    assert [log.term(index) for index in range(9, 16)] == [None, 1, 1, 1, 2, 2, None]
    assert log.last_id() == EntryId(2, 14)


def test_entries_are_read_across_the_storage_and_the_tail(log: RaftLog) -> None:
    found = log.entries(11, 1 << 20)
    assert found is not None
    assert found != NOT_NOW
    assert [(entry.term, entry.index) for entry in found] == [(1, 11), (1, 12), (2, 13), (2, 14)]


@pytest.mark.parametrize(("bytes_max", "count"), [(0, 1), (32, 1), (63, 1), (64, 2), (96, 3), (200, 4)])
def test_a_read_is_bounded_in_bytes_and_has_at_least_one_entry(
    log: RaftLog, bytes_max: int, count: int
) -> None:
    found = log.entries(11, bytes_max)
    assert found is not None
    assert len(found) == count


def test_compacted_entries_are_not_read(log: RaftLog) -> None:
    assert log.entries(10, 100) is None


def test_entries_that_are_being_read_are_not_had_now() -> None:
    storage = MemoryStorage(ALONE, 10, 1)
    storage.write(None, entries(1, 11, 12))
    log = log_of(storage)
    storage.unreadable_below = 12
    assert log.entries(11, 100) == NOT_NOW
    assert log.entries(12, 100) == entries(1, 12)


def test_only_a_matching_entry_is_appended_to(log: RaftLog) -> None:
    assert log.append_after(EntryId(2, 12), entries(2, 13), 10) is None
    assert log.append_after(EntryId(1, 15), entries(2, 16), 10) is None
    assert log.last_index() == 14


def test_an_old_message_does_not_shorten_the_log(log: RaftLog) -> None:
    assert log.append_after(EntryId(1, 11), entries(1, 12), 10) == 12
    assert log.last_index() == 14


def test_a_conflict_replaces_what_follows(log: RaftLog) -> None:
    assert log.append_after(EntryId(1, 12), entries(3, 13), 10) == 13
    assert log.last_id() == EntryId(3, 13)
    assert log.offset == 13


def test_a_conflict_with_what_is_written_replaces_it_in_the_tail(log: RaftLog) -> None:
    log.hand_over()
    assert log.append_after(EntryId(1, 11), entries(3, 12, 13), 10) == 13
    assert (log.offset, log.in_progress, log.last_index()) == (12, 12, 13)
    assert log.next_unstable() == tuple(entries(3, 12, 13))


def test_what_is_committed_is_at_most_what_the_message_has_verified(log: RaftLog) -> None:
    # 13 and 14 may be of a deposed leader: that 14 is committed elsewhere says nothing about this one.
    assert log.append_after(EntryId(1, 11), entries(1, 12), 14) == 12
    assert log.commit == 12


def test_what_is_committed_is_never_replaced(log: RaftLog) -> None:
    log.commit_to(13)
    with pytest.raises(AssertionError, match="would replace a committed one"):
        log.append_after(EntryId(1, 12), entries(3, 13), 13)


def test_the_commit_index_does_not_fall_or_pass_the_end(log: RaftLog) -> None:
    log.commit_to(12)
    log.commit_to(11)
    assert log.commit == 12
    with pytest.raises(AssertionError, match="the log ends at 14"):
        log.commit_to(15)


def test_what_was_replaced_meanwhile_is_not_acknowledged(log: RaftLog) -> None:
    log.hand_over()
    log.append(entries(3, 14))
    log.written(14, 2)
    assert log.offset == 13
    log.written(14, 3)
    assert log.offset == 15
    assert log.next_unstable() == ()


def test_a_second_acknowledgement_changes_nothing(log: RaftLog) -> None:
    log.hand_over()
    log.written(14, 2)
    log.written(14, 2)
    log.written(20, 2)
    assert (log.offset, log.last_index(), log.last_unstable()) == (15, 14, None)


def test_what_was_handed_over_is_not_handed_over_again(log: RaftLog) -> None:
    assert log.next_unstable() == tuple(entries(2, 13, 14))
    log.hand_over()
    assert log.next_unstable() == ()
    log.append(entries(2, 15))
    assert log.next_unstable() == tuple(entries(2, 15))


def test_unwritten_entries_are_applied_only_if_that_is_allowed(log: RaftLog) -> None:
    log.commit_to(14)
    log.hand_over()
    assert [entry.index for entry in log.next_committed(False)] == [11, 12]
    assert [entry.index for entry in log.next_committed(True)] == [11, 12, 13, 14]


def test_what_is_being_applied_is_bounded_in_bytes() -> None:
    storage = MemoryStorage(ALONE, 10, 1)
    storage.write(None, entries(1, 11, 12, 13, size=68))
    log = log_of(storage, applying_bytes_max=200)
    log.commit_to(13)
    batch = log.next_committed(False)
    assert [entry.index for entry in batch] == [11, 12]
    log.apply_handed_out(batch, False)
    assert log.next_committed(False) == ()
    assert log.has_applied(12) == 2 * 68
    assert [entry.index for entry in log.next_committed(False)] == [13]


def test_a_snapshot_replaces_the_log_until_it_is_written(log: RaftLog) -> None:
    snapshot = Snapshot(20, 4, ALONE)
    log.restore(snapshot)
    assert (log.first_index(), log.last_index(), log.commit) == (21, 20, 20)
    assert (log.term(20), log.term(14)) == (4, None)
    assert log.next_snapshot() == snapshot
    log.hand_over()
    assert log.next_snapshot() is None
    log.snapshot_written(19)
    assert log.snapshot is not None
    log.append(entries(4, 21))
    log.snapshot_written(20)
    assert log.snapshot is None
    assert log.next_unstable() == tuple(entries(4, 21))


def test_nothing_is_applied_while_a_snapshot_is_installed(log: RaftLog) -> None:
    log.restore(Snapshot(20, 4, ALONE))
    log.append(entries(4, 21))
    log.commit_to(21)
    assert log.next_committed(True) == ()


def test_the_last_entry_of_a_term_is_found_without_passing_the_start(log: RaftLog) -> None:
    assert log.last_not_after(14, 2) == EntryId(2, 14)
    assert log.last_not_after(14, 1) == EntryId(1, 12)
    assert log.last_not_after(14, 0) == EntryId(0, 9)


def test_changes_are_counted_until_they_are_applied_or_replaced() -> None:
    storage = MemoryStorage(ALONE, 10, 1)
    storage.write(None, [change(1, 11), *entries(1, 12)])
    log = log_of(storage)
    assert not log.has_change_to_apply()
    log.commit_to(11)
    assert log.has_change_to_apply()
    log.append([change(1, 13)])
    assert log.uncommitted_changes() == 1
    log.append(entries(2, 13))
    assert log.uncommitted_changes() == 0
    log.has_applied(11)
    assert not log.has_change_to_apply()


def test_a_restart_finds_the_changes_that_are_not_applied() -> None:
    storage = MemoryStorage(ALONE, 10, 1)
    storage.write(None, [change(1, 11), *entries(1, 12)])
    log = RaftLog(storage, Trace(), 1)
    log.restart(12, 0)
    assert log.has_change_to_apply()
    log = RaftLog(storage, Trace(), 1)
    log.restart(12, 11)
    assert not log.has_change_to_apply()
