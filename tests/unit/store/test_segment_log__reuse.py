"""A spare file becomes a segment, and whatever a crash leaves of that is no damage."""

import errno
import random
from collections.abc import Iterator

import pytest
from tests.sim.disk import SimulatedDisk
from tests.unit.store.test_recovery import bodies, opened, published
from tests.unit.store.test_recovery import segments_that_are_quickly_read as segments_that_are_quickly_read

from warren.store.disk import DiskStep, RenameFile, WriteFile
from warren.store.recovery import RecoveredStore
from warren.store.segment import HEAD_SIZE, is_spare

# More than the head and the first record.
TORN_MAX = HEAD_SIZE + 32
# Two of them do not fit into one segment.
BODY = bytes(700_000)


class StoppedDisk(SimulatedDisk):
    """Ends the process instead of performing one step, after the first bytes of it if that is a write."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        # Steps of the next job before the one that is stopped, and how many bytes of that are written.
        self.stop: tuple[int, int] | None = None
        self.steps: list[DiskStep] = []

    def advance(self, steps: int | None = None) -> None:
        self.steps = list(self._job)
        if self.stop is None:
            super().advance(steps)
            return
        place, count = self.stop
        super().advance(place)
        step = self.steps[place]
        if isinstance(step, WriteFile):
            self.perform([WriteFile(step.name, step.at, [b"".join(step.chunks)[:count]])])
        self.die()


def disk_with_a_spare() -> tuple[StoppedDisk, RecoveredStore]:
    """A store that will use a spare file for the next message, with one confirmed message in queue 2."""
    disk = StoppedDisk(random.Random(0))
    recovered = opened(disk)
    store = recovered.store
    store.append(published(b"kept"), store.cursor(2, 0), 0)
    for position in range(3):
        message = published(BODY)
        store.append(message, store.cursor(1, 0), position)
        store.commit()
        disk.advance()
        store.release(message, store.cursor(1, 0), position)
        store.commit()
        disk.advance()
    assert any(map(is_spare, disk.names())), disk.names()
    return disk, recovered


def append(disk: StoppedDisk, recovered: RecoveredStore) -> None:
    """Store a message that needs another segment."""
    store = recovered.store
    store.append(published(BODY), store.cursor(1, 0), 9)
    store.commit()
    disk.advance()


def stops() -> Iterator[tuple[int, int]]:
    """All places at which the job can end that uses a spare file."""
    disk, recovered = disk_with_a_spare()
    append(disk, recovered)
    assert any(isinstance(step, RenameFile) and is_spare(step.old) for step in disk.steps)
    for place, step in enumerate(disk.steps):
        for count in range(TORN_MAX) if isinstance(step, WriteFile) else [0]:
            yield place, count


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_spare_file_that_did_not_become_a_segment_as_a_whole_is_no_damage(is_power_lost: bool) -> None:
    for stop in stops():
        disk, recovered = disk_with_a_spare()
        disk.stop = stop
        append(disk, recovered)
        disk.stop = None
        if is_power_lost:
            disk.lose_power()
        after = opened(disk)
        assert not after.damage, f"{stop}: {after.damage[0]}"
        assert bodies(after, 2) == [b"kept"], stop


def test_a_job_that_failed_after_a_spare_file_became_a_segment_is_repeated() -> None:
    disk, recovered = disk_with_a_spare()
    append(disk, recovered)
    [renamed] = [step for step in disk.steps if isinstance(step, RenameFile) and is_spare(step.old)]
    disk, recovered = disk_with_a_spare()
    disk.fault, disk.fault_name = (WriteFile, errno.ENOSPC), renamed.new
    append(disk, recovered)
    assert recovered.store.failure is not None
    recovered.store.retry()
    disk.advance()
    assert recovered.store.failure is None
    assert bodies(opened(disk)) == [BODY]
