"""When the garbage collector runs, and which objects it examines."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from warren.runtime.garbage_collector import GarbageCollector


class Cycle:
    """An object that refers to itself."""

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
    """A reference cycle that was frozen while it was in use."""
    cycle = Cycle()
    reference = weakref.ref(cycle)
    gc.collect()
    return reference


def test_no_collection_runs_during_start_and_all_objects_are_frozen_after_it() -> None:
    collector = GarbageCollector()
    cycle = Cycle()
    reference = weakref.ref(cycle)
    del cycle
    made = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
    assert reference() is not None
    collector.begin()
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


@pytest.mark.slow
def test_old_objects_are_frozen_before_they_become_many() -> None:
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


def test_all_objects_are_examined_once_enough_were_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = GarbageCollector()
    collector.begin()
    reference = old_cycle()
    gc.collect()
    collector.collect_if_due()
    assert reference() is not None
    monkeypatch.setattr("warren.runtime.garbage_collector.COLLECTION_OBJECTS_MIN", 0)
    collector.collect_if_due()
    assert reference() is None


def test_no_full_collection_runs_before_the_objects_have_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_nothing_is_frozen_after_the_end() -> None:
    collector = GarbageCollector()
    collector.begin()
    collector.end()
    before = gc.get_freeze_count()
    kept = old_cycle()
    assert gc.get_freeze_count() == before
    assert kept() is not None
