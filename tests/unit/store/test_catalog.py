"""The catalog of a store whose writes were torn."""

import errno
import random

import pytest
from tests.sim.disk import SimulatedDisk

from warren.store.catalog import Catalog, CatalogEntry
from warren.store.disk import DiskStep, SyncFile, WriteFile

NAME = "catalog"
SLOT_SIZE = 128


def entries(there: SimulatedDisk) -> dict[int, int]:
    """What a start finds: the end of each file."""
    return {key: entry.end for key, entry in Catalog(there, NAME).entries.items()}


def test_an_entry_is_found_with_its_latest_end() -> None:
    there = SimulatedDisk(random.Random(0))
    catalog = Catalog(there, NAME)
    for end in (10, 20, 30):
        catalog.note(1, CatalogEntry(end=end))
    there.perform(catalog.put(2, CatalogEntry(end=5)))
    assert entries(there) == {1: 30, 2: 5}
    there.perform(catalog.remove([1, 7]))
    assert entries(there) == {2: 5}


def test_what_a_failed_sync_has_given_up_is_durable_after_it_was_read() -> None:
    for seed in range(20):
        there = SimulatedDisk(random.Random(seed))
        catalog = Catalog(there, NAME)
        there.perform(catalog.put(1, CatalogEntry(end=10)))
        there.fault = (SyncFile, errno.EIO)
        with pytest.raises(OSError, match="EIO"):
            there.perform(catalog.remove([1]))
        there.die()
        assert entries(there) == {}
        there.lose_power()
        assert entries(there) == {}


@pytest.mark.parametrize("step", [WriteFile, SyncFile])
def test_a_catalog_that_cannot_be_written_at_the_start_is_kept(step: type[DiskStep]) -> None:
    there = SimulatedDisk(random.Random(1))
    there.perform(Catalog(there, NAME).put(1, CatalogEntry(end=10)))
    there.fault = (step, errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        Catalog(there, NAME)
    assert entries(there) == {1: 10}


@pytest.mark.parametrize("turn", [0, 1])
def test_an_entry_whose_removal_was_torn_does_not_reappear_when_its_slot_is_used_again(turn: int) -> None:
    there = SimulatedDisk(random.Random(0))
    catalog = Catalog(there, NAME)
    for end in range(10 + turn):
        catalog.note(1, CatalogEntry(end=end))
    first, *_ = catalog.remove([1])
    there.perform([first])
    # Of the two slots one says that the entry was removed.
    assert entries(there) == {}
    again = Catalog(there, NAME)
    again.note(2, CatalogEntry(end=50))
    data = there.files[NAME].current
    at = data.index((50).to_bytes(8, "big")) // SLOT_SIZE * SLOT_SIZE
    data[at : at + SLOT_SIZE] = bytes(SLOT_SIZE)
    assert entries(there) == {}
