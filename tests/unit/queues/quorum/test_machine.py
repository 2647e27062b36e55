"""What batches make of the replicated state of a quorum queue, and how it is stored."""

from pathlib import Path

import pytest
from tests.seeds import SEEDS
from tests.unit.queues.quorum.batches import LEVELS, BatchSource

from warren.limits_raft import GROUP_MACHINE_SIZE_MAX, QUORUM_ENQUEUERS_MAX, QUORUM_RETURNED_RUNS_MAX
from warren.queues.quorum.batch_codec import (
    VERSION,
    Enqueue,
    Enqueuer,
    HeldRun,
    HoldReason,
    QuorumBatch,
    QuorumFormatError,
    Reach,
    ReturnedRun,
    SettledRun,
    SettleReason,
    decode,
    encode,
)
from warren.queues.quorum.machine import QuorumMachine
from warren.queues.quorum.returned_messages import NOT_RETURNED, ReturnState
from warren.store.group_record import PositionRun

FIXTURES = Path(__file__).parent / "fixtures"
NODE, OTHER = Enqueuer(1, 7), Enqueuer(2, 7)
ACKNOWLEDGED = SettleReason.ACKNOWLEDGED


@pytest.fixture
def machine() -> QuorumMachine:
    return QuorumMachine()


def published(*enqueued: Enqueue, runs: tuple[PositionRun, ...] = ()) -> QuorumBatch:
    """A batch of new messages, at positions of level 0 if nothing else is said."""
    count = sum(each.count for each in enqueued)
    return QuorumBatch(runs=runs or (PositionRun(0, 1000, count),), enqueued=enqueued)


def settled(level: int, first: int, count: int) -> QuorumBatch:
    return QuorumBatch(settled=(SettledRun(level, first, count, size=0, reason=ACKNOWLEDGED),))


def example(hold: HoldReason = HoldReason.EXPIRED, ready_at: int = 0) -> QuorumMachine:
    """A machine with every kind of state; some messages that came back are ready at `ready_at`."""
    machine = QuorumMachine()
    machine.apply(published(Enqueue(NODE, 1, 10), Enqueue(OTHER, 1, 5)))
    machine.apply(
        QuorumBatch(
            reaches=(Reach(0, 128), Reach(255, 64)),
            returned=(
                ReturnedRun(0, 4000, 200, 1, 2, ready_at),
                ReturnedRun(255, 7, 1, 2**32 - 1, 2**32 - 1),
            ),
            held=(HeldRun(0, 4100, 2, HoldReason.QUARANTINED), HeldRun(3, 2**55, 1, hold)),
        )
    )
    return machine


# --- enqueuers ---------------------------------------------------------------------------------------


def test_numbers_that_follow_one_another_are_no_repeats(machine: QuorumMachine) -> None:
    for first in (1, 11, 21):
        assert machine.apply(published(Enqueue(NODE, first, 10))).repeats == ()
    assert machine.last_number(NODE) == 30
    assert machine.last_number(OTHER) == 0


def test_a_repeat_is_reported_with_the_positions_of_its_messages(machine: QuorumMachine) -> None:
    machine.apply(published(Enqueue(NODE, 1, 10)))
    runs = (PositionRun(0, 50, 4), PositionRun(9, 0, 3))
    applied = machine.apply(published(Enqueue(OTHER, 1, 2), Enqueue(NODE, 6, 5), runs=runs))
    assert applied.repeats == (PositionRun(0, 52, 2), PositionRun(9, 0, 3))
    assert machine.last_number(NODE) == 10
    assert machine.last_number(OTHER) == 2


def test_of_a_run_that_is_known_in_part_the_new_messages_remain(machine: QuorumMachine) -> None:
    machine.apply(published(Enqueue(NODE, 1, 10)))
    applied = machine.apply(published(Enqueue(NODE, 9, 5)))
    assert applied.repeats == (PositionRun(0, 1000, 2),)
    assert machine.last_number(NODE) == 13


def test_a_repeat_within_one_batch_is_a_repeat(machine: QuorumMachine) -> None:
    applied = machine.apply(published(Enqueue(NODE, 1, 3), Enqueue(NODE, 2, 2)))
    assert applied.repeats == (PositionRun(0, 1003, 2),)
    assert machine.last_number(NODE) == 3


@pytest.mark.parametrize("first", [2, 12, 100])
def test_a_gap_in_the_numbers_is_an_error(machine: QuorumMachine, first: int) -> None:
    if first > 2:
        machine.apply(published(Enqueue(NODE, 1, 10)))
    with pytest.raises(AssertionError, match=f"number {first} of "):
        machine.apply(published(Enqueue(NODE, first, 1)))


def test_a_forgotten_enqueuer_begins_with_one_again(machine: QuorumMachine) -> None:
    machine.apply(published(Enqueue(NODE, 1, 10), Enqueue(OTHER, 1, 5)))
    machine.apply(QuorumBatch(forgotten=(NODE, Enqueuer(9, 9))))
    assert machine.enqueuers() == [OTHER]
    assert machine.apply(published(Enqueue(NODE, 1, 1))).repeats == ()


