"""A ring of references: first in, first out, and any place in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.model.ring import Ring


def listed(ring: Ring) -> list[object]:
    return [ring.get(place) for place in range(ring.count)]


def test_an_empty_ring_has_nothing_to_give() -> None:
    ring = Ring()
    with pytest.raises(IndexError):
        ring.popleft()
    for place in (-1, 0, 1):
        with pytest.raises(IndexError):
            ring.get(place)
        with pytest.raises(IndexError):
            ring.take(place)


def test_a_taken_place_holds_none_until_the_front_passes_it() -> None:
    ring = Ring()
    for item in "abc":
        ring.append(item)
    assert ring.take(1) == "b"
    assert listed(ring) == ["a", None, "c"]
    assert [ring.popleft() for _ in range(3)] == ["a", None, "c"]


def test_it_grows_and_shrinks_by_thousands_and_keeps_the_order() -> None:
    ring = Ring()
    for item in range(5000):
        ring.append(item)
    for item in range(4990):
        assert ring.popleft() == item
        ring.append(-item) if item % 100 == 0 else None
    assert ring.get(0) == 4990
    assert ring.count == 60


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "popleft", "take", "clear"]), st.integers(0, 30)),
    max_size=80,
)


@given(STEPS, st.integers(0, 20))
def test_it_does_what_a_list_does(steps: list[tuple[str, int]], turned: int) -> None:
    ring, naive = Ring(), []
    for item in range(turned):
        ring.append(item)
        ring.popleft()
    for step, value in steps:
        if step == "append":
            ring.append(value)
            naive.append(value)
        elif step == "popleft" and naive:
            assert ring.popleft() == naive.pop(0)
        elif step == "take" and naive:
            assert ring.take(value % len(naive)) == naive[value % len(naive)]
            naive[value % len(naive)] = None
        elif step == "clear" and value < 3:
            ring.clear()
            naive.clear()
        assert listed(ring) == naive
