"""The end of a backlog beyond its memory limit: in memory until it is written."""

import pytest
from tests.unit.queues.samples import made
from tests.unit.queues.test_disk_backlog import NUMBER, Paged, settle

from warren.errors import ConnectionForced
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.model.ring import Ring
from warren.queues.paged_tail import PagedTail
from warren.wire.properties import BasicProperties

BASE = 100


class Tail:
    """A tail from position BASE on, and the store that its messages are written to."""

    def __init__(self) -> None:
        self.paged = Paged()
        self.stores = self.paged.stores
        self.paged.queue = made(self.paged.host)
        self.cursor = self.stores.persistent.cursor(NUMBER, 0)
        self.tail = PagedTail(self.stores, BASE)

    def append(self, *bodies: bytes) -> None:
        for body in bodies:
            properties = BasicProperties(delivery_mode=2).encode_list()
            message = StoredMessage(encode_address("", "q"), properties, body + BODY_END, 0)
            message.flags = PERSISTENT
            self.stores.persistent.append(message, self.cursor, self.tail.end())
            self.tail.append(message)

    def write(self) -> None:
        settle(self.stores.persistent, self.paged.disk)

    def peeked(self, first: int = BASE, count: int = 99) -> list[tuple[int, bytes]]:
        return [(one.place, one.message.body) for one in self.tail.peek(first, count)]


def test_messages_stay_in_memory_until_they_are_written() -> None:
    one = Tail()
    one.append(b"a", b"b")
    one.tail.shrink()
    assert (one.tail.index.count, one.tail.recent.count) == (0, 2)
    one.write()
    one.append(b"c")
    one.stores.maintain()
    assert (one.tail.index.count, one.tail.recent.count, one.tail.recent_base) == (2, 1, BASE + 2)
    assert one.peeked() == [(BASE, b"a"), (BASE + 1, b"b"), (BASE + 2, b"c")]
    assert one.peeked(BASE + 1, 1) == [(BASE + 1, b"b")]
    one.tail.close()
    one.write()
    one.stores.maintain()
    assert one.tail.recent.count == 1, "a closed tail is left alone"


def test_a_message_is_taken_from_disk_or_from_memory() -> None:
    one = Tail()
    one.append(b"a", b"b")
    one.write()
    one.tail.shrink()
    one.append(b"c", b"d")
    assert [one.tail.take(BASE + at, None).body for at in (0, 3)] == [b"a", b"d"]
    assert [one.tail.holds(BASE + at) for at in range(-1, 5)] == [False, False, True, True, False, False]
    assert one.tail.end() == BASE + 4


def test_a_known_message_is_not_read() -> None:
    one = Tail()
    one.append(b"a")
    one.write()
    one.tail.shrink()
    [peeked] = one.tail.peek(BASE, 1)
    reads = one.stores.read_count
    assert one.tail.take(BASE, peeked.message) is peeked.message
    assert (one.tail.index.count, one.stores.read_count) == (0, reads)


def test_loading_leaves_empty_places_for_missing_positions() -> None:
    one = Tail()
    one.append(b"a", b"b", b"c")
    one.write()
    one.tail.shrink()
    one.tail.take(BASE + 1, None)
    places = Ring()
    assert one.tail.load(places, 0) == BASE
    assert [places.get(at) and places.get(at).body for at in range(places.count)] == [b"a", None, b"c"]
    assert one.tail.index.count == 0


def test_loading_stops_at_an_unreadable_message() -> None:
    one = Tail()
    one.append(b"aaaa", b"bbbb", b"cccc")
    one.write()
    one.tail.shrink()
    name = next(name for name, file in one.paged.disk.files.items() if b"bbbb" in file.current)
    one.paged.disk.flip_bit(name, one.paged.disk.files[name].current.index(b"bbbb"))
    places = Ring()
    assert one.tail.load(places, 0) == BASE
    assert (places.count, one.tail.index.first_position()) == (1, BASE + 1)
    with pytest.raises(ConnectionForced, match="cannot be read"):
        one.tail.peek(BASE + 1, 1)
    assert len(one.paged.port.reported) > 0
