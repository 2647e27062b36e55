"""Reading messages from disk, and what is cached of a read."""

import errno
import random

import pytest
from tests.sim.disk import SimulatedDisk

from warren.limits import RANDOM_READ_SIZE, READ_AHEAD_SIZE
from warren.model.message import BODY_END, PERSISTENT, StoredMessage, encode_address
from warren.store.recovery import RecoveryDependencies, open_store
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.wire.properties import BasicProperties

ADDRESS = encode_address("", "q")
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()


class Port(StorePort):
    """Nothing to do: the tests commit."""

    def commit_due(self) -> None:
        pass

    def unreadable(self, error: OSError | StoreFileError) -> None:
        pass


class Counted(SimulatedDisk):
    """A disk that counts its reads."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.reads: list[int] = []
        # Larger reads fail.
        self.size_max = 1 << 30

    def read(self, name: str, at: int, size: int) -> bytes:
        self.reads.append(size)
        if size > self.size_max:
            raise OSError(errno.EIO, "cannot be read")
        return super().read(name, at, size)


class Written:
    """A store with messages of the queues 1, 2, 3 …, one of each."""

    def __init__(self) -> None:
        self.disk = Counted()
        dependencies = RecoveryDependencies(
            random_bytes=bytes, has_queue=lambda _: True, progress=lambda *_: None
        )
        self.store = open_store(self.disk, Port(), dependencies).store
        self.locations: list[int] = []
        self.disk.reads.clear()

    def write(self, *bodies: bytes) -> None:
        made = []
        for body in bodies:
            message = StoredMessage(ADDRESS, PROPERTIES, body + BODY_END, 0)
            message.flags = PERSISTENT
            self.store.append(message, self.store.cursor(len(self.locations) + len(made) + 1, 0), 0)
            made.append(message)
        self.store.commit()
        self.disk.advance(None)
        self.locations += [message.location for message in made]

    def body(self, place: int) -> bytes:
        message = self.store.reader().read(self.locations[place])
        assert message is not None
        return message.body


def test_adjacent_messages_of_several_queues_are_read_together() -> None:
    written = Written()
    written.write(*(b"%d" % number for number in range(1000)))
    assert [written.body(place) for place in range(1000)] == [b"%d" % number for number in range(1000)]
    assert len(written.disk.reads) == 2


def test_a_range_read_before_it_was_written_is_read_again() -> None:
    written = Written()
    written.write(b"first")
    assert written.body(0) == b"first"
    written.write(b"second")
    assert written.body(1) == b"second"


def test_prefetched_messages_are_dropped_on_request() -> None:
    written = Written()
    written.write(b"first", b"second")
    written.body(0)
    written.body(1)
    assert len(written.disk.reads) == 1
    written.store.reader().forget()
    assert written.body(1) == b"second"
    assert len(written.disk.reads) == 2


def test_a_large_message_is_not_cached() -> None:
    written = Written()
    large = bytes(READ_AHEAD_SIZE)
    written.write(large)
    assert written.body(0) == large
    before = len(written.disk.reads)
    assert written.body(0) == large
    assert len(written.disk.reads) > before


def test_a_body_is_read_without_the_rest_of_its_message() -> None:
    written = Written()
    bodies = [b"first", b"", bytes(READ_AHEAD_SIZE), b"last"]
    written.write(*bodies)
    reader = written.store.reader()
    assert [reader.read_body(location) for location in written.locations] == bodies
    before = len(written.disk.reads)
    assert reader.read_body(written.locations[2]) == bodies[2]
    assert len(written.disk.reads) > before, "a large message is not cached"


def test_a_cached_range_is_not_used_after_a_failure() -> None:
    written = Written()
    written.write(b"first", bytes(RANDOM_READ_SIZE), b"third")
    assert written.body(0) == b"first"
    written.disk.size_max = RANDOM_READ_SIZE
    with pytest.raises(OSError, match="cannot be read"):
        written.body(1)
    assert written.body(0) == b"first"
    assert written.body(2) == b"third"
