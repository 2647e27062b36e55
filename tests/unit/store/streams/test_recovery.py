"""Opening streams: torn data is removed, damage is reported, and offsets are never reused."""

import random
import tracemalloc

import pytest
from google_crc32c import value
from tests.sim.disk import SimulatedDisk

from warren.model.message import Message, encode_address
from warren.store.segment import NewerFormatError
from warren.store.store_port import StorePort
from warren.store.streams.recovery import CATALOG, RecoveredStreams, open_streams
from warren.store.streams.segment import HEAD_SIZE, segment_name
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies

NUMBER = 3


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(1))


def files_of(disk: SimulatedDisk) -> StreamLogDependencies:
    return StreamLogDependencies(disk=disk, random_bytes=random.Random(2).randbytes, report=print)


def opened(disk: SimulatedDisk, number: int = NUMBER) -> RecoveredStreams:
    return open_streams(files_of(disk), StorePort(), lambda known: known == number)


def filled(disk: SimulatedDisk, count: int = 12, *, segment_size: int = 1_000) -> StreamLog:
    log = StreamLog(NUMBER, files_of(disk), [])
    log.retention = Retention(segment_size=segment_size)
    for n in range(count):
        append(disk, log, bytes((n,)) * 300)
    return log


def append(disk: SimulatedDisk, log: StreamLog, body: bytes) -> None:
    log.append(Message(encode_address("", "s"), b"\0\0", body + b"\xce", 1_000))
    disk.perform(log.take_batch())
    log.written()


@pytest.mark.slow
def test_a_large_file_is_not_loaded_into_memory_when_it_is_opened(disk: SimulatedDisk) -> None:
    log = StreamLog(NUMBER, files_of(disk), [])
    for n in range(200):
        append(disk, log, bytes((n,)) * 100_000)
    tracemalloc.start()
    try:
        assert opened(disk).store.log(NUMBER).next == 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


def bodies(log: StreamLog) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while (chunk := log.read(offset)) is not None:
        found += [chunk.content(place)[:-1] for place in range(chunk.count)]
        offset = chunk.end
    return found


def test_written_messages_are_recovered_and_more_can_be_appended(disk: SimulatedDisk) -> None:
    filled(disk)
    log = opened(disk).store.log(NUMBER)
    assert (log.next, len(bodies(log))) == (12, 12)
    append(disk, log, b"more")
    assert bodies(opened(disk).store.log(NUMBER))[-1] == b"more"


def test_a_torn_end_is_zeroed(disk: SimulatedDisk) -> None:
    log = filled(disk, 2, segment_size=100_000)
    segment = log.segments[-1]
    whole = disk.read(segment.name, 0, segment.size)
    append(disk, log, b"t" * 300)
    # The header of the last batch did not reach the disk, the rest of it did.
    disk.files[segment.name].current[len(whole) : len(whole) + 20] = bytes(20)
    found = opened(disk)
    assert (found.store.log(NUMBER).next, found.damage) == (2, [])
    assert not any(disk.files[segment.name].current[len(whole) :])


def test_a_missing_index_is_rebuilt_from_the_segment(disk: SimulatedDisk) -> None:
    log = filled(disk)
    index = log.segments[0].index_name
    del disk.files[index]
    found = opened(disk)
    assert (len(bodies(found.store.log(NUMBER))), found.damage) == (12, [])
    assert index in disk.files


def test_a_damaged_index_is_rebuilt(disk: SimulatedDisk) -> None:
    log = filled(disk)
    disk.flip_bit(log.segments[0].index_name, 30)
    found = opened(disk)
    assert (len(bodies(found.store.log(NUMBER))), found.damage) == (12, [])


def test_offsets_of_an_unreadable_last_file_are_not_reused(disk: SimulatedDisk) -> None:
    log = filled(disk)
    last = log.segments[-1]
    disk.flip_bit(last.name, 1)
    found = opened(disk)
    assert [error.name for error in found.damage] == [last.name]
    log = found.store.log(NUMBER)
    assert log.next > 12
    append(disk, log, b"later")
    assert bodies(log)[-1] == b"later"
    assert bodies(opened(disk).store.log(NUMBER)) == bodies(log)


def test_a_created_but_unused_file_is_not_damage(disk: SimulatedDisk) -> None:
    log = filled(disk)
    name = segment_name(NUMBER, log.next)
    disk.files[name] = type(disk.files[log.segments[0].name])(HEAD_SIZE)
    found = opened(disk)
    assert (found.damage, found.store.log(NUMBER).next, name in disk.files) == ([], 12, False)


