"""What a producer waits for; a socket pair stands in for the broker."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from warren.cli.perf.producer import Producer, ProducerState
from warren.cli.perf.publish_ring import Content, PublishRing
from warren.client.ack_writer import ack

PUBLICATION = PublishRing([("", "q")], Content(body=bytes(16), is_persistent=False, frame_size_max=4096))
PLENTY = 1 << 30


class Pair:
    """A producer, and the other end of its socket."""

    def __init__(self, *, window: int = 0, messages_per_write: int = 0) -> None:
        near, self.far = socket.socketpair()
        near.setblocking(False)
        connection = SimpleNamespace(socket=near)
        self.producer = Producer(
            connection, PUBLICATION, window=window, messages_per_write=messages_per_write
        )  # type: ignore[arg-type]

    def confirm(self, tag: int) -> None:
        """Confirm everything up to `tag`."""
        self.far.sendall(ack(1, tag, is_multiple=True))
        self.producer.receive(0)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair(window=10)
    yield made
    made.far.close()
    made.producer.connection.socket.close()


def test_a_full_window_waits_for_confirms(pair: Pair) -> None:
    assert pair.producer.pump(PLENTY, 0) is ProducerState.AWAITING
    assert pair.producer.published == 10
    pair.confirm(4)
    assert pair.producer.settled == 4
    assert pair.producer.pump(PLENTY, 0) is ProducerState.AWAITING
    assert pair.producer.published == 14


def test_a_full_backlog_waits_for_the_consumers(pair: Pair) -> None:
    assert pair.producer.pump(5, 0) is ProducerState.READY
    pair.confirm(5)
    assert [pair.producer.pump(room, 0) for room in (0, -7)] == [ProducerState.STARVED] * 2
    assert pair.producer.pump(1, 0) is ProducerState.READY
    assert pair.producer.published == 6


def test_a_full_socket_blocks_and_writing_resumes_at_the_same_byte() -> None:
    pair = Pair()
    while pair.producer.pump(PLENTY, 0) is ProducerState.READY:
        pass
    assert pair.producer.pump(PLENTY, 0) is ProducerState.BLOCKED
    received = b""
    while not pair.producer.flush():
        received += pair.far.recv(1 << 20)
    while len(received) < pair.producer.published * PUBLICATION.length:
        received += pair.far.recv(1 << 20)
    assert received == bytes(PUBLICATION.take(0, 1)) * pair.producer.published


def test_small_writes_stop_at_the_end_of_the_window() -> None:
    pair = Pair(messages_per_write=1)
    assert pair.producer.pump(3, 0) is ProducerState.STARVED
    assert pair.producer.published == 3
    assert pair.far.recv(1 << 20) == bytes(PUBLICATION.take(0, 3))
