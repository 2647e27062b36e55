"""A set of positions that are added in any order."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.store.position_set import PositionSet

# Pages of 4,096 positions begin around these.
NEAR_PAGES = st.builds(
    lambda page, near: max(page * 4_096 + near, 0), st.integers(0, 3), st.integers(-20, 19)
)


def runs_of(positions: set[int]) -> list[tuple[int, int]]:
    """The runs of consecutive positions, computed naively."""
    runs: list[tuple[int, int]] = []
    for position in sorted(positions):
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


@given(st.permutations(range(12)), st.integers(0, 12))
def test_runs_do_not_depend_on_the_order_of_adding(order: list[int], count: int) -> None:
    positions = PositionSet()
    for position in order[:count]:
        positions.add(position, position + 1)
    assert positions.runs() == runs_of(set(order[:count]))


@given(st.lists(st.tuples(NEAR_PAGES, st.integers(1, 9_000)), max_size=8))
def test_it_behaves_as_a_set(added: list[tuple[int, int]]) -> None:
    positions = PositionSet()
    plain: set[int] = set()
    for first, count in added:
        positions.add(first, first + count)
        plain.update(range(first, first + count))
    assert positions.runs() == runs_of(plain)
    assert positions.end == max(plain, default=-1) + 1
    edges = {edge + near for run in runs_of(plain) for edge in run for near in (-1, 0, 1) if edge + near >= 0}
    assert {edge for edge in edges if positions.has(edge)} == edges & plain


def test_positions_added_in_order_take_one_number() -> None:
    positions = PositionSet()
    for position in range(10_000):
        positions.add(position, position + 1)
    assert (positions.low, positions.runs()) == (10_000, [(0, 10_000)])


@pytest.mark.parametrize("seed", range(20))
def test_a_set_without_gaps_takes_one_number(seed: int) -> None:
    order = list(range(9_000))
    random.Random(seed).shuffle(order)
    positions = PositionSet()
    for position in order:
        positions.add(position, position + 1)
    assert (positions.low, positions.runs()) == (9_000, [(0, 9_000)])
