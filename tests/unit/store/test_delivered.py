"""The delivered position of each queue and priority, in a file of its own."""

import errno
import random
from collections.abc import Callable

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_recovery import opened, published

from warren.limits import DELIVERED_AHEAD_KEPT, DELIVERED_AHEAD_MAX
from warren.store import delivered as module
from warren.store.cursor import QueueCursor
from warren.store.delivered import NAME, Delivered
from warren.store.disk import WriteFile
from warren.store.segment import NewerFormatError

END = 1_000_000


def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


def hand_out(delivered: Delivered, cursor: QueueCursor, count: int) -> int:
    """Deliver the next `count` positions, as the store does; returns how often the file was written."""
    noted = 0
    for _ in range(count):
        cursor.delivered_up_to += 1
        if cursor.delivered_up_to > cursor.reserved:
            delivered.reserve(cursor)
            noted += 1
    return noted


def found(there: SimulatedDisk, queue: int, level: int = 0, end: int = END) -> int:
    """The delivered position after a restart."""
    return Delivered(there).restore(QueueCursor(queue, level), end)


def test_each_queue_has_its_own_entry() -> None:
    there = disk()
    delivered = Delivered(there)
    cursors = [QueueCursor(queue, level) for queue in range(1, 301) for level in (0, 255)]
    for count, cursor in enumerate(cursors, 1):
        hand_out(delivered, cursor, count)
    delivered.take_back()
    again = Delivered(there)
    assert [again.restore(QueueCursor(cursor.queue, cursor.level), END) for cursor in cursors] == [
        *range(1, 601)
    ]


def test_the_noted_position_is_at_least_that_delivered_and_less_than_twice_as_much() -> None:
    there = disk()
    delivered, cursor = Delivered(there), QueueCursor(1, 0)
    for _ in range(200):
        hand_out(delivered, cursor, 1)
        assert cursor.delivered_up_to <= found(there, 1) < 2 * cursor.delivered_up_to


def test_a_busy_queue_is_noted_seldom() -> None:
    cursor = QueueCursor(1, 0)
    assert hand_out(Delivered(disk()), cursor, 100 * DELIVERED_AHEAD_MAX) < 120
    assert cursor.reserved - cursor.delivered_up_to <= DELIVERED_AHEAD_MAX


def test_with_one_delivery_per_batch_not_every_one_is_noted() -> None:
    there = disk()
    store = opened(there).store
    cursor = store.cursor(1, 0)
    noted = 0
    for position in range(100):
        store.append(published(b""), cursor, position)
        # Never idle: another message is waiting when a batch ends.
        there.advance()
        store.commit()
        before = cursor.reserved
        store.delivered_up_to(cursor, position + 1)
        noted += cursor.reserved > before
    assert noted < 2 * 100 / DELIVERED_AHEAD_KEPT
    assert cursor.reserved - cursor.delivered_up_to < 2 * DELIVERED_AHEAD_KEPT
    while not store.is_idle:
        there.advance()
        store.commit()
    assert cursor.reserved == cursor.delivered_up_to == 100
    store.append(published(b""), cursor, 100)
    store.delivered_up_to(cursor, 101)
    assert cursor.reserved == 101, "the entry of an idle queue is exact"


def test_the_entry_of_an_idle_queue_is_exact() -> None:
    there = disk()
    delivered, cursor = Delivered(there), QueueCursor(1, 0)
    hand_out(delivered, cursor, 100)
    delivered.take_back()
    assert found(there, 1) == 100
    hand_out(delivered, cursor, 1)
    assert found(there, 1) >= 101


def test_positions_assigned_after_a_restart_count_as_undelivered() -> None:
    there = disk()
    hand_out(Delivered(there), QueueCursor(1, 0), 100)
    assert found(there, 1, end=30) == 30
    assert found(there, 1) == 30, "later positions are used by new messages"


