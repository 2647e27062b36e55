"""What the records of a replica amount to, and which of them do not fit."""

import pytest

from warren.store.group_record import (
    GroupEntry,
    GroupHardState,
    GroupRecord,
    GroupSnapshot,
    PositionOffset,
    PositionRun,
    encode_cut,
    encode_entry,
    encode_hard,
    encode_state,
)
from warren.store.group_state import GroupScan, GroupState, state_of
from warren.store.record import CUT, ENTRY, HARD, STATE

GROUP, REPLICA = 3, 7


def record(*entries: GroupEntry, index: int = 0, term: int = 1) -> tuple[int, bytes]:
    return STATE, encode_state(
        GroupRecord(
            group=GROUP, replica=REPLICA, since=1, reason="", hard=GroupHardState(term, 0, index),
            snapshot=GroupSnapshot(index=index, term=term), ends={}, offsets=[], entries=list(entries),
        )
    )  # fmt: skip


def entry(index: int, *runs: PositionRun, term: int = 1) -> tuple[int, bytes]:
    return ENTRY, encode_entry(GROUP, GroupEntry(index=index, term=term, runs=runs))


def hard(term: int, vote: int = 0) -> tuple[int, bytes]:
    return HARD, encode_hard(GROUP, REPLICA, GroupHardState(term, vote, 0))


def cut(index: int, *offsets: PositionOffset) -> tuple[int, bytes]:
    return CUT, encode_cut(GROUP, index, list(offsets))


def scanned(*records: tuple[int, bytes]) -> GroupState:
    scan = GroupScan()
    for number, (kind, body) in enumerate(records, 5):
        scan.take(kind, body, number)
    return scan.states[GROUP]


def test_entries_continue_the_latest_state() -> None:
    state = scanned(record(), entry(1), record(index=4), entry(5, PositionRun(0, 0, 3)), entry(6), hard(2, 1))
    assert (state.first, state.last, state.last_term, state.reason) == (5, 6, 1, "")
    assert (state.hard.term, state.hard.vote, state.ends) == (2, 1, {0: 3})
    # Nothing before the state is needed.
    assert state.segments == {7, 8, 9, 10}


def test_a_cut_takes_positions_back_and_moves_what_follows() -> None:
    runs = PositionRun(0, 0, 3), PositionRun(0, 3, 2), PositionRun(4, 0, 1)
    state = scanned(
        record(), entry(1, runs[0]), entry(2, runs[1], runs[2]), cut(2, PositionOffset(0, 3, 2)),
        entry(2, PositionRun(0, 3, 1)),
    )  # fmt: skip
    assert (state.last, state.ends, state.reason) == (2, {0: 4, 4: 0}, "")
    assert [state.stored(0, position) for position in (2, 3)] == [2, 5]
    assert state.tail_size == sum(entry.size for entry in state.entries)


def test_a_state_is_what_was_recorded() -> None:
    before = scanned(record(), entry(1, PositionRun(0, 0, 3)), cut(2, PositionOffset(0, 3, 2)), hard(9, 4))
    again = state_of(before.record())
    assert again.record() == before.record()
    assert (again.ends, again.tail_size, again.hard) == (before.ends, before.tail_size, before.hard)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([entry(1)], "its state is missing"),
        ([hard(1)], "its state is missing"),
        ([record(), entry(2)], "entry 2 follows entry 0"),
        ([record(), entry(1), entry(1)], "entry 1 follows entry 1"),
        ([record(), entry(1, PositionRun(0, 1, 1))], "the positions of entry 1 do not follow those before"),
        ([record(), entry(1, term=2)], "entry 1 has term 2, and the hard state 1"),
        ([record(), hard(3), hard(2)], "its term went back from 3 to 2"),
        ([record(), entry(1), cut(3)], "entries 2 to 2 are missing"),
        ([record(index=4), cut(4)], "its snapshot is cut at entry 4"),
    ],
)
def test_what_does_not_fit_makes_a_replica_untrusted(records: list[tuple[int, bytes]], reason: str) -> None:
    assert scanned(*records).reason == reason
    # A later state does not need what is missing.
    assert scanned(*records, record(index=9, term=5)).reason == ""
