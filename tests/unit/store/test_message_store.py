"""When a store falls behind, and when it has caught up."""

import errno
import random

from tests.sim.disk import SimulatedDisk

from warren.limits import PENDING_MESSAGE_SIZE, STORE_PENDING_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.store.disk import SyncFile
from warren.store.message_store import MessageStore
from warren.store.recovery import RecoveryDependencies, open_store
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

ADDRESS = encode_address("", "q")
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()
BODY_SIZE = 1_000_000
# This many messages exceed the pending limit.
COUNT = STORE_PENDING_SIZE_MAX // BODY_SIZE + 1


class Port(StorePort):
    """Records whether publishers may continue."""

    def __init__(self) -> None:
        self.reported: list[str] = []

        self.asked: list[str] = []

    def commit_due(self) -> None:
        self.asked.append("now")

    def commit_due_later(self) -> None:
        self.asked.append("in a moment")

    def failed(self, error: OSError, is_full: bool) -> None:
        self.reported.append("failed")

    def recovered(self) -> None:
        self.reported.append("recovered")

    def fell_behind(self) -> None:
        self.reported.append("behind")

    def caught_up(self) -> None:
        self.reported.append("caught up")


class Publisher:
    """Appends messages to queue 1 of a store whose disk advances when it is told to."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(0))
        self.port = Port()
        dependencies = RecoveryDependencies(
            random_bytes=bytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        self.store: MessageStore = open_store(self.disk, self.port, dependencies).store
        self.position = 0

    def publish(self, count: int, size: int = BODY_SIZE) -> None:
        for _ in range(count):
            message = StoredMessage(ADDRESS, PROPERTIES, bytes(size) + BODY_END, 0)
            message.flags = PERSISTENT
            self.store.append(message, self.store.cursor(1, 0), self.position)
            self.position += 1


def test_falling_behind_is_reported_once() -> None:
    publisher = Publisher()
    publisher.publish(COUNT - 1)
    assert publisher.port.reported == []
    publisher.publish(3)
    assert publisher.port.reported == ["behind"]


def test_it_has_caught_up_when_everything_is_on_disk() -> None:
    publisher = Publisher()
    publisher.publish(1)
    publisher.store.commit()
    publisher.publish(COUNT)
    publisher.store.commit()
    assert publisher.port.reported == ["behind"], "the first batch is being written"
    publisher.disk.advance(2)
    publisher.store.commit()
    assert publisher.disk.is_busy
    assert publisher.port.reported == ["behind", "caught up"], "as much again may be pending during the write"


def test_small_messages_count_with_the_memory_that_they_take() -> None:
    publisher = Publisher()
    count = STORE_PENDING_SIZE_MAX // (PENDING_MESSAGE_SIZE + 1)
    publisher.publish(count, 0)
    assert publisher.port.reported == []
    publisher.publish(1, 0)
    assert publisher.port.reported == ["behind"]


def test_a_message_for_many_queues_counts_for_each() -> None:
    publisher = Publisher()
    message = StoredMessage(ADDRESS, PROPERTIES, b"x" + BODY_END, 0)
    for number in range(1, 300_000):
        publisher.store.append(message, publisher.store.cursor(number % 100, 0), number)
    assert publisher.port.reported == ["behind"]


def test_with_a_full_disk_it_stays_behind_until_there_is_space() -> None:
    publisher = Publisher()
    publisher.disk.fault = (SyncFile, errno.ENOSPC)
    publisher.publish(1)
    publisher.store.commit()
    publisher.publish(COUNT)
    publisher.disk.advance()
    publisher.store.commit()
    assert publisher.port.reported == ["behind", "failed"]
    publisher.store.retry()
    publisher.disk.advance()
    publisher.store.commit()
    assert publisher.port.reported == ["behind", "failed", "recovered", "caught up"]


def test_it_can_fall_behind_repeatedly() -> None:
    publisher = Publisher()
    for _ in range(2):
        publisher.publish(COUNT)
        publisher.store.commit()
        publisher.disk.advance()
    assert publisher.port.reported == ["behind", "caught up"] * 2


def test_a_release_is_committed_later_unless_a_message_is_published() -> None:
    publisher = Publisher()
    store, cursor = publisher.store, publisher.store.cursor(1, 0)
    publisher.publish(3, 0)
    store.commit()
    publisher.disk.advance()
    assert publisher.port.asked == ["now"]
    store.finish(cursor, 0, 1)
    store.finish(cursor, 1, 2)
    assert publisher.port.asked == ["now", "in a moment"], "it is reported once"
    publisher.publish(1, 0)
    assert publisher.port.asked == ["now", "in a moment", "now"]
    store.commit()
    assert publisher.disk.is_busy
    store.finish(cursor, 2, 3)
    store.commit()
    publisher.disk.advance()
    assert publisher.port.asked == ["now", "in a moment", "now", "in a moment", "in a moment"]
    assert not publisher.disk.is_busy, "no publisher waits"
    assert not store.is_idle
    store.commit()
    publisher.disk.advance()
    assert store.is_idle


def test_it_is_not_idle_while_a_batch_waits_for_room_on_the_disk() -> None:
    publisher = Publisher()
    publisher.disk.fault = (SyncFile, errno.ENOSPC)
    publisher.publish(1, 0)
    publisher.store.commit()
    publisher.disk.advance()
    assert not publisher.store.is_idle
    publisher.store.retry()
    publisher.disk.advance()
    assert publisher.store.is_idle


def test_releases_are_written_before_the_store_closes() -> None:
    publisher = Publisher()
    publisher.publish(1, 0)
    publisher.store.commit()
    publisher.store.finish(publisher.store.cursor(1, 0), 0, 1)
    closed: list[bool] = []
    publisher.store.close(lambda: closed.append(publisher.store.is_idle))
    publisher.disk.advance(2)
    assert closed == []
    publisher.disk.advance()
    publisher.disk.advance(4)
    assert closed == [True]


class Publishing(ConfirmListener):
    """Expects numbers, and records how they are confirmed in runs."""

    def __init__(self) -> None:
        self.expected: list[int] = []
        self.runs: list[tuple[int, int]] = []

    def expect(self, sequence: int) -> None:
        self.expected.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.runs.append((first, last))


def test_consecutive_numbers_are_confirmed_together() -> None:
    publisher = Publisher()
    one, other = Publishing(), Publishing()
    publisher.publish(1, 0)
    for confirmation, number in (
        (one, 1), (one, 2), (one, 2), (one, 3), (one, 7), (other, 8), (other, 9), (one, 10),
    ):  # fmt: skip
        publisher.store.confirm(confirmation, number)
    assert (one.expected, other.expected) == ([1, 2, 3, 7, 10], [8, 9])
    publisher.store.commit()
    publisher.publish(1, 0)
    publisher.store.confirm(one, 11)
    publisher.disk.advance(2)
    publisher.store.commit()
    assert (one.runs, other.runs) == ([(1, 3), (7, 7), (10, 10)], [(8, 9)])
    publisher.disk.advance()
    assert one.runs[-1] == (11, 11)