def test_the_position_in_the_log_counts_where_it_is_higher() -> None:
    there = disk()
    hand_out(Delivered(there), QueueCursor(1, 0), 10)
    cursor = QueueCursor(1, 0)
    cursor.delivered_up_to = 50
    assert Delivered(there).restore(cursor, END) == 50


def test_the_entry_of_a_queue_that_is_not_recovered_is_reused() -> None:
    there = disk()
    delivered = Delivered(there)
    for queue in range(1, 201):
        hand_out(delivered, QueueCursor(queue, 0), 1)
    size = there.names()[NAME]
    again = Delivered(there)
    again.forget_rest()
    for queue in range(201, 401):
        hand_out(again, QueueCursor(queue, 0), 1)
    assert there.names()[NAME] == size
    assert found(there, 1) == 0
    assert found(there, 400) == 1


def test_of_two_entries_of_a_queue_the_higher_counts() -> None:
    """An old entry remains if the release of it did not reach the disk."""
    entries: list[bytes] = []
    for count in (3, 7):
        other = disk()
        hand_out(delivered := Delivered(other), QueueCursor(1, 0), count)
        delivered.take_back()
        entries.append(bytes(other.files[NAME].current[16:32]))
    for both in (entries, entries[::-1]):
        there = disk()
        hand_out(Delivered(there), QueueCursor(2, 0), 1)
        there.perform([WriteFile(NAME, 16, both)])
        assert found(there, 1) == 7
        assert found(there, 2) == 0


def test_the_entry_of_a_deleted_queue_is_reused() -> None:
    there = disk()
    delivered = Delivered(there)
    for queue in range(1, 1_000):
        cursor = QueueCursor(queue, 0)
        hand_out(delivered, cursor, 3)
        cursor.is_dropped = True
        delivered.drop(cursor)
        hand_out(delivered, cursor, 1)
    delivered.take_back()
    assert there.names()[NAME] == 4_096


def test_a_failed_note_is_retried_with_the_next_delivery() -> None:
    there = disk()
    delivered, cursor = Delivered(there), QueueCursor(1, 0)
    there.fault = (WriteFile, errno.ENOSPC)
    assert hand_out(delivered, cursor, 2) == 2
    assert found(there, 1) == 2


def flipped(there: SimulatedDisk) -> None:
    there.flip_bit(NAME, 3)


def zeroed(there: SimulatedDisk) -> None:
    there.perform([WriteFile(NAME, 0, [bytes(16)])])


@pytest.mark.parametrize("damage", [flipped, zeroed])
def test_with_a_damaged_header_each_entry_is_checked_by_itself(
    damage: Callable[[SimulatedDisk], None],
) -> None:
    there = disk()
    hand_out(Delivered(there), QueueCursor(1, 0), 1)
    damage(there)
    assert found(there, 1) == 1
    assert found(there, 1) == 1


def test_a_damaged_entry_is_ignored() -> None:
    there = disk()
    delivered = Delivered(there)
    for queue in (1, 2):
        hand_out(delivered, QueueCursor(queue, 0), 1)
    there.flip_bit(NAME, 20)
    assert sorted(found(there, queue) for queue in (1, 2)) == [0, 1]


def test_an_unreadable_file_is_reported_and_created_anew() -> None:
    there = disk()
    hand_out(Delivered(there), QueueCursor(1, 0), 1)
    there.unreadable = {NAME: range(16, 17)}
    [damage] = Delivered(there).damage
    assert (damage.name, damage.messages) == (NAME, 0)
    there.unreadable = {}
    assert found(there, 1) == 0


def test_a_newer_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = disk()
    with monkeypatch.context() as later:
        later.setattr(module, "VERSION", module.VERSION + 1)
        Delivered(there)
    before = bytes(there.files[NAME].current)
    with pytest.raises(NewerFormatError, match="format 2 is newer than 1"):
        Delivered(there)
    assert bytes(there.files[NAME].current) == before
