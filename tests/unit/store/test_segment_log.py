"""The sequence of segments, and the reuse of files."""

import random

from warren.limits import SEGMENT_SIZE
from warren.store.disk import DeleteFile, RenameFile
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
