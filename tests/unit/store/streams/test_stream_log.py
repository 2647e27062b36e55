"""The log of one stream: offsets, reads, segments, and retention."""

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.sim.disk import SimulatedDisk

from warren.model.message import Message, encode_address
from warren.store.segment import StoreFileError
from warren.store.streams.bloom_filter import FilterMatcher
from warren.store.streams.cache import ChunkCache
from warren.store.streams.segment import StreamSegment, stream_of
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies

NUMBER = 7


class Stream:
    """A log on its own disk, which performs every operation at once."""

    def __init__(self, *, segment_size: int = 1_000, **retention: int | None) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.reported: list[OSError | StoreFileError] = []
        self.files = StreamLogDependencies(
            disk=self.disk, random_bytes=random.Random(2).randbytes, report=self.reported.append
        )
        self.log = StreamLog(NUMBER, self.files, [])
        self.log.retention = Retention(segment_size=segment_size, **retention)

    def reopen(self) -> None:
        """Drop the caches of reads and writes."""
        self.files = replace(self.files, cache=ChunkCache())
        self.log = StreamLog(NUMBER, self.files, self.log.segments)

    def append(self, *bodies: bytes, now: int = 1_000) -> None:
        for body in bodies:
            self.log.append(Message(encode_address("", "s"), b"\0\0", body + b"\xce", now))

    def write(self) -> None:
        while self.log.has_work:
            self.disk.perform(self.log.take_batch())
            self.log.written()

    def bodies(self, offset: int = 0) -> list[bytes]:
        found: list[bytes] = []
        while (chunk := self.log.read(offset)) is not None:
            found += [chunk.content(place)[:-1] for place in range(max(offset - chunk.first, 0), chunk.count)]
            offset = chunk.end
        return found


def test_unwritten_messages_cannot_be_read() -> None:
    stream = Stream()
    reported_text: list[int] = []
    stream.log.listener = lambda: reported_text.append(stream.log.committed)
    stream.append(b"one", b"two")
    assert (stream.log.next, stream.log.committed, stream.bodies(), reported_text) == (2, 0, [], [])
    stream.write()
    assert (stream.log.committed, stream.bodies(), reported_text) == (2, [b"one", b"two"], [2])
    assert stream.bodies(1) == [b"two"]
    assert stream.log.read(2) is None


def test_a_full_segment_gets_an_index_and_a_successor() -> None:
    stream = Stream()
    sent = [bytes((n,)) * 300 for n in range(20)]
    for body in sent:
        stream.append(body)
        stream.write()
    assert len(stream.log.segments) > 3
    assert [segment.is_sealed for segment in stream.log.segments] == [True] * (
        len(stream.log.segments) - 1
    ) + [False]
    sealed = stream.log.segments[1]
    read = StreamSegment(NUMBER, sealed.first, sealed.salt, sealed.epoch)
    assert read.load_index(bytes(stream.disk.files[sealed.index_name].current))
    assert (read.end, read.size, read.last_time) == (sealed.end, sealed.size, sealed.last_time)
    assert stream.bodies() == sent
    assert stream.log.byte_count == sum(segment.size for segment in stream.log.segments)


def test_prefetched_chunks_are_not_read_again() -> None:
    stream = Stream(segment_size=100_000)
    for n in range(50):
        stream.append(bytes((n,)))
        stream.write()
    stream.reopen()
    before = stream.disk.read_count
    assert len(stream.bodies()) == 50
    assert stream.disk.read_count == before + 1


def test_the_filter_of_a_chunk_stays_known_after_the_chunk_is_evicted() -> None:
    stream = Stream()
    stream.append(b"one", b"two")
    stream.write()
    unfiltered, eu = FilterMatcher([], has_unfiltered=True), FilterMatcher(["eu"], has_unfiltered=False)
    assert stream.log.end_of_nonmatching(0, eu) is None
    chunk = stream.log.read(0)
    assert chunk is not None
    assert (stream.log.may_contain(chunk, unfiltered), stream.log.may_contain(chunk, eu)) == (True, False)
    stream.reopen()
    before = stream.disk.read_count
    assert stream.log.end_of_nonmatching(0, eu) == 2
    assert stream.log.end_of_nonmatching(0, unfiltered) is None
    assert stream.disk.read_count == before


