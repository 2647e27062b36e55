"""Opening streams: what was torn goes, what is damaged is told, and offsets are never used twice."""

import random
import tracemalloc

import pytest
from google_crc32c import value
from tests.sim.disk import SimulatedDisk

from warren.model.message import Message, encode_address
from warren.store.message_store import StorePort
from warren.store.segment import NewerFormatError
from warren.store.streams.recovery import CATALOG, RecoveredStreams, open_streams
from warren.store.streams.segment import HEAD_SIZE, segment_name
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies

NUMBER = 3


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(random.Random(1))


def files_of(disk: SimulatedDisk) -> StreamLogDependencies:
    return StreamLogDependencies(disk=disk, random_octets=random.Random(2).randbytes, report=print)


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


def test_a_large_file_is_not_in_memory_while_it_is_opened(disk: SimulatedDisk) -> None:
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


def test_what_was_written_is_there_and_goes_on(disk: SimulatedDisk) -> None:
    filled(disk)
    log = opened(disk).store.log(NUMBER)
    assert (log.next, len(bodies(log))) == (12, 12)
    append(disk, log, b"more")
    assert bodies(opened(disk).store.log(NUMBER))[-1] == b"more"


def test_what_was_torn_is_zeroed(disk: SimulatedDisk) -> None:
    log = filled(disk, 2, segment_size=100_000)
    segment = log.segments[-1]
    whole = disk.read(segment.name, 0, segment.size)
    append(disk, log, b"t" * 300)
    # The head of the last batch has not reached the disk, the rest of it has.
    disk.files[segment.name].current[len(whole) : len(whole) + 20] = bytes(20)
    found = opened(disk)
    assert (found.store.log(NUMBER).next, found.damage) == (2, [])
    assert not any(disk.files[segment.name].current[len(whole) :])


def test_a_segment_without_its_index_is_read_and_gets_one(disk: SimulatedDisk) -> None:
    log = filled(disk)
    index = log.segments[0].index_name
    del disk.files[index]
    found = opened(disk)
    assert (len(bodies(found.store.log(NUMBER))), found.damage) == (12, [])
    assert index in disk.files


def test_a_damaged_index_is_as_none(disk: SimulatedDisk) -> None:
    log = filled(disk)
    disk.flip_bit(log.segments[0].index_name, 30)
    found = opened(disk)
    assert (len(bodies(found.store.log(NUMBER))), found.damage) == (12, [])


def test_offsets_of_a_last_file_that_cannot_be_read_are_not_used_again(disk: SimulatedDisk) -> None:
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


def test_a_file_that_was_made_and_never_begun_is_no_damage(disk: SimulatedDisk) -> None:
    log = filled(disk)
    name = segment_name(NUMBER, log.next)
    disk.files[name] = type(disk.files[log.segments[0].name])(HEAD_SIZE)
    found = opened(disk)
    assert (found.damage, found.store.log(NUMBER).next, name in disk.files) == ([], 12, False)


def test_files_of_streams_that_are_gone_are_deleted(disk: SimulatedDisk) -> None:
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
    """A stream of so many messages, of which the catalog knows."""
    log = opened(disk).store.log(NUMBER)
    log.retention = Retention(segment_size=segment_size)
    for n in range(count):
        append(disk, log, bytes((n,)) * 300)
    return log


def lost_of(found: RecoveredStreams) -> list[int | None]:
    return [error.messages for error in found.damage]


@pytest.mark.parametrize("place", range(6))
def test_a_file_that_is_gone_is_named_with_its_messages(disk: SimulatedDisk, place: int) -> None:
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


def test_a_stream_without_any_file_is_named(disk: SimulatedDisk) -> None:
    known(disk)
    for name in list(disk.files):
        if name != CATALOG:
            del disk.files[name]
    found = opened(disk)
    assert lost_of(found) == [12]
    assert found.store.log(NUMBER).next == 12


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("left", [0, 20, HEAD_SIZE, 100, 400, 500])
def test_what_is_cut_off_a_file_is_named_with_its_offsets(disk: SimulatedDisk, place: int, left: int) -> None:
    log = known(disk)
    name = log.segments[place].name
    del disk.files[name].current[left:]
    found = opened(disk)
    assert sum(messages or 0 for messages in lost_of(found)) == 12 - len(bodies(found.store.log(NUMBER)))
    assert any("from offset" in str(error) for error in found.damage)
    assert name in disk.files


def test_a_damaged_last_chunk_that_was_synced_is_named_and_not_zeroed(disk: SimulatedDisk) -> None:
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


def test_what_retention_has_given_up_is_no_loss(disk: SimulatedDisk) -> None:
    log = known(disk)
    log.retention = Retention(octets_max=2_000, segment_size=1_000)
    log.trim(0)
    disk.perform(log.take_batch())
    disk.lose_power()
    found = opened(disk)
    assert (found.damage, found.store.log(NUMBER).first > 0) == ([], True)


def test_a_damaged_chunk_is_told_with_all_of_its_messages(disk: SimulatedDisk) -> None:
    log = opened(disk).store.log(NUMBER)
    for _ in range(3):
        for n in range(50):
            log.append(Message(encode_address("", "s"), b"\0\0", bytes((n,)) * 30 + b"\xce", 1_000))
        disk.perform(log.take_batch())
        log.written()
    disk.flip_bit(log.segments[0].name, log.segments[0].size // 2)
    told: list[str] = []
    files = StreamLogDependencies(
        disk=disk, random_octets=random.Random(2).randbytes, report=lambda error: told.append(str(error))
    )
    log = open_streams(files, StorePort(), lambda number: number == NUMBER).store.log(NUMBER)
    assert len(bodies(log)) == 100
    assert [text.partition(": ")[2] for text in told] == ["the messages from offset 50 to 99 are damaged"]
