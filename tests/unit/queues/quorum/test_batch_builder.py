"""What a turn changes becomes as few commands as possible, and never more than fit into an entry."""

import random

import pytest
from tests.seeds import SEEDS

from warren.limits_raft import GROUP_COMMANDS_SIZE_MAX, GROUP_ENTRY_RUNS_MAX
from warren.queues.quorum.batch_builder import BatchBuilder
from warren.queues.quorum.batch_codec import (
    Enqueue,
    Enqueuer,
    HeldRun,
    HoldReason,
    QuorumBatch,
    Reach,
    ReturnedRun,
    SettledRun,
    SettleReason,
    encode,
)
from warren.store.group_record import PositionRun

ACKNOWLEDGED, EXPIRED = SettleReason.ACKNOWLEDGED, SettleReason.EXPIRED
NODE, OTHER = Enqueuer(1, 7), Enqueuer(2, 7)


@pytest.fixture
def builder() -> BatchBuilder:
    return BatchBuilder()


def test_messages_of_one_enqueuer_are_one_run_of_numbers_and_of_positions(builder: BatchBuilder) -> None:
    for number in range(1, 101):
        builder.enqueue(Enqueuer(1, 7), number, 0, number + 10)
    assert builder.take() == QuorumBatch(runs=(PositionRun(0, 11, 100),), enqueued=(Enqueue(NODE, 1, 100),))


def test_another_enqueuer_level_or_number_begins_another_run(builder: BatchBuilder) -> None:
    for enqueuer, number, level, position in (
        (NODE, 1, 0, 0), (OTHER, 2, 0, 1), (OTHER, 3, 1, 2), (OTHER, 4, 1, 0), (OTHER, 6, 1, 1),
    ):  # fmt: skip
        builder.enqueue(enqueuer, number, level, position)
    batch = builder.take()
    assert batch.enqueued == (Enqueue(NODE, 1, 1), Enqueue(OTHER, 2, 3), Enqueue(OTHER, 6, 1))
    assert batch.runs == (PositionRun(0, 0, 2), PositionRun(1, 2, 1), PositionRun(1, 0, 2))


def test_positions_that_are_settled_in_order_are_one_run_with_the_sum_of_their_sizes(
    builder: BatchBuilder,
) -> None:
    for position in range(5, 105):
        builder.settle(3, position, 10, ACKNOWLEDGED)
    assert builder.take().settled == (SettledRun(3, 5, 100, size=1000, reason=ACKNOWLEDGED),)


def test_positions_that_are_settled_out_of_order_are_joined(builder: BatchBuilder) -> None:
    for position in (7, 5, 9, 6, 8, 20):
        builder.settle(0, position, 1, ACKNOWLEDGED)
    builder.settle_run(SettledRun(0, 10, 10, size=3, reason=ACKNOWLEDGED))
    assert builder.take().settled == (SettledRun(0, 5, 16, size=9, reason=ACKNOWLEDGED),)


def test_settled_positions_of_other_levels_and_reasons_are_other_runs(builder: BatchBuilder) -> None:
    builder.settle(1, 2, 1, ACKNOWLEDGED)
    builder.settle(0, 3, 1, ACKNOWLEDGED)
    builder.settle(0, 2, 1, EXPIRED)
    builder.settle(0, 1, 1, ACKNOWLEDGED)
    assert builder.take().settled == (
        SettledRun(0, 1, 1, size=1, reason=ACKNOWLEDGED),
        SettledRun(0, 2, 1, size=1, reason=EXPIRED),
        SettledRun(0, 3, 1, size=1, reason=ACKNOWLEDGED),
        SettledRun(1, 2, 1, size=1, reason=ACKNOWLEDGED),
    )


@pytest.mark.seeds(SEEDS)
def test_the_order_of_settling_makes_no_difference(seed: int) -> None:
    chance = random.Random(seed)
    settled = {
        (level, position): chance.choice((ACKNOWLEDGED, EXPIRED))
        for level in (0, 9)
        for position in chance.sample(range(60), chance.randrange(60))
    }
    encoded = []
    for _ in range(2):
        order = list(settled)
        chance.shuffle(order)
        builder = BatchBuilder()
        for level, position in order:
            builder.settle(level, position, position, settled[level, position])
        batch = builder.take()
        assert {
            (run.level, position): run.reason
            for run in batch.settled
            for position in range(run.first, run.first + run.count)
        } == settled
        assert sum(run.size for run in batch.settled) == sum(position for _, position in settled)
        encoded.append(encode(batch))
    assert encoded[0] == encoded[1]


