"""Fuzz targets of damaged files: they are opened or refused, and nothing is read that was not written."""

import random
from collections.abc import Callable
from functools import cache

from tests.sim.disk import File, SimulatedDisk
from tests.sim.recovered import messages_in
from tests.sim.test_journal import Proposed, Simulation

from warren.journal.file_format import JournalError
from warren.journal.high_water_mark import NAME as MARK
from warren.journal.recovery import recover
from warren.metadata.commands import DeclareQueue, PutVhost
from warren.metadata.machine import Metadata
from warren.model.message import BODY_END, PERSISTENT, Message, StoredMessage, encode_address
from warren.store import compaction, recovery, segment_log
from warren.store.recovery import CATALOG, RecoveredStore, RecoveryDependencies, open_store
from warren.store.segment import NewerFormatError, StoreFileError
from warren.store.store_port import StorePort
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import Retention, StreamLog, StreamLogDependencies
from warren.wire.properties import BasicProperties

SEGMENT_SIZE = 4096
STREAM_SEGMENT_SIZE = 1_000
NUMBER = 3
QUEUES = [f"q{number}" for number in range(6)]
BODIES = [bytes([number]) * (number * 7 % 300) for number in range(40)]
PROPERTIES = BasicProperties(delivery_mode=2).encode_list()
Files = dict[str, bytes]
# Bytes of one change: which file, where in it, what is done, and with which value.
_CHANGE_SIZE = 6


class Port(StorePort):
    """A store port whose commits the target makes."""

    def commit_due(self) -> None:
        pass

    def failed(self, error: OSError, is_full: bool) -> None:
        raise AssertionError(error)

    def unreadable(self, error: OSError | StoreFileError) -> None:
        pass

    def fell_behind(self) -> None:
        pass

    def caught_up(self) -> None:
        pass


def check_journal(data: bytes) -> None:
    """The metadata are complete, or their loss is reported."""
    disk = _damaged(_journal(), data)
    metadata = Metadata()
    try:
        found = recover(disk, metadata)
    except JournalError:
        return
    vhost = metadata.vhost("v")
    there = set(vhost.topology.queues) if vhost is not None else set()
    assert there <= set(QUEUES)
    # Without the newest high-water mark a lost end cannot be distinguished from a torn one.
    is_reported = found.damage or found.loss is not None or disk.files[MARK].current != _journal()[MARK]
    assert is_reported or there == set(QUEUES), f"only {sorted(there)} exist"


def check_store(data: bytes) -> None:
    """Messages are complete, or their loss is reported."""
    disk = _damaged(_store(), data)
    # Without the catalog a lost end cannot be distinguished from a torn one.
    is_known = disk.files[CATALOG].current == _store()[CATALOG]
    try:
        recovered = _opened(disk)
    except NewerFormatError:
        return
    found = [(position, message.body) for position, message in messages_in(recovered, NUMBER)]
    assert all(body == BODIES[position] for position, body in found)
    is_reported = recovered.damage or not is_known
    assert is_reported or len(found) == len(BODIES), f"{len(found)} of {len(BODIES)} were recovered"


def check_stream_log(data: bytes) -> None:
    """A stream has all its messages, or their loss is reported."""
    disk = _damaged(_stream(), data)
    reported: list[object] = []
    try:
        opened = open_streams(_stream_files(disk, reported.append), Port(), lambda number: number == NUMBER)
    except NewerFormatError:
        return
    reported += opened.damage
    found = dict(_read(opened.store.log(NUMBER)))
    assert all(body == BODIES[offset] for offset, body in found.items())
    # How far the last file was synced is unknown: its missing end may have been torn.
    last = int(max(name for name in _stream() if name.endswith(".stream"))[9:29])
    assert reported or all(offset in found for offset in range(last)), (
        f"{len(found)} of {len(BODIES)} were recovered"
    )


def _read(stream: StreamLog) -> list[tuple[int, bytes]]:
    """Every message by its offset."""
    found: list[tuple[int, bytes]] = []
    offset = stream.first
    while (chunk := stream.read(offset)) is not None:
        assert chunk.end > offset, f"the chunk at {offset} ends at {chunk.end}"
        found += [(chunk.first + place, bytes(chunk.content(place)[:-1])) for place in range(chunk.count)]
        offset = chunk.end
    return found


