"""Streams on a disk that loses power at any step and fails sometimes, driven by seeds.

After a restart, confirmed messages are at their offsets, byte for byte; of the unconfirmed ones, a prefix
exists, or none; and no offset ever has two messages.
"""

import errno
import random
import re
from dataclasses import dataclass, field

import pytest
from tests.seeds import SEEDS
from tests.sim.disk import SimulatedDisk

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import HAS_HEADERS, Message, encode_address
from warren.store.disk import CreateFile, SyncFile, WriteFile
from warren.store.segment import StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams import cache as cache_module
from warren.store.streams import scan as scan_module
from warren.store.streams import segment as segment_module
from warren.store.streams import stream_log as log_module
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies

STEPS = 60
STREAMS = (1, 2, 0x1F)
SEGMENT_SIZE = 3_000
LISTS = (b"\0\0", b"\x20\0\0\0\0\x05\x01aS\0\0", b"\x10\0\x02")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small limits, so that batches have several chunks, and reads several blocks."""
    monkeypatch.setattr(log_module, "STREAM_CHUNK_SIZE", 400)
    monkeypatch.setattr(cache_module, "STREAM_CACHE_SIZE", 1_000)
    monkeypatch.setattr(log_module, "STREAM_PREALLOCATION_SIZE", 1_024)
    monkeypatch.setattr(segment_module, "STREAM_INDEX_STEP", 700)
    monkeypatch.setattr(scan_module, "STREAM_BLOCK_SIZE", 500)


class Port(StorePort):
    def __init__(self) -> None:
        self.is_dirty = False
        self.is_failed = False

    def commit_due(self) -> None:
        self.is_dirty = True

    def failed(self, error: OSError, is_full: bool) -> None:
        self.is_failed = True

    def recovered(self) -> None:
        self.is_failed = False

    def fell_behind(self) -> None:
        pass

    def caught_up(self) -> None:
        pass

    def unreadable(self, error: OSError | StoreFileError) -> None:
        raise AssertionError(error)


class ConfirmRecorder(ConfirmListener):
    """A publisher that records what was confirmed."""

    def __init__(self) -> None:
        self.expected: list[int] = []
        self.safe: set[int] = set()

    def expect(self, sequence: int) -> None:
        self.expected.append(sequence)

    def done(self, first: int, last: int) -> None:
        self.safe.update(range(first, last + 1))

    def refused(self, sequence: int) -> None:
        raise AssertionError(sequence)


@dataclass
class Run:
    """One stream store, from its creation through several power cuts."""

    seed: int
    reported_text: ConfirmRecorder = field(default_factory=ConfirmRecorder)
    sequence: int = 0
    now: int = 1_000_000

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.disk = SimulatedDisk(self.chance)
        # Stream -> offset -> (content, sequence) of the last message appended there.
        self.appended: dict[int, dict[int, tuple[bytes, int]]] = {number: {} for number in STREAMS}
        # The first offset that may still exist.
        self.first = dict.fromkeys(STREAMS, 0)
        # The number of the last stream that is deleted again.
        self.last_number = max(STREAMS)
        # Stream -> offset -> sequence of producer "p"; and the offsets that consumer "c" has stored.
        self.produced: dict[int, dict[int, int]] = {number: {} for number in STREAMS}
        self.stored: dict[int, list[int]] = {number: [] for number in STREAMS}
        self.open()

    def open(self) -> None:
        self.port = Port()
        self.reported: list[OSError | StoreFileError] = []
        files = StreamLogDependencies(
            disk=self.disk, random_bytes=self.chance.randbytes, report=self.reported.append
        )
        opened = open_streams(files, self.port, lambda number: number in STREAMS)
        self.damage = opened.damage
        self.store = opened.store
        for number in STREAMS:
            self.log(number).retention = Retention(
                bytes_max=self.chance.choice([None, 8_000]), segment_size=SEGMENT_SIZE
            )

    def log(self, number: int) -> StreamLog:
        return self.store.log(number)

    def step(self) -> None:
        self.now += self.chance.randrange(10)
        choice = self.chance.random()
        if choice < 0.6:
            self.publish()
        elif choice < 0.7 and self.port.is_failed:
            self.store.retry()
        elif choice < 0.75:
            self.trim()
        elif choice < 0.78:
            self.disk.fault = (self.chance.choice([WriteFile, SyncFile, CreateFile]), errno.ENOSPC)
        elif choice < 0.84:
            self.read_some()
        elif choice < 0.88:
            self.store_offset()
        elif choice < 0.9:
            self.fill_and_delete()
        else:
            self.disk.advance(self.chance.randrange(1, 6))
        if self.port.is_dirty and self.chance.random() < 0.7:
            self.port.is_dirty = False
            self.store.commit()

    def publish(self) -> None:
        number = self.chance.choice(STREAMS)
        for _ in range(self.chance.choice([1, 1, 2, 30])):
            self.sequence += 1
            body = self.chance.randbytes(self.chance.choice([0, 1, 20, 200]))
            address = encode_address("", self.chance.choice(["s", "t"]))
            message = Message(address, self.chance.choice(LISTS), body + b"\xce", self.now)
            message.flags = HAS_HEADERS if message.property_list is LISTS[1] else 0
            offset = self.append(number, message)
            assert offset not in self.appended[number]
            self.appended[number][offset] = (message.content, self.sequence)
            self.store.confirm(self.reported_text, self.sequence)

    def fill_and_delete(self) -> None:
        """Publish to a stream of its own, and delete it in any state of the batch with its messages."""
        self.last_number += 1
        log = self.log(self.last_number)
        self.store.begin(log, 0)
        for _ in range(self.chance.randrange(4)):
            self.store.append(log, Message(encode_address("", "s"), LISTS[0], b"x\xce", self.now))
        if self.chance.random() < 0.7:
            self.store.commit()
            self.disk.advance(self.chance.randrange(6))
        self.store.delete(log)

    def append(self, number: int, message: Message) -> int:
        """Publish, sometimes as a producer that sends some messages twice."""
        log = self.log(number)
        if self.chance.random() < 0.5:
            return self.store.append(log, message)
        offset = log.next
        assert self.store.append_as(log, message, "p", self.sequence)
        assert not self.store.append_as(log, message, "p", self.chance.randrange(self.sequence + 1))
        self.produced[number][offset] = self.sequence
        return offset

    def store_offset(self) -> None:
        number = self.chance.choice(STREAMS)
        self.stored[number].append(self.chance.randrange(1_000))
        self.store.store_offset(self.log(number), "c", self.stored[number][-1])

    def trim(self) -> None:
        number = self.chance.choice(STREAMS)
        self.store.trim(self.log(number), self.now)
        self.first[number] = max(self.first[number], self.log(number).first)

    def read_some(self) -> None:
        number = self.chance.choice(STREAMS)
        log = self.log(number)
        if log.committed > log.first:
            offset = self.chance.randrange(log.first, log.committed)
            chunk = log.read(offset)
            assert chunk is not None
            assert chunk.first <= offset < chunk.end
            place = offset - chunk.first
            assert chunk.message(place).content == self.appended[number][offset][0]

    def cut(self) -> None:
        """Cut the power, and recover."""
        self.disk.fault = None
        seen = dict.fromkeys(STREAMS, 0)
        if self.chance.random() < 0.5:
            # A kill comes first: data that are readable after it must survive the power cut.
            if self.chance.random() < 0.5:
                # It follows a failed sync: what that has given up is read, and written by no later sync.
                self.disk.fault = (SyncFile, errno.EIO)
                self.store.commit()
                self.disk.advance()
                self.disk.fault = None
            self.disk.die()
            self.open()
            self.check()
            seen = {number: self.log(number).committed for number in STREAMS}
            if self.chance.random() < 0.5:
                self.publish()
                self.store.commit()
                self.disk.advance(self.chance.randrange(4))
        self.disk.lose_power()
        self.open()
        self.check()
        for number in STREAMS:
            assert self.log(number).committed >= seen[number], f"stream {number} has lost readable messages"

    def check(self) -> None:
        """Check that the streams contain what they may contain."""
        assert not self.damage
        for number in STREAMS:
            log, appended = self.log(number), self.appended[number]
            for offset, (_, sequence) in appended.items():
                if sequence in self.reported_text.safe and offset >= max(self.first[number], log.first):
                    assert offset < log.committed, f"{offset} of stream {number} was confirmed"
            # Retention deletes from the beginning only, and only what it was asked to.
            assert log.first <= max(self.first[number], log.first)
            offset = log.first
            while (chunk := log.read(offset)) is not None:
                assert chunk.first == offset
                for place in range(chunk.count):
                    assert chunk.content(place) == appended[offset][0]
                    offset += 1
            assert offset == log.committed == log.next
            for lost in [place for place in appended if place >= offset]:
                del appended[lost]
                self.produced[number].pop(lost, None)
            # A producer gets exactly the last recovered sequence.
            assert log.sequence_of("p") == max(self.produced[number].values(), default=None)
            assert log.stored_offset("c") in [None, *self.stored[number]]
        assert not self.reported


@pytest.mark.seeds(SEEDS)
def test_confirmed_messages_are_at_their_offsets_after_a_power_cut(seed: int) -> None:
    run = Run(seed)
    for _ in range(3):
        for _ in range(STEPS):
            run.step()
        run.cut()


def lost_by(error: OSError | StoreFileError) -> range:
    """Return the offsets that `error` names."""
    found = re.search(r"messages from offset (\d+) to (\d+)", str(error))
    return range(int(found[1]), int(found[2]) + 1) if found else range(0)


@pytest.mark.seeds(SEEDS // 4)
def test_a_flipped_bit_costs_one_chunk_and_is_reported(seed: int) -> None:
    run = Run(seed)
    while not any(run.log(number).committed > 20 for number in STREAMS):
        run.publish()
        run.store.commit()
        run.disk.advance()
    number = next(number for number in STREAMS if run.log(number).committed > 20)
    log = run.log(number)
    victim = run.chance.choice(log.segments)
    run.disk.flip_bit(victim.name, run.chance.randrange(24 + 8, victim.size))
    known = dict(run.appended[number])
    run.open()
    log = run.log(number)
    found: dict[int, bytes] = {}
    offset = 0
    while (chunk := log.read(offset)) is not None:
        assert chunk.end > offset
        for place in range(chunk.count):
            found[chunk.first + place] = chunk.content(place)
        offset = chunk.end
    assert all(known[offset][0] == content for offset, content in found.items())
    missing = set(known) - set(found)
    assert len(found) + len(missing) == len(known)
    lost = {offset for error in [*run.reported, *run.damage] for offset in lost_by(error)}
    assert missing <= lost
    # Surviving messages keep their offsets: no later message gets one of them.
    assert log.next >= max(found, default=0)