def test_messages_that_come_back_together_are_one_run(builder: BatchBuilder) -> None:
    for position in range(10):
        builder.return_counted(0, position, 1, 2)
    builder.return_counted(0, 10, 2, 2)
    builder.return_counted(0, 11, 2, 3)
    builder.return_counted(1, 12, 2, 3)
    builder.return_counted(1, 13, 2**40, 2**40)
    for position in range(14, 17):
        builder.return_counted(1, position, 1, 1, ready_at=5)
    builder.return_counted(1, 17, 1, 1, ready_at=6)
    assert builder.take().returned == (
        ReturnedRun(0, 0, 10, 1, 2),
        ReturnedRun(0, 10, 1, 2, 2),
        ReturnedRun(0, 11, 1, 2, 3),
        ReturnedRun(1, 12, 1, 2, 3),
        ReturnedRun(1, 13, 1, 2**32 - 1, 2**32 - 1),
        ReturnedRun(1, 14, 3, 1, 1, 5),
        ReturnedRun(1, 17, 1, 1, 1, 6),
    )


def test_messages_that_are_held_together_for_one_reason_are_one_run(builder: BatchBuilder) -> None:
    for position in range(10):
        builder.hold(0, position, HoldReason.QUARANTINED)
    builder.hold(0, 10, HoldReason.REJECTED)
    builder.hold(1, 11, HoldReason.NONE)
    assert builder.take().held == (
        HeldRun(0, 0, 10, HoldReason.QUARANTINED),
        HeldRun(0, 10, 1, HoldReason.REJECTED),
        HeldRun(1, 11, 1, HoldReason.NONE),
    )


def test_the_highest_reach_of_each_level_counts(builder: BatchBuilder) -> None:
    for level, position in ((1, 5), (0, 64), (0, 32)):
        builder.raise_reach(level, position)
    assert builder.take().reaches == (Reach(0, 64), Reach(1, 5))


def test_a_batch_that_was_taken_leaves_nothing_behind(builder: BatchBuilder) -> None:
    assert builder.is_empty()
    for fill in (
        lambda: builder.enqueue(NODE, 1, 0, 0),
        lambda: builder.settle(0, 0, 5, ACKNOWLEDGED),
        lambda: builder.return_counted(0, 0, 1, 1),
        lambda: builder.hold(0, 0, HoldReason.QUARANTINED),
        lambda: builder.raise_reach(0, 1),
        lambda: builder.forget(NODE),
    ):
        fill()
        assert not builder.is_empty()
        batch = builder.take()
        assert builder.is_empty()
        assert builder.take() == QuorumBatch()
        fill()
        assert builder.take() == batch


def test_runs_that_continue_those_of_the_batch_before_are_in_the_next_one(builder: BatchBuilder) -> None:
    for number in (1, 2):
        builder.enqueue(NODE, number, 0, number)
        assert not builder.is_empty()
        builder.settle(0, number, 1, ACKNOWLEDGED)
        batch = builder.take()
        assert batch.runs == (PositionRun(0, number, 1),)
        assert batch.enqueued == (Enqueue(NODE, number, 1),)
        assert batch.settled == (SettledRun(0, number, 1, size=1, reason=ACKNOWLEDGED),)


@pytest.mark.parametrize("command", range(5))
def test_a_full_batch_fits_into_an_entry_with_the_reach_of_every_level(
    builder: BatchBuilder, command: int
) -> None:
    at = 0
    while not builder.is_full:
        at += 2
        match command:
            case 0:
                builder.enqueue(NODE, at, 0, at // 2)
            case 1:
                builder.settle(0, at, 1, ACKNOWLEDGED)
            case 2:
                builder.return_counted(0, at, 1, 1)
            case 3:
                builder.hold(0, at, HoldReason.QUARANTINED)
            case 4:
                builder.forget(Enqueuer(1, at))
    for level in range(256):
        builder.raise_reach(level, 2**55)
    size = len(encode(builder.take()))
    assert GROUP_COMMANDS_SIZE_MAX - 4096 < size <= GROUP_COMMANDS_SIZE_MAX
    assert not builder.is_full


def test_a_batch_is_full_before_its_runs_of_positions_cannot_be_counted(builder: BatchBuilder) -> None:
    number = 0
    while not builder.is_full:
        number += 1
        builder.enqueue(NODE, number, number & 1, number // 2)
    batch = builder.take()
    assert GROUP_ENTRY_RUNS_MAX - 1 <= len(batch.runs) <= GROUP_ENTRY_RUNS_MAX
    assert batch.enqueued == (Enqueue(NODE, 1, number),)


def test_settling_in_order_never_fills_a_batch(builder: BatchBuilder) -> None:
    for position in range(100_000):
        builder.settle(0, position, 1, ACKNOWLEDGED)
    assert not builder.is_full


def test_nothing_is_added_beyond_the_size_of_an_entry(builder: BatchBuilder) -> None:
    position = 0
    while not builder.is_full:
        position += 2
        builder.settle(0, position, 1, ACKNOWLEDGED)
    with pytest.raises(AssertionError, match="full"):
        # The largest command.
        builder.return_counted(0, 0, 1, 1)
