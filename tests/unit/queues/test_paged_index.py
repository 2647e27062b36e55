"""The index of messages of a queue that are on disk only."""

import random

import pytest

from warren.limits import PAGED_BLOCK_SIZE, PAGED_GAP_MAX
from warren.queues.paged_index import PagedIndex


def drained(row: PagedIndex) -> list[tuple[int, int]]:
    found = []
    while row.count:
        found.append((row.first_position(), row.first_location()))
        row.pass_first()
    return found


def test_entries_are_returned_in_the_order_of_appending() -> None:
    row = PagedIndex()
    entries = [(position, position + 7) for position in range(5, 5 + 3 * PAGED_BLOCK_SIZE)]
    for position, location in entries:
        row.append(position, location)
    assert row.count == len(entries)
    assert drained(row) == entries


@pytest.mark.parametrize("gap", [1, PAGED_GAP_MAX, PAGED_GAP_MAX + 1, 10**12])
def test_positions_may_be_missing(gap: int) -> None:
    row = PagedIndex()
    row.append(1, 100)
    row.append(2 + gap, 200)
    assert not row.holds(2)
    assert row.holds(2 + gap)
    assert drained(row) == [(1, 100), (2 + gap, 200)]


def test_an_emptied_index_can_be_reused() -> None:
    row = PagedIndex()
    row.append(1, 100)
    assert drained(row) == [(1, 100)]
    row.append(9, 300)
    assert drained(row) == [(9, 300)]


@pytest.mark.parametrize("seed", range(20))
def test_an_index_behaves_as_a_dict(seed: int) -> None:
    chance = random.Random(seed)
    row, model = PagedIndex(), dict[int, int]()
    end = 0
    for _ in range(6_000):
        action = chance.random()
        if action < 0.6:
            end += 1 if chance.random() < 0.9 else chance.randrange(1, 3 * PAGED_GAP_MAX)
            row.append(end, end * 3 + 1)
            model[end] = end * 3 + 1
        elif action < 0.8 and model:
            first = min(model)
            assert (row.first_position(), row.first_location()) == (first, model.pop(first))
            row.pass_first()
        else:
            position = chance.randrange(end + 10)
            assert row.holds(position) == (position in model)
            if position in model:
                assert row.take(position) == model.pop(position)
        assert row.count == len(model)
    assert drained(row) == sorted(model.items())
