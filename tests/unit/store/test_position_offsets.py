"""Where the messages of a group are kept after parts of its log were void."""

from warren.store.group_record import PositionOffset
from warren.store.position_offsets import PositionOffsets


def moved() -> PositionOffsets:
    """Positions 10 to 12 were void once, and 15 twice."""
    offsets = PositionOffsets()
    offsets.set(10, 3)
    offsets.set(15, 4)
    offsets.set(15, 6)
    return offsets


def test_positions_are_those_of_the_store_until_something_was_void() -> None:
    assert PositionOffsets().stored(7) == 7
    assert PositionOffsets().listed(0) == []
    assert list(PositionOffsets().void(5, 5)) == []


def test_an_offset_applies_from_its_position_on() -> None:
    assert [moved().stored(position) for position in (0, 9, 10, 14, 15, 99)] == [0, 9, 13, 17, 21, 105]


def test_of_two_offsets_from_one_position_the_later_counts_and_earlier_ones_stay() -> None:
    assert moved().listed(2) == [PositionOffset(2, 10, 3), PositionOffset(2, 15, 6)]
    again = moved()
    again.set(8, 20)
    assert again.listed(0) == [PositionOffset(0, 8, 20)]


def test_what_is_between_and_behind_the_positions_of_the_group_is_void() -> None:
    assert list(moved().void(20, 30)) == [(10, 13), (18, 21), (26, 30)]
    assert list(moved().void(15, 18)) == [(10, 13), (18, 21)]


def test_offsets_of_settled_positions_are_forgotten_and_lead_to_settled_ones() -> None:
    offsets = moved()
    offsets.forget(20)
    assert len(offsets.listed(0)) == 2
    offsets.forget(21)
    assert offsets.listed(0) == [PositionOffset(0, 15, 6)]
    assert offsets.stored(12) < 21
    assert offsets.stored(15) == 21


def test_a_position_in_the_store_leads_back_to_that_of_the_group() -> None:
    assert [moved().logical(moved().stored(position)) for position in range(30)] == list(range(30))


def test_ranges_in_the_store_lead_back_to_those_of_the_group_without_void_positions() -> None:
    offsets = moved()
    for first in range(30):
        for end in range(first, 30):
            expected = [position for position in range(30) if first <= offsets.stored(position) < end]
            found = [each for low, high in offsets.logical_ranges(first, end) for each in range(low, high)]
            assert found == expected