def test_files_of_deleted_streams_are_deleted(disk: SimulatedDisk) -> None:
    filled(disk)
    assert not opened(disk, number=99).store.logs
    assert set(disk.names()) == {CATALOG}


def test_a_newer_format_is_refused(disk: SimulatedDisk) -> None:
    log = filled(disk, 1)
    name = log.segments[0].name
    head = bytearray(disk.read(name, 0, HEAD_SIZE))
    head[7] = 2
    head[-4:] = value(bytes(head[:-4])).to_bytes(4, "big")
    disk.files[name].current[:HEAD_SIZE] = head
    with pytest.raises(NewerFormatError, match="format 2 is newer"):
        opened(disk)


def known(disk: SimulatedDisk, count: int = 12, *, segment_size: int = 1_000) -> StreamLog:
    """A stream of `count` messages that the catalog lists."""
    log = opened(disk).store.log(NUMBER)
    log.retention = Retention(segment_size=segment_size)
    for n in range(count):
        append(disk, log, bytes((n,)) * 300)
    return log


def lost_of(found: RecoveredStreams) -> list[int | None]:
    return [error.messages for error in found.damage]


@pytest.mark.parametrize("place", range(6))
def test_a_missing_file_is_reported_with_its_messages(disk: SimulatedDisk, place: int) -> None:
    log = known(disk)
    assert len(log.segments) == 6
    del disk.files[log.segments[place].name]
    found = opened(disk)
    left = found.store.log(NUMBER)
    assert lost_of(found) == [12 - len(bodies(left))] == [2]
    assert found.damage[0].queues == (NUMBER,)
    assert left.next == 12
    assert list(map(str, opened(disk).damage)) == list(map(str, found.damage))
    append(disk, left, b"later")
    assert bodies(opened(disk).store.log(NUMBER))[-1] == b"later"


def test_a_stream_without_files_is_reported(disk: SimulatedDisk) -> None:
    known(disk)
    for name in list(disk.files):
        if name != CATALOG:
            del disk.files[name]
    found = opened(disk)
    assert lost_of(found) == [12]
    assert found.store.log(NUMBER).next == 12


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("left", [0, 20, HEAD_SIZE, 100, 400, 500])
def test_a_truncated_file_is_reported_with_its_offsets(disk: SimulatedDisk, place: int, left: int) -> None:
    log = known(disk)
    name = log.segments[place].name
    del disk.files[name].current[left:]
    found = opened(disk)
    assert sum(messages or 0 for messages in lost_of(found)) == 12 - len(bodies(found.store.log(NUMBER)))
    assert any("from offset" in str(error) for error in found.damage)
    assert name in disk.files


def test_a_damaged_last_chunk_that_was_synced_is_reported_and_not_zeroed(disk: SimulatedDisk) -> None:
    log = known(disk, 3, segment_size=100_000)
    segment = log.segments[-1]
    disk.flip_bit(segment.name, segment.size - 100)
    before = bytes(disk.files[segment.name].current)
    found = opened(disk)
    assert [str(error).partition(": ")[2] for error in found.damage] == [
        "the messages from offset 2 to 2 are lost"
    ]
    assert disk.files[segment.name].current == before
    left = found.store.log(NUMBER)
    append(disk, left, b"later")
    assert [body[:5] for body in bodies(left)] == [bytes(5), b"\1" * 5, b"later"]


def test_messages_removed_by_retention_are_not_a_loss(disk: SimulatedDisk) -> None:
    log = known(disk)
    log.retention = Retention(bytes_max=2_000, segment_size=1_000)
    log.trim(0)
    disk.perform(log.take_batch())
    disk.lose_power()
    found = opened(disk)
    assert (found.damage, found.store.log(NUMBER).first > 0) == ([], True)


def test_a_damaged_chunk_is_reported_with_all_its_messages(disk: SimulatedDisk) -> None:
    log = opened(disk).store.log(NUMBER)
    for _ in range(3):
        for n in range(50):
            log.append(Message(encode_address("", "s"), b"\0\0", bytes((n,)) * 30 + b"\xce", 1_000))
        disk.perform(log.take_batch())
        log.written()
    disk.flip_bit(log.segments[0].name, log.segments[0].size // 2)
    reported: list[str] = []
    files = StreamLogDependencies(
        disk=disk, random_bytes=random.Random(2).randbytes, report=lambda error: reported.append(str(error))
    )
    log = open_streams(files, StorePort(), lambda number: number == NUMBER).store.log(NUMBER)
    assert len(bodies(log)) == 100
    assert [text.partition(": ")[2] for text in reported] == ["the messages from offset 50 to 99 are damaged"]
