"""Sequences of producers and offsets of consumers are as durable as the messages that they belong to."""

import random
from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.sim.disk import SimulatedDisk

from warren.limits import STREAM_CHUNK_SIZE
from warren.model.message import Message, encode_address
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams import tracking as tracking_module
from warren.store.streams.chunk import MessageRun
from warren.store.streams.recovery import CATALOG, open_streams
from warren.store.streams.segment import HEAD_SIZE
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies
from warren.store.streams.tracking import END_SIZE, Tracking, entries_size, is_whole_tail

NUMBER = 7
NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
NUMBERS = st.integers(0, 2**64 - 1)


class Stream:
    """A stream that can be opened again."""

    def __init__(self, segment_size: int = 1_000) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.retention = Retention(segment_size=segment_size)
        self.damage: list[StoreFileError] = []
        self.open()

    def open(self) -> StreamLog:
        files = StreamLogDependencies(disk=self.disk, random_bytes=random.Random(2).randbytes, report=print)
        opened = open_streams(files, StorePort(), lambda number: number == NUMBER)
        self.damage = opened.damage
        self.log = opened.store.log(NUMBER)
        self.log.retention = self.retention
        return self.log

    def send(self, producer: str, sequence: int, body: bytes = b"") -> int | None:
        return self.log.append_as(message(body), producer, sequence)

    def write(self) -> None:
        while self.log.has_work:
            self.disk.perform(self.log.take_batch())
            self.log.written()

    def count(self) -> int:
        offset = self.log.first
        count = 0
        while (chunk := self.log.read(offset)) is not None:
            count += chunk.count
            offset = chunk.end
        return count


def message(body: bytes = b"", flags: int = 0) -> Message:
    made = Message(encode_address("", "s"), b"\0\0", body + b"\xce", 1_000)
    made.flags = flags
    return made


@given(st.dictionaries(NAMES, NUMBERS, max_size=5), st.dictionaries(NAMES, NUMBERS, max_size=5))
def test_tracking_is_decoded_as_it_was_encoded(sequences: dict[str, int], offsets: dict[str, int]) -> None:
    known = Tracking()
    for name, number in sequences.items():
        known.set_sequence(name, number)
    for name, number in offsets.items():
        known.set_offset(name, number)
    tail = known.encode(5)
    if not tail:
        assert not sequences
        assert not offsets
        return
    assert is_whole_tail(tail, 5)
    assert not is_whole_tail(tail, 6)
    size = entries_size(tail[-END_SIZE:])
    assert size + END_SIZE == len(tail)
    found = Tracking()
    found.apply(tail[:size])
    assert (dict(found.sequences), dict(found.offsets)) == (sequences, offsets)


def test_a_duplicate_message_is_not_stored() -> None:
    stream = Stream()
    assert [stream.send("p", sequence) for sequence in (5, 6, 6, 4)] == [0, 1, None, None]
    assert stream.send("other", 1) == 2
    stream.write()
    assert stream.send("p", 6) is None
    assert (stream.log.sequence_of("p"), stream.log.sequence_of("nobody")) == (6, None)
    assert stream.count() == 3


def test_sequences_and_offsets_survive_a_restart() -> None:
    stream = Stream()
    stream.send("p", 0)
    stream.log.store_offset("c", 0)
    stream.write()
    stream.send("p", 7)
    stream.write()
    log = stream.open()
    assert (log.sequence_of("p"), log.stored_offset("c"), stream.count()) == (7, 0, 2)
    assert stream.send("p", 7) is None


def test_an_offset_stored_alone_survives_and_is_not_a_message() -> None:
    stream = Stream()
    stream.log.store_offset("c", 5)
    stream.write()
    assert (stream.log.next, stream.log.committed, stream.count()) == (0, 0, 0)
    log = stream.open()
    assert log.stored_offset("c") == 5
    log.append(message(b"x"))
    stream.write()
    log.store_offset("c", 6)
    stream.write()
    log.append(message(b"y"))
    stream.write()
    assert (stream.open().stored_offset("c"), stream.count(), stream.log.next) == (6, 2, 2)


def test_a_chunk_without_messages_does_not_hide_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warren.store.streams.scan.STREAM_BLOCK_SIZE", 300)
    stream = Stream(100_000)
    stream.log.append(message(b"first"))
    stream.write()
    stream.log.store_offset("c", 1)
    stream.write()
    stream.log.append(message(bytes(1_000)))
    stream.write()
    log = stream.open()
    # The second chunk was prefetched with the first; the third was not.
    for offset in (0, 1):
        chunk = log.read(offset)
        assert chunk is not None
        assert (chunk.first, chunk.count) == (offset, 1)


def test_storing_a_known_offset_writes_nothing() -> None:
    stream = Stream()
    stream.log.store_offset("c", 5)
    stream.write()
    stream.log.store_offset("c", 5)
    assert not stream.log.has_work


