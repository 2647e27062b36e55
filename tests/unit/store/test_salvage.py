"""Reading files with unreadable sectors."""

import errno
import random

import pytest
from tests.sim.disk import SimulatedDisk

from warren.limits import SALVAGE_FAILURES_MAX
from warren.store.disk import CreateFile, WriteFile
from warren.store.salvage import is_damage, read_around_damage

SIZE = 1 << 20
NAME = "file"


class Disk(SimulatedDisk):
    """A disk with one file, of which every byte is 1."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.perform([CreateFile(NAME, SIZE), WriteFile(NAME, 0, [b"\1" * SIZE])])


def test_an_intact_file_is_read_at_once() -> None:
    disk = Disk()
    assert read_around_damage(disk, NAME, SIZE) == (b"\1" * SIZE, [])
    assert disk.read_count == 1


@pytest.mark.parametrize("bad", [range(1), range(70_000, 70_512), range(SIZE - 1, SIZE)])
def test_everything_but_the_unreadable_sector_is_read(bad: range) -> None:
    disk = Disk()
    disk.unreadable[NAME] = bad
    data, [hole] = read_around_damage(disk, NAME, SIZE)
    at = bad.start // 4096 * 4096
    assert (hole.name, hole.at, hole.reason) == (NAME, at, "4096 bytes cannot be read: EIO")
    assert data.count(1) == SIZE - 4096
    assert 1 not in data[at : at + 4096]
    # Neither unwritten space nor a message of zeros.
    assert 0 not in data


def test_adjacent_unreadable_sectors_are_one_hole() -> None:
    disk = Disk()
    disk.unreadable[NAME] = range(50_000, 70_000)
    data, [hole] = read_around_damage(disk, NAME, SIZE)
    assert (hole.at, hole.reason) == (49_152, "24576 bytes cannot be read: EIO")
    assert data.count(1) == SIZE - 24_576


def test_a_completely_unreadable_device_is_read_a_bounded_number_of_times() -> None:
    disk = Disk()
    disk.unreadable[NAME] = range(SIZE << 4)
    disk.perform([CreateFile(NAME, SIZE << 4)])
    _, [hole] = read_around_damage(disk, NAME, SIZE << 4)
    assert (hole.at, hole.reason) == (0, f"{SIZE << 4} bytes cannot be read: EIO")
    assert disk.read_count < SALVAGE_FAILURES_MAX + 20


def test_other_errors_are_raised() -> None:
    disk = Disk()
    disk.unreadable[NAME] = range(5)
    with pytest.raises(KeyError):
        read_around_damage(disk, "nothing", SIZE)
    assert [is_damage(OSError(number, "")) for number in (errno.EIO, errno.EMFILE)] == [True, False]