def test_an_enqueuer_that_publishes_and_is_gone_in_one_batch_is_forgotten(machine: QuorumMachine) -> None:
    batch = QuorumBatch(runs=(PositionRun(0, 0, 1),), enqueued=(Enqueue(NODE, 1, 1),), forgotten=(NODE,))
    machine.apply(batch)
    assert machine.enqueuers() == []


def test_beyond_the_bound_the_enqueuer_with_the_lowest_incarnation_is_forgotten(
    machine: QuorumMachine,
) -> None:
    for incarnation in range(QUORUM_ENQUEUERS_MAX + 2, 0, -1):
        machine.apply(published(Enqueue(Enqueuer(1, incarnation), 1, 1)))
    listed = machine.enqueuers()
    assert len(listed) == QUORUM_ENQUEUERS_MAX
    assert listed[0] == Enqueuer(1, 3)
    machine.apply(published(Enqueue(Enqueuer(0, 2**40), 1, 1)))
    assert Enqueuer(1, 3) not in machine.enqueuers()


# --- reach -------------------------------------------------------------------------------------------


def test_a_lower_reach_does_not_take_the_reach_of_a_level_back(machine: QuorumMachine) -> None:
    for position, reach in ((64, 64), (32, 64), (128, 128)):
        machine.apply(QuorumBatch(reaches=(Reach(2, position),)))
        assert machine.reach(2) == reach
    assert machine.reach(0) == 0


def test_a_retreat_lowers_the_reach_and_never_raises_it(machine: QuorumMachine) -> None:
    machine.apply(QuorumBatch(reaches=(Reach(0, 64), Reach(2, 64))))
    machine.apply(QuorumBatch(retreats=(Reach(0, 1), Reach(2, 100), Reach(3, 5))))
    assert [machine.reach(level) for level in (0, 2, 3)] == [1, 64, 0]
    assert QuorumMachine.decode(machine.encode()).reach(0) == 1


# --- messages that came back -------------------------------------------------------------------------


def test_the_latest_attempts_of_a_message_count(machine: QuorumMachine) -> None:
    machine.apply(QuorumBatch(returned=(ReturnedRun(0, 5, 3, 1, 1), ReturnedRun(0, 6, 1, 2, 3))))
    assert [machine.returned(0, at) for at in range(4, 9)] == [
        NOT_RETURNED,
        ReturnState(HoldReason.NONE, 1, 1),
        ReturnState(HoldReason.NONE, 2, 3),
        ReturnState(HoldReason.NONE, 1, 1),
        NOT_RETURNED,
    ]
    assert machine.returned(1, 5) == NOT_RETURNED


def test_a_hold_and_attempts_do_not_change_each_other(machine: QuorumMachine) -> None:
    machine.apply(QuorumBatch(returned=(ReturnedRun(0, 5, 2, 3, 4, 70),)))
    machine.apply(QuorumBatch(held=(HeldRun(0, 5, 2, HoldReason.QUARANTINED),)))
    assert machine.returned(0, 5) == ReturnState(HoldReason.QUARANTINED, 3, 4, 70)
    machine.apply(QuorumBatch(returned=(ReturnedRun(0, 5, 1, 0, 4),)))
    assert machine.returned(0, 5) == ReturnState(HoldReason.QUARANTINED, 0, 4)
    machine.apply(QuorumBatch(held=(HeldRun(0, 5, 2, HoldReason.NONE),)))
    assert [machine.returned(0, at) for at in (5, 6)] == [
        ReturnState(HoldReason.NONE, 0, 4),
        ReturnState(HoldReason.NONE, 3, 4, 70),
    ]


def test_nothing_is_known_about_a_settled_message(machine: QuorumMachine) -> None:
    machine.apply(
        QuorumBatch(
            returned=(ReturnedRun(0, 5, 4, 1, 1), ReturnedRun(1, 5, 1, 1, 1)),
            held=(HeldRun(0, 4, 4, HoldReason.QUARANTINED),),
        )
    )
    machine.apply(settled(0, 4, 3))
    assert [(run.level, run.first, run.end) for run in machine.returned_ranges()] == [
        (0, 7, 8), (0, 8, 9), (1, 5, 6),
    ]  # fmt: skip
    assert machine.returned(0, 7) == ReturnState(HoldReason.QUARANTINED, 1, 1)


def test_a_message_that_comes_back_and_is_settled_in_one_batch_is_settled(machine: QuorumMachine) -> None:
    machine.apply(
        QuorumBatch(
            returned=(ReturnedRun(0, 5, 1, 1, 1),),
            held=(HeldRun(0, 5, 1, HoldReason.QUARANTINED),),
            settled=settled(0, 5, 1).settled,
        )
    )
    assert machine.returned_ranges() == []