def test_each_file_begins_with_all_tracking() -> None:
    stream = Stream()
    stream.send("p", 3)
    stream.log.store_offset("c", 1)
    stream.write()
    for _ in range(12):
        stream.log.append(message(bytes(300)))
        stream.write()
    assert len(stream.log.segments) > 3
    stream.log.retention = replace(stream.retention, bytes_max=1_000)
    stream.log.trim(0)
    stream.write()
    assert stream.log.first > 1
    log = stream.open()
    assert (log.sequence_of("p"), log.stored_offset("c")) == (3, 1)


def test_storing_offsets_alone_does_not_grow_a_file_without_bound() -> None:
    stream = Stream()
    stream.log.append(message())
    for offset in range(100):
        stream.log.store_offset("c", offset)
        stream.write()
    size = stream.log.byte_count
    assert size < 1_200
    assert stream.log.stored_offset("c") == 99
    stream.log.append(message())
    stream.write()
    assert stream.open().stored_offset("c") == 99


def test_the_tracking_at_the_start_of_a_file_contains_nothing_of_later_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a producer whose later messages were torn off could not publish them again."""
    monkeypatch.setattr("warren.store.streams.stream_log.STREAM_CHUNK_SIZE", 100)
    stream = Stream(100_000)
    for sequence in range(8):
        stream.send("p", sequence, bytes(60))
    steps = stream.log.take_batch()
    stream.disk.perform(steps)
    segment = stream.log.segments[0]
    # The second chunk and everything behind it is lost.
    data = stream.disk.files[segment.name].current
    second = data.index(segment.salt[:4], HEAD_SIZE + 1)
    stream.disk.files[segment.name].current[second:] = bytes(len(data) - second)
    log = stream.open()
    assert log.sequence_of("p") == log.next - 1
    assert 0 < log.next < 8


def test_damaged_tracking_is_reported_and_costs_nothing_else() -> None:
    stream = Stream(100_000)
    stream.send("p", 1, b"body")
    stream.write()
    stream.send("q", 1, b"body")
    stream.write()
    stream.send("q", 2, b"body")
    stream.write()
    segment = stream.log.segments[0]
    data = stream.disk.files[segment.name].current
    at = data.index(b"\0\1q")
    data[at + 2] ^= 1
    log = stream.open()
    assert [str(error) for error in stream.damage if "producers and consumers" in str(error)]
    assert (log.sequence_of("p"), log.sequence_of("q")) == (1, 2)


def test_beyond_the_bound_the_entries_set_longest_ago_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking_module, "STREAM_PRODUCERS_MAX", 2)
    monkeypatch.setattr(tracking_module, "STREAM_CONSUMERS_MAX", 2)
    stream = Stream()
    for producer in ("a", "b", "a", "c"):
        stream.send(producer, (stream.log.sequence_of(producer) or 0) + 1)
        stream.log.store_offset(producer, stream.log.next)
    stream.write()
    for log in (stream.log, stream.open()):
        assert [log.sequence_of(name) for name in "abc"] == [2, None, 1]
        assert [log.stored_offset(name) for name in "abc"] == [3, None, 4]


def test_a_deleted_stream_writes_nothing_more() -> None:
    stream = Stream()
    stream.log.append(message())
    stream.write()
    stream.log.store_offset("c", 1)
    stream.log.delete_segments()
    stream.write()
    assert set(stream.disk.names()) == {CATALOG}


def test_messages_that_differ_only_in_flags_keep_them() -> None:
    stream = Stream()
    for flags in (0, 32, 0):
        stream.log.append(message(flags=flags))
    stream.write()
    chunk = stream.log.read(0)
    assert chunk is not None
    assert [chunk.message(place).flags for place in range(3)] == [0, 32, 0]


@pytest.mark.parametrize("known", [0, 1, 700, 1_499, 1_500])
def test_of_a_repeated_run_the_new_messages_are_stored(known: int) -> None:
    stream = Stream(segment_size=500_000)
    texts = [b"%d" % number * (number % 200) for number in range(1_500)]
    ends = array("I", accumulate(map(len, texts), initial=0))
    for sequence, text in enumerate(texts[:known], start=41):
        assert stream.send("p", sequence, text) is not None
    run = MessageRun(message(), ends, memoryview(b"".join(texts)), place=0, count=len(texts))
    assert stream.log.append_run_as(run, "p", 41) == len(texts) - known
    assert stream.log.append_run_as(run, "p", 41) == 0
    stream.write()
    assert stream.open().sequence_of("p") == 41 + len(texts) - 1
    found: list[bytes] = []
    while (chunk := stream.log.read(len(found))) is not None:
        assert chunk.size < 2 * STREAM_CHUNK_SIZE
        found += [chunk.content(place)[:-1] for place in range(chunk.count)]
    assert found == texts
