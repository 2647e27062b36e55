"""Where messages were put, within bounds."""

import pytest

from warren.vhost import trail as module
from warren.vhost.trail import Trail


def test_places_are_known_by_queue_until_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES_REMEMBERED_MAX", 3)
    trail = Trail()
    for queue, place in (("one", 1), ("other", 2), ("one", 3), ("one", 4)):
        trail.add(queue, place)
    assert {name: list(places) for name, places in trail.places.items()} == {"one": [1, 3], "other": [2]}
    assert trail.count == 3
    trail.clear()
    assert (trail.count, trail.places) == (0, {})


def test_what_was_taken_back_is_known_by_its_number() -> None:
    trail = Trail()
    trail.took_back(5)
    assert (trail.back.has(5), trail.back.has(4), trail.back_count) == (True, False, 1)
