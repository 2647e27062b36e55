"""When the whole heap is looked through for reference cycles."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from warren.runtime.collector import Collector


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*before)


def old_cycle() -> "weakref.ref[Cycle]":
    """A cycle that only a full collection finds."""
    cycle = Cycle()
    reference = weakref.ref(cycle)
    gc.collect(1)
    return reference


def test_nothing_is_collected_until_all_that_stays_was_made() -> None:
    collector = Collector()
    cycle = Cycle()
    reference = weakref.ref(cycle)
    del cycle
    made = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
    assert reference() is not None
    collector.begin()
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


def test_a_full_collection_waits_until_much_has_come_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector()
    collector.begin()
    reference = old_cycle()
    collector.look()
    assert reference() is not None
    monkeypatch.setattr("warren.runtime.collector.COLLECTED_MIN", 0)
    gc.collect(1)
    collector.look()
    assert reference() is None


def test_a_heap_that_has_not_doubled_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.runtime.collector.COLLECTED_MIN", 0)
    collector = Collector()
    collector.begin()
    kept: list[list[int]] = [[] for _ in range(100_000)]
    gc.collect(1)
    collector.look()
    reference = old_cycle()
    collector.look()
    assert reference() is not None
    assert len(kept) == 100_000
