"""A page of a sorted list, found without sorting the whole list."""

import asyncio
import random

import pytest

from warren import limits
from warren.management.partial_sort import partial_argsort

COUNT = limits.RANKED_PER_TURN * 2 + 77
CHANCE = random.Random(7)
KEYS = {
    "equal": [0] * COUNT,
    "nearly equal": [int(at % 500 == 3) * at for at in range(COUNT)],
    "different": [CHANCE.random() for _ in range(COUNT)],
    "in order": list(range(COUNT)),
    "the other way round": list(range(COUNT, 0, -1)),
    "in periods": [at % 49 for at in range(COUNT)],
    "half of them equal": [CHANCE.choice((0.0, CHANCE.random())) for _ in range(COUNT)],
    "two": [at % 2 for at in range(COUNT)],
    "names": [f"q{at * 7919 % COUNT}" for at in range(COUNT)],
    "in clumps": [at // 700 for at in range(COUNT)],
    "rare ones": [1] * (COUNT - 3) + [0, 2, 0],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_a_page_equals_that_of_the_sorted_list(keys: list[object]) -> None:
    places = sorted(range(COUNT), key=keys.__getitem__)  # type: ignore[arg-type]
    for start in (0, 1, COUNT // 3, COUNT // 2, COUNT * 3 // 5, COUNT - 100):
        found = asyncio.run(partial_argsort(keys, start, start + 100))
        assert found == places[start : start + 100]
    assert asyncio.run(partial_argsort(keys, 0, COUNT)) == places


def test_a_short_list_is_sorted() -> None:
    assert asyncio.run(partial_argsort([3, 1, 2], 0, 3)) == [1, 2, 0]
    assert asyncio.run(partial_argsort([3, 1, 2], 1, 2)) == [2]
    assert asyncio.run(partial_argsort([], 0, 0)) == []
    assert asyncio.run(partial_argsort([1], 1, 1)) == []


def test_a_page_is_correct_when_the_sample_is_misleading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.management.partial_sort._SAMPLE", 2)
    monkeypatch.setattr("warren.management.partial_sort._MARGIN", 0)
    for name in ("different", "half of them equal", "rare ones"):
        keys = KEYS[name]
        places = sorted(range(COUNT), key=keys.__getitem__)  # type: ignore[arg-type]
        assert asyncio.run(partial_argsort(keys, 900, 950)) == places[900:950]
        assert asyncio.run(partial_argsort(keys, COUNT - 3, COUNT)) == places[-3:]
