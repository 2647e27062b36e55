"""Positions that are done with, as runs."""

from hypothesis import given
from hypothesis import strategies as st

from warren.store.lane import Lane


def runs_of(positions: set[int]) -> list[tuple[int, int]]:
    """The plain way to the same answer."""
    runs: list[tuple[int, int]] = []
    for position in sorted(positions):
        if runs and runs[-1][1] == position:
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


@given(st.permutations(range(12)), st.integers(0, 12))
def test_runs_are_what_was_released_in_any_order(order: list[int], count: int) -> None:
    lane = Lane(1, 0)
    for position in order[:count]:
        lane.release(position, position + 1)
    assert lane.runs() == runs_of(set(order[:count]))


@given(st.lists(st.integers(1, 5), max_size=8), st.randoms())
def test_whole_runs_are_released_as_their_positions(sizes: list[int], chance: object) -> None:
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    parts = list(zip([0, *ends], ends, strict=False))
    chance.shuffle(parts)  # type: ignore[attr-defined]
    lane = Lane(1, 0)
    for first, end in parts[1:]:
        lane.release(first, end)
    assert lane.runs() == runs_of({position for first, end in parts[1:] for position in range(first, end)})


def test_a_lane_that_is_read_in_order_is_one_number() -> None:
    lane = Lane(1, 0)
    for position in range(1000):
        lane.release(position, position + 1)
    assert (lane.low, lane.runs()) == (1000, [(0, 1000)])
