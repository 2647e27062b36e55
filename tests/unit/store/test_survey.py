"""Foreign files beside those of a store are not read, changed or removed."""

import random

import pytest
from tests.sim.disk import SimulatedDisk

from warren.store.disk import CreateFile, SyncDirectory, WriteFile
from warren.store.recovery import RecoveryDependencies, open_erased, open_store
from warren.store.staged.stage_index import open_stage_index
from warren.store.store_port import StorePort
from warren.store.streams.recovery import open_streams
from warren.store.streams.stream_log import StreamLogDependencies
from warren.store.survey import survey_store, survey_streams

NAMES = [
    "README",
    "metadata.new",
    "lost+found",
    "x.segment",
    "1.segment",
    "99999999999999999999999.segment",
    "-0000001.segment",
    "spare-old",
    "spare-",
    "zz.index",
    "x.stream",
    "-.stream",
    "1-2.stream",
    "00000001-2.stream",
    "fffffffff-00000000000000000000.stream",
    "00000001-99999999999999999999999.index",
    "00000001-00000000000000000000.stream.bak",
    "zz.stage",
    "1.stage",
    "00000001.stage.old",
    "data.part",
    "x.plan",
    "00000001.catalog",
]


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(random.Random(0))
    for name in NAMES:
        disk.perform([CreateFile(name, 0), WriteFile(name, 0, [b"not ours"])])
    disk.perform([SyncDirectory()])
    return disk


def assert_all_there(disk: SimulatedDisk) -> None:
    assert set(NAMES) <= set(disk.names())
    assert all(disk.read(name, 0, 100).rstrip(b"\0") == b"not ours" for name in NAMES)


def test_a_store_ignores_foreign_files(disk: SimulatedDisk) -> None:
    dependencies = RecoveryDependencies(
        random_bytes=bytes, has_queue=lambda _: False, progress=lambda _, __: None
    )
    for _ in range(2):
        assert open_store(disk, StorePort(), dependencies).damage == []
    assert survey_store(disk) == {}
    assert_all_there(disk)


def test_a_store_that_is_erased_ignores_foreign_files(disk: SimulatedDisk) -> None:
    for _ in range(2):
        open_erased(disk, StorePort(), bytes)
    assert_all_there(disk)


def test_streams_ignore_foreign_files(disk: SimulatedDisk) -> None:
    files = StreamLogDependencies(disk=disk, random_bytes=bytes, report=print)
    for _ in range(2):
        assert open_streams(files, StorePort(), lambda _: False).damage == []
    assert survey_streams(disk) == {}
    assert_all_there(disk)


def test_staged_rows_ignore_foreign_files(disk: SimulatedDisk) -> None:
    damage: list[Exception] = []
    for _ in range(2):
        assert open_stage_index(disk, damage.append).stages == {}
    assert damage == []
    assert_all_there(disk)