def _damaged(files: Files, data: bytes) -> SimulatedDisk:
    """A disk with `files`, changed as `data` says."""
    contents = {name: bytearray(content) for name, content in files.items()}
    names = sorted(contents)
    for at in range(0, len(data) - _CHANGE_SIZE + 1, _CHANGE_SIZE):
        name = names[data[at] % len(names)]
        content = contents[name]
        # There is unused space behind the last record, where damage is of little interest.
        place = int.from_bytes(data[at + 1 : at + 4], "big") % (len(content.rstrip(b"\0")) + 40)
        _CHANGES[data[at + 4] % len(_CHANGES)](content, place, data[at + 5])
    disk = SimulatedDisk(random.Random(1))
    for name, content in contents.items():
        disk.files[name] = file = File(0)
        file.current, file.synced = content, bytearray(content)
    return disk


def _set(content: bytearray, place: int, value: int) -> None:
    content[place : place + 1] = bytes([value])


def _flip(content: bytearray, place: int, value: int) -> None:
    if place < len(content):
        content[place] ^= 1 << value % 8


def _fill(content: bytearray, place: int, value: int) -> None:
    content[place : place + 2 * value] = bytes(len(content[place : place + 2 * value]))


def _cut(content: bytearray, place: int, _: int) -> None:
    del content[place:]


def _copy(content: bytearray, place: int, value: int) -> None:
    piece = content[place : place + 4 * value]
    content[value : value + len(piece)] = piece


_CHANGES: list[Callable[[bytearray, int, int], None]] = [_set, _set, _flip, _flip, _fill, _cut, _copy]


@cache
def _journal() -> Files:
    simulation = Simulation(0)
    for command in (
        PutVhost(name="v"),
        *(DeclareQueue(vhost="v", name=name, durable=True) for name in QUEUES),
    ):
        Proposed(simulation, command)
        simulation.disk.advance()
    simulation.journal.close(lambda: None)
    simulation.disk.advance()
    return _files(simulation.disk)


@cache
def _store() -> Files:
    for module in (segment_log, recovery, compaction):
        module.SEGMENT_SIZE = SEGMENT_SIZE
    disk = SimulatedDisk(random.Random(0))
    store = _opened(disk).store
    for position, body in enumerate(BODIES):
        message = StoredMessage(encode_address("ex", "key"), PROPERTIES, body + BODY_END, 1_700_000_000_000)
        message.flags = PERSISTENT
        store.append(message, store.cursor(NUMBER, 0), position)
        store.commit()
        disk.advance()
    return _files(disk)


def _opened(disk: SimulatedDisk) -> RecoveredStore:
    dependencies = RecoveryDependencies(
        random_bytes=random.Random(1).randbytes,
        has_queue=lambda number: number == NUMBER,
        progress=lambda *_: None,
    )
    return open_store(disk, Port(), dependencies)


@cache
def _stream() -> Files:
    disk = SimulatedDisk(random.Random(1))
    stream = StreamLog(NUMBER, _stream_files(disk, print), [])
    stream.retention = Retention(segment_size=STREAM_SEGMENT_SIZE)
    for body in BODIES:
        stream.append(Message(encode_address("", "s"), b"\0\0", body + BODY_END, 1_000))
        disk.perform(stream.take_batch())
        stream.written()
    return _files(disk)


def _stream_files(disk: SimulatedDisk, report: Callable[[object], None]) -> StreamLogDependencies:
    return StreamLogDependencies(disk=disk, random_bytes=random.Random(2).randbytes, report=report)


def _files(disk: SimulatedDisk) -> Files:
    return {name: bytes(file.current) for name, file in disk.files.items()}


def damage_seeds() -> list[bytes]:
    """No damage, and a little of each kind."""
    chance = random.Random(1)
    return [
        b"",
        *(chance.randbytes(4) + bytes([kind]) + chance.randbytes(1) for kind in range(len(_CHANGES))),
    ]
