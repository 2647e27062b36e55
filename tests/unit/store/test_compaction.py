"""Compaction: segments that are mostly garbage are freed, and their live messages are still found."""

import random

import pytest
from tests.sim.disk import SimulatedDisk
from tests.sim.segments import make_small
from tests.unit.store.test_recovery import Port, bodies, opened, published

from warren.limits import SPARE_SEGMENTS_MAX
from warren.model.message import StoredMessage
from warren.store.cursor import QueueCursor
from warren.store.message_store import MessageStore
from warren.store.recovery import open_erased

SIZE = 2_000
FIRST = "00000001.segment"
# Segments without live messages: spares, the open segment, and one with state.
BESIDE = SPARE_SEGMENTS_MAX + 3


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch, SIZE)


class Writer:
    """Appends messages to a store and releases some of them."""

    def __init__(
        self, store: MessageStore, disk: SimulatedDisk, port: Port, cursor: QueueCursor | None = None
    ) -> None:
        self.store = store
        self.disk = disk
        self.port = port
        self.cursor = store.cursor(1, 0) if cursor is None else cursor
        self.messages: dict[int, StoredMessage] = {}
        self.position = 0

    def publish(self, count: int, cursors: int = 1) -> None:
        for _ in range(count):
            message = self.messages[self.position] = published(b"%d" % self.position)
            for number in range(1, cursors + 1):
                cursor = self.cursor if number == 1 else self.store.cursor(number, 0)
                self.store.append(message, cursor, self.position)
            self.position += 1
            self.work()

    def keep_every(self, count: int) -> None:
        """Release all whose number `count` does not divide."""
        for position in [position for position in self.messages if position % count]:
            self.store.release(self.messages.pop(position), self.cursor, position)
        self.work()

    def maintain(self) -> None:
        """Compact until there is nothing to do."""
        before: list[str] = []
        while before != (before := sorted(self.disk.names())):
            self.store.maintain()
            self.work()

    def work(self) -> None:
        self._commit()
        while self.disk.is_busy or self.port.is_dirty:
            self.disk.advance()
            self._commit()

    def _commit(self) -> None:
        self.port.is_dirty = False
        self.store.commit()

    def files(self) -> int:
        return len(self.disk.names())

    def read(self) -> list[bytes]:
        """All remaining messages, read at the locations where they were written."""
        reader = self.store.reader()
        found = [reader.read(self.messages[position].location) for position in sorted(self.messages)]
        return [message.body for message in found if message is not None]


def writer() -> Writer:
    disk, port = SimulatedDisk(random.Random(0)), Port()
    return Writer(opened(disk, port).store, disk, port)


def transient_writer() -> Writer:
    disk, port = SimulatedDisk(random.Random(0)), Port()
    cursor = QueueCursor(0, 0)
    cursor.is_dropped = True
    return Writer(open_erased(disk, port, random.Random(1).randbytes), disk, port, cursor)


@pytest.mark.parametrize("make", [writer, transient_writer])
def test_live_messages_are_moved_out_of_segments_that_are_mostly_garbage(make: object) -> None:
    there: Writer = make()  # type: ignore[operator]
    there.publish(800)
    before = there.files()
    there.keep_every(20)
    there.maintain()
    assert before > 20
    assert there.files() <= BESIDE + 4
    assert there.read() == [b"%d" % position for position in range(0, 800, 20)]


def test_moved_messages_survive_a_power_cut() -> None:
    there = writer()
    there.publish(400)
    there.keep_every(20)
    there.maintain()
    there.disk.lose_power()
    assert bodies(opened(there.disk)) == [b"%d" % position for position in range(0, 400, 20)]


def test_moved_messages_can_be_moved_again() -> None:
    there = writer()
    for _ in range(6):
        there.publish(200)
        there.keep_every(40)
        there.maintain()
    kept = [b"%d" % position for position in range(0, 1_200, 40)]
    assert there.read() == kept
    assert there.files() <= BESIDE + 8
    there.disk.lose_power()
    assert bodies(opened(there.disk)) == kept


