"""Reading columns with a cursor: the messages of the log, with fewer reads, small chunks joined."""

import random
from collections.abc import Callable

import pytest
from tests.unit.store.streams.test_stream_log import Stream

from warren.arrow.message_rows import MessageRows, rows_of_chunk
from warren.limits import STREAM_CHUNK_SIZE, STREAM_READ_AHEAD_SIZE
from warren.model.message import Message, encode_address
from warren.store.streams.chunk import Chunk
from warren.store.streams.span import Span
from warren.store.streams.stream_log import StreamLog

# A message as a row: its offset, address, time and body.
Row = tuple[int, bytes, int, bytes]


def through(stream: Stream, start: int, end: int) -> list[Row]:
    """The chunks that a cursor yields; those that it cannot read are read from the log."""
    log, cursor, found = stream.log, stream.log.cursor(), []
    while start < end:
        read = cursor.read(start, end) or log.read(start)
        if read is None:
            break
        found += rows_in(rows_of_chunk("s", read, start, end))
        start = read.end
    return found


def rows_in(rows: MessageRows) -> list[Row]:
    kinds = rows.kinds if rows.kinds is not None else [0] * rows.count
    times = rows.times if not isinstance(rows.times, int) else [rows.times] * rows.count
    return [
        (
            offset,
            rows.shapes[kind][0],
            time,
            bytes(rows.bodies[rows.ends[rows.at + place] : rows.ends[rows.at + place + 1]]),
        )
        for place, (offset, kind, time) in enumerate(zip(rows.offsets, kinds, times, strict=True))
    ]


def chunk_by_chunk(log: StreamLog, start: int, end: int) -> list[Row]:
    found: list[Row] = []
    while start < end and (chunk := log.read(start)) is not None:
        found += rows_in(rows_of_chunk("s", chunk, start, end))
        start = chunk.end
    return found


def fill(stream: Stream, seed: int) -> None:
    """Chunks of one message and of many, of one key and of several, with small and large bodies."""
    chance = random.Random(seed)
    for time in range(150):
        count = chance.choice((0, 1, 1, 3, 40))
        keys = chance.choice(("a", "a", "b", "abc"))
        for _ in range(count):
            body = chance.randbytes(chance.choice((0, 7, 7, 200, 9_000)))
            address = encode_address("", chance.choice(keys))
            stream.log.append(Message(address, b"\0\0", body + b"\xce", 1_000 + time))
        if not count:
            stream.log.store_offset("reader", time)
        stream.write()
    stream.append(bytes(STREAM_READ_AHEAD_SIZE + 1), now=2_000)
    stream.write()
    stream.append(b"last", now=2_000)
    stream.write()


@pytest.mark.parametrize("segment_size", [20_000, 1_000_000, 500_000_000])
def test_a_cursor_yields_the_messages_of_the_log(segment_size: int) -> None:
    stream = Stream(segment_size=segment_size)
    fill(stream, segment_size)
    end = stream.log.committed
    assert through(stream, 0, end) == chunk_by_chunk(stream.log, 0, end)
    chance = random.Random(1)
    for _ in range(20):
        low, high = sorted((chance.randrange(end), chance.randrange(end + 1)))
        assert through(stream, low, high) == chunk_by_chunk(stream.log, low, high)


def test_small_chunks_are_joined() -> None:
    stream = Stream(segment_size=1_000_000)
    for number in range(300):
        stream.append(b"%d" % number, now=1_000 + number)
        stream.write()
    before = stream.disk.read_count
    span = stream.log.cursor().read(0, 300)
    assert isinstance(span, Span)
    assert (span.first, span.count, span.end, span.kinds, len(span.shapes)) == (0, 300, 300, None, 1)
    assert stream.disk.read_count <= before + 2


def test_joined_chunks_have_at_most_the_size_of_a_chunk() -> None:
    stream = Stream(segment_size=10_000_000)
    for _ in range(30):
        stream.append(bytes(30_000))
        stream.write()
    cursor, at, counts = stream.log.cursor(), 0, []
    while at < 30:
        found = cursor.read(at, 30)
        assert found is not None
        counts.append(found.count)
        at = found.end
    assert max(counts) == STREAM_CHUNK_SIZE // 30_000
    assert len(counts) <= 12


def test_chunks_behind_the_end_are_not_read() -> None:
    stream = Stream(segment_size=1_000_000)
    for _ in range(10):
        stream.append(b"one", b"two")
        stream.write()
    found = stream.log.cursor().read(1, 5)
    assert found is not None
    assert (found.first, found.end) == (0, 6)


def test_a_large_chunk_is_yielded_unchanged() -> None:
    stream = Stream(segment_size=10_000_000)
    stream.append(bytes(STREAM_READ_AHEAD_SIZE))
    stream.write()
    assert isinstance(stream.log.cursor().read(0, 1), Chunk)


def _flipped(stream: Stream) -> None:
    stream.disk.flip_bit(stream.log.segments[0].name, 5_000)


def _unreadable(stream: Stream) -> None:
    read, calls = stream.disk.read, iter((True, False, True))

    def failing(name: str, at: int, size: int) -> bytes:
        if next(calls, False):
            raise OSError(5, "of this test")
        return read(name, at, size)

    stream.disk.read = failing  # type: ignore[method-assign]


@pytest.mark.parametrize(("hurt", "lost"), [(_flipped, 1), (_unreadable, 0)])
def test_chunks_that_a_cursor_cannot_read_are_read_from_the_log(
    hurt: Callable[[Stream], None], lost: int
) -> None:
    stream = Stream(segment_size=1_000_000)
    for number in range(300):
        stream.append(b"%d" % number)
        stream.write()
    expected = chunk_by_chunk(stream.log, 0, 300)
    stream.reopen()
    hurt(stream)
    found = through(stream, 0, 300)
    assert len(found) == 300 - lost
    assert [row for row in expected if row in found] == found
    assert len(stream.reported) == lost
