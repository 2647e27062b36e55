"""What becomes one entry of a quorum queue: the runs in which settled messages are released."""

import random

from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_recovery import opened, published

from warren.queues.quorum.pending_batch import PendingBatch

QUEUE = 1
LEVELS = (0, 1)
END = 12


def settled(*places: tuple[int, int]) -> set[tuple[int, int]]:
    """What a store has as settled after a batch in which the messages at `places` were, in this order."""
    store = opened(SimulatedDisk(random.Random(1))).store
    batch = PendingBatch()
    for level, position in places:
        batch.release(published(b"%d" % position), store.cursor(QUEUE, level), position)
    assert [message.body for message in batch.released] == [b"%d" % position for _, position in places]
    batch.finish_released(store)
    return {
        (level, position)
        for level in LEVELS
        for position in range(END)
        if store.cursor(QUEUE, level).has(position)
    }


def test_messages_settled_in_order_of_position_are_settled_in_the_store() -> None:
    assert settled((0, 7), (0, 8), (0, 9)) == {(0, 7), (0, 8), (0, 9)}


def test_a_gap_and_an_earlier_position_begin_another_run() -> None:
    assert settled((0, 7), (0, 9), (0, 11), (0, 4)) == {(0, 4), (0, 7), (0, 9), (0, 11)}


def test_another_level_begins_another_run_also_at_the_next_position() -> None:
    assert settled((0, 0), (1, 1), (1, 2)) == {(0, 0), (1, 1), (1, 2)}


def test_position_0_of_another_level_begins_a_run() -> None:
    assert settled((1, 0), (0, 0)) == {(0, 0), (1, 0)}


def test_nothing_settled_is_no_run() -> None:
    assert settled() == set()
