"""What was written out of order, put in order."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from warren.store.sorting import in_order


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_positions_are_in_order_and_of_two_the_later_counts(positions: list[int]) -> None:
    locations = list(range(100, 100 + len(positions)))
    sizes = [location % 7 for location in locations]
    latest = dict(zip(positions, locations, strict=True))
    found = in_order(array("Q", positions), array("Q", locations), array("I", sizes))
    assert list(found[0]) == sorted(latest)
    assert list(found[1]) == [latest[position] for position in sorted(latest)]
    assert list(found[2]) == [location % 7 for location in found[1]]
