"""Sequences of producers and offsets of consumers survive with the messages that they belong to."""

import random
from array import array
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.disk import SimulatedDisk

from warren.limits import STREAM_CHUNK_SIZE
from warren.model.message import Message, encode_address
from warren.store.message_store import StorePort
from warren.store.segment import StoreFileError
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
    """A stream that is opened again and again."""

    def __init__(self, segment_size: int = 1_000) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.retention = Retention(segment_size=segment_size)
        self.damage: list[StoreFileError] = []
        self.open()

    def open(self) -> StreamLog:
        files = StreamLogDependencies(disk=self.disk, random_octets=random.Random(2).randbytes, report=print)
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
def test_what_is_known_comes_back(sequences: dict[str, int], offsets: dict[str, int]) -> None:
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


def test_a_message_that_came_before_is_not_kept_again() -> None:
    stream = Stream()
    assert [stream.send("p", sequence) for sequence in (5, 6, 6, 4)] == [0, 1, None, None]
    assert stream.send("other", 1) == 2
    stream.write()
    assert stream.send("p", 6) is None
    assert (stream.log.sequence_of("p"), stream.log.sequence_of("nobody")) == (6, None)
    assert stream.count() == 3


def test_sequences_and_offsets_are_known_after_a_start() -> None:
    stream = Stream()
    stream.send("p", 0)
    stream.log.store_offset("c", 0)
    stream.write()
    stream.send("p", 7)
    stream.write()
    log = stream.open()
    assert (log.sequence_of("p"), log.stored_offset("c"), stream.count()) == (7, 0, 2)
    assert stream.send("p", 7) is None


def test_an_offset_that_is_stored_alone_survives_and_is_no_message() -> None:
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


def test_a_chunk_without_messages_is_not_taken_for_the_one_behind_it(
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
    # The chunk behind the first is read along with it, and the one behind that is not.
    for offset in (0, 1):
        chunk = log.read(offset)
        assert chunk is not None
        assert (chunk.first, chunk.count) == (offset, 1)


def test_an_offset_that_is_known_already_writes_nothing() -> None:
    stream = Stream()
    stream.log.store_offset("c", 5)
    stream.write()
    stream.log.store_offset("c", 5)
    assert not stream.log.has_work


def test_each_file_begins_with_all_that_is_known() -> None:
    stream = Stream()
    stream.send("p", 3)
    stream.log.store_offset("c", 1)
    stream.write()
    for _ in range(12):
        stream.log.append(message(bytes(300)))
        stream.write()
    assert len(stream.log.segments) > 3
    stream.log.retention = replace(stream.retention, octets_max=1_000)
    stream.log.trim(0)
    stream.write()
    assert stream.log.first > 1
    log = stream.open()
    assert (log.sequence_of("p"), log.stored_offset("c")) == (3, 1)


def test_a_file_does_not_grow_for_ever_by_offsets_alone() -> None:
    stream = Stream()
    stream.log.append(message())
    for offset in range(100):
        stream.log.store_offset("c", offset)
        stream.write()
    size = stream.log.octets
    assert size < 1_200
    assert stream.log.stored_offset("c") == 99
    stream.log.append(message())
    stream.write()
    assert stream.open().stored_offset("c") == 99


def test_what_comes_behind_the_first_chunk_of_a_file_is_not_said_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a producer whose later messages were torn off could not send them again."""
    monkeypatch.setattr("warren.store.streams.stream_log.STREAM_CHUNK_SIZE", 100)
    stream = Stream(100_000)
    for sequence in range(8):
        stream.send("p", sequence, bytes(60))
    steps = stream.log.take_batch()
    stream.disk.perform(steps)
    segment = stream.log.segments[0]
    # The second chunk, and all behind it, is lost.
    octets = stream.disk.files[segment.name].current
    second = octets.index(segment.salt[:4], HEAD_SIZE + 1)
    stream.disk.files[segment.name].current[second:] = bytes(len(octets) - second)
    log = stream.open()
    assert log.sequence_of("p") == log.next - 1
    assert 0 < log.next < 8


def test_damage_of_what_is_known_is_told_and_costs_nothing_else() -> None:
    stream = Stream(100_000)
    stream.send("p", 1, b"body")
    stream.write()
    stream.send("q", 1, b"body")
    stream.write()
    stream.send("q", 2, b"body")
    stream.write()
    segment = stream.log.segments[0]
    octets = stream.disk.files[segment.name].current
    at = octets.index(b"\0\1q")
    octets[at + 2] ^= 1
    log = stream.open()
    assert [str(error) for error in stream.damage if "producers and consumers" in str(error)]
    assert (log.sequence_of("p"), log.sequence_of("q")) == (1, 2)


def test_of_too_many_those_set_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_stream_that_is_given_up_writes_nothing_more() -> None:
    stream = Stream()
    stream.log.append(message())
    stream.write()
    stream.log.store_offset("c", 1)
    stream.log.delete_segments()
    stream.write()
    assert set(stream.disk.names()) == {CATALOG}


def test_messages_that_differ_in_flags_alone_keep_theirs() -> None:
    stream = Stream()
    for flags in (0, 32, 0):
        stream.log.append(message(flags=flags))
    stream.write()
    chunk = stream.log.read(0)
    assert chunk is not None
    assert [chunk.message(place).flags for place in range(3)] == [0, 32, 0]


@pytest.mark.parametrize("known", [0, 1, 700, 1_499, 1_500])
def test_of_a_run_that_comes_again_what_is_new_is_kept(known: int) -> None:
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