@pytest.mark.parametrize(
    ("time", "offset"), [(0, 0), (1_000, 0), (1_001, 1), (1_900, 9), (1_901, 10), (9_999, 10)]
)
def test_a_time_resolves_to_the_first_chunk_that_is_not_older(time: int, offset: int) -> None:
    stream = Stream(segment_size=200)
    for n in range(10):
        stream.append(b"x" * 40, now=1_000 + 100 * n)
        stream.write()
    assert len(stream.log.segments) > 2
    assert stream.log.offset_at(time) == offset


def test_chunk_times_never_decrease_when_the_clock_does() -> None:
    stream = Stream(segment_size=200)
    for now in (5_000, 6_000, 1_000, 2_000):
        stream.append(b"x" * 40, now=now)
        stream.write()
        stream.reopen()
    times = [chunk.time for offset in range(4) if (chunk := stream.log.read(offset)) is not None]
    assert times == [5_000, 6_000, 6_000, 6_000]
    assert [stream.log.offset_at(time) for time in (1_000, 5_500, 6_001)] == [0, 1, 4]


def _filled(stream: Stream) -> None:
    for n in range(12):
        stream.append(b"x" * 400, now=1_000 * n)
        stream.write()


def test_retention_removes_whole_segments() -> None:
    stream = Stream(bytes_max=2_000)
    _filled(stream)
    stream.log.trim(12_000)
    stream.write()
    assert 2_000 <= stream.log.byte_count < 3_000
    assert stream.log.first > 0
    assert {stream_of(name.partition(".")[0])[1] for name in stream.disk.names()} == {
        segment.first for segment in stream.log.segments
    }
    # A read of a removed offset begins at the first that exists.
    assert len(stream.bodies(0)) == 12 - stream.log.first


def test_old_segments_are_removed_except_the_last() -> None:
    stream = Stream(age_ms_max=5_000)
    _filled(stream)
    stream.log.trim(12_000)
    assert stream.log.segments[0].last_time >= 7_000
    stream.log.trim(1_000_000)
    assert len(stream.log.segments) == 1
    assert stream.log.next == 12


def test_a_deleted_stream_leaves_no_file() -> None:
    stream = Stream()
    _filled(stream)
    stream.append(b"never written")
    stream.log.delete_segments()
    stream.write()
    assert not stream.disk.names()


def test_a_stream_deleted_during_its_batch_makes_nothing_of_it_readable() -> None:
    stream = Stream()
    told: list[int] = []
    stream.log.listener = lambda: told.append(stream.log.committed)
    stream.append(b"in flight")
    steps = stream.log.take_batch()
    stream.log.delete_segments()
    stream.disk.perform(steps)
    stream.log.written()
    assert (stream.log.committed, stream.bodies(), told) == (0, [], [])
    stream.write()
    assert not stream.disk.names()


def _hurt(stream: Stream, hurt: Callable[[SimulatedDisk, StreamSegment], None]) -> list[bytes]:
    for n in range(12):
        stream.append(bytes((n,)) * 400)
        stream.write()
    hurt(stream.disk, stream.log.segments[1])
    stream.reopen()
    return stream.bodies()


def test_a_damaged_chunk_is_reported_and_the_others_are_read() -> None:
    stream = Stream()
    found = _hurt(stream, lambda disk, segment: disk.flip_bit(segment.name, 200))
    assert len(found) == 11
    assert "the messages from offset 2 to 2 are damaged" in str(stream.reported[0])


def test_an_unreadable_file_is_reported_and_the_others_are_read() -> None:
    stream = Stream()
    found = _hurt(stream, lambda disk, segment: disk.unreadable.update({segment.name: range(10_000)}))
    assert len(found) == 12 - (stream.log.segments[1].end - stream.log.segments[1].first)
    assert isinstance(stream.reported[0], OSError)