def test_beyond_the_bound_messages_with_few_attempts_count_from_zero_again(machine: QuorumMachine) -> None:
    full = tuple(ReturnedRun(0, 2 * at, 1, 1 + at % 2, 9) for at in range(QUORUM_RETURNED_RUNS_MAX))
    machine.apply(QuorumBatch(returned=full))
    assert len(machine.returned_ranges()) == QUORUM_RETURNED_RUNS_MAX
    assert len(machine.encode()) < GROUP_MACHINE_SIZE_MAX
    machine.apply(QuorumBatch(returned=(ReturnedRun(1, 0, 1, 1, 9), ReturnedRun(1, 2, 1, 1, 9))))
    left = machine.returned_ranges()
    assert {run.state.failed for run in left} == {2, 1}
    assert len(left) == QUORUM_RETURNED_RUNS_MAX // 2 + 1
    assert [run for run in left if run.state.failed == 1] == [left[-1]]


# --- snapshots ---------------------------------------------------------------------------------------


@pytest.mark.seeds(SEEDS)
def test_equal_batches_lead_to_equal_bytes_also_after_a_snapshot(seed: int) -> None:
    source = BatchSource(seed)
    first, second, third = QuorumMachine(), QuorumMachine(), QuorumMachine()
    for _ in range(12):
        batch = source.batch()
        applied = first.apply(batch)
        copy = decode(encode(batch), batch.runs)
        assert second.apply(copy) == applied
        # This one is stored and read before each batch.
        third = QuorumMachine.decode(third.encode())
        assert third.apply(batch) == applied
        assert first.encode() == second.encode() == third.encode()
    for level in LEVELS:
        assert third.reach(level) == first.reach(level)
        for position in source.live[level]:
            assert third.returned(level, position) == first.returned(level, position)
        settled = [run for run in first.returned_ranges() if run.level == level]
        live = set(source.live[level])
        assert all(live.issuperset(range(run.first, run.end)) for run in settled)


def test_the_bytes_do_not_depend_on_the_order_in_which_the_state_came() -> None:
    batches = [
        published(Enqueue(NODE, 1, 1)),
        published(Enqueue(OTHER, 1, 1)),
        QuorumBatch(reaches=(Reach(3, 5),)),
        QuorumBatch(reaches=(Reach(2, 6),)),
        QuorumBatch(returned=(ReturnedRun(1, 9, 1, 1, 1),)),
        QuorumBatch(returned=(ReturnedRun(0, 5000, 1, 1, 1),)),
        QuorumBatch(returned=(ReturnedRun(0, 4, 1, 1, 1),)),
    ]
    machines = QuorumMachine(), QuorumMachine()
    for batch in batches:
        machines[0].apply(batch)
    for batch in reversed(batches):
        machines[1].apply(batch)
    assert machines[0].encode() == machines[1].encode()


def test_version_1_of_the_machine_is_read() -> None:
    stored = bytes.fromhex((FIXTURES / "machine-1.hex").read_text())
    assert QuorumMachine.decode(stored).encode() == example(HoldReason.QUARANTINED).encode()


def test_version_2_of_the_machine_is_read() -> None:
    stored = bytes.fromhex((FIXTURES / "machine-2.hex").read_text())
    assert QuorumMachine.decode(stored).encode() == example().encode()


def test_version_3_of_the_machine_is_read_and_written_as_it_was() -> None:
    stored = bytes.fromhex((FIXTURES / f"machine-{VERSION}.hex").read_text())
    machine = QuorumMachine.decode(stored)
    wanted = example(ready_at=1_795_000_000_123)
    assert machine.encode() == wanted.encode() == stored
    assert machine.returned_ranges() == wanted.returned_ranges()
    assert (machine.reach(0), machine.reach(255), machine.last_number(OTHER)) == (128, 64, 5)


def test_an_empty_machine_is_its_head() -> None:
    assert QuorumMachine().encode() == b"\x03" + bytes(10)
    assert QuorumMachine.decode(QuorumMachine().encode()).encode() == QuorumMachine().encode()


def test_a_machine_that_is_cut_anywhere_is_refused() -> None:
    encoded = example().encode()
    for size in range(len(encoded)):
        with pytest.raises(QuorumFormatError):
            QuorumMachine.decode(encoded[:size])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x04", "byte 0: a machine of version 4, where 1 to 3 are known"),
        (b"\x01" + bytes(9) + b"\x01" + bytes(20) + b"\x02", "byte 11: unknown hold 2"),
        (b"\x02" + bytes(9) + b"\x01" + bytes(20) + b"\x05", "byte 11: unknown hold 5"),
        (b"\x03" + bytes(9) + b"\x01" + bytes(20) + b"\x05" + bytes(8), "byte 11: unknown hold 5"),
        (b"", "byte 0: the machine ends within its head"),
        (b"\x01" + bytes(11), "byte 11: 1 bytes behind the machine"),
        (b"\x01\0\x01" + bytes(8), "byte 11: 1 rows of 8 bytes do not fit"),
        (
            b"\x01\0\x02" + bytes(8) + b"\x01" + bytes(7) + bytes(7) + b"\x05",
            "byte 11: the parts are not in order",
        ),
    ],
)
def test_an_invalid_machine_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(QuorumFormatError) as raised:
        QuorumMachine.decode(data)
    assert str(raised.value).startswith(message)