def test_when_all_moved_messages_are_released_no_segment_remains() -> None:
    there = writer()
    for _ in range(3):
        there.publish(400)
        there.keep_every(10)
        there.maintain()
    there.keep_every(10_000)
    there.store.release(there.messages.pop(0), there.cursor, 0)
    there.work()
    there.maintain()
    assert len(there.store.segments) <= 3
    assert there.files() <= BESIDE


def test_a_message_is_moved_for_the_queues_that_still_need_it() -> None:
    there = writer()
    there.publish(200, cursors=3)
    other = there.store.cursor(2, 0)
    for position, message in there.messages.items():
        if position % 20:
            there.store.release(message, there.store.cursor(3, 0), position)
            there.store.release(message, other, position)
    there.keep_every(40)
    there.maintain()
    assert there.files() <= BESIDE + 4
    for number, kept in ((1, 40), (2, 20), (3, 20)):
        found = bodies(opened(there.disk, queues=(1, 2, 3)), number)
        assert found == [b"%d" % position for position in range(0, 200, kept)]


def test_a_message_released_while_it_is_moved_does_not_return() -> None:
    there = writer()
    there.publish(200)
    there.keep_every(20)
    there.store.maintain()
    there.store.commit()
    assert there.disk.is_busy, "copies are being written"
    for position, message in there.messages.items():
        there.store.release(message, there.cursor, position)
    there.work()
    there.maintain()
    there.disk.lose_power()
    assert not any(segment.live for segment in there.store.segments.values())
    assert bodies(opened(there.disk)) == []


def test_a_queue_that_is_read_in_order_needs_no_compaction() -> None:
    there = writer()
    there.publish(400)
    for position in range(300):
        there.store.release(there.messages.pop(position), there.cursor, position)
        there.work()
        there.store.maintain()
        assert not any(segment.moved for segment in there.store.segments.values())
    assert there.read() == [b"%d" % position for position in range(300, 400)]


def test_messages_of_a_deleted_queue_are_not_moved() -> None:
    there = writer()
    there.publish(200)
    gone = there.store.cursor(2, 0)
    held = [published(b"gone") for _ in range(100)]
    for position, message in enumerate(held):
        there.store.append(message, gone, position)
        there.work()
    there.store.drop(gone)
    there.keep_every(40)
    there.maintain()
    for position, message in enumerate(held):
        there.store.release(message, gone, position)
    there.work()
    there.maintain()
    assert there.read() == [b"%d" % position for position in range(0, 200, 40)]
    assert there.files() <= BESIDE + 4


def test_a_damaged_record_is_reported_and_left_in_place() -> None:
    there = writer()
    there.publish(200)
    there.keep_every(20)
    there.disk.flip_bit(FIRST, 300)
    there.maintain()
    assert [reported for reported in there.port.reported if reported != "dirty"] == [
        f"{FIRST}, byte 294: a record is damaged"
    ]
    assert FIRST in there.disk.files


def test_a_large_message_is_read_completely() -> None:
    there = writer()
    message = published(bytes(SIZE * 3))
    there.store.append(message, there.cursor, 0)
    there.position = 1
    there.publish(300)
    there.messages[0] = message
    there.keep_every(50)
    other = there.store.cursor(2, 0)
    for position in range(100):
        there.store.append(published(bytes(100)), other, position)
    there.maintain()
    assert there.read()[0] == bytes(SIZE * 3)


def test_the_state_of_a_queue_with_many_gaps_does_not_fill_segments_without_bound() -> None:
    """Two of three messages of the queue are released: its state alone takes several segments."""
    there = writer()
    there.publish(1_000)
    there.keep_every(3)
    there.maintain()
    written = there.store.written
    for _ in range(20):
        there.store.maintain()
        there.store.commit()
        there.disk.advance()
    assert there.store.written == written
    there.disk.lose_power()
    assert bodies(opened(there.disk)) == [b"%d" % position for position in range(0, 1_000, 3)]
