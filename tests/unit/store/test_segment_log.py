"""The sequence of segments, and the reuse of files."""

import random

from tests.sim.disk import SimulatedDisk

from warren.limits import SEGMENT_SIZE
from warren.store.disk import CreateFile, DeleteFile, RenameFile
from warren.store.segment import Segment
from warren.store.segment_log import SegmentLog


def retired(log: SegmentLog) -> str:
    """The name of the file of a new segment after it was retired."""
    number = max(log.segments) + 1
    segment = log.segments[number] = Segment(number, SEGMENT_SIZE)
    log.retire(segment)
    log.append_parts(3, [b"state"])
    [gone] = [step for step in log.finish() if isinstance(step, RenameFile | DeleteFile)]
    return gone.new if isinstance(gone, RenameFile) else ""


def test_a_spare_never_takes_the_name_of_another_file() -> None:
    log = SegmentLog({}, ["spare-00000002"], random.Random(0).randbytes)
    log.begin()
    names = ["spare-00000002"] + [retired(log) for _ in range(4)]
    # `begin` has used the first; a fifth would exceed the bound.
    assert names[1:] == [f"spare-{number:08d}" for number in (3, 4, 5, 6)]
    assert retired(log) == ""


def half_full() -> SegmentLog:
    log = SegmentLog({}, [], random.Random(0).randbytes)
    log.begin()
    assert not log.is_spare_due()
    log.append_record(3, bytes(SEGMENT_SIZE // 2))
    log.finish()
    assert log.is_spare_due()
    return log


def test_the_file_of_the_next_segment_is_made_when_the_last_one_is_half_full() -> None:
    log, disk = half_full(), SimulatedDisk(random.Random(0))
    log.make_spare(disk)
    assert disk.names() == {"spare-00000001": SEGMENT_SIZE}
    assert not log.is_spare_due()
    log.append_record(3, bytes(SEGMENT_SIZE // 2))
    steps = log.finish()
    assert RenameFile("spare-00000001", log.last.name) in steps
    assert not any(isinstance(step, CreateFile) for step in steps)


def test_without_room_for_it_the_next_segment_is_created_when_it_is_needed() -> None:
    log, disk = half_full(), SimulatedDisk(random.Random(0))
    disk.is_full = True
    log.make_spare(disk)
    assert not log.is_spare_due(), "it is tried once for each segment"
    log.append_record(3, bytes(SEGMENT_SIZE // 2))
    assert CreateFile(log.last.name, SEGMENT_SIZE) in log.finish()
