"""When objects are looked through for reference cycles, and which."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from warren.runtime.garbage_collector import GarbageCollector


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*before)


def old_cycle() -> "weakref.ref[Cycle]":
    """A cycle that was set aside while it was alive."""
    cycle = Cycle()
    reference = weakref.ref(cycle)
    gc.collect()
    return reference


def test_nothing_is_collected_until_all_that_stays_was_made() -> None:
    collector = GarbageCollector()
    cycle = Cycle()
    reference = weakref.ref(cycle)
    del cycle
    made = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
    assert reference() is not None
    collector.begin()
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


def test_what_has_come_to_stay_is_looked_through_while_it_is_little_and_set_aside() -> None:
    made = [[] for _ in range(500_000)]  # type: ignore[var-annotated]
    gc.collect()
    collector = GarbageCollector()
    collector.begin()
    cycle = Cycle()
    reference = weakref.ref(cycle)
    gc.collect(1)
    del cycle
    before = gc.get_freeze_count()
    kept: list[list[int]] = []
    old = 0
    while reference() is not None:
        kept.append([])
        old = max(old, len(gc.get_objects(2))) if len(kept) % 700 == 0 else old
        assert len(kept) < 200_000
    assert gc.get_freeze_count() > before + 1_000
    assert len(made) == 500_000
    assert old < 50_000


def test_everything_is_looked_through_when_enough_was_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = GarbageCollector()
    collector.begin()
    reference = old_cycle()
    gc.collect()
    collector.collect_if_due()
    assert reference() is not None
    monkeypatch.setattr("warren.runtime.garbage_collector.COLLECTION_OBJECTS_MIN", 0)
    collector.collect_if_due()
    assert reference() is None


def test_what_has_not_doubled_is_not_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.runtime.garbage_collector.COLLECTION_OBJECTS_MIN", 0)
    collector = GarbageCollector()
    collector.begin()
    kept: list[list[int]] = [[] for _ in range(100_000)]
    gc.collect()
    collector.collect_if_due()
    reference = old_cycle()
    collector.collect_if_due()
    assert reference() is not None
    assert len(kept) == 100_000


def test_nothing_is_set_aside_after_the_end() -> None:
    collector = GarbageCollector()
    collector.begin()
    collector.end()
    before = gc.get_freeze_count()
    kept = old_cycle()
    assert gc.get_freeze_count() == before
    assert kept() is not None
