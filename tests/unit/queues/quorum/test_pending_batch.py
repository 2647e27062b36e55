"""What becomes one entry of a quorum queue: the runs in which settled messages are released."""

from tests.unit.store.test_recovery import published

from warren.queues.quorum.pending_batch import PendingBatch
from warren.store.cursor import QueueCursor

LOW, HIGH = QueueCursor(1, 0), QueueCursor(1, 1)


def released(*places: tuple[QueueCursor, int]) -> PendingBatch:
    """A batch in which the messages at `places` were settled, in this order."""
    batch = PendingBatch()
    for cursor, position in places:
        batch.release(published(b"%d" % position), cursor, position)
    return batch


def test_messages_settled_in_order_of_position_are_released_as_one_run() -> None:
    batch = released((LOW, 7), (LOW, 8), (LOW, 9))
    assert [message.body for message in batch.released] == [b"7", b"8", b"9"]
    assert batch.release_runs() == [(LOW, 7, 10)]
    assert batch.release_runs() == [(LOW, 7, 10)], "asked again"


def test_a_gap_and_an_earlier_position_begin_another_run() -> None:
    assert released((LOW, 7), (LOW, 9), (LOW, 8)).release_runs() == [(LOW, 7, 8), (LOW, 9, 10), (LOW, 8, 9)]


def test_another_level_begins_another_run_also_at_the_next_position() -> None:
    assert released((LOW, 0), (HIGH, 1), (HIGH, 2)).release_runs() == [(LOW, 0, 1), (HIGH, 1, 3)]


def test_position_0_of_another_level_begins_a_run() -> None:
    assert released((HIGH, 0), (LOW, 0)).release_runs() == [(HIGH, 0, 1), (LOW, 0, 1)]


def test_nothing_settled_is_no_run() -> None:
    assert PendingBatch().release_runs() == []
