"""Sorting of positions that were written out of order."""

from hypothesis import given
from hypothesis import strategies as st

from warren.model.column import Column
from warren.store.sorting import in_order


def column_of(numbers: list[int]) -> Column:
    column = Column()
    for number in numbers:
        column.append(number)
    return column


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_positions_are_sorted_and_of_duplicates_the_later_counts(positions: list[int]) -> None:
    locations = list(range(100, 100 + len(positions)))
    sizes = [location % 7 for location in locations]
    latest = dict(zip(positions, locations, strict=True))
    found = in_order(column_of(positions), column_of(locations), column_of(sizes))
    assert list(found[0].numbers()) == sorted(latest)
    assert list(found[1].numbers()) == [latest[position] for position in sorted(latest)]
    assert list(found[2].numbers()) == [location % 7 for location in found[1].numbers()]
