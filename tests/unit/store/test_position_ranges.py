"""A bounded set of positions as ranges, compared with a set of numbers."""

import random

import pytest
from tests.seeds import SEEDS

from warren.limits_relay import POSITION_RANGES_MAX
from warren.model.message_position import RANK_SHIFT
from warren.store.position_ranges import PositionRanges, used_at

STARTS = (7, 2**64 - 1)
RANKS = (0, 1, 2**16 - 1)


@pytest.mark.seeds(SEEDS)
def test_a_set_has_what_was_added_also_after_it_was_encoded(seed: int) -> None:
    chance = random.Random(seed)
    ranges, expected = PositionRanges(seed), set()
    highest = chance.choice((5, 40, 300))
    for _ in range(chance.randrange(200)):
        place = chance.choice(RANKS) << RANK_SHIFT | chance.choice((0, 2**40)) + chance.randrange(highest)
        position = chance.choice(STARTS), place
        assert ranges.has(*position) == (position in expected)
        if position not in expected:
            ranges.add(*position)
            expected.add(position)
    decoded = PositionRanges.decode(ranges.encode())
    assert decoded.encode() == ranges.encode()
    assert decoded.used_at == used_at(ranges.encode()) == seed
    for start in STARTS:
        for rank in RANKS:
            for low in (0, 2**40):
                for place in range(low, low + highest):
                    position = start, rank << RANK_SHIFT | place
                    assert decoded.has(*position) == (position in expected)


def test_a_queue_that_is_drained_in_order_is_one_range() -> None:
    ranges = PositionRanges(1)
    for place in range(100_000):
        ranges.add(1, place)
    assert len(ranges.encode()) == 9 + 12 + 4
    assert ranges.has(1, 99_999)
    assert not ranges.has(1, 100_000)


def test_beyond_the_bound_the_lower_half_of_the_longest_line_is_forgotten() -> None:
    ranges = PositionRanges(1)
    ranges.add(5, 3)
    for place in range(0, 2 * POSITION_RANGES_MAX, 2):
        ranges.add(6, place)
    assert ranges.has(5, 3)
    assert not ranges.has(6, POSITION_RANGES_MAX - 2)
    assert ranges.has(6, POSITION_RANGES_MAX)
    assert PositionRanges.decode(ranges.encode()).encode() == ranges.encode()


def test_beyond_the_bound_the_older_half_of_lines_with_one_range_is_forgotten() -> None:
    ranges = PositionRanges(1)
    for start in range(POSITION_RANGES_MAX + 1):
        ranges.add(start, 1)
    assert not ranges.has(POSITION_RANGES_MAX // 2 - 1, 1)
    assert ranges.has(POSITION_RANGES_MAX // 2, 1)
    assert ranges.has(POSITION_RANGES_MAX, 1)
